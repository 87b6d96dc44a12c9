"""Weights and optimizer statistics in shared memory, which agents update without locks (Mnih et al. 2016)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ga3c_tf.experience.shared_memory import SharedMemory

BLOCK = 65_536
"""Number of elements processed at a time: the arrays of a block stay in a core's cache between operations."""


class SharedWeights:
    """The variables of a model's checkpoint, except its version, as float32 arrays shared by all processes of
    a run.

    Reads and writes of a single number are atomic, but whole updates are not. An agent may read some weights
    before another agent's update and some after it. If two updates overlap, a few numbers may keep only one
    of them. A3C accepts this.

    Args:
        shapes: by group, the shapes of its variables; groups are named as in `Model.checkpoint_objects`.
        num_agents: number of agents, each of which counts its updates.

    Attributes:
        groups: by group, its arrays, in the model's order.
        updates: int64 [num_agents + 1], number of updates by each agent; the last element is that of earlier
            sessions.
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
        """Number of updates by all agents, earlier sessions included."""
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
    """Take one step of TensorFlow 1's RMSProp (`ga3c_tf.model.optimizers`) on one variable, in place and
    without a lock.

    The step is kept in an array of this process until it is subtracted from the weights. In the shared slot
    another process could overwrite it. Then one step would be taken twice and the other not at all.

    Args:
        weight, mean_square, slot: float32 arrays of the variable's shape, contiguous; changed in place.
            `slot` holds the momentum, and is not changed if `momentum` is 0.
        gradient: float32 array of the same shape.
        learning_rate, decay, momentum, epsilon: as in `ga3c_tf.model.optimizers.RMSProp`.
    """
    rate, keep, factor, floor = (
        np.float32(number) for number in (learning_rate, 1 - decay, momentum, epsilon)
    )
    flat = [array.reshape(-1) for array in (weight, mean_square, slot, gradient)]
    for start in range(0, weight.size, BLOCK):
        w, s, m, g = (array[start : start + BLOCK] for array in flat)
        # The next update notices an overflow and is skipped.
        with np.errstate(over="ignore", invalid="ignore"):
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
