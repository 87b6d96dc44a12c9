"""The published results: what the cards of weights say is what their files hold."""

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

from ga3c_tf.reproduce.runs.archive import archived
from ga3c_tf.trained.publishing.card import without_places

RESULTS = Path(__file__).parents[2] / "results"
CARDS = sorted((RESULTS / "weights").glob("*/README.md"))
RUN_FOLDER = re.compile(r"from the run folder (\S+)\.$", re.MULTILINE)


def recorded(card):
    """Return the record of the run that the weights come from, by file; {} where there is none."""
    [name] = RUN_FOLDER.findall(card.read_text())
    return archived(RESULTS / "runs" / name)


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.parent.name)
def test_the_card_is_about_the_files_beside_it(card):
    text = card.read_text()
    score = json.loads((card.parent / "score.json").read_text())
    assert np.mean(score["scores"]) == pytest.approx(score["mean"])
    assert len(score["scores"]) == score["episodes"]
    assert f"Mean raw score **{score['mean']:.2f}**" in text
    assert hashlib.sha256((card.parent / "weights.npz").read_bytes()).hexdigest() in text
    steps = (card.parent / "curve.csv").read_text().splitlines()[-1].split(",")[1]
    assert f"at {int(steps):,} agent steps" in text


@pytest.mark.parametrize("card", list(filter(recorded, CARDS)), ids=lambda card: card.parent.name)
def test_score_and_curve_are_those_of_the_recorded_run(card):
    run = recorded(card)
    score = json.loads((card.parent / "score.json").read_text())
    assert score["scores"] == json.loads(run["run.json"])["evaluation"]["scores"]
    assert (card.parent / "curve.csv").read_bytes() == run["curve.csv"]


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.parent.name)
def test_a_card_has_no_paths_of_a_machine_and_shows_its_pictures_first(card):
    text = card.read_text()
    assert re.findall(r"(?<![\w./-])/(?:root|home|work|tmp)\b", text) == []
    assert text.index("![The first seconds") < text.index("![Score against time") < text.index("SHA-256")


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("ga3c-tf publish /root/runs/pong results/weights/pong", "ga3c-tf publish pong results/weights/pong"),
        ("ga3c-tf publish '/root/my runs/pong' out", "ga3c-tf publish pong out"),
        (
            "train ALE/Pong-v5 --run-dir=/tmp/a/b --loss mine:huber",
            "train ALE/Pong-v5 --run-dir=b --loss mine:huber",
        ),
    ],
)
def test_a_command_on_a_card_has_the_names_of_files_only(command, shown):
    assert without_places(command) == shown


def test_the_page_of_all_weights_names_and_shows_each():
    text = (RESULTS / "weights" / "README.md").read_text()
    for name in (card.parent.name for card in CARDS):
        assert f"[![{name}]({name}/episode.gif)]({name})" in text and f"[{name}]({name})" in text


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.parent.name)
def test_an_agent_below_the_random_policy_is_said_to_be(card):
    score = json.loads((card.parent / "score.json").read_text())
    below = score["mean"] <= score["random_policy"]
    assert ("**This agent is worse than the random policy.**" in card.read_text()) == below


def test_all_but_pong_are_on_record():
    assert [card.parent.name for card in CARDS if not recorded(card)] == ["pong"]
