"""The columns of a trajectory, stored for each step and each segment, declared once.

Shared memory, segments, training batches and the model's training function all follow this declaration. mu is
the policy that chose the action, as given by the prediction for the step's state.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

Axis = Literal["step", "segment"]
NO_VERSION = -1


@dataclass(frozen=True)
class Column:
    """A column of a trajectory: one value for each step, or one for each segment.

    Args:
        name: name of the column; `RolloutBuffers` and `Batch` have an attribute of this name.
        dtype: type of the numbers.
        meaning: what a value is, with its unit.
        shape: shape of one value: () for a number, (H,) for the state of a recurrent network.
        axis: what a value belongs to.
    """

    name: str
    dtype: type[np.generic]
    meaning: str
    shape: tuple[int, ...] = ()
    axis: Axis = "step"


COLUMNS = (
    Column("actions", np.int32, "the action taken"),
    Column("rewards", np.float32, "its reward, clipped if `clip_rewards` is set"),
    Column("mu_values", np.float32, "V of the state, from the prediction that chose the action"),
    Column("mu_log_probabilities", np.float32, "log mu(action | state), in nats"),
    Column("versions", np.int64, "version of the model that made that prediction"),
    Column(
        "returns",
        np.float32,
        "discounted return from this step on: n-step, or lambda-return with --advantage gae",
    ),
    Column("lengths", np.int32, "steps in the segment", axis="segment"),
    Column("terminated", np.bool_, "whether its last step ended the episode", axis="segment"),
    Column("truncated", np.bool_, "whether its last step reached a time limit", axis="segment"),
    Column(
        "bootstrap_values",
        np.float32,
        "V of the state after its last step; 0 if the segment does not bootstrap",
        axis="segment",
    ),
    Column(
        "bootstrap_versions",
        np.int64,
        "version of the model that gave that value; -1 if none did",
        axis="segment",
    ),
)

PROXIMAL = Column(
    "proximal_log_probabilities",
    np.float32,
    "log-probability under decoupled PPO's third policy",
)
"""Given to a batch just before an update, so that agents and shared memory do not have it."""


class Step(NamedTuple):
    """One step as an agent appends it: all columns of steps but the returns, known at the segment's end."""

    actions: int
    rewards: float
    mu_values: float
    mu_log_probabilities: float
    versions: int


class SegmentEnd(NamedTuple):
    """How a segment ends: all columns of segments except the length, which the segment knows."""

    terminated: bool
    truncated: bool
    bootstrap_values: float
    bootstrap_versions: int


def columns_with(carry: int) -> tuple[Column, ...]:
    """Return the columns of a trajectory.

    Args:
        carry: how many numbers the carry of the network has; 0 without memory.
    """
    if not carry:
        return COLUMNS
    carries = Column("carries", np.float32, "carry before the first step", (carry,), axis="segment")
    versions = Column(
        "carry_versions",
        np.int64,
        "version of the model that gave this carry; -1 at the start of an episode",
        axis="segment",
    )
    return (*COLUMNS, carries, versions)


def along(columns: Iterable[Column], axis: Axis) -> list[Column]:
    """Return the columns of one axis."""
    return [column for column in columns if column.axis == axis]


def even_cuts(lengths: np.ndarray, parts: int) -> list[slice]:
    """Cut segments into parts with nearly equal numbers of steps.

    Args:
        lengths: [S], steps of the segments, in their order.
        parts: number of parts. Where there are fewer segments, or some are long, there are fewer parts.

    Returns:
        The segments of each part; none is empty.
    """
    ends = np.concatenate([[0], np.cumsum(lengths)])
    wanted = ends[-1] * np.arange(parts + 1) / parts
    after = np.clip(np.searchsorted(ends, wanted), 1, len(lengths))
    cuts = np.unique(after - (wanted - ends[after - 1] <= ends[after] - wanted))
    return [slice(first, last) for first, last in itertools.pairwise(cuts)]


OF_SEGMENTS = frozenset(column.name for column in along(columns_with(1), "segment"))
"""Names of the columns of segments."""


class Batch:
    """Training data of one update: columns of B steps, with segments one after another, and of their S
    segments.

    In the server the columns are NumPy arrays; a loss gets tensors of the same names.

    Args:
        columns: values of the columns by name.

    Attributes:
        states: [B, *state_shape] (not in a loss).
        agents: int64 [B], agent of each state, for statistics (not in a loss).
        logits, values: float32 [B, A] and [B], current outputs of the network for the states (in a loss
            only).
        beta: float32 scalar, current weight of the entropy (in a loss only).
        version: int64 scalar, updates done before this one; `version - versions` is the policy lag (in a loss
            only).
        actions, rewards, mu_values, mu_log_probabilities, versions, returns: [B], see `COLUMNS`.
        lengths, terminated, truncated, bootstrap_values, bootstrap_versions: [S], see `COLUMNS`.
        carries, carry_versions: [S, H] and [S], see `columns_with`; only with a recurrent network.
    """

    def __init__(self, **columns: Any):
        self.__dict__.update(columns)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a batch has no column {name!r}; it has {', '.join(self.__dict__)}")

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def whole(self) -> Batch:
        """The batch to which its steps belong: itself, or that of a minibatch."""
        return self

    @property
    def steps(self) -> np.ndarray:
        """Indices of its steps in `whole`, int64 [B]."""
        return np.arange(len(self))

    def minibatch(self, steps: np.ndarray) -> Batch:
        """Return a batch of only some steps. It has no segment columns, because its segments are not
        complete.

        Args:
            steps: int64 [n], indices of the steps.
        """
        return _Minibatch(self, steps)

    def segments(self, numbers: np.ndarray) -> Batch:
        """Return a batch of only some segments, whole, with all columns.

        Args:
            numbers: int64 [n], numbers of the segments, at least one.
        """
        ends = np.cumsum(self.lengths)
        steps = np.concatenate(
            [np.arange(ends[number] - self.lengths[number], ends[number]) for number in numbers]
        )
        return _Minibatch(self, steps, numbers)

    def part(self, segments: np.ndarray | slice, steps: np.ndarray | slice) -> Batch:
        """Return a batch of some segments, whole, with all columns.

        Args:
            segments: int64 [n], numbers of the segments, or their slice, which copies nothing.
            steps: indices of their steps, in the same form.
        """
        columns = {}
        for name, values in vars(self).items():
            columns[name] = values[segments if name in OF_SEGMENTS else steps]
        return Batch(**columns)


class _Minibatch(Batch):
    """Some steps of a batch, or some of its segments. A column is copied when it is first read."""

    __slots__ = ("_segments", "_steps", "_whole")  # not among the columns, which are vars(batch)

    def __init__(self, whole: Batch, steps: np.ndarray, segments: np.ndarray | None = None):
        super().__init__()
        self._whole = whole
        self._steps = steps
        self._segments = segments

    @property
    def whole(self) -> Batch:
        return self._whole

    @property
    def steps(self) -> np.ndarray:
        return self._steps

    def __getattr__(self, name: str) -> Any:
        columns = vars(self._whole)
        rows = self._segments if name in OF_SEGMENTS else self._steps
        if name not in columns or rows is None:
            return super().__getattr__(name)
        vars(self)[name] = columns[name][rows]
        return vars(self)[name]

    def part(self, segments: np.ndarray | slice, steps: np.ndarray | slice) -> Batch:
        numbers = None if self._segments is None else self._segments[segments]
        return _Minibatch(self._whole, self._steps[steps], numbers)

    def __len__(self) -> int:
        return len(self.steps)
