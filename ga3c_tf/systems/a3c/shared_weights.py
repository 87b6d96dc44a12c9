"""Weights and optimizer statistics in shared memory, which every agent updates without locks (Mnih et al. 2016)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ga3c_tf.rollouts.queues import SharedMemory

BLOCK = 65_536
"""Numbers handled at a time: a block's arrays stay in a core's cache from one operation to the next."""


class SharedWeights:
    """What a checkpoint of the model holds, as float32 arrays that all processes of a run see.

    Reads and writes of a single number are whole; an agent may read some weights before another's update and some after
    it, and of two updates at once a few numbers may keep only one. That is A3C.

    Args:
        shapes: of the variables of each group, as `Model.checkpoint_objects` names them.
        num_agents: who counts updates.

    Attributes:
        groups: the arrays of each group, in the model's order.
        updates: int64 [num_agents + 1]; each agent counts its own, and the last number is that of earlier sessions.
    """

    groups: dict[str, list[np.ndarray]]
    updates: np.ndarray

    def __init__(self, shapes: Mapping[str, Sequence[tuple[int, ...]]], num_agents: int):
        self._shapes = {group: list(of_group) for group, of_group in shapes.items()}
        self._counters = num_agents + 1
        numbers = sum(math.prod(shape) for of_group in shapes.values() for shape in of_group)
        self._memory = SharedMemory(8 * self._counters + 4 * numbers, "a smaller network and fewer --agents")
        self._map()

    def __getstate__(self):
        return {"_shapes": self._shapes, "_counters": self._counters, "_memory": self._memory}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._map()

    def _map(self) -> None:
        self.updates = np.ndarray((self._counters,), np.int64, self._memory.buffer)
        offset = self.updates.nbytes
        self.groups = {}
        for group, shapes in self._shapes.items():
            self.groups[group] = []
            for shape in shapes:
                array: np.ndarray = np.ndarray(shape, np.float32, self._memory.buffer, offset)
                self.groups[group].append(array)
                offset += array.nbytes

    @property
    def version(self) -> int:
        """Updates by all agents, earlier sessions included."""
        return int(self.updates.sum())


def rmsprop_step(
    weight: np.ndarray,
    mean_square: np.ndarray,
    slot: np.ndarray,
    gradient: np.ndarray,
    learning_rate: float,
    decay: float,
    momentum: float,
    epsilon: float,
) -> None:
    """Take one step of TensorFlow 1's RMSProp (`ga3c_tf.model.rmsprop`) on one variable, in place and without a lock.

    The step that is subtracted from the weights lies in an array of this process until it is: in the shared slot,
    other processes would write theirs over it, and then one step would be taken twice and the other not at all.

    Args:
        weight, mean_square, slot: float32 of the variable's shape, contiguous; `slot` is the momentum's, and is left
            alone without momentum.
        gradient: float32 of that shape.
        learning_rate, decay, momentum, epsilon: as for `ga3c_tf.model.rmsprop.RMSProp`.
    """
    rate, keep, factor, floor = (np.float32(number) for number in (learning_rate, 1 - decay, momentum, epsilon))
    flat = [array.reshape(-1) for array in (weight, mean_square, slot, gradient)]
    for start in range(0, weight.size, BLOCK):
        w, s, m, g = (array[start : start + BLOCK] for array in flat)
        with np.errstate(over="ignore", invalid="ignore"):  # the next loss shows it, and is skipped
            step = g * g
            step -= s
            step *= keep
            s += step
            np.add(s, floor, out=step)
            np.sqrt(step, out=step)
            np.divide(g, step, out=step)
            step *= rate
            if momentum:
                step += factor * m
                m[...] = step
            w -= step
