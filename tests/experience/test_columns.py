"""Every column of a trajectory, from the agent to the loss."""

import pickle
from collections import deque

import helpers
import numpy as np
import pytest
from checks import KeepingModel, batch_of, run_counting, update

from ga3c_tf.algorithms.actor_critic import losses
from ga3c_tf.algorithms.actor_critic.model import Model
from ga3c_tf.config import Config
from ga3c_tf.config.presets import PRESETS
from ga3c_tf.errors import UserError
from ga3c_tf.experience.buffers import RolloutBuffers
from ga3c_tf.experience.columns import COLUMNS, NO_VERSION, Batch, along
from ga3c_tf.experience.divergence import Bounds
from ga3c_tf.experience.queues import EPISODE, IndexQueue, RecordQueue
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model.tensorflow import tf
from ga3c_tf.systems.a2c import A2C
from ga3c_tf.systems.ga3c.system import GA3C
from ga3c_tf.systems.serial import SerialGA3C
from ga3c_tf.workers.agent import TrainingAgent

SPEC = EnvironmentSpec((4,), "float32", 2)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (GA3C, {"min_training_batch": 12}),
        (A2C, {}),
        (SerialGA3C, {}),
        (GA3C, {"train_last_transition": False}),
    ],
)
def test_a_batch_says_of_every_step_and_segment_what_happened(tmp_path, monkeypatch, kind, settings):
    model, _, _ = run_counting(tmp_path, monkeypatch, kind, model=KeepingModel, **settings)
    ends = set()
    for batch, version in model.whole:
        assert batch.lengths.sum() == len(batch) == len(batch.states) == len(batch.agents)
        starts = np.cumsum(batch.lengths) - batch.lengths
        for segment, (start, length) in enumerate(zip(starts, batch.lengths, strict=True)):
            places = [helpers.decode(state) for state in batch.states[start : start + length]]
            steps = slice(start, start + length)
            rewards = [max(-1.0, min(1.0, helpers.reward_at(*place))) for place in places]
            assert batch.rewards[steps] == pytest.approx(rewards)
            assert batch.mu_values[steps] == pytest.approx([helpers.value_at(*place) for place in places])
            assert not batch.mu_log_probabilities[steps].any()  # the only action that had a probability
            assert (np.diff(batch.versions[steps]) >= 0).all() and batch.versions[steps].max() < version
            identity, episode, first = places[0]
            last = first + length + (not settings.get("train_last_transition", True))
            ended = last == helpers.episode_length(identity, episode)
            by_time = helpers.is_truncated(identity, episode)
            flags = bool(batch.terminated[segment]), bool(batch.truncated[segment])
            if any(flags):
                assert ended and flags == (not by_time, by_time)
            ends.add(flags)
            if flags == (False, False) or (flags[1] and settings.get("train_last_transition", True)):
                value = helpers.value_at(identity, episode, first + length)
                assert batch.bootstrap_values[segment] == pytest.approx(value)
                assert batch.versions[steps].max() <= batch.bootstrap_versions[segment] < version
            else:
                assert (batch.bootstrap_values[segment], batch.bootstrap_versions[segment]) == (
                    0.0,
                    NO_VERSION,
                )
    assert ends == {(False, False), (True, False), (False, True)}


@pytest.mark.parametrize("preset", ["default", "nvlabs"])
def test_the_log_probability_is_that_of_the_action_under_the_policy_that_chose_it(preset):
    config = Config.from_values({**PRESETS[preset], "num_agents": 1, "adjustment": "off"})
    memory = RolloutBuffers(config, SPEC)
    training, free_slots = IndexQueue(), deque(memory.slots_of(0))
    environment = helpers.gymnasium.make("CartPole-v1")
    agent = TrainingAgent(
        0, config, environment, memory, training, RecordQueue(EPISODE), free_slots, np.random.SeedSequence(1)
    )
    given = {}
    run = agent.run()
    for count in range(400):
        request = next(run)
        while len(training):
            slot = int(training.get(1)["index"][0])
            for step in range(memory.lengths[slot]):
                policy = given[memory.states[slot, step].tobytes()]
                expected = np.log(policy[memory.actions[slot, step]])
                assert memory.mu_log_probabilities[slot, step] == pytest.approx(expected, rel=1e-5)
            free_slots.append(slot)
        if request is not None:
            share = (count % 9 + 0.5) / 9
            memory.policy[0] = share, 1 - share
            given[memory.flat_states[request].tobytes()] = memory.policy[0].copy()
    run.close()
    assert len(given) > 300


def everything(batch, config):
    total = tf.add_n([tf.reduce_sum(tf.cast(getattr(batch, name), tf.float32)) for name in NAMES])
    zero = 0.0 * (tf.reduce_sum(batch.logits) + tf.reduce_sum(batch.values))
    return total + zero, batch.beta + zero, zero


NAMES = [column.name for column in COLUMNS]


def a_batch():
    columns = {column.name: np.arange(1, 4).astype(column.dtype) for column in along(COLUMNS, "step")}
    columns |= {column.name: np.array([2, 1]).astype(column.dtype) for column in along(COLUMNS, "segment")}
    columns["actions"] %= 2
    return columns, Batch(states=np.ones((3, 4), np.float32), **columns)


def test_a_loss_is_handed_every_column_and_pays_for_those_it_reads():
    columns, batch = a_batch()
    model = Model(Config(network="mlp", loss="test_columns:everything"), SPEC, seed=0)
    result = update(model, batch, 0.01, 0.25)
    assert result.metrics["policy_loss"] == sum(
        float(column.astype(np.float32).sum()) for column in columns.values()
    )
    assert result.metrics["value_loss"] == 0.25
    paper = Model(Config(network="mlp"), SPEC, seed=0)
    assert update(paper, batch_of(batch.states, batch.actions, batch.returns), 0.01, 0.25).applied
    with pytest.raises(AttributeError, match="a batch has no column 'returns'"):
        update(paper, Batch(states=batch.states, actions=batch.actions), 0.01, 0.25)


def reads_a_copy(batch, config):
    copy = Batch(**{**vars(batch), "returns": batch.rewards})
    return (
        tf.reduce_sum(copy.returns * copy.values),
        tf.reduce_sum(copy.logits),
        tf.cast(copy.version, tf.float32),
    )


def test_the_columns_of_a_users_loss_are_those_that_its_numbers_depend_on():
    loss = losses.find_loss(Config(loss="test_columns:reads_a_copy"), 2)
    assert (loss.columns, loss.reads_version, loss.bounds) == ({"rewards"}, True, Bounds())
    assert not losses.find_loss(Config(loss="test_columns:everything"), 2).reads_version
    _, batch = a_batch()
    model = Model(Config(network="mlp", loss="test_columns:reads_a_copy"), SPEC, seed=0)
    with pytest.raises(AttributeError, match="a batch has no column 'rewards'"):
        update(model, batch_of(batch.states, batch.actions, batch.returns), 0.01, 0.25)
    assert update(model, batch, 0.01, 0.25).applied


calls = []


def reads_more_and_more(batch, config):
    calls.append(1)
    columns = [batch.returns, batch.rewards, batch.mu_values]
    total = tf.add_n(columns[: len(calls)]) * batch.values
    return [tf.reduce_sum(total)] * 3


def test_a_loss_that_reads_other_columns_later_is_an_error():
    """The columns that it did not read at first are blank."""
    calls.clear()
    with pytest.raises(
        UserError, match="loss 'test_columns:reads_more_and_more' reads rewards in one call and not in"
    ):
        Model(Config(network="mlp", loss="test_columns:reads_more_and_more"), SPEC, seed=0)


def test_buffers_in_another_process_have_the_same_columns():
    memory = RolloutBuffers(Config(num_agents=1), SPEC, np.zeros(3, np.float32))
    state = {name: value for name, value in memory.__getstate__().items() if name != "_memory"}
    copy = RolloutBuffers.__new__(RolloutBuffers)
    copy.__setstate__({**pickle.loads(pickle.dumps(state)), "_memory": memory._memory})
    copy.carries[1] = 7
    assert (memory.carries[1] == 7).all() and not memory.carries[0].any()
