"""The contracts of experience/contracts.py, tested once for every implementation."""

import functools
import itertools

import numpy as np
import pytest
from checks import replica_of, update

from ga3c_tf.algorithms.actor_critic.model import Model
from ga3c_tf.algorithms.compiled.model import CompiledModel
from ga3c_tf.algorithms.q_learning.pqn import PQN
from ga3c_tf.config import Config
from ga3c_tf.config.rates import Rates
from ga3c_tf.errors import Diverged
from ga3c_tf.experience.batch_builder import BatchBuilder
from ga3c_tf.experience.buffers import RolloutBuffers
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.contracts import UpdateRecord, UpdateResult
from ga3c_tf.experience.divergence import NO_SEGMENTS, UNKNOWN
from ga3c_tf.experience.queues import RecordQueue
from ga3c_tf.experience.replay.replay import Replay
from ga3c_tf.experience.reply_pipes import ReplyPipes
from ga3c_tf.experience.segments import FreeSlots
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.runs.stats import Stats
from ga3c_tf.systems.a3c.process import UpdateReport, update_type
from ga3c_tf.workers.minibatches import Minibatches
from ga3c_tf.workers.updater import Updater

SPEC = EnvironmentSpec((4,), "float32", 3)
CONFIG = Config(seed=1, num_agents=2, rmsprop_epsilon=1e-3)


def model():
    return Model(CONFIG, SPEC, seed=1)


def replica():
    return replica_of(model(), CONFIG, SPEC)


def pqn():
    return PQN(CONFIG.replace(algorithm="pqn"), SPEC, seed=1)


@functools.cache
def programs():
    """A compiled model with its weights at the start, which is compiled only once."""
    made = CompiledModel(CONFIG, model())
    variables = itertools.chain.from_iterable(made.checkpoint_objects().values())
    return made, [(variable, variable.numpy()) for variable in variables]


def compiled():
    made, variables = programs()
    for variable, value in variables:
        variable.assign(value)
    made.load()
    return made


@pytest.fixture(params=[model, replica, pqn, compiled])
def learner(request):
    """Something that predicts and learns."""
    return request.param()


def batch_of(size, value=1.0):
    random = np.random.default_rng(0)
    states = random.normal(size=(size, 4)).astype(np.float32)
    return Batch(
        states=states,
        actions=np.zeros(size, np.int32),
        rewards=np.ones(size, np.float32),
        mu_values=np.zeros(size, np.float32),
        mu_log_probabilities=np.full(size, -1.1, np.float32),
        versions=np.zeros(size, np.int64),
        returns=np.full(size, value, np.float32),
        agents=np.zeros(size, np.int64),
    )


@pytest.mark.parametrize("size", [1, 7])
def test_a_policy_gives_probabilities_values_and_the_version_of_its_weights(learner, size):
    states = batch_of(size).states
    prediction = learner.predict(states)
    assert prediction.policy.shape == (size, 3) and prediction.value.shape == (size,)
    assert prediction.policy.dtype == prediction.value.dtype == np.float32
    np.testing.assert_allclose(prediction.policy.sum(axis=1), 1, rtol=1e-5)
    assert prediction.version == 0 and isinstance(prediction.version, int)
    some = prediction.of(np.arange(size) == 0)
    np.testing.assert_array_equal(some.policy, prediction.policy[:1])


@pytest.mark.parametrize("implementation", [model, replica])
def test_a_learner_makes_the_chosen_action_likelier_and_counts_its_updates(implementation):
    learner = implementation()
    batch = batch_of(20)
    before = learner.predict(batch.states)
    for number in range(1, 6):
        result = update(learner, batch, 0.01, 0.01)
        assert (result.version, result.applied) == (number, True)
        assert tuple(result.metrics) == learner.metrics
        assert np.isfinite([*result.metrics.values()]).all()
    after = learner.predict(batch.states)
    assert after.version == 5
    assert (after.policy[:, 0] > before.policy[:, 0]).all()
    assert np.abs(after.value - 1).mean() < np.abs(before.value - 1).mean()


def test_a_learner_makes_one_update_for_each_batch_of_a_call(learner):
    results = learner.train([batch_of(20), batch_of(5, np.nan), batch_of(3)], Rates(0.01, 0.01))
    assert [(result.version, result.applied) for result in results] == [(1, True), (1, False), (2, True)]


def test_an_updater_calls_its_learner_as_seldom_as_it_allows():
    calls = []

    class Several:
        metrics = ()
        updates_per_call = 3
        needs_segments = False

        def train(self, batches, rates):
            calls.append([len(batch) for batch in batches])
            return [UpdateResult({}, UNKNOWN, 1, applied=True) for _ in batches]

    observer = Stats(Several.metrics, 10)
    updater = Updater(Several(), observer, Minibatches(CONFIG), lambda: Rates(0.01))
    updater.train_on(batch_of(size) for size in range(1, 8))
    assert calls == [[1, 2, 3], [4, 5, 6], [7]] and observer.updates == 7


@pytest.mark.parametrize("needed", [False, True])
def test_minibatches_are_of_whole_segments_where_the_learner_needs_them(needed):
    trained = []

    class Noting:
        metrics = ()
        updates_per_call = 1
        needs_segments = needed

        def train(self, batches, rates):
            trained.extend(batches)
            return [UpdateResult({}, UNKNOWN, 1, applied=True) for _ in batches]

    config = Config(epochs=2, minibatch_size=4, clip_ratio=0.2)
    updater = Updater(Noting(), Stats((), 10), Minibatches(config), lambda: Rates(0.01))
    batch = batch_of(12)
    batch.lengths = np.array([4, 4, 4])
    updater.train_on([batch])
    assert [len(part) for part in trained] == [4] * 6
    assert [hasattr(part, "lengths") for part in trained] == [needed] * 6


def test_a_learner_skips_an_update_that_is_not_finite(learner):
    weights = [weight.numpy() for weight in learner.network.weights]
    result = update(learner, batch_of(5, np.nan), 0.01, 0.01)
    learner.store()
    assert (result.version, result.applied) == (0, False)
    for weight, before in zip(learner.network.weights, weights, strict=True):
        np.testing.assert_array_equal(weight.numpy(), before)


def stats():
    observer = Stats(Model.metrics, 10, most_skipped=2)
    return observer, lambda: (observer.predictions, observer.trained_samples, observer.skips.count)


def report():
    queue = RecordQueue(update_type(len(Model.metrics)))

    def counts():
        records = queue.get(100)
        return records["predictions"].sum(), records["states"].sum(), np.count_nonzero(records["states"] == 0)

    return UpdateReport(queue, 2), counts


@pytest.mark.parametrize("implementation", [stats, report])
def test_an_observer_counts_what_it_is_told_and_ends_after_too_many_skipped_updates(implementation):
    observer, counts = implementation()
    observer.predicted(3)
    observer.predicted(4)
    result = UpdateResult(dict.fromkeys(Model.metrics, 0.5), UNKNOWN, 1, applied=True)
    observer.updated(UpdateRecord(np.full(5, 2), np.zeros(5, np.int64), result, NO_SEGMENTS))
    error = Diverged("too many")
    observer.skipped(error)
    observer.skipped(error)
    with pytest.raises(Diverged, match="too many"):
        observer.skipped(error)
    assert counts() == (7, 5, 3)


def pipes(memory):
    replies = ReplyPipes(memory, np.array([0, 1]))
    readers = [replies.open(process) for process in (0, 1)]
    return replies, lambda agent: readers[agent].poll(0)


def own_slots(memory):
    slots = FreeSlots(memory)
    free = [len(of_agent) for of_agent in slots.of_agent]
    return slots, lambda agent: len(slots.of_agent[agent]) > free[agent]


@pytest.mark.parametrize("implementation", [pipes, own_slots])
def test_a_slot_goes_back_to_the_agent_that_fills_it(implementation):
    memory = RolloutBuffers(CONFIG, SPEC)
    owners, has_back = implementation(memory)
    slot = memory.slots_of(1)[0]
    assert owners.is_valid(slot, 0)
    owners.released(slot, 0)
    assert has_back(1) and not has_back(0)


def merging(memory):
    return BatchBuilder(memory, minimum=9)


def sampling(memory):
    settings = {"replay_batch": 10, "replay_start": 0, "training_intensity": 1.0, "replay_size": 100}
    config = Config(seed=1, num_agents=2, algorithm="dqn", **settings)
    return Replay(config, memory)


@pytest.mark.parametrize("implementation", [merging, sampling])
def test_a_batch_source_counts_what_is_added_and_gives_batches_of_it_alone(implementation):
    memory = RolloutBuffers(CONFIG, SPEC)
    source = implementation(memory)
    memory.lengths[:] = 4
    batches = []
    for number in range(1, 8):
        slot = memory.slots_of(number % 2)[0]
        memory.states[slot] = number
        memory.columns["terminated"][slot] = number % 3 == 0
        source.copy(slot, generation=0)
        assert source.states == 4 * (number - 1)  # a copy that is not added counts for nothing
        memory.states[slot] = -1  # the slot is filled anew
        source.add()
        assert source.states == 4 * number
        if (batch := source.due()) is not None:
            assert len(batch) >= 10 and set(batch.states[:, 0]) <= set(range(1, number + 1))
            assert set(batch.agents) <= {0, 1}
            batches.append(batch)
            assert source.due() is None
    assert len(batches) == 2
    source.copy(memory.slots_of(0)[0], generation=1)
    assert source.states == 28 and source.due() is None
