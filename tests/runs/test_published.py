"""The published weights: those that are not installed are fetched, checked, and kept for the next time."""

import hashlib
import http.server
import json
import shutil
import threading

import pytest
from commands import ga3c_tf

from ga3c_tf.errors import UserError
from ga3c_tf.runs import published
from ga3c_tf.runs.weights import FILE

NAME = "minatar_freeway"
CARD = ("README.md", "config.json", "score.json", "curve.csv")


@pytest.fixture
def clone(monkeypatch, tmp_path):
    """A clone's folder of weights, while the installed one has everything of Freeway's but the file of the weights."""
    installed, clone = tmp_path / "installed", tmp_path / "clone"
    for folder in (installed / NAME, clone / NAME):
        folder.mkdir(parents=True)
        for name in CARD:
            shutil.copy(published.CHECKOUT / NAME / name, folder)
    shutil.copy(published.CHECKOUT / published.REGISTRY, installed)
    shutil.copy(published.CHECKOUT / NAME / FILE, clone / NAME)
    monkeypatch.setattr(published, "PUBLISHED", installed)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(published.SOURCE, raising=False)
    return clone


@pytest.fixture
def web(clone):
    """The address of a web server that has the clone's weights."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *words):
            super().__init__(*words, directory=str(clone))

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_the_registry_has_each_file():
    lines = (published.CHECKOUT / published.REGISTRY).read_text().splitlines()
    files = sorted(published.CHECKOUT.glob(f"*/{FILE}"))
    digests = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    assert lines == [f"{file.parent.name}/{FILE} {digest}" for file, digest in zip(files, digests, strict=True)]
    assert [file.parent.name for file in files] == published.published_names()


@pytest.mark.parametrize("end", ["", "/"])
@pytest.mark.parametrize("source", ["clone", "web"])
def test_weights_are_fetched_once(source, end, request, clone, monkeypatch, tmp_path):
    monkeypatch.setenv(published.SOURCE, f"{request.getfixturevalue(source)}{end}")
    folder = published.published_folder(NAME)
    assert folder.is_relative_to(tmp_path / "cache")
    assert {file.name for file in folder.iterdir()} == {FILE, *CARD}
    for file in folder.iterdir():
        assert file.read_bytes() == (clone / NAME / file.name).read_bytes()
    monkeypatch.delenv(published.SOURCE)
    shutil.rmtree(clone / NAME)
    assert published.weights_called(NAME) == folder


def test_weights_of_another_version_are_fetched_anew(clone, monkeypatch):
    monkeypatch.setenv(published.SOURCE, str(clone))
    folder = published.published_folder(NAME)
    whole = (folder / FILE).read_bytes()
    (folder / FILE).write_bytes(b"earlier")
    assert (published.published_folder(NAME) / FILE).read_bytes() == whole


def refused(name=NAME):
    with pytest.raises(UserError) as error:
        published.published_folder(name)
    [line] = str(error.value).splitlines()
    return line


def test_what_to_do_is_said_where_nothing_says_where_to_fetch_from(clone):
    assert f"set {published.SOURCE} to the folder results/weights of a clone" in refused()


def test_weights_that_are_not_the_published_ones_are_refused(clone, monkeypatch, tmp_path):
    monkeypatch.setenv(published.SOURCE, str(clone))
    (clone / NAME / FILE).write_bytes(b"damaged")
    assert "does not have the weights 'minatar_freeway' of this version" in refused()
    assert not list((tmp_path / "cache").rglob(FILE))


@pytest.mark.parametrize("place", ["nowhere", "http://127.0.0.1:9", "web"])
def test_a_source_without_the_weights_is_told_in_one_line(place, request, clone, monkeypatch):
    source = request.getfixturevalue(place) if place == "web" else place
    shutil.rmtree(clone / NAME)
    monkeypatch.setenv(published.SOURCE, source)
    assert f"cannot fetch the weights 'minatar_freeway' from {source}: " in refused()


def test_a_full_disk_is_told_in_one_line(clone, monkeypatch, tmp_path):
    monkeypatch.setenv(published.SOURCE, str(clone))
    (tmp_path / "cache").write_text("a file in the place of the folder")
    assert "cannot fetch" in refused()


def test_the_command_line_has_the_names_of_all():
    done = ga3c_tf("evaluate", "--pretrained", "???")
    assert done.returncode == 2 and all(name in done.stderr for name in published.published_names())


def test_fetched_weights_score_as_those_of_the_clone(clone, monkeypatch):
    monkeypatch.setenv(published.SOURCE, str(clone))
    folder = published.published_folder(NAME)
    theirs, ours = (ga3c_tf("evaluate", each, "--episodes", 2, "--json") for each in (clone / NAME, folder))
    assert json.loads(ours.stdout)["scores"] == json.loads(theirs.stdout)["scores"]
