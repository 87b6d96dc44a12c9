"""One session of training, by a test's clock: rows, summary and checkpoints, and what a resume continues."""

from types import SimpleNamespace

import helpers
import numpy as np
import pytest

from ga3c_tf.config import Config
from ga3c_tf.config.rates import Rates
from ga3c_tf.experience.columns import Batch
from ga3c_tf.runs import outcomes
from ga3c_tf.runs.checkpoints import Checkpoints
from ga3c_tf.runs.csv_rows import EPISODE_COLUMNS, METRIC_COLUMNS, read_columns
from ga3c_tf.runs.folder import RunFolder
from ga3c_tf.runs.stats import Stats
from ga3c_tf.systems.callbacks import Callbacks
from ga3c_tf.systems.rows import Rows
from ga3c_tf.systems.session import Session
from ga3c_tf.systems.system import Counts, System
from ga3c_tf.systems.training import Training


class Clock:
    """The seconds that a session and its training read; they pass only when a test adds to `now`."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("ga3c_tf.systems.session.time", clock)
    monkeypatch.setattr("ga3c_tf.systems.saving.time", clock)
    monkeypatch.setattr("ga3c_tf.systems.session.new_model", helpers.CheckingModel)
    return clock


class Steady(System):
    """Takes 100 steps and does 10 updates of 3 states in each poll, which lasts 4 s by the test's clock."""

    def __init__(self, session, clock):
        super().__init__(session)
        self._clock = clock

    def start(self):
        pass

    def poll(self, seconds):
        self.session.memory.steps[0] += 100
        for _ in range(10):
            self.session.stats.updated(helpers.update_record(np.array([1, 2, 6]), 0.0, 0.0, 0.0))
        self._clock.now += 4

    def stop(self):
        pass

    def counts(self):
        return Counts(agents=2)


def config_of(**settings):
    return Config(**{"env_id": "helpers:Counting-v0", "seed": 3, "num_agents": 2, **settings})


def session_of(**settings):
    return Session(config_of(**settings), helpers.SPEC, "/CPU:0", print)


def counters(agent_steps, time_s=0.0, agents_started=0):
    """The counters of a checkpoint from which a session goes on."""
    stats = Stats((), rolling_episodes=1).state()
    return {"agent_steps": agent_steps, "time_s": time_s, "agents_started": agents_started, "stats": stats}


def training_of(folder, clock, system=Steady, warn=print, **settings):
    config = config_of(**settings)
    folder.mkdir(exist_ok=True)
    return Training(
        lambda session: system(session, clock),
        config,
        helpers.SPEC,
        RunFolder(folder, config),
        "/CPU:0",
        warn,
    )


# what a resumed session continues


def test_rates_that_follow_the_steps_go_on_after_a_resume_where_they_were(clock):
    session = session_of(
        learning_rate=1.0, learning_rate_end=0.0, beta=0.02, beta_end=0.01, anneal_steps=1000
    )
    session.restore(counters(agent_steps=500))
    assert session.rates() == pytest.approx(Rates(0.5, 0.015))
    session.memory.steps[:] = 100, 150
    assert session.rates() == pytest.approx(Rates(0.25, 0.0125))


def test_rates_that_follow_the_time_go_on_after_a_resume_where_they_were(clock):
    session = session_of(learning_rate=1.0, learning_rate_end=0.0, anneal_fraction=1.0, minutes=2.0)
    session.restore(counters(agent_steps=500, time_s=60.0))
    session.begin()
    assert session.rates()[0] == pytest.approx(0.5)
    clock.now += 30
    assert session.rates()[0] == pytest.approx(0.25)


def test_a_resumed_session_uses_no_random_stream_again(clock):
    first = session_of()
    used = [first.new_stream() for _ in range(3)]
    resumed = session_of()
    resumed.restore(first.counters())
    assert used == [0, 1, 2] and resumed.new_stream() == 3


def test_a_resumed_session_shuffles_its_minibatches_anew(clock):
    batch = Batch(states=np.zeros((50, 1)), actions=np.arange(50))

    def order_after(steps):
        session = session_of(minibatch_size=10)
        if steps:
            session.restore(counters(agent_steps=steps))
        return np.concatenate([part.actions for part in session._minibatches.of(batch)]).tolist()

    orders = [order_after(steps) for steps in (0, 500, 900)]
    assert order_after(500) == orders[1]
    assert len({tuple(order) for order in orders}) == 3


class Idle(Steady):
    """Does no update in the time that it has."""

    def poll(self, seconds):
        self._clock.now += 4


def test_a_session_without_an_update_says_so(tmp_path, clock):
    warnings = []
    training_of(tmp_path / "idle", clock, Idle, warnings.append, minutes=0.2).run()
    assert warnings == [
        "no update was made in 12 s, so nothing was learned; give a larger budget, "
        "or fewer --agents, which start sooner"
    ]
    training_of(tmp_path / "run", clock, Steady, warnings.append, steps=300).run()
    clock.now += 1000
    resumed = training_of(tmp_path / "run", clock, Idle, warnings.append, minutes=1.0)
    resumed.resume()
    resumed.run()
    assert warnings[1:] == [warnings[0].replace("12 s", "48 s")]


def test_the_summary_of_a_resumed_session_counts_its_own_steps_over_its_own_seconds(tmp_path, clock):
    first = training_of(tmp_path / "run", clock, steps=300).run()
    clock.now += 1000
    training = training_of(tmp_path / "run", clock, steps=700)
    training.resume()
    second = training.run()
    names = ("agent_steps", "updates", "time_s", "trained_steps", "pps", "tps")
    assert [first[name] for name in names] == [300, 30, 12.0, 90, 25.0, 2.5]
    assert [second[name] for name in names] == [700, 70, 28.0, 120, 25.0, 2.5]


# checkpoints


def test_one_lucky_episode_does_not_make_a_checkpoint_the_best(tmp_path, clock):
    scores = iter([[500.0], [10.0, 10.0, 10.0], [5.0, 5.0, 5.0]])

    class Playing(Steady):
        def poll(self, seconds):
            super().poll(seconds)
            for score in next(scores):
                self.session.stats.episode(score)

    training_of(tmp_path, clock, Playing, steps=300, rolling_episodes=3, checkpoint_minutes=0.01).run()
    checkpoints = Checkpoints(tmp_path, {})
    assert 100 in checkpoints.steps()
    assert checkpoints.best() == 200


# the target score


def scoring(session, clock, *polls):
    """A system whose polls end one episode for each of these scores."""
    scores = iter(polls)

    class Scoring(Steady):
        def poll(self, seconds):
            super().poll(seconds)
            for score in next(scores):
                self.session.episode_queue.put((0, 7, score))

    return Scoring(session, clock)


def test_a_run_ends_with_the_episode_that_reaches_the_target_score(tmp_path, clock):
    def system(session, clock):
        return scoring(session, clock, [90.0, 1.0], [5.0, 8.0, 1.0, 1.0], [100.0] * 3)

    settings = {"rolling_episodes": 3, "target_score": 4.5, "steps": 1000}
    summary = training_of(tmp_path, clock, system, **settings).run()
    # one lucky episode, or a window that is not full, is not enough; 90, 1 and 5 are
    assert [summary[name] for name in ("ended", "episodes", "rolling_score")] == ["target_score", 3, 32.0]
    assert read_columns(tmp_path / "episodes.csv", EPISODE_COLUMNS)["score"].tolist() == [90.0, 1.0, 5.0]
    assert summary["agent_steps"] == 200
    resumed = training_of(tmp_path, clock, system, **settings)
    resumed.resume()
    assert resumed.session.reached() == outcomes.TARGET_SCORE


def test_a_budget_ends_a_run_that_does_not_reach_its_target_score(tmp_path, clock):
    def system(session, clock):
        return scoring(session, clock, *[[1.0] * 3] * 5)

    summary = training_of(tmp_path, clock, system, rolling_episodes=3, target_score=1.5, steps=300).run()
    assert summary["ended"] == "steps" and summary["episodes"] == 9


# rows of metrics


class WrittenRows:
    """The rows of a session, which are due every 10 s.

    Attributes:
        rows: writes them.
        times: time of each row that was written, in seconds of training.
    """

    def __init__(self, clock):
        session = session_of(log_seconds=10.0)
        self.times = []
        session.log = SimpleNamespace(metrics=lambda row: self.times.append(row["time_s"]))
        session.begin()
        self.rows = Rows(session, Steady(session, clock), Callbacks(()), lambda row: None)


@pytest.fixture
def written(clock):
    return WrittenRows(clock)


def test_rows_are_written_at_regular_times_though_one_is_late(written, clock):
    for seconds in (9.5, 0.5, 13.0, 6.5, 0.5):
        clock.now += seconds
        written.rows.write_if_due()
    assert written.times == [10.0, 23.0, 30.0]


def test_after_a_standstill_the_next_row_covers_a_whole_period(written, clock):
    for seconds in (10.0, 35.0, 5.0, 4.5, 0.5):
        clock.now += seconds
        written.rows.write_if_due()
    assert written.times == [10.0, 45.0, 55.0]
    assert written.rows.seconds_left() == 10.0


@pytest.mark.parametrize(("seconds", "times"), [(5.0, [10.0]), (5.5, [10.0, 15.5])])
def test_the_last_row_covers_more_than_half_a_period(written, clock, seconds, times):
    clock.now += 10.0
    written.rows.write_if_due()
    clock.now += seconds
    written.rows.write_last()
    assert written.times == times


def test_a_session_shorter_than_half_a_period_has_one_row(written, clock):
    clock.now += 1.0
    written.rows.write_last()
    assert written.times == [1.0]


def test_the_lag_in_states_is_the_lag_in_updates_times_the_training_batch(tmp_path, clock):
    training_of(tmp_path, clock, steps=200, log_seconds=4.0).run()
    columns = read_columns(tmp_path / "metrics.csv", METRIC_COLUMNS)
    for name, value in {"pps": 25.0, "tps": 2.5, "policy_lag_mean": 3.0, "training_batch": 3.0}.items():
        assert columns[name].tolist() == [value, value]
    assert columns["policy_lag_states"].tolist() == [9.0, 9.0]
