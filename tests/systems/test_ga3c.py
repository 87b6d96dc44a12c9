"""The whole system on an environment that counts: nothing lost, repeated, or mixed between agents."""

import contextlib
import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import helpers
import numpy as np
import pytest
from checks import (
    PATIENCE,
    HeldBack,
    before_updates,
    check_nothing_lost_or_repeated,
    check_segment,
    freeze_agents,
    poisoned,
    send_two_signals,
    slow_updates,
    start_training,
    wait_for_the_end_of,
    wait_until,
)
from checks import run_counting as run_counting_with

import ga3c_tf.host.scheduling
import ga3c_tf.systems.ga3c.predictor
import ga3c_tf.systems.ga3c.system
from ga3c_tf.config import Config
from ga3c_tf.config.rates import Rates
from ga3c_tf.errors import Diverged
from ga3c_tf.host.scheduling import IdleCores, scheduling_restored
from ga3c_tf.runs.csv_rows import ADJUSTMENT_COLUMNS, EPISODE_COLUMNS, METRIC_COLUMNS, read_rows
from ga3c_tf.systems.a2c import A2C
from ga3c_tf.systems.ga3c.batch_queue import BatchQueue
from ga3c_tf.systems.ga3c.predictor import Predictor
from ga3c_tf.systems.ga3c.system import AGENT_BYTES, GA3C
from ga3c_tf.systems.ga3c.trainer import Trainer
from ga3c_tf.systems.ga3c.update_limit import UpdateLimit, updates_at_once
from ga3c_tf.systems.serial import SerialGA3C
from ga3c_tf.systems.session import Session
from ga3c_tf.workers.adjustment_rules import WorkerCounts


def run_counting(tmp_path, monkeypatch, kind=GA3C, **settings):
    return run_counting_with(tmp_path, monkeypatch, kind, **settings)


def workers_of(system):
    """N_A, N_P and N_T."""
    counts = system.counts()
    return counts.agents, counts.predictors, counts.trainers


@pytest.mark.parametrize("kind", [GA3C, SerialGA3C])
@pytest.mark.parametrize("t_max", [1, 5, 100])
def test_every_segment_is_whole_and_every_step_is_trained_on_once(tmp_path, monkeypatch, kind, t_max):
    model, training, summary = run_counting(tmp_path, monkeypatch, kind, t_max=t_max, max_training_queue=6)
    for rows in model.batches:
        check_segment(rows, t_max)
    check_nothing_lost_or_repeated([row for rows in model.batches for row in rows], agents=6)
    trained = sum(map(len, model.batches))
    given_up = 6 * 2 * t_max  # at most: of each agent one segment under way and one in the training queue
    assert summary["agent_steps"] >= 3000
    assert summary["agent_steps"] - given_up <= trained <= summary["agent_steps"]
    assert summary["updates"] == len(model.batches) == training.session.stats.updates


def test_one_agent_per_process_many_threads_and_queues_of_one(tmp_path, monkeypatch):
    model, _, _ = run_counting(
        tmp_path,
        monkeypatch,
        agent_processes=6,
        num_predictors=4,
        num_trainers=4,
        max_training_queue=1,
        max_prediction_batch=1,
    )
    for rows in model.batches:
        check_segment(rows, 5)
    check_nothing_lost_or_repeated([row for rows in model.batches for row in rows], agents=6)
    assert max(model.batch_sizes) == 1


def test_the_prediction_batch_has_all_that_wait_up_to_the_maximum(tmp_path, monkeypatch):
    model, _, _ = run_counting(
        tmp_path, monkeypatch, num_agents=24, agent_processes=3, max_prediction_batch=7, num_predictors=1
    )
    assert max(model.batch_sizes) == 7


@pytest.mark.parametrize("kind", [GA3C, SerialGA3C])
def test_the_minimum_batch_merges_segments_until_it_is_exceeded(tmp_path, monkeypatch, kind):
    model, _, _ = run_counting(tmp_path, monkeypatch, kind, min_training_batch=20, num_trainers=1)
    sizes = {len(rows) for rows in model.batches}
    assert min(sizes) > 20 and max(sizes) <= 25
    check_nothing_lost_or_repeated([row for rows in model.batches for row in rows], agents=6)


def test_each_state_is_trained_with_the_lag_of_its_own_prediction(tmp_path, monkeypatch):
    """Where prediction and training take turns, lag is known: the updates since the state was predicted."""
    lags = []
    monkeypatch.setattr("ga3c_tf.runs.stats.Stats.updated", lambda self, update: lags.append(update.lags))
    model, _, _ = run_counting(tmp_path, monkeypatch, SerialGA3C, steps=600)
    for update, (rows, lag) in enumerate(zip(model.batches, lags, strict=True)):
        assert [update - model.chosen[place] for place, _, _ in rows] == lag.tolist()
    assert max(lag.max() for lag in lags) > 0


def test_trainers_that_take_the_batches_that_wait_lose_none_and_count_the_lag_of_each(tmp_path, monkeypatch):
    class Several(helpers.CheckingModel):
        updates_per_call = 4
        calls = []

        def train(self, batches, rates):
            self.calls.append(len(batches))
            return super().train(batches, rates)

    lags = []
    monkeypatch.setattr("ga3c_tf.runs.stats.Stats.updated", lambda self, update: lags.append(update.lags))
    model, _, _ = run_counting(tmp_path, monkeypatch, HeldBack, model=Several, num_trainers=1)
    check_nothing_lost_or_repeated([row for rows in model.batches for row in rows], agents=6)
    assert sum(model.calls) == len(model.batches) and max(model.calls) == 4
    for update, (rows, lag) in enumerate(zip(model.batches, lags, strict=True)):
        assert [update - model.chosen[place] for place, _, _ in rows] == lag.tolist()


@pytest.mark.parametrize("minimum", [0, 20])
def test_workers_come_and_go_without_a_segment_lost_or_mixed(tmp_path, monkeypatch, minimum):
    class Changing(GA3C):
        def start(self):
            super().start()
            self.threads = {*self._workers}
            threading.Thread(target=self.change, daemon=True).start()

        def change(self):
            rng = np.random.default_rng(0)
            for setting in [*rng.integers(1, [7, 5, 5], size=(40, 3)).tolist(), (4, 1, 3)]:
                before = self.session.memory.steps.copy()
                self.set_workers(*setting)
                self.threads |= {*self._workers}
                wait_until(lambda: self.all_have_stepped_since(before))  # noqa: B023 - it is called at once
            wait_until(lambda: self.living() == {Predictor: 1, Trainer: 3})
            self.living_at_the_end = self.living()
            self.session.stop("changed")

        def all_have_stepped_since(self, before):
            return (self.session.memory.steps - before)[: self.agents.count].min() > 10

        def living(self):
            return {
                kind: sum(thread.is_alive() for thread in self.threads if isinstance(thread, kind))
                for kind in (Predictor, Trainer)
            }

    model, training, summary = run_counting(
        tmp_path, monkeypatch, Changing, steps=None, min_training_batch=minimum
    )
    assert summary["ended"] == "changed" and workers_of(training.system) == (4, 1, 3)
    assert training.system.living_at_the_end == {Predictor: 1, Trainer: 3}
    places = [place for rows in model.batches for place, _, _ in rows]
    assert len(places) == len(set(places)) > 1000
    assert len({identity for identity, _, _ in places}) > 20
    if minimum == 0:
        for rows in model.batches:
            check_segment(rows, 5)
    else:
        assert min(map(len, model.batches)) > minimum


def test_a_full_training_queue_holds_the_agents_back(tmp_path, monkeypatch):
    model, training, _ = run_counting(tmp_path, monkeypatch, HeldBack, max_training_queue=6, num_trainers=1)
    assert training.system.stood_still and training.system.waiting <= 6
    check_nothing_lost_or_repeated([row for rows in model.batches for row in rows], agents=6)


@pytest.mark.parametrize("kind", [GA3C, SerialGA3C])
def test_curves_hold_every_episode_with_its_raw_score(tmp_path, monkeypatch, kind):
    model, _, summary = run_counting(tmp_path, monkeypatch, kind, log_seconds=0.2)
    episodes = read_rows(tmp_path / "run" / "episodes.csv", EPISODE_COLUMNS)
    assert [int(row["episode"]) for row in episodes] == list(range(1, summary["episodes"] + 1))
    identities = {place[0] for rows in model.batches for place, _, _ in rows}
    possible = {
        (
            sum(
                helpers.reward_at(identity, episode, step)
                for step in range(helpers.episode_length(identity, episode))
            ),
            helpers.episode_length(identity, episode),
        )
        for identity in identities
        for episode in range(1000)
    }
    assert {(float(row["score"]), int(row["length"])) for row in episodes} <= possible
    metrics = read_rows(tmp_path / "run" / "metrics.csv", METRIC_COLUMNS)
    assert 0 < int(metrics[-1]["agent_steps"]) <= summary["agent_steps"]
    assert int(metrics[-1]["updates"]) <= summary["updates"]
    times = [float(row["time_s"]) for row in metrics]
    assert times == sorted(times)


def test_a_run_stops_when_asked(tmp_path, monkeypatch):
    class Stopped(GA3C):
        def start(self):
            super().start()
            threading.Thread(target=self.stop_soon, daemon=True).start()

        def stop_soon(self):
            wait_until(lambda: self.session.agent_steps > 0)
            self.session.stop("asked")

    _, _, summary = run_counting(tmp_path, monkeypatch, Stopped, steps=None)
    assert summary["ended"] == "asked" and summary["agent_steps"] > 0


@pytest.mark.parametrize(
    ("budget", "why"),
    [
        ({"steps": 500}, "steps"),
        ({"steps": None, "episodes": 40}, "episodes"),
        ({"steps": None, "minutes": 0.02}, "minutes"),
    ],
)
def test_each_budget_ends_the_run(tmp_path, monkeypatch, budget, why):
    _, _, summary = run_counting(tmp_path, monkeypatch, **budget)
    assert summary["ended"] == why


@pytest.mark.parametrize("kind", [GA3C, SerialGA3C, A2C])
def test_the_rates_are_those_of_the_agent_steps(tmp_path, monkeypatch, kind):
    used = []
    before_updates(monkeypatch, lambda model, rates: used.append(rates))
    settings = {"learning_rate": 1.0, "learning_rate_end": 0.0, "beta_end": 0.005, "anneal_steps": 2000}
    run_counting(tmp_path, monkeypatch, kind, **settings)
    if kind is not GA3C:  # several trainers may report out of turn
        assert used == sorted(used, reverse=True)
    assert max(used)[0] > 0.95 and min(used) == Rates(0.0, 0.005)
    assert {round(rates.learning_rate, 1) for rates in used} == {number / 10 for number in range(11)}
    assert all(rates.beta == pytest.approx(0.005 + 0.005 * rates.learning_rate) for rates in used)


def test_no_update_happens_while_a_checkpoint_is_written(tmp_path, monkeypatch):
    """Not by trainers that the adjustment adds meanwhile either, with as many permits as on a GPU."""
    monkeypatch.setattr(ga3c_tf.systems.ga3c.system, "updates_at_once", lambda device, cores: 16)
    saves = []

    class Watched(GA3C):
        @contextlib.contextmanager
        def paused(self):
            with super().paused():
                before = self.session.stats.updates
                if not self.session.ended():
                    agents, predictors, trainers = workers_of(self)
                    self.set_workers(agents, predictors, trainers + 2)
                time.sleep(0.2)
                yield
                saves.append((before, self.session.stats.updates))

        def ended(self, by_budget):
            return "saved" if len(saves) >= 4 and saves[-1][0] > 0 else None

    _, training, _ = run_counting(
        tmp_path, monkeypatch, Watched, steps=None, checkpoint_minutes=0.005, num_trainers=1
    )
    assert training.system.counts().trainers >= 3
    assert all(before == after for before, after in saves)


@pytest.mark.parametrize("workers", [{"num_predictors": 17}, {"num_trainers": 17}])
def test_a_run_may_begin_with_more_threads_than_the_adjustment_goes_up_to(tmp_path, monkeypatch, workers):
    _, training, summary = run_counting(tmp_path, monkeypatch, adjustment="fast", **workers)
    assert summary["ended"] == "steps" and training.session.errors.first is None


@pytest.mark.parametrize("kind", [GA3C, A2C, SerialGA3C])
def test_a_loss_that_is_not_a_number_ends_the_run_and_saves_nothing_of_it(tmp_path, monkeypatch, kind):
    poisoned(monkeypatch, range(20, 10**6))
    with pytest.raises(
        Diverged, match=r"update \d+: policy loss 0.0, value loss nan, .*, \d+ states, returns"
    ):
        run_counting(tmp_path, monkeypatch, kind, max_failures=3)
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == ["000000000000"]


@pytest.mark.parametrize("permitted", [1, 2])
def test_so_many_trainers_update_at_once_and_no_more(tmp_path, monkeypatch, permitted):
    lock = threading.Lock()
    running = 0
    most = 0

    def count(*_):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1

    before_updates(monkeypatch, count)
    monkeypatch.setattr(ga3c_tf.systems.ga3c.system, "updates_at_once", lambda device, cores: permitted)
    run_counting(tmp_path, monkeypatch, num_trainers=4, steps=600)
    assert most == permitted


def test_half_the_cores_update_and_on_a_gpu_all_trainers():
    assert [updates_at_once("/CPU:0", cores) for cores in (1, 2, 3, 16)] == [1, 1, 1, 8]
    assert updates_at_once("/GPU:0", 2) >= 16


@pytest.mark.parametrize(
    ("device", "cores", "for_agents", "scheduling"),
    [("/CPU:0", 16, 16, "tuned"), ("/GPU:0", 16, 14, "plain"), ("/GPU:1", 2, 1, "plain")],
)
def test_with_a_gpu_two_cores_are_the_servers_and_its_threads_interrupt_agents(
    monkeypatch, device, cores, for_agents, scheduling
):
    monkeypatch.setattr("ga3c_tf.systems.session.usable_cores", lambda: cores)
    session = SimpleNamespace(device=device, config=Config(scheduling="tuned"))
    assert Session.agent_cores.fget(session) == for_agents
    assert Session.server_scheduling.fget(session) == scheduling


@pytest.mark.parametrize(("idle", "most"), [(0.3, 3), (0.05, 1)])
def test_idle_cores_let_more_trainers_update_at_once(tmp_path, monkeypatch, idle, most):
    slow_updates(monkeypatch, 0.02)  # slow enough for the training queue to be full
    monkeypatch.setattr(ga3c_tf.systems.ga3c.system, "usable_cores", lambda: 3)
    monkeypatch.setattr(IdleCores, "share", lambda self: idle)

    class Watched(GA3C):
        rows = 0

        def before_row(self):
            super().before_row()
            self.rows += 1

        def ended(self, by_budget):
            return "enough" if self.rows >= 8 and self._batches.permits >= most else None

    _, training, _ = run_counting(tmp_path, monkeypatch, Watched, steps=None, log_seconds=0.2)
    assert training.system._batches.permits == most


@pytest.mark.parametrize(
    ("waited", "idle", "rises"),
    [
        ([0.3, 0.4, 0.5], [0.1, 0.12, 0.1], [False, False, True]),
        ([0.3] * 6, [0.1] * 6, [False, False, True] * 2),
        ([1.0] * 3, [0.9, 0.03, 0.02], [False] * 3),  # one row with idle cores says nothing
        ([0.0, 0.1, 0.4], [0.5] * 3, [False] * 3),
    ],
)
def test_one_more_update_is_allowed_where_predictions_wait_and_cores_idle(monkeypatch, waited, idle, rises):
    shares = iter(idle)
    monkeypatch.setattr(IdleCores, "share", lambda self: next(shares))
    limit = UpdateLimit()
    assert [limit.should_rise(share) for share in waited] == rises


def test_the_idle_share_is_that_of_the_time_between(monkeypatch):
    times = iter([(100, 200), (130, 300), (130, 300)])
    monkeypatch.setattr(ga3c_tf.host.scheduling, "_core_times", lambda: next(times))
    cores = IdleCores()
    assert cores.share() == 0.3 and cores.share() == 0.0


def test_the_system_tells_the_times_of_its_cores():
    idle, total = ga3c_tf.host.scheduling._core_times()
    assert 0 < idle < total


def test_a_slow_update_does_not_hold_up_the_end_and_no_other_follows(tmp_path, monkeypatch):
    monkeypatch.setattr(ga3c_tf.systems.ga3c.system, "updates_at_once", lambda device, cores: 1)
    monkeypatch.setattr(ga3c_tf.systems.ga3c.system, "STOP_SECONDS", 0.1)
    stopped = threading.Event()
    before_updates(monkeypatch, lambda *_: stopped.wait())

    class Ending(GA3C):
        def ended(self, by_budget):
            return "full" if len(self.session.training_queue) >= 3 else None

        def stop(self):
            super().stop()
            stopped.set()

    model, training, _ = run_counting(tmp_path, monkeypatch, Ending, steps=None, num_trainers=2)
    for worker in training.system._workers:
        worker.join()
    assert len(model.batches) == 1


@pytest.fixture
def started_training(tmp_path):
    with start_training(tmp_path / "run", "--agents", 8) as (process, children):
        assert not any(map(named_memory, {process.pid, *children})), "it would stay where they are killed"
        yield process, children


def named_memory(pid):
    """The files in /dev/shm that a process has in its memory."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return [line for line in lines if "/dev/shm" in line and not line.endswith("(deleted)")]


def test_a_signal_to_the_group_ends_the_run_with_a_checkpoint_and_a_summary(started_training, tmp_path):
    process, children = started_training
    run = tmp_path / "run"
    newest = max(path.name for path in (run / "checkpoints").glob("0*"))
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate()
    assert process.returncode == 130
    assert "\ninterrupted: " in output and "Traceback" not in output
    assert max(path.name for path in (run / "checkpoints").glob("0*")) > newest
    wait_for_the_end_of(children)


def test_agents_that_hang_do_not_hold_up_the_end(started_training):
    process, children = started_training
    freeze_agents(process.pid, children)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate()
    assert process.returncode == 143 and "\ninterrupted: " in output
    wait_for_the_end_of(children)


def test_a_second_signal_ends_it_at_once(started_training):
    process, children = started_training
    freeze_agents(process.pid, children)
    send_two_signals(process)
    output, _ = process.communicate()
    assert process.returncode == 143
    assert "\ninterrupted: " not in output  # it has not waited for the agents
    wait_for_the_end_of(children)


def test_killing_the_server_ends_the_agents(started_training):
    process, children = started_training
    process.kill()
    process.wait()
    wait_for_the_end_of(children)


def test_threads_end_also_when_the_end_is_interrupted(tmp_path, monkeypatch):
    """As by a second Ctrl-C in Python: they would keep the model."""
    systems = []

    class Interrupted(GA3C):
        def start(self):
            super().start()
            systems.append(self)
            stop = self.agents.stop

            def interrupted():
                stop()
                raise KeyboardInterrupt

            self.agents.stop = interrupted

    with pytest.raises(KeyboardInterrupt):
        run_counting(tmp_path, monkeypatch, Interrupted)
    [system] = systems
    workers = system._workers
    for worker in workers:
        worker.join(PATIENCE)
    assert workers and not any(worker.is_alive() for worker in workers)


@pytest.mark.parametrize(("adjustment", "kept"), [("fast", [6, 1, 2]), ("off", None)])
def test_before_it_starts_no_time_has_passed_and_the_workers_are_those_found_before(
    tmp_path, monkeypatch, adjustment, kept
):
    seen = []

    class Watched(GA3C):
        def start(self):
            self.session.workers_before = [6, 1, 2]
            seen.append(self.counts().workers_to_keep)
            super().start()

    class Slow(Watched):
        def __init__(self, session):
            super().__init__(session)
            time.sleep(0.1)
            seen.append(session.time_s)

    run_counting(tmp_path, monkeypatch, Slow, adjustment=adjustment)
    assert seen == [0.0, kept]


def new_adjustment(monkeypatch, start, room, **settings):
    """The dynamic adjustment of a system that begins with `start`, with memory left for `room` agents; and
    the system.

    It is not started.
    """
    monkeypatch.setattr("ga3c_tf.systems.session.new_model", helpers.CheckingModel)
    monkeypatch.setattr(ga3c_tf.systems.ga3c.system, "available_bytes", lambda: room * AGENT_BYTES)
    session = Session(Config(env_id="helpers:Counting-v0", seed=1, **settings), helpers.SPEC, "/CPU:0", print)
    session.log = SimpleNamespace(adjustment=print)
    system = GA3C(session)
    return system._new_adjustment(WorkerCounts(*start)), system


@pytest.mark.parametrize(
    ("rule", "count", "warm_up"), [("fast", 10, 0.25), ("paper", 10, 0.25), ("nvlabs", 2, 0.0)]
)
def test_the_authors_rule_counts_updates_from_the_first_second_and_the_others_samples_after_a_warm_up(
    monkeypatch, rule, count, warm_up
):
    adjustment, system = new_adjustment(monkeypatch, (4, 1, 1), room=1000, adjustment=rule, num_agents=4)
    for _ in range(2):
        lags = np.zeros(5, np.int64)
        system.session.stats.updated(helpers.update_record(lags))
    assert adjustment._samples() == count and adjustment._warm_up == warm_up


@pytest.mark.parametrize(("room", "agents"), [(2.5, 6), (1000, 32)])
def test_the_adjustment_tries_as_many_agents_as_there_is_memory_for_and_16_threads_of_a_kind(
    monkeypatch, room, agents
):
    settings = {"adjustment": "fast", "num_agents": 4, "max_agents": 32}
    adjustment, _ = new_adjustment(monkeypatch, (4, 17, 1), room, **settings)
    assert adjustment.search._limits == (agents, 17, 16)  # or with as many threads as the run begins with


@pytest.mark.parametrize(
    "rule", ["fast", *(pytest.param(rule, marks=pytest.mark.slow) for rule in ("paper", "nvlabs"))]
)
def test_dynamic_adjustment_changes_the_workers_and_logs_why(tmp_path, monkeypatch, rule):
    file = tmp_path / "run" / "adjustment.csv"

    class Adjusted(GA3C):
        def ended(self, by_budget):
            return "adjusted" if len(read_rows(file, ADJUSTMENT_COLUMNS)) >= 5 else None

    model, training, _ = run_counting(
        tmp_path,
        monkeypatch,
        Adjusted,
        steps=None,
        num_agents=1,
        num_predictors=1,
        num_trainers=1,
        adjustment=rule,
        adjustment_seconds=1.0,
        max_agents=8,
    )
    rows = read_rows(file, ADJUSTMENT_COLUMNS)
    settings = [[int(row[name]) for name in ("agents", "predictors", "trainers")] for row in rows]
    assert settings[0] == [1, 1, 1]
    assert len({tuple(setting) for setting in settings}) > 1
    assert all(
        1 <= number <= limit
        for setting in settings
        for number, limit in zip(setting, (8, 16, 16), strict=True)
    )
    assert all(row["why"] and row["accepted"] in ("0", "1") for row in rows)
    assert max(float(row["rate"]) for row in rows) > 0
    accepted = [setting for setting, row in zip(settings, rows, strict=True) if row["accepted"] == "1"]
    assert training.system.counts().workers_to_keep == accepted[-1]
    for rows in model.batches:
        check_segment(rows, 5)


def test_tuned_agents_wait_for_a_core_and_plain_ones_after_them_have_a_process_each_and_hold_nothing_back(
    tmp_path, monkeypatch
):
    class Watched(GA3C):
        def stop(self):  # every process has stepped by then, so none is still on its way to its policy
            processes = [0, *(process.pid for process in self.agents.processes._processes.values())]
            self.policies = [os.sched_getscheduler(process) for process in processes]
            super().stop()

    monkeypatch.setattr(BatchQueue, "is_behind", True)
    with scheduling_restored():
        for scheduling, policy, processes in (("tuned", os.SCHED_BATCH, 3), ("plain", os.SCHED_OTHER, 6)):
            (tmp_path / scheduling).mkdir()
            settings = {"scheduling": scheduling, "agent_processes": None if scheduling == "plain" else 3}
            _, training, summary = run_counting(tmp_path / scheduling, monkeypatch, Watched, **settings)
            assert summary["ended"] == "steps"
            # Of the server and of its agent processes.
            assert training.system.policies == [policy] * (1 + processes)
            assert training.system._requests._is_patient == (scheduling == "tuned")
            assert (training.system._batches.permits == sys.maxsize) == (scheduling == "plain")
