"""Additions to published weights for the Hugging Face Hub: the Hub's metadata, and instructions for use."""

from __future__ import annotations

from pathlib import Path

from ga3c_tf.config import Config
from ga3c_tf.files import json_text, write_aside
from ga3c_tf.trained.exporting.metadata import describe_agent
from ga3c_tf.trained.policies import TrainedAgent
from ga3c_tf.trained.publishing.markdown import lines_of

REPLAY = "replay.mp4"
"""Name of the video that the Hub shows on the page of an agent."""
REPLAY_STEPS = 3000
"""Maximum number of agent steps in the video: 200 seconds of Atari."""
METADATA = "metadata.json"


def card(lines: list[str], agent: TrainedAgent, folder: Path, score: dict) -> list[str]:
    """Write metadata.json, and return the card with the Hub's metadata before it and instructions for use
    after it.

    Args:
        lines: lines of the card.
        agent: the published agent.
        folder: folder to write to; its name is the name of the model.
        score: scores from `evaluation.summary`.
    """
    lines = _without_additions(lines)
    metadata = describe_agent(agent, score)
    write_aside(folder / METADATA, json_text(metadata, indent=2) + "\n")
    rows = [
        [name.replace("_", " "), " ".join(str(value).split())]
        for name, value in metadata["preprocessing"].items()
    ]
    name = folder.resolve().name
    use = lines_of("hub.md", name=name, file=METADATA, network=metadata["network"], rows=rows)
    return ["---", *_front_matter(name, score, agent.config), "---", "", *lines, "", *use]


def _without_additions(lines: list[str]) -> list[str]:
    """Return the lines of a card that may be of the Hub already, without what `card` adds."""
    if lines[:1] == ["---"]:
        lines = lines[lines.index("---", 1) + 2 :]
    return lines[: lines.index("## Use") - 1] if "## Use" in lines else lines


def _front_matter(name: str, score: dict, config: Config) -> list[str]:
    """Return the metadata the Hub reads from a card, as YAML: library, tags and score as `model-index`."""
    from huggingface_hub import EvalResult, ModelCardData

    env_id = score["env_id"]
    result = EvalResult(
        task_type="reinforcement-learning",
        task_name="reinforcement-learning",
        dataset_type=env_id,
        dataset_name=env_id,
        metric_type="mean_reward",
        metric_name="mean_reward",
        metric_value=f"{score['mean']:.2f} +/- {score['std']:.2f}",
        verified=False,
    )
    kinds = [config.system] if config.algorithm == "actor-critic" else [config.algorithm, config.system]
    data = ModelCardData(
        library_name="ga3c-tf",
        pipeline_tag="reinforcement-learning",
        tags=[env_id, "deep-reinforcement-learning", "reinforcement-learning", *kinds],
        model_name=name,
        eval_results=[result],
    )
    return data.to_yaml().strip().split("\n")
