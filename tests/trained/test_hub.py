"""A folder for the Hugging Face Hub: a card that the Hub's package reads, and weights that ours does."""

import json
import shutil
import sys
from pathlib import Path

import imageio.v2 as imageio
import numpy as np
import pytest
from commands import ga3c_tf, output_of
from huggingface_hub import ModelCard
from huggingface_hub.utils import validate_repo_id
from safetensors.numpy import load_file

import ga3c_tf as package
from ga3c_tf.errors import UserError
from ga3c_tf.trained import weights
from ga3c_tf.trained.policies import TrainedAgent
from ga3c_tf.trained.publishing import hub


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


def test_without_the_package_it_is_one_line(published, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(UserError, match=r"model.safetensors needs pip install '.\[export\]'"):
        TrainedAgent(published, "best", True, 0, "/CPU:0", print)


def test_only_a_run_is_published(tmp_path):
    done = ga3c_tf("publish", "pong", Path("hub"), "--format", "huggingface", cwd=tmp_path)
    assert done.returncode == 2 and "pong is not a run folder" in done.stderr and not list(tmp_path.iterdir())
