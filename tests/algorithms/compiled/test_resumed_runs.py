"""A run that is resumed in turn with and without compiled programs is the run that goes on without them."""

import itertools

import numpy as np
import pytest
from commands import ga3c_tf

from ga3c_tf.runs.csv_rows import EPISODE_COLUMNS, read_rows
from ga3c_tf.trained.policies import TrainedAgent

TRAIN = ["CartPole-v1", "--system", "serial", "--agents", "2", "--seed", "1"]
ALGORITHMS = {
    "actor-critic": ["--min-training-batch", "10"],
    "dqn": ["--algorithm", "dqn", "--replay-start", "100", "--target-period", "50", "--save-replay"],
}
ENDS = (600, 1200, 1800)
"""Agent steps at which its sessions end."""
COMPILING = "compiling the model"


def run_of(folder, compiled, options):
    """Train, and resume with the next of these values of `compile`; return what each session said."""
    said = []
    for end, value in zip(ENDS, compiled, strict=True):
        words = ["resume", folder, "--set", f"compile={value}"]
        if end == ENDS[0]:
            words = ["train", *TRAIN, *options, "--run-dir", folder, "--compile", value]
        said.append(ga3c_tf(*words, "--steps", end, check=True).stderr)
    return said


def ended(folder):
    """Scores of the episodes, and what the last checkpoint has: weights, statistics and version."""
    scores = [float(row["score"]) for row in read_rows(folder / "episodes.csv", EPISODE_COLUMNS)]
    agent = TrainedAgent(folder, "latest", greedy=False, seed=0, device="/CPU:0", warn=print)
    variables = itertools.chain.from_iterable(agent.model.checkpoint_objects().values())
    return scores, [variable.numpy() for variable in variables]


@pytest.mark.slow  # half a minute
@pytest.mark.parametrize("options", ALGORITHMS.values(), ids=ALGORITHMS)
def test_a_run_is_resumed_plain_and_compiled_in_turn(tmp_path, options):
    assert not any(COMPILING in said for said in run_of(tmp_path / "plain", ["off"] * 3, options))
    said = run_of(tmp_path / "in-turn", ["on", "off", "on"], options)
    assert [COMPILING in text for text in said] == [True, False, True]
    scores, values = ended(tmp_path / "in-turn")
    expected_scores, expected_values = ended(tmp_path / "plain")
    assert scores == expected_scores and len(set(scores)) > 1
    for value, expected in zip(values, expected_values, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-3, atol=1e-4)
