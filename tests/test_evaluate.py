"""Evaluation: every episode counts, however long; whole games; the words of the protocol."""

import numpy as np
import pytest

from ga3c_tf import evaluate
from ga3c_tf.config import Config, UserError


class RandomAgent:
    """Acts at random, so that no checkpoint is needed."""

    agent_steps, checkpoint = 7, "best (by rolling score)"

    def __init__(self, env_id, **settings):
        self.config = Config(env_id=env_id, **settings)

    def act(self, states):
        return np.zeros(len(states), np.int64)


def test_short_episodes_are_not_preferred():
    scores = evaluate.evaluate(RandomAgent("helpers:ShortIsBad-v0"), 400, seed=3)
    assert len(scores) == 400 and set(np.round(scores, 6)) == {-1.0, 1.0}
    assert abs(np.mean(scores)) < 0.2  # the first 400 to end would give about -0.9


@pytest.mark.parametrize("episodes", [1, 9, 10, 11])
def test_as_many_episodes_as_asked_for(episodes):
    assert len(evaluate.evaluate(RandomAgent("helpers:ShortIsBad-v0"), episodes, seed=0)) == episodes


def test_the_summary_has_spread_interval_and_protocol():
    agent = RandomAgent("ALE/Pong-v5", repeat_action_probability=0.1)
    result = evaluate.summary(agent, [1.0, 2.0, 6.0], greedy=True, seed=5)
    assert (result["mean"], result["median"], result["episodes"]) == (3.0, 2.0, 3)
    assert result["std"] == pytest.approx(np.sqrt((4 + 1 + 9) / 2))
    assert 1.0 <= result["interval_95"][0] < 3.0 < result["interval_95"][1] <= 6.0
    for words in (
        "3 whole episodes",
        "best (by rolling score)",
        "most probable action",
        "seed 5",
        "sticky actions 0.1",
    ):
        assert words in result["protocol"]


def test_an_environment_without_pictures_is_refused(tmp_path):
    with pytest.raises(UserError):
        evaluate.record(RandomAgent("helpers:ShortIsBad-v0"), 1, 0, tmp_path / "x.gif")


def test_a_trained_agent_plays_whole_games(tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text(Config(env_id="CartPole-v1", terminal_on_life_loss=True).to_json())
    restored = []
    monkeypatch.setattr(
        evaluate.Checkpoints, "restore", lambda self, which: restored.append(which) or {"agent_steps": 5}
    )
    agent = evaluate.TrainedAgent(tmp_path, 5, greedy=True, seed=0, device="/CPU:0", warn=print)
    assert not agent.config.terminal_on_life_loss and restored == [5] and agent.agent_steps == 5
    states = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    assert agent.act(states).tolist() == agent.act(states).tolist()


def test_random_play_needs_no_checkpoint_and_says_what_it_is(tmp_path):
    config = Config(env_id="helpers:ShortIsBad-v0", terminal_on_life_loss=True)
    (tmp_path / "config.json").write_text(config.to_json())
    agent = evaluate.RandomAgent(tmp_path, seed=1)
    actions = agent.act(np.zeros((2000, 2), np.float32))
    assert set(actions) == {0, 1} and 900 < actions.sum() < 1100 and not agent.config.terminal_on_life_loss
    scores = evaluate.evaluate(agent, 4, seed=3)
    protocol = evaluate.summary(agent, scores, greedy=False, seed=3)["protocol"]
    assert protocol == "4 whole episodes, uniformly random actions, seed 3"
