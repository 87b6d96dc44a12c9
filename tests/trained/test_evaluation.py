"""Evaluation: every episode counts, however long; whole games; the words of the protocol."""

import itertools
import math
import multiprocessing
import random
import signal

import imageio.v3 as imageio
import numpy as np
import pytest
from gymnasium.envs.classic_control import CartPoleEnv
from helpers import action_at, decode
from PIL import Image, ImageSequence

from ga3c_tf import load_agent
from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.experience.contracts import Prediction
from ga3c_tf.trained import evaluation as evaluate
from ga3c_tf.trained import policies
from ga3c_tf.trained.intervals import bootstrap_interval, mean_interval
from ga3c_tf.trained.playback import record


class RandomAgent:
    """Acts at random, so that no checkpoint is needed."""

    agent_steps, checkpoint, epsilon = 7, "best (by rolling score)", 0.0

    def __init__(self, env_id, **settings):
        self.config = Config(env_id=env_id, **settings)

    def begin(self, rows=None):
        pass

    def act(self, states):
        return np.zeros(len(states), np.int64)


def of_scores(*scores, most_steps=100):
    """An evaluation of episodes of one step with these scores."""
    return evaluate.Evaluation([evaluate.Episode(score, 1.0, 1, False) for score in scores], most_steps)


def test_short_episodes_are_not_preferred():
    scores = evaluate.evaluate(RandomAgent("helpers:ShortIsBad-v0"), 400, seed=3).scores
    assert len(scores) == 400 and set(np.round(scores, 6)) == {-1.0, 1.0}
    assert abs(np.mean(scores)) < 0.2  # the first 400 to end would give about -0.9


@pytest.mark.parametrize("episodes", [1, 9, 10, 11])
def test_as_many_episodes_as_asked_for(episodes):
    evaluation = evaluate.evaluate(RandomAgent("helpers:ShortIsBad-v0"), episodes, seed=0)
    assert len(evaluation.scores) == episodes and evaluation.cut == 0


def test_an_episode_that_nothing_ends_is_cut_and_counted():
    agent = RandomAgent("helpers:Endless-v0")
    evaluation = evaluate.evaluate(agent, 13, seed=0, most_steps=25)
    assert evaluation.scores == [25.0] * 13 and evaluation.cut == 13
    result = evaluate.summary(agent, evaluation, greedy=False, seed=0)
    assert (result["mean_length"], result["mean_clipped_score"]) == (25, 25)
    assert result["episodes_cut"] == 13 and result["protocol"].endswith("13 of them ended after 25 steps")
    ended = evaluate.evaluate(RandomAgent("helpers:ShortIsBad-v0"), 40, seed=3, most_steps=50)
    assert ended.cut == 0 and set(np.round(ended.scores, 6)) == {-1.0, 1.0}
    halved = evaluate.evaluate(RandomAgent("helpers:ShortIsBad-v0"), 40, seed=3, most_steps=25)
    assert set(np.round(halved.scores, 6)) == {-1.0, 0.5} and halved.cut == np.sum(
        np.array(halved.scores) > 0
    )


def test_an_episode_has_its_raw_score_and_what_training_sees_of_it():
    assert evaluate._episode([900.0, 5.0, 0.5, -3.0], True) == (902.5, 1.5, 4, True)


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_actions_have_random_numbers_of_their_own(tmp_path, seed):
    """At seed 0 they were those of the first environment: an agent could have known what comes."""
    (tmp_path / "config.json").write_text(Config(env_id="helpers:ShortIsBad-v0").to_json())
    actions = policies.RandomAgent(tmp_path, seed).act(np.zeros((200, 2), np.float32))
    for environment in range(max(100, 10 * seed + 10)):
        assert not np.array_equal(actions, np.random.default_rng(environment).integers(2, size=200))


def test_every_environment_of_every_evaluation_has_a_seed_of_its_own():
    """The states of this environment name the seed of their environment."""

    class Watching(RandomAgent):
        def act(self, states):
            places = [decode(state) for state in states]
            self.seeds = [environment for environment, _, _ in places]
            return np.array([action_at(*place) for place in places])

    seeds = {}
    for seed in (0, 1):
        agent = Watching("helpers:Counting-v0")
        evaluate.evaluate(agent, 3, seed)
        seeds[seed] = agent.seeds
    assert seeds == {0: [0, 1, 2], 1: [10, 11, 12]}  # an evaluation has at most ten environments


def test_the_summary_has_spread_interval_and_protocol():
    agent = RandomAgent("ALE/Pong-v5", repeat_action_probability=0.1)
    result = evaluate.summary(agent, of_scores(1.0, 2.0, 6.0), greedy=True, seed=5)
    assert (result["mean"], result["median"], result["episodes"]) == (3.0, 2.0, 3)
    assert result["std"] == pytest.approx(np.sqrt((4 + 1 + 9) / 2))
    assert result["interval_95"] == list(mean_interval([1.0, 2.0, 6.0]))
    assert evaluate.interval_in_words(result) == "95 % interval -3.57 to 9.57"
    for words in (
        "3 whole episodes",
        "best (by rolling score)",
        "most probable action",
        "seed 5",
        "sticky actions 0.1",
        "no no-ops at the start",
    ):
        assert words in result["protocol"]
    agent = RandomAgent("ALE/Pong-v5", noop_max=30)
    single = evaluate.summary(agent, of_scores(1.0, most_steps=1), greedy=True, seed=5)
    assert single["protocol"].startswith("1 whole episode, ") and "at most 30 no-ops" in single["protocol"]
    assert "1 of them ended after 1 step," in single["protocol"]


@pytest.mark.parametrize("episodes", [2, 3, 5, 9])
def test_the_interval_of_few_episodes_holds_the_mean_as_often_as_it_says(episodes):
    """A bootstrap holds it in 53, 75, 83 and 89 % of cases."""
    rng = np.random.default_rng(0)
    agent = RandomAgent("CartPole-v1")
    held = 0
    for scores in rng.normal(100, 20, size=(1000, episodes)).tolist():
        low, high = evaluate.summary(agent, of_scores(*scores), False, 0)["interval_95"]
        held += low <= 100 <= high
    assert held / 1000 == pytest.approx(0.95, abs=0.02)


def test_one_episode_has_no_interval():
    result = evaluate.summary(RandomAgent("CartPole-v1"), of_scores(9.0), False, 0)
    assert (
        result["interval_95"] is None and evaluate.interval_in_words(result) == "no interval for one episode"
    )


@pytest.mark.parametrize(
    ("wanted", "best", "words"),
    [
        ("best", 7, "best (by rolling score)"),
        ("best", None, "latest"),
        ("best", 5, "latest"),
        ("latest", 7, "latest"),
    ],
)
def test_a_checkpoint_is_called_what_was_loaded(wanted, best, words):
    """The best is the latest before there is a score, and where it is damaged."""
    assert policies._in_words(wanted, 7, best) == words
    assert policies._in_words(7, 7, best) == "7"


def test_environments_with_global_random_numbers_follow_the_seed():
    agent = RandomAgent("helpers:Lottery-v0")
    first, again, other = (evaluate.evaluate(agent, 10, seed=seed).scores for seed in (1, 1, 2))
    assert first == again != other and len(set(first)) == 10


def test_infos_of_any_kind_are_left_in_their_process():
    """Training does not look at them, and what can be trained can be evaluated."""
    scores = evaluate.evaluate(RandomAgent("helpers:OddInfo-v0"), 20, seed=3).scores
    assert scores == evaluate.evaluate(RandomAgent("helpers:ShortIsBad-v0"), 20, seed=3).scores


def test_an_evaluation_can_be_interrupted_while_an_environment_hangs(monkeypatch):
    class Interrupted(RandomAgent):
        def act(self, states):
            signal.alarm(1)
            return super().act(states)

    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            evaluate.evaluate(Interrupted("helpers:Stuck-v0"), 2, seed=0)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_a_pipe_that_breaks_in_an_environment_is_an_error():
    """The commands take a broken pipe for their output's, whose reader has gone, and end without an error."""
    with pytest.raises(RuntimeError, match="an environment failed: BrokenPipeError: the simulator is gone"):
        evaluate.evaluate(RandomAgent("helpers:BrokenPipe-v0"), 20, seed=0)


@pytest.mark.parametrize("kind", ["NeverCloses", "LeavesThread", "LeavesProcess", "RaisesAtClose"])
def test_the_scores_are_kept_however_the_environments_end(monkeypatch, capsys, kind):
    monkeypatch.setattr(evaluate, "CLOSE_SECONDS", 1.0)
    before = multiprocessing.active_children()
    scores = evaluate.evaluate(RandomAgent(f"unruly:{kind}-v0"), 3, seed=3).scores
    assert scores == evaluate.evaluate(RandomAgent("helpers:ShortIsBad-v0"), 3, seed=3).scores
    assert multiprocessing.active_children() == before
    if kind != "RaisesAtClose":
        assert "3 of the environments did not end within 1 s and were ended; the scores are complete" in (
            capsys.readouterr().err
        )


def test_the_scores_are_kept_if_the_wait_for_the_end_is_interrupted(monkeypatch):
    def interrupted(self, seconds):
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluate.EvaluationProcesses, "close", interrupted)
    assert len(evaluate.evaluate(RandomAgent("unruly:NeverCloses-v0"), 3, seed=3).scores) == 3


def test_an_environment_that_has_played_its_episodes_rests():
    """It could hang or fail, although nothing depends on it."""
    scores = evaluate.evaluate(
        RandomAgent("unruly:StuckAfterItsEpisodes-v0", agent_timeout=1000.0), 8, seed=3
    ).scores
    assert len(set(np.round(scores, 6))) == 2  # short and long episodes


@pytest.mark.parametrize(
    ("kind", "seconds", "message"),
    [
        (
            "helpers:Stuck",
            0.7,
            "an environment was at one step or reset for 0.7 s, the --agent-timeout of its run "
            r"\(resume RUN --set agent_timeout=SECONDS changes it\)",
        ),
        ("unruly:WithoutNumber", 100.0, "unruly:WithoutNumber-v0 gave the reward nan; it must be finite"),
    ],
)
def test_an_environment_that_cannot_be_scored_is_refused_in_one_line(kind, seconds, message):
    with pytest.raises(UserError, match=f"^{message}$"):
        evaluate.evaluate(RandomAgent(f"{kind}-v0", agent_timeout=seconds), 2, seed=0)


def test_a_process_that_is_killed_is_an_error():
    class Killing(RandomAgent):
        def act(self, states):
            for process in multiprocessing.active_children():
                process.kill()
            return super().act(states)

    with pytest.raises(
        RuntimeError, match=r"an environment failed, or its process was killed: .*exit code -9"
    ):
        evaluate.evaluate(Killing("helpers:ShortIsBad-v0"), 2, seed=0)


def test_the_random_generators_of_the_program_are_left_alone():
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    expected = random.getstate(), str(np.random.get_state())  # noqa: NPY002
    evaluate.evaluate(RandomAgent("helpers:Lottery-v0"), 2, seed=0)
    assert (random.getstate(), str(np.random.get_state())) == expected  # noqa: NPY002


def test_an_environment_without_pictures_is_refused(tmp_path):
    with pytest.raises(UserError):
        record(RandomAgent("helpers:ShortIsBad-v0"), 1, 0, tmp_path / "x.gif")


@pytest.mark.parametrize("error", [NotImplementedError(), RuntimeError("no\ndisplay")])
def test_an_environment_that_cannot_draw_is_refused_in_one_line(tmp_path, monkeypatch, error):
    def render(self):
        raise error

    monkeypatch.setattr(CartPoleEnv, "render", render)
    with pytest.raises(
        UserError, match=f"this environment draws no pictures: {type(error).__name__}"
    ) as refused:
        record(RandomAgent("CartPole-v1"), 1, 0, tmp_path / "x.gif")
    assert "\n" not in str(refused.value) and list(tmp_path.iterdir()) == []


def gray(*shape):
    return np.full(shape, 7, np.uint8)


@pytest.mark.parametrize("suffix", ["gif", "mp4"])
@pytest.mark.parametrize(
    ("pictures", "words"),
    [
        (
            [gray(64, 64, 3), gray(66, 64, 3)],
            r"one size, and this environment draws \(64, 64, 3\) and \(66, 64, 3\)",
        ),
        ([gray(64, 64, 3) / 255], r"draws float64 of shape \(64, 64, 3\)"),
        ([gray(64, 64, 3) > 0], "draws bool of shape"),
        ([gray(64, 64, 3) + np.int64(250)], "draws int64 of shape"),
        ([gray(64, 64, 2)], "draws uint8 of shape"),
        ([gray(0, 0, 3)], "draws uint8 of shape"),
        (["a text"], "draws <U6 of shape"),
        ([[[1, 2], [3]]], "draws no pictures: ValueError"),
    ],
)
def test_pictures_of_no_use_are_refused_in_one_line(tmp_path, monkeypatch, suffix, pictures, words):
    drawn = itertools.cycle(pictures)
    monkeypatch.setattr(CartPoleEnv, "render", lambda self: next(drawn))
    with pytest.raises(UserError, match=words) as refused:
        record(RandomAgent("CartPole-v1"), 1, 0, tmp_path / f"x.{suffix}")
    assert "\n" not in str(refused.value) and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["gif", "mp4"])
@pytest.mark.parametrize(
    "picture", [gray(64, 64, 3).tolist(), gray(64, 64), gray(64, 64, 1), gray(64, 64, 4)]
)
def test_lists_and_gray_pictures_are_drawn(tmp_path, monkeypatch, suffix, picture):
    monkeypatch.setattr(CartPoleEnv, "render", lambda self: picture)
    record(RandomAgent("CartPole-v1"), 1, 0, tmp_path / f"x.{suffix}")
    shown = np.asarray(imageio.imread(tmp_path / f"x.{suffix}", index=0))[..., :3]
    assert shown.shape == (64, 64, 3) and np.abs(shown.astype(int) - 7).max() <= 8


@pytest.mark.parametrize("rate", [0, None])
def test_an_environment_without_a_rate_has_30_pictures_a_second(tmp_path, monkeypatch, rate):
    monkeypatch.setitem(CartPoleEnv.metadata, "render_fps", rate)
    [score] = record(RandomAgent("CartPole-v1"), 1, 0, tmp_path / "x.gif")
    with Image.open(tmp_path / "x.gif") as picture:
        seconds = sum(frame.info["duration"] for frame in ImageSequence.Iterator(picture)) / 1000
    assert seconds == pytest.approx((score + 1) / 30, rel=0.15)  # each in whole hundredths of a second


def test_scores_are_reported_before_the_environment_is_closed(tmp_path, monkeypatch):
    """It may never return from that."""
    events = []
    monkeypatch.setattr(CartPoleEnv, "close", lambda self: events.append("closed"))
    scores = record(RandomAgent("CartPole-v1"), 1, 0, tmp_path / "x.gif", report=events.append)
    assert events == [scores, "closed"] and (tmp_path / "x.gif").exists()


def test_a_trained_agent_plays_whole_games(tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text(Config(env_id="CartPole-v1", terminal_on_life_loss=True).to_json())
    restored = []
    monkeypatch.setattr(
        policies.Checkpoints, "restore", lambda self, which: restored.append(which) or {"agent_steps": 5}
    )
    agent = policies.TrainedAgent(tmp_path, 5, greedy=True, seed=0, device="/CPU:0", warn=print)
    assert not agent.config.terminal_on_life_loss and restored == [5] and agent.agent_steps == 5
    states = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    assert agent.act(states).tolist() == agent.act(states).tolist()


@pytest.mark.parametrize("greedy", [False, True])
def test_an_agent_samples_from_its_policy_unless_it_is_greedy(tmp_path, monkeypatch, greedy):
    (tmp_path / "config.json").write_text(Config(env_id="Acrobot-v1").to_json())
    monkeypatch.setattr(policies.Checkpoints, "restore", lambda self, which: {"agent_steps": 5})
    agent = policies.TrainedAgent(tmp_path, 5, greedy=greedy, seed=0, device="/CPU:0", warn=print)
    state = np.array([1, 0, 1, 0, 8, -4], np.float32)
    [policy], *_ = agent.model.predict(state[None])
    assert policy.min() > 0.1 and policy.max() < 0.7
    actions = agent.act(np.tile(state, (10_000, 1)))
    shares = np.bincount(actions, minlength=3) / len(actions)
    expected = np.eye(3)[policy.argmax()] if greedy else policy
    np.testing.assert_allclose(shares, expected, atol=0.02)  # four standard errors of a share


class Counting:
    """A model with memory: the carry counts the states of an episode."""

    initial_carry = np.zeros(1, np.float32)

    def predict(self, states, carry):
        return Prediction(np.ones((len(states), 1)), carry[:, 0], 0, carry + 1)


def test_more_environments_than_before_begin_without_memory():
    agent = policies.ModelAgent(Config(env_id="CartPole-v1"), Counting(), False, 0, 0, "current")
    for _ in range(2):
        agent.predict(np.zeros((1, 4)))
    agent.begin([0, 1, 2])
    assert agent.predict(np.zeros((3, 4))).value.tolist() == [0, 0, 0]
    agent.begin([1])
    assert agent.predict(np.zeros((3, 4))).value.tolist() == [1, 0, 1]


def test_a_greedy_policy_is_evaluated_with_random_actions_if_they_are_asked_for(tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text(Config(env_id="Acrobot-v1", algorithm="pqn").to_json())
    monkeypatch.setattr(policies.Checkpoints, "restore", lambda self, which: {"agent_steps": 5})
    state = np.tile(np.array([1, 0, 1, 0, 8, -4], np.float32), (9000, 1))
    words = {0.0: "most probable action", 0.3: "most probable action, or with probability 0.3 a random one"}
    for epsilon, acting in words.items():
        agent = policies.TrainedAgent(tmp_path, 5, False, 0, "/CPU:0", print, epsilon=epsilon)
        actions = agent.act(state)
        others = np.mean(actions != agent.act(state[:1], greedy=True))
        assert others == pytest.approx(epsilon * 2 / 3, abs=0.02)
        assert acting in evaluate.summary(agent, of_scores(1.0), False, 0)["protocol"]
    protocol = load_agent(tmp_path, checkpoint=5, epsilon=0.3).evaluate(1, max_episode_steps=2).protocol
    assert words[0.3] in protocol


def test_random_play_needs_no_checkpoint_and_says_what_it_is(tmp_path):
    config = Config(env_id="helpers:ShortIsBad-v0", terminal_on_life_loss=True)
    (tmp_path / "config.json").write_text(config.to_json())
    agent = policies.RandomAgent(tmp_path, seed=1)
    actions = agent.act(np.zeros((2000, 2), np.float32))
    assert set(actions) == {0, 1} and 900 < actions.sum() < 1100 and not agent.config.terminal_on_life_loss
    scores = evaluate.evaluate(agent, 4, seed=3)
    protocol = evaluate.summary(agent, scores, greedy=False, seed=3)["protocol"]
    assert protocol == "4 whole episodes, uniformly random actions, seed 3"


def test_the_interval_of_few_values_is_students_t():
    """The quantile for two degrees of freedom is 4.303."""
    assert mean_interval([1.0, 2.0, 3.0]) == pytest.approx(
        (2 - 4.303 / math.sqrt(3), 2 + 4.303 / math.sqrt(3)), rel=1e-3
    )


def test_the_interval_of_many_values_is_the_bootstraps():
    values = list(range(30))
    assert mean_interval(values) == bootstrap_interval(values)
    assert mean_interval(values[:29]) != bootstrap_interval(values[:29])


def test_one_value_has_no_interval():
    assert all(math.isnan(end) for end in mean_interval([1.0]))


@pytest.mark.parametrize("count", [2, 3, 5, 10])
def test_an_interval_holds_the_mean_about_as_often_as_it_says(count):
    rng = np.random.default_rng(0)
    ends = [mean_interval(rng.normal(size=count)) for _ in range(2000)]
    assert np.mean([low <= 0 <= high for low, high in ends]) == pytest.approx(0.95, abs=0.015)


def test_the_bootstrap_interval_is_near_the_normal_one_and_repeats():
    scores = np.random.default_rng(5).normal(10, 2, size=400)
    low, high = bootstrap_interval(scores)
    assert (low, high) == bootstrap_interval(scores)
    assert low == pytest.approx(scores.mean() - 1.96 * 0.1, abs=0.03)
    assert high == pytest.approx(scores.mean() + 1.96 * 0.1, abs=0.03)
    assert bootstrap_interval([3.0, 3.0]) == (3.0, 3.0)


def test_the_bootstrap_interval_is_the_same_however_many_resamples_are_held_at_once(monkeypatch):
    scores = np.random.default_rng(5).normal(size=7)
    expected = bootstrap_interval(scores)
    for entries in (1, 50, 10**9):
        monkeypatch.setattr("ga3c_tf.trained.intervals.BOOTSTRAP_ENTRIES", entries)
        assert bootstrap_interval(scores) == expected
