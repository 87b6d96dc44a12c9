"""A folder for the Hugging Face Hub: a card that the Hub's package reads, and weights that ours does."""

import errno
import hashlib
import http.server
import json
import os
import shutil
import sys
import threading
from pathlib import Path

import imageio.v2 as imageio
import numpy as np
import pytest
from commands import ENVIRONMENT, ga3c_tf, output_of
from huggingface_hub import ModelCard
from huggingface_hub.utils import validate_repo_id
from safetensors.numpy import load_file

import ga3c_tf as package
from ga3c_tf.errors import UserError
from ga3c_tf.trained import weights
from ga3c_tf.trained.policies import TrainedAgent
from ga3c_tf.trained.pretrained import PUBLISHED, published_names, weights_called
from ga3c_tf.trained.publishing import hub
from ga3c_tf.trained.publishing.publish import publish_weights
from ga3c_tf.trained.weights import check_free, file_of

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def published(smoke_run, tmp_path_factory):
    """What `publish` writes of a CartPole run for the Hub, with a copy of the run beside it."""
    folder = tmp_path_factory.mktemp("hub")
    shutil.copytree(smoke_run[0], folder / "run")
    said = output_of("publish", folder / "run", folder / "pole", "--episodes", 4, "--format", "huggingface")
    assert said.splitlines()[-1] == f"to upload it: hf upload USER/pole {folder / 'pole'}"
    validate_repo_id("USER/pole")
    return folder / "pole"


def test_the_hubs_package_reads_the_card_and_its_score(published):
    card = ModelCard.load(published / "README.md", ignore_metadata_errors=False)
    score = json.loads((published / "score.json").read_text())
    [result] = card.data.eval_results
    assert (
        result.metric_value == f"{score['mean']:.2f} +/- {score['std']:.2f}"
        and result.metric_type == "mean_reward"
    )
    assert result.task_type == card.data.pipeline_tag == "reinforcement-learning"
    assert result.dataset_name == result.dataset_type == "CartPole-v1"
    assert card.data.model_name == "pole" and card.data.library_name == "ga3c-tf"
    assert {"CartPole-v1", "reinforcement-learning", "deep-reinforcement-learning"} <= {*card.data.tags}
    assert card.text.lstrip().startswith("# pole: CartPole-v1") and "hf download USER/pole" in card.text
    assert "`model.safetensors`" in card.text and weights.FILE not in card.text


def test_the_folder_has_a_video_and_metadata(published):
    assert imageio.get_reader(published / hub.REPLAY).count_frames() > 8
    metadata = json.loads((published / hub.METADATA).read_text())
    assert metadata["environment"] == "CartPole-v1" and metadata["network"] == "mlp-two-trunks"
    assert metadata["score"]["mean"] == json.loads((published / "score.json").read_text())["mean"]
    assert {"README.md", "config.json", "curve.svg", weights.SAFETENSORS} <= {
        path.name for path in published.iterdir()
    }
    assert not (published / weights.FILE).exists()


def test_the_safetensors_are_the_weights_of_the_run(published):
    agent = TrainedAgent(published.parent / "run", "best", True, 0, "/CPU:0", print)
    named = load_file(published / weights.SAFETENSORS)
    assert {"0.value1.kernel", "2.policy1.kernel"} <= set(named)
    own = agent.model.network.get_weights()
    for name, array in named.items():
        np.testing.assert_array_equal(array, own[int(name.split(".")[0])])
        assert array.dtype == np.float32
    assert len(named) == len(own)


def test_the_folder_is_evaluated_played_exported_and_begun_with(published, tmp_path):
    expected = json.loads((published / "score.json").read_text())
    again = json.loads(output_of("evaluate", published, "--episodes", 4, "--json"))
    assert again["scores"] == expected["scores"] and again["agent_steps"] == expected["agent_steps"]
    assert "3 episodes" in output_of("play", published, "--episodes", 3, "--video", tmp_path / "pole.gif")
    output_of("export", published, "--format", "keras", "-o", tmp_path / "pole.keras")
    metadata = json.loads((tmp_path / "pole.keras.json").read_text())
    assert metadata["training"]["commits"] == expected["training"]["commits"] != []
    assert package.load_agent(published, device="cpu").agent_steps == expected["agent_steps"]
    options = ("--preset", "smoke", "--learning-rate", 1e-30, "--initial-weights", published)
    output_of("train", "CartPole-v1", "--run-dir", tmp_path / "run", *options)
    agents = [
        TrainedAgent(folder, "best", True, 0, "/CPU:0", print) for folder in (tmp_path / "run", published)
    ]
    for ours, theirs in zip(*(agent.model.network.get_weights() for agent in agents), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_damaged_weights_are_refused(published, tmp_path):
    copy = shutil.copytree(published, tmp_path / "pole")
    whole = (copy / weights.SAFETENSORS).read_bytes()
    for cut in (0, 10, len(whole) // 2, len(whole) - 1):
        (copy / weights.SAFETENSORS).write_bytes(whole[:cut])
        with pytest.raises(UserError, match="is damaged"):
            TrainedAgent(copy, "best", True, 0, "/CPU:0", print)


def test_the_other_format_takes_the_place_of_the_first(published, tmp_path):
    copy = shutil.copytree(published, tmp_path / "pole")
    output_of("publish", published.parent / "run", copy, "--episodes", 1)
    assert (copy / weights.FILE).exists() and not (copy / weights.SAFETENSORS).exists()
    assert not (copy / hub.REPLAY).exists() and not (copy / hub.METADATA).exists()
    assert (copy / "README.md").read_text().startswith("# pole")


@pytest.mark.parametrize(
    ("text", "line"), [(None, "has no score.json"), ("{}", "is damaged"), ('{"mean": 3.0}', "is damaged")]
)
def test_weights_without_whole_scores_are_not_published(published, tmp_path, text, line):
    copy = shutil.copytree(published, tmp_path / "pole")
    (copy / weights.SCORE).unlink()
    if text is not None:
        (copy / weights.SCORE).write_text(text)
    agent = TrainedAgent(published, "best", True, 0, "/CPU:0", print)
    with pytest.raises(UserError, match=line):
        publish_weights(copy, tmp_path / "new", agent)
    assert not (tmp_path / "new").exists()


def test_a_publication_of_weights_that_failed_can_be_repeated(published, tmp_path, monkeypatch):
    agent = TrainedAgent(published, "best", True, 0, "/CPU:0", print)
    new = tmp_path / "new"

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copy", full)
        with pytest.raises(UserError, match=r"cannot write to .*new: No space left on device; publish to it"):
            publish_weights(published, new, agent)
    assert not (new / "README.md").exists()
    (new / "began_with").mkdir()  # of other weights, published before
    publish_weights(published, new, agent)
    assert (new / "README.md").exists() and not (new / "began_with").exists()


def test_a_card_of_the_hub_is_not_made_twice(published, tmp_path):
    agent = TrainedAgent(published, "best", True, 0, "/CPU:0", print)
    for name in ("first", "second"):
        publish_weights(published, tmp_path / name, agent)
        published = tmp_path / name
    lines = (tmp_path / "second" / "README.md").read_text().splitlines()
    assert lines.count("---") == 2 and lines.count("## Use") == 1


def test_without_the_package_it_is_one_line(published, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(UserError, match=r"model.safetensors needs pip install '.\[export\]'"):
        TrainedAgent(published, "best", True, 0, "/CPU:0", print)


def test_in_the_other_format_only_a_run_is_published(tmp_path):
    done = ga3c_tf("publish", "pong", Path("copy"), cwd=tmp_path)
    assert done.returncode == 2 and "pong is not a run folder" in done.stderr and not list(tmp_path.iterdir())


def test_weights_without_a_card_are_not_published(tmp_path):
    shutil.copytree(PUBLISHED / "minatar_freeway", tmp_path / "mine", ignore=shutil.ignore_patterns("*.md"))
    done = ga3c_tf("publish", "mine", "copy", "--format", "huggingface", cwd=tmp_path)
    assert done.returncode == 2 and "mine has no README.md, as published weights have" in done.stderr


def test_published_weights_keep_their_score(tmp_path):
    words = ("publish", "minatar_freeway", "copy", "--format", "huggingface", "--episodes", 5)
    done = ga3c_tf(*words, cwd=tmp_path)
    assert done.returncode == 2 and "has weights, whose score is kept; leave --episodes out" in done.stderr


@pytest.mark.parametrize("place", ["mine", "mine/copy"])
def test_weights_are_not_published_into_their_own_folder(tmp_path, place):
    folder = shutil.copytree(PUBLISHED / "minatar_freeway", tmp_path / "mine")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(UserError, match=r"would be in the weights .* themselves; name another folder"):
        publish_weights(folder, tmp_path / place, agent=None)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_weights_of_the_best_evaluation_are_not_published(tmp_path):
    folder = shutil.copytree(PUBLISHED / "minatar_freeway", tmp_path / weights.BEST)
    with pytest.raises(UserError, match="were chosen by the score that they have; publish their run"):
        publish_weights(folder, tmp_path / "copy", agent=None)


def test_only_what_belongs_to_the_weights_is_published(published, tmp_path):
    folder = shutil.copytree(published, tmp_path / "hub")
    (tmp_path / "mine" / ".git").mkdir(parents=True)
    shutil.copytree(PUBLISHED / "minatar_freeway", tmp_path / "mine", dirs_exist_ok=True)
    agent = TrainedAgent(tmp_path / "mine", "best", True, 0, "/CPU:0", print)
    publish_weights(tmp_path / "mine", folder, agent)
    names = {path.name for path in folder.iterdir()}
    assert not names & {".git", "curve.csv"} and names >= {"curve.svg", weights.EPISODE}


def test_another_model_of_the_hub_is_not_overwritten(tmp_path):
    for name in (weights.SAFETENSORS, "config.json", "README.md"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(UserError, match="has something else in it; name a new folder for the weights"):
        check_free(tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        name if name == "minatar_freeway" else pytest.param(name, marks=pytest.mark.slow)
        for name in published_names()
    ],
)
def test_published_weights_are_written_for_the_hub_with_their_card(name, tmp_path):
    """All of them, which takes minutes for the videos of Atari games."""
    said = output_of("publish", name, tmp_path / "hub", "--format", "huggingface")
    assert said.splitlines()[-1].startswith("to upload it: hf upload USER/hub ")
    card = ModelCard.load(tmp_path / "hub" / "README.md", ignore_metadata_errors=False)
    source = PUBLISHED / name
    score = json.loads((source / "score.json").read_text())
    [result] = card.data.eval_results
    assert result.metric_value == f"{score['mean']:.2f} +/- {score['std']:.2f}"
    assert card.text.lstrip().startswith(f"# {name}: {score['env_id']}") and weights.FILE not in card.text
    assert json.loads((tmp_path / "hub" / "score.json").read_text()) == score
    assert imageio.get_reader(tmp_path / "hub" / hub.REPLAY).count_frames() > 8
    files = {path.name for path in (tmp_path / "hub").iterdir()}
    assert files >= {weights.SAFETENSORS, "config.json", "curve.svg", "metadata.json"}
    assert weights.FILE not in files
    ours, theirs = (package.load_agent(folder, device="cpu") for folder in (source, tmp_path / "hub"))
    for array, written in zip(ours.network.get_weights(), theirs.network.get_weights(), strict=True):
        np.testing.assert_array_equal(array, written)


class StubHub(http.server.BaseHTTPRequestHandler):
    """Answers as the Hub does for the weights in `folder`, by the name somebody/pole."""

    folder: Path

    def _answer(self, content, **headers):
        self.send_response(200)
        for header, value in {"Content-Length": len(content), "X-Repo-Commit": COMMIT, **headers}.items():
            self.send_header(header.replace("_", "-"), str(value))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def do_GET(self):
        path = self.path.partition("?")[0]
        if path.startswith("/api/models/somebody/pole"):
            names = [file.name for file in self.folder.iterdir() if file.is_file()]
            siblings = [{"rfilename": name} for name in names]
            about = {"id": "somebody/pole", "sha": COMMIT, "siblings": siblings}
            tree = [{"type": "file", "path": name, "oid": COMMIT, "size": 1} for name in names]
            answer = tree if "/tree/" in path else about
            self._answer(json.dumps(answer).encode(), Content_Type="application/json")
        elif path.startswith("/somebody/pole/resolve/"):
            content = (self.folder / path.rpartition("/")[2]).read_bytes()
            self._answer(content, ETag=f'"{hashlib.sha1(content).hexdigest()}"')
        else:
            self.send_error(404)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


@pytest.fixture
def stub(published, monkeypatch, tmp_path):
    """A server in place of the Hub, which has the published CartPole agent."""
    handler = type("Handler", (StubHub,), {"folder": published})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield {**ENVIRONMENT, "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}", "HF_HUB_DISABLE_XET": "1"}
    server.shutdown()
    server.server_close()


def test_weights_on_the_hub_are_fetched_by_name(published, stub, tmp_path):
    environment = {**stub, "XDG_CACHE_HOME": str(tmp_path / "cache"), "HF_HOME": str(tmp_path / "hf")}
    arguments = ("evaluate", "--pretrained", "hf:somebody/pole", "--episodes", 4, "--json")
    done = ga3c_tf(*arguments, env=environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["scores"] == json.loads((published / "score.json").read_text())["scores"]
    fetched = tmp_path / "cache" / "ga3c-tf" / "hub" / "somebody" / "pole"
    assert (fetched / weights.SAFETENSORS).read_bytes() == (published / weights.SAFETENSORS).read_bytes()
    assert not (fetched / hub.REPLAY).exists()  # what is not needed is not fetched
    done = ga3c_tf("evaluate", "hf:somebody/else", "--episodes", 1, env=environment)
    assert done.returncode == 2 and done.stderr.startswith("ga3c-tf: cannot fetch hf:somebody/else: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_name_on_the_hub_is_what_huggingface_hub_fetches(published, monkeypatch, tmp_path):
    """Without a server: what is in its place copies a local folder."""

    def copy(repository, local_dir, allow_patterns):
        assert repository == "somebody/pole"
        shutil.copytree(published, local_dir, dirs_exist_ok=True)

    monkeypatch.setattr("huggingface_hub.snapshot_download", copy)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert package.load_agent("hf:somebody/pole", device="cpu").config.env_id == "CartPole-v1"
    assert file_of(weights_called("hf:somebody/pole")).name == weights.SAFETENSORS
    (tmp_path / "ga3c-tf" / "hub" / "somebody" / "pole" / "config.json").unlink()
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: None)
    with pytest.raises(UserError, match=r"hf:somebody/pole has no model.safetensors and config.json"):
        package.load_agent("hf:somebody/pole")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UserError, match=r"needs pip install '.\[export\]' in a clone, for huggingface_hub"):
        package.load_agent("hf:somebody/pole")
