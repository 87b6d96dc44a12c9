"""The published weights: those that are not installed are fetched, checked, and kept for the next time."""

import concurrent.futures
import hashlib
import http.server
import json
import shutil
import threading

import pytest
from commands import ga3c_tf

from ga3c_tf.cli import agents
from ga3c_tf.errors import UserError
from ga3c_tf.trained import pretrained as published
from ga3c_tf.trained.policies import RandomAgent
from ga3c_tf.trained.weights import FILE

NAME = "minatar_freeway"
CARD = ("README.md", "config.json", "score.json")


@pytest.fixture
def clone(monkeypatch, tmp_path):
    """A clone's folder of weights, while the installed one has all of Freeway's but the weights' file."""
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
    assert lines == [
        f"{file.parent.name}/{FILE} {digest}" for file, digest in zip(files, digests, strict=True)
    ]
    assert [file.parent.name for file in files] == published.published_names()


@pytest.mark.parametrize("end", ["", "/"])  # a file server may not have the address with two slashes
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


def test_each_version_of_the_weights_has_its_own_place(clone, monkeypatch):
    monkeypatch.setenv(published.SOURCE, str(clone))
    folder = published.published_folder(NAME)
    whole = (folder / FILE).read_bytes()
    (clone / NAME / FILE).write_bytes(b"later")
    digest = hashlib.sha256(b"later").hexdigest()
    (published.PUBLISHED / published.REGISTRY).write_text(f"{NAME}/{FILE} {digest}\n")
    assert (published.published_folder(NAME) / FILE).read_bytes() == b"later"
    assert (folder / FILE).read_bytes() == whole


def test_many_may_fetch_at_once(clone, monkeypatch, tmp_path):
    monkeypatch.setenv(published.SOURCE, str(clone))
    for _ in range(10):
        barrier = threading.Barrier(8)

        def fetch(barrier=barrier):
            barrier.wait()
            folder = published.published_folder(NAME)
            return folder, sorted(file.name for file in folder.iterdir())

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            found = [each.result() for each in [pool.submit(fetch) for _ in range(8)]]
        folder, _ = found[0]
        assert found == [(folder, sorted([FILE, *CARD]))] * 8
        assert [path.name for path in folder.parent.iterdir()] == [NAME]
        shutil.rmtree(tmp_path / "cache")


def test_the_random_policy_needs_no_weights(clone):
    folder = agents.named_agent(None, NAME, fetch=False)
    assert RandomAgent(folder, 0).config.env_id == "MinAtar/Freeway-v1"
    with pytest.raises(UserError, match="not in this installation"):
        agents.named_agent(None, NAME)


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
    assert "has other weights than this version of ga3c-tf" in refused()
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("nowhere", "No such file or directory"),
        ("~/nowhere", "No such file or directory"),
        ("file:///nowhere", "No such file or directory"),
        ("http://127.0.0.1:9", "Connection refused"),
        ("http://[::1", "Invalid IPv6 URL"),
        ("gopher://host", "unknown url type: gopher"),
        ("web", "File not found"),
    ],
)
def test_a_source_that_cannot_be_read_is_told_in_one_line(source, reason, request, clone, monkeypatch):
    source = request.getfixturevalue(source) if source == "web" else source
    shutil.rmtree(clone / NAME)
    monkeypatch.setenv(published.SOURCE, source)
    line = refused()
    assert f"cannot read {source}/minatar_freeway/weights.npz: " in line and reason in line
    assert "GA3C_TF_WEIGHTS has to be the folder results/weights of a clone, or its URL" in line


def test_a_cache_that_cannot_be_written_is_told_in_one_line(clone, monkeypatch, tmp_path):
    monkeypatch.setenv(published.SOURCE, str(clone))
    (tmp_path / "cache").write_text("a file in the place of the folder")
    line = refused()
    assert f"cannot write to {tmp_path / 'cache'}" in line and "set XDG_CACHE_HOME to another folder" in line


def test_the_command_line_has_the_names_of_all():
    done = ga3c_tf("evaluate", "--pretrained", "???")
    assert done.returncode == 2 and all(name in done.stderr for name in published.published_names())


def test_fetched_weights_score_as_those_of_the_clone(clone, monkeypatch):
    monkeypatch.setenv(published.SOURCE, str(clone))
    folder = published.published_folder(NAME)
    theirs, ours = (ga3c_tf("evaluate", each, "--episodes", 1, "--json") for each in (clone / NAME, folder))
    assert json.loads(ours.stdout)["scores"] == json.loads(theirs.stdout)["scores"]
