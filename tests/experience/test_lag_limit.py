"""The limit of the policy lag: which segments are dropped, and how many steps they had."""

import pytest

from ga3c_tf.config import Config
from ga3c_tf.experience.buffers import RolloutBuffers
from ga3c_tf.experience.lag_limit import LagLimit


def limit_of(most, *segments):
    """A limit with a model of version 10 and segments with steps chosen by these versions, from slot 0 on."""
    memory = RolloutBuffers(Config(num_agents=1, t_max=3), (1,), "uint8", 2)
    for slot, versions in enumerate(segments):
        memory.lengths[slot] = len(versions)
        memory.versions[slot, : len(versions)] = versions
    return LagLimit(most, memory, lambda: 10)


@pytest.mark.parametrize(
    ("most", "versions", "dropped"),
    [
        (2, [8, 9, 10], False),
        (2, [7, 9, 10], True),
        (2, [10, 9, 7], True),
        (0, [10, 10, 10], False),
        (0, [9, 10, 10], True),
        (2, [9], False),
        (None, [0, 0, 0], False),
    ],
)
def test_a_segment_is_dropped_if_its_oldest_step_is_more_than_the_limit_behind(most, versions, dropped):
    assert limit_of(most, versions).drops(0) == dropped


def test_the_steps_of_dropped_segments_are_counted():
    limit = limit_of(2, [1, 2, 3], [9, 9])
    for slot in (0, 1, 0):
        limit.drops(slot)
    assert limit.dropped_steps == 6
