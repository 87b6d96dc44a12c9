"""The schema of a trajectory: the columns stored for each step and each segment, declared once.

Shared memory, segments, training batches and the model's training function all follow this declaration. mu is
the policy that chose the action, as given by the prediction for the step's state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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


COMPUTED = ("returns", "lengths", "carries", "carry_versions")
"""The columns that a segment writes by itself; an agent gives all others."""


@dataclass(frozen=True)
class Schema:
    """The columns of a trajectory, and the records in which agents give their values.

    Args:
        columns: all columns.
        step_fields: fields of the record that is appended for each step.
        end_fields: fields of the record with which a segment is closed.

    Raises:
        TypeError: an axis has columns that its record does not fill, or the record has fields without a
            column.
    """

    columns: tuple[Column, ...] = COLUMNS
    step_fields: tuple[str, ...] = Step._fields
    end_fields: tuple[str, ...] = SegmentEnd._fields

    def __post_init__(self):
        records: dict[Axis, tuple[str, ...]] = {"step": self.step_fields, "segment": self.end_fields}
        for axis, fields in records.items():
            names = [column.name for column in self.along(axis) if column.name not in COMPUTED]
            if sorted(names) != sorted(fields):
                raise TypeError(
                    f"agents give {', '.join(fields)} for a {axis}; "
                    f"besides those that a segment writes, the columns are {names}"
                )

    def along(self, axis: Axis) -> tuple[Column, ...]:
        """Return the columns of one axis."""
        return tuple(column for column in self.columns if column.axis == axis)

    def remembering(self, size: int) -> Schema:
        """Return the schema of a network whose carry has so many numbers: itself without memory, size 0."""
        if not size:
            return self
        carries = Column("carries", np.float32, "carry before the first step", (size,), axis="segment")
        versions = Column(
            "carry_versions",
            np.int64,
            "version of the model that gave this carry; -1 at the start of an episode",
            axis="segment",
        )
        return replace(self, columns=(*self.columns, carries, versions))


SCHEMA = Schema()
"""The columns of actor-critics without memory."""


class Batch:
    """Training data of one update: columns of B steps, with segments one after another, and of their S
    segments.

    In the server the columns are NumPy arrays; a loss gets tensors of the same names.

    Args:
        schema: declares which columns belong to segments.
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
        carries, carry_versions: [S, H] and [S], see `Schema.remembering`; only with a recurrent network.
    """

    __slots__ = ("__dict__", "schema")  # the schema is not among the columns, which are vars(batch)

    def __init__(self, schema: Schema = SCHEMA, /, **columns: Any):
        self.schema = schema
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
        of_segments = {column.name for column in self.schema.along("segment")}
        columns = {}
        for name, values in vars(self).items():
            columns[name] = values[segments if name in of_segments else steps]
        return Batch(self.schema, **columns)


class _Minibatch(Batch):
    """Some steps of a batch, or some of its segments. A column is copied when it is first read."""

    __slots__ = ("_segments", "_steps", "_whole")

    def __init__(self, whole: Batch, steps: np.ndarray, segments: np.ndarray | None = None):
        super().__init__(whole.schema)
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
        of_segments = any(name == column.name for column in self.schema.along("segment"))
        rows = self._segments if of_segments else self._steps
        if name not in columns or rows is None:
            return super().__getattr__(name)
        vars(self)[name] = columns[name][rows]
        return vars(self)[name]

    def part(self, segments: np.ndarray | slice, steps: np.ndarray | slice) -> Batch:
        numbers = None if self._segments is None else self._segments[segments]
        return _Minibatch(self._whole, self._steps[steps], numbers)

    def __len__(self) -> int:
        return len(self.steps)
