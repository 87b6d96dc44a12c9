"""A3C on the CPU: shared weights without locks, every agent's batches whole, its runs as GA3C's."""

import multiprocessing
import time
from types import SimpleNamespace

import checks
import helpers
import keras
import numpy as np
import pytest
import tensorflow as tf
from checks import (
    PATIENCE,
    batch_of,
    batches_of_agents,
    check_nothing_lost_or_repeated,
    check_segment,
    run_counting,
    shared_weights_of,
    update,
)

from ga3c_tf.algorithms.actor_critic.model import Model
from ga3c_tf.config import Config
from ga3c_tf.environments.environment import describe_environment
from ga3c_tf.errors import Diverged, UserError
from ga3c_tf.experience.batch_builder import BatchBuilder
from ga3c_tf.experience.divergence import Divergence, SegmentLag
from ga3c_tf.experience.queues import IndexQueue, RecordQueue
from ga3c_tf.experience.segments import FreeSlots, Segments
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model.optimizers import RMSProp
from ga3c_tf.runs.folder import RunFolder
from ga3c_tf.systems.a2c import A2C
from ga3c_tf.systems.a3c import system as a3c
from ga3c_tf.systems.a3c.process import UpdateReport, update_type
from ga3c_tf.systems.a3c.replica import replica
from ga3c_tf.systems.a3c.shared_weights import BLOCK, SharedWeights, rmsprop_step
from ga3c_tf.systems.a3c.system import A3C
from ga3c_tf.systems.ga3c.system import GA3C
from ga3c_tf.systems.session import Session
from ga3c_tf.systems.training import Training
from ga3c_tf.workers.minibatches import Minibatches
from ga3c_tf.workers.supervisor import AgentError, AgentSupervisor
from ga3c_tf.workers.updater import Updater

SPEC = EnvironmentSpec((4,), "float32", 3)

# the update


@pytest.mark.parametrize(("decay", "momentum", "epsilon"), [(0.99, 0.0, 0.1), (0.9, 0.9, 0.001)])
def test_the_rmsprop_step_is_that_of_the_kernel_for_any_size(decay, momentum, epsilon):
    rng = np.random.default_rng(0)
    for shape in [(), (7,), (3, BLOCK), (BLOCK + 1,), (2 * BLOCK,)]:
        variable = tf.Variable(rng.normal(size=shape).astype(np.float32))
        kernel = RMSProp([variable], decay, momentum, epsilon)
        weight = variable.numpy().copy()
        square = np.ones(shape, np.float32)
        slot = np.zeros(shape, np.float32)
        weight = np.asarray(weight)  # a copy of a number without dimensions is no array
        for step in range(3):
            gradient = np.asarray(rng.normal(0, 3, shape), np.float32)
            kernel.apply([tf.constant(gradient)], 0.01 * (step + 1))
            rmsprop_step(weight, square, slot, gradient, 0.01 * (step + 1), decay, momentum, epsilon)
        # Without it nobody reads it.
        slot_after = kernel.slots["momentum"][0] if momentum else np.zeros(shape, np.float32)
        for found, expected in (
            (weight, variable),
            (square, kernel.slots["mean_square"][0]),
            (slot, slot_after),
        ):
            np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-7)


OPTIONS = [
    {},
    {"dual_rmsprop": True},
    {
        "rmsprop_momentum": 0.9,
        "rmsprop_decay": 0.8,
        "rmsprop_epsilon": 0.01,
        "loss_reduction": "mean",
        "value_coefficient": 0.5,
    },
    {"grad_clip_norm": 1e-2},
    {"grad_clip_norm": 1e-2, "dual_rmsprop": True},
    {"min_policy": 0.1, "log_epsilon": 0.3},
    {"log_softmax": True},
    {"optimizer": "adam", "grad_clip_global": 0.1},
    {"advantage": "gae", "normalize_advantages": True, "initialization": "orthogonal"},
    {"correction": "v-trace"},
]


def batch(config, number):
    rng = np.random.default_rng(number)
    return (
        rng.normal(size=(config.t_max, 4)).astype(np.float32),
        rng.integers(0, 3, config.t_max).astype(np.int32),
        rng.normal(0, 2, config.t_max).astype(np.float32),
    )


def of_v_trace(config, number):
    """Rewards, another policy's log-probabilities, and the value after the segment: what V-trace reads."""
    rng = np.random.default_rng(100 + number)
    return rng.normal(size=config.t_max), np.log(rng.uniform(0.1, 0.9, config.t_max)), rng.normal()


def weights_of(model):
    return [weight.numpy() for weight in model.network.weights]


def systems_of(config):
    """For each system: a function that trains on slot 0's segment as it does, and its model or replica."""
    server = GA3C(Session(config, SPEC, "/CPU:0", print))
    synchronous = A2C(Session(config.replace(system="a2c"), SPEC, "/CPU:0", print))
    server.agents.replies.open(0)  # messages of an agent process that never began would not be valid
    synchronous._answers.open(0)
    model = server.session.model
    replica = checks.replica_of(model, config, SPEC)
    updates = RecordQueue(update_type(len(Model.metrics)))

    def step_server():
        server.session.training_queue.put(0)
        for batch in server._batches._segments.waiting():
            server.session.updater.train_on([batch])

    def step_synchronous():
        synchronous.session.training_queue.put(0)
        synchronous.session.memory.sent[:] += config.t_max
        synchronous._prediction_queue.put(synchronous.session.memory.state_index(1, 0))
        synchronous._take_in()
        synchronous._update()

    def step_replica():
        memory = server.session.memory
        queue = IndexQueue()
        queue.put(0)
        segments = Segments(queue, FreeSlots(memory), BatchBuilder(memory, config.min_training_batch))
        updater = Updater(
            replica, UpdateReport(updates, 0), Minibatches(config), lambda: config.annealed(0, 0.0)
        )
        for batch in segments.waiting():
            updater.train_on([batch])

    memories = {"ga3c": server.session.memory, "a2c": synchronous.session.memory}
    return memories, {
        "ga3c": (step_server, model),
        "a2c": (step_synchronous, synchronous.session.model),
        "a3c": (step_replica, replica),
    }


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_three_systems_make_the_same_updates_of_the_same_data(options):
    config = Config(
        network="mlp", seed=1, num_agents=1, min_training_batch=0, learning_rate=0.01, beta=0.1, **options
    )
    memories, systems = systems_of(config)
    start = weights_of(systems["ga3c"][1])
    for number in range(3):
        for memory in memories.values():
            memory.states[0, : config.t_max], memory.actions[0], memory.returns[0] = batch(config, number)
            memory.lengths[0], memory.versions[0] = config.t_max, number
            rewards, mu_log_probabilities, bootstrap_value = of_v_trace(config, number)
            memory.rewards[0], memory.mu_log_probabilities[0] = rewards, mu_log_probabilities
            memory.bootstrap_values[0] = bootstrap_value
        for step, _ in systems.values():
            step()
    expected = weights_of(systems["ga3c"][1])
    for _, model in systems.values():
        for before, found, right in zip(start, weights_of(model), expected, strict=True):
            movement = np.abs(right - before).max()
            assert movement > 1e-5 and np.abs(found - right).max() < 1e-7 + 1e-3 * movement
    statistics = systems["ga3c"][1].checkpoint_objects()
    for group, arrays in systems["a3c"][1]._store._shared.groups.items():
        if "momentum" in group and not config.rmsprop_momentum:
            continue
        for found, right in zip(arrays, statistics[group], strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)


def mlp(agents=1, **settings):
    config = Config(network="mlp", **settings)
    model = Model(config, SPEC, seed=0)
    shared = shared_weights_of(model, agents)
    return config, shared, [replica(config, SPEC, shared, agent) for agent in range(agents)]


def test_the_policy_lag_is_the_updates_of_all_agents_since_the_copy_that_chose(tmp_path):
    config, shared, (one, other) = mlp(agents=2)
    shared.updates[-1] = 100  # of an earlier session
    one._store.pull()
    other._store.pull()
    chosen_by = one.predict(batch(config, 0)[0]).version
    before = one.predict(batch(config, 0)[0])[0].copy()
    for number in range(3):
        assert update(other, batch_of(*batch(config, number)), 0.01, 0.1).version == 101 + number
    assert chosen_by == one.predict(batch(config, 0)[0])[2] == 100
    assert np.array_equal(before, one.predict(batch(config, 0)[0])[0])  # a copy of its own until it trains
    assert update(one, batch_of(*batch(config, 0)), 0.01, 0.1).version - 1 - chosen_by == 3
    assert one.predict(batch(config, 0)[0])[2] == shared.version == 104
    for variable, weight in zip(one.network.trainable_variables, shared.groups["weights"], strict=True):
        assert np.array_equal(variable.numpy(), weight)


def noisy_network(shape, dtype, num_actions):
    states = keras.Input(shape, dtype=dtype.name)
    hidden = keras.layers.Dropout(0.5)(states)
    values = keras.layers.Reshape(())(keras.layers.Dense(1)(hidden))
    return keras.Model(states, [keras.layers.Dense(num_actions)(hidden), values])


def test_replicas_begin_with_the_shared_weights_and_draw_noise_of_their_own():
    config = Config(network="test_a3c:noisy_network", seed=1)
    shared = shared_weights_of(Model(config, SPEC, seed=1), agents=2)
    replicas = [replica(config, SPEC, shared, agent) for agent in range(2)]
    for model in replicas:
        for found, weight in zip(weights_of(model), shared.groups["weights"], strict=True):
            np.testing.assert_array_equal(found, weight)
    found = [model.computation.gradients(batch_of(*batch(config, 0)), 0.1) for model in replicas]
    assert found[0].metrics["value_loss"] != found[1].metrics["value_loss"]


def test_a_loss_that_is_not_finite_is_not_applied():
    config, shared, [replica] = mlp()
    states, actions, returns = batch(config, 0)
    before = [array.copy() for array in shared.groups["weights"]]
    result = update(replica, batch_of(states, actions, returns * np.inf), 0.01, 0.1)
    assert (
        not np.isfinite(result.metrics["value_loss"])
        and not result.applied
        and shared.version == result.version == 0
    )
    assert all(np.array_equal(a, b) for a, b in zip(before, shared.groups["weights"], strict=True))


def test_of_two_processes_that_update_at_once_none_takes_the_steps_of_the_other():
    """The steps of one process are 1, those of the other 1,000, so that a weight tells how many of each it
    has got.

    Of two steps on one weight at the same moment one may be lost (Hogwild): up to 0.3 % were, with such
    pauses. No step may be taken by both: with a shared array for the step that was so for 71 to 100 % of the
    weights.
    """
    size = 1_000_000
    steps = 100
    shared = SharedWeights(
        {group: [(size,)] for group in ("weights", "mean_square", "momentum")}, num_agents=2
    )
    shared.groups["mean_square"][0][:] = 1
    context = multiprocessing.get_context("forkserver")
    begin = context.Barrier(2)
    processes = [
        context.Process(target=helpers.take_rmsprop_steps, args=(shared, agent, rate, steps, begin))
        for agent, rate in enumerate((1.0, 1000.0))
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert shared.version == 2 * steps
    of_other, of_one = np.divmod(-shared.groups["weights"][0], 1000)
    assert of_one.max() <= steps and of_other.max() <= steps
    assert (of_one + of_other).mean() > 0.95 * 2 * steps


def test_a_report_is_one_record_with_the_predictions_since_the_last():
    queue = RecordQueue(update_type(len(Model.metrics)))
    report = UpdateReport(queue, 0)
    for _ in range(3):
        report.predicted(1)
    report.updated(helpers.update_record(np.array([7, 7]), -1.0, 2.0, 0.5))
    measured = (Divergence(*range(len(Divergence._fields))), SegmentLag(6.0, 7.0, 8.0))
    report.updated(
        helpers.update_record(np.array([0]), 0.0, 0.0, 0.0, divergence=measured[0], within=measured[1])
    )
    first, second = queue.get(10).tolist()
    assert first[:3] == (3, 2, 7) and first[3].tolist() == [-1.0, 2.0, 0.5, 0.0]
    assert second[:3] == (0, 1, 0) and not second[3].any()
    assert (tuple(second[4]), tuple(second[5])) == measured


# whole runs


class ServersModel(helpers.CheckingModel):
    """What the server of A3C needs of a model."""

    network = SimpleNamespace(non_trainable_weights=[])

    def __init__(self, *args, **kwargs):
        super().__init__()
        self.version = tf.Variable(0, dtype=tf.int64)

    def checkpoint_objects(self):
        return {"weights": [], "version": [self.version]}


def run_checking_a3c(tmp_path, monkeypatch, kind=A3C, **settings):
    monkeypatch.setattr(a3c, "run_agent", checks.run_checking_agent)
    # an agent that a busy machine holds up is not killed over its last batch
    monkeypatch.setattr(a3c, "STOP_SECONDS", PATIENCE)
    _, training, summary = run_counting(
        tmp_path, monkeypatch, kind, model=ServersModel, system="a3c", **settings
    )
    return batches_of_agents(tmp_path / "run"), training, summary


class InALongPause(A3C):
    """Waits before its first row, as for an evaluation, until agents have made so many steps."""

    steps = 3000

    def before_row(self):
        if self.steps:
            deadline = time.monotonic() + PATIENCE
            end, self.steps = self.session.agent_steps + self.steps, 0
            while self.session.agent_steps < end:
                assert time.monotonic() < deadline
                self.keep_up()
                time.sleep(0.01)


def test_agents_go_on_in_a_long_pause(tmp_path, monkeypatch):
    """The records of their updates fill the smallest pipe within some hundred steps."""
    monkeypatch.setattr(a3c, "UPDATE_BYTES", 4096)
    run_checking_a3c(tmp_path, monkeypatch, InALongPause, num_agents=2, log_seconds=0.2)


@pytest.mark.parametrize(
    "t_max", [pytest.param(1, marks=pytest.mark.slow), 5, pytest.param(100, marks=pytest.mark.slow)]
)
def test_every_segment_is_trained_on_once_by_its_own_agent(tmp_path, monkeypatch, t_max):
    reported: list[np.ndarray] = []
    monkeypatch.setattr("ga3c_tf.runs.stats.Stats.updated", lambda self, update: reported.append(update.lags))
    batches, training, summary = run_checking_a3c(
        tmp_path, monkeypatch, t_max=t_max, num_agents=4, steps=1500
    )
    for rows, _ in batches:
        check_segment(rows, t_max)
    check_nothing_lost_or_repeated([row for rows, _ in batches for row in rows], agents=4)
    steps = sum(len(rows) for rows, _ in batches)
    assert summary["agent_steps"] - 4 * t_max <= steps <= training.session.agent_steps
    assert len(reported) == len(batches) == training.session.model.version.numpy()
    assert sorted(np.concatenate(reported).tolist()) == sorted(lag for _, lags in batches for lag in lags)
    assert training.session.stats.predictions >= steps  # some more only give a bootstrap value


def test_an_agent_alone_has_no_policy_lag(tmp_path, monkeypatch):
    batches, _, _ = run_checking_a3c(tmp_path, monkeypatch, num_agents=1, steps=300)
    assert len(batches) > 50 and {lag for _, lags in batches for lag in lags} == {0}


def test_an_agents_error_ends_the_run_with_its_traceback(tmp_path, monkeypatch):
    with pytest.raises(AgentError, match="RuntimeError: the emulator is gone"):
        run_checking_a3c(tmp_path, monkeypatch, env_id="helpers:Failing-v0", num_agents=2)


def a3c_of(tmp_path, **settings):
    config = Config(**{"env_id": "CartPole-v1", "system": "a3c", "num_agents": 2, "seed": 1, **settings})
    return Training(A3C, config, describe_environment(config), RunFolder(tmp_path, config), "/CPU:0", print)


@pytest.mark.parametrize(
    ("annealing", "rate"), [({"anneal_steps": 1000}, 0.25), ({"anneal_fraction": 1.0, "minutes": 10.0}, 0.5)]
)
def test_the_rates_of_an_agent_follow_the_steps_and_the_time_of_all_agents_and_sessions(
    tmp_path, monkeypatch, annealing, rate
):
    found = []

    def start(processes, number, target, *args, pipe):
        target(*args, pipe)  # in this process

    monkeypatch.setattr(AgentSupervisor, "start", start)
    monkeypatch.setattr("ga3c_tf.systems.a3c.process.configure_device", lambda *args: None)
    monkeypatch.setattr(
        "ga3c_tf.systems.a3c.process.play_and_train", lambda *args, rates, ended: found.append(rates())
    )
    training = a3c_of(tmp_path, learning_rate=1.0, learning_rate_end=0.0, beta=0.01, **annealing)
    session = training.session
    session.restore(
        {"agent_steps": 500, "time_s": 300.0, "agents_started": 2, "stats": session.stats.state()}
    )
    session.memory.steps[:] = 100, 150
    training.system.start()
    assert [rates.beta for rates in found] == [0.01] * 2
    assert [rates.learning_rate for rates in found] == [pytest.approx(rate, abs=0.05)] * 2


def test_the_server_counts_the_predictions_of_its_agents_one_by_one(tmp_path):
    training = a3c_of(tmp_path)
    report = UpdateReport(training.system._update_queue, 0)
    for predictions in (3, 4):
        for _ in range(predictions):
            report.predicted(1)
        report.updated(helpers.update_record(np.zeros(2, np.int64), 0.0, 0.0, 0.0))
    training.system.poll(0.0)
    assert training.session.stats.predictions == 7
    assert training.session.stats.window(1.0)["prediction_batch"] == 1.0


def test_a_checkpoint_counts_the_updates_that_its_weights_have(tmp_path):
    """Also those that agents have reported since the server has last looked."""
    training = a3c_of(tmp_path)
    system = training.system
    session = training.session
    system._weights.updates[0] = 3
    for _ in range(3):
        UpdateReport(system._update_queue, 0).updated(
            helpers.update_record(np.zeros(5, np.int64), 0.0, 0.0, 0.0)
        )
    with system.paused():
        assert session.counters()["stats"]["updates"] == session.model.version.numpy() == 3
        assert session.stats.trained_samples == 15


def test_weights_that_are_not_finite_are_not_saved(tmp_path):
    training = a3c_of(tmp_path)
    training.system._weights.updates[0] = 1
    training.system._weights.groups["weights"][2][0] = np.nan
    training.session.log = SimpleNamespace(flush=lambda: None, close=lambda: None)
    with pytest.raises(Diverged, match=r"weights/2 of the checkpoint .* is not finite"):
        training._saver.save_last(None)
    assert not (tmp_path / "checkpoints").exists()


def test_a_loss_that_is_not_finite_ends_the_run_and_nothing_of_it_is_saved(tmp_path):
    training = a3c_of(tmp_path, learning_rate=1e38, steps=10**6)
    with pytest.raises(Diverged, match=r"update \d+: policy loss .*, value loss .*; a lower --learning-rate"):
        training.run()
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["000000000000"]


def test_more_agents_than_memory_has_room_for_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(a3c, "available_bytes", lambda: 2**30)
    with pytest.raises(
        UserError, match=r"64 agents need about \d+ MiB, and 1024 MiB are left here; --agents \d+ fit"
    ):
        a3c_of(tmp_path, num_agents=64)
    a3c_of(tmp_path, num_agents=2)
    monkeypatch.setattr(a3c, "available_bytes", lambda: 2**20)
    with pytest.raises(UserError, match="; not even one agent fits"):
        a3c_of(tmp_path, num_agents=2)


def test_an_error_of_the_environment_does_not_prevent_the_last_checkpoint(tmp_path):
    """Its FloatingPointError does not mean that the training has diverged."""
    training = a3c_of(tmp_path)
    training.session.log = SimpleNamespace(flush=lambda: None, close=lambda: None)
    assert training._saver.save_last(Diverged("update 3")) is None
    assert training._saver.save_last(FloatingPointError("unstable")).exists()


def network_with_statistics(shape, dtype, num_actions):
    states = keras.Input(shape, dtype=dtype.name)
    hidden = keras.layers.BatchNormalization(name="norm")(states)
    values = keras.layers.Reshape(())(keras.layers.Dense(1)(hidden))
    return keras.Model(states, [keras.layers.Dense(num_actions)(hidden), values])


def test_a_network_with_weights_that_are_not_trained_is_refused(tmp_path):
    with pytest.raises(UserError, match="shares trainable weights only, and the network has 2 others"):
        a3c_of(tmp_path, network="test_a3c:network_with_statistics")


def test_a_network_with_random_generators_is_accepted(tmp_path):
    a3c_of(tmp_path, network="test_a3c:noisy_network")


@pytest.mark.slow
def test_agents_that_wait_for_room_in_a_full_pipe_end_by_themselves(tmp_path, monkeypatch):
    class NeverReads(A3C):
        """Takes in no update before the end, when the pipe has been full for long."""

        def _collect_updates(self):
            if self._stopping:
                super()._collect_updates()

        def stop(self):
            self._stopping = True
            super().stop()

    NeverReads._stopping = False
    monkeypatch.setattr(a3c, "run_agent", checks.run_checking_agent)
    monkeypatch.setattr(a3c, "STOP_SECONDS", PATIENCE)
    settings = {"system": "a3c", "num_agents": 2, "t_max": 1, "steps": None, "minutes": 0.2}
    _, training, _ = run_counting(tmp_path, monkeypatch, NeverReads, model=ServersModel, **settings)
    assert {process.exitcode for process in training.system._processes._processes.values()} == {0}
