"""The schema of a trajectory: the columns stored for each step and each segment, declared once.

Shared memory, segments, training batches, remote actors and the model's training function all iterate over these
columns. mu is the policy that chose the action, as given by the prediction for the step's state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

T = TypeVar("T")

STEP_COLUMNS: dict[str, type] = {
    "actions": np.int32,  # the action taken
    "rewards": np.float32,  # its reward, clipped if `clip_rewards` is set
    "mu_values": np.float32,  # V of the state, from the prediction that chose the action
    "mu_log_probabilities": np.float32,  # log mu(action | state), in nats
    "versions": np.int64,  # version of the model that made that prediction
    "returns": np.float32,  # discounted return from this step on: n-step, or lambda-return with --advantage gae
}
SEGMENT_COLUMNS: dict[str, type] = {
    "lengths": np.int32,  # steps in the segment
    "terminated": np.bool_,  # whether its last step ended the episode
    "truncated": np.bool_,  # whether its last step reached a time limit
    "bootstrap_values": np.float32,  # V of the state after its last step; 0 if the segment does not bootstrap
    "bootstrap_versions": np.int64,  # version of the model that gave that value; -1 if none did
}
NO_VERSION = -1


class Step(NamedTuple):
    """One step as an agent appends it: all `STEP_COLUMNS` except the returns, which are known at the segment's end."""

    actions: int
    rewards: float
    mu_values: float
    mu_log_probabilities: float
    versions: int


class SegmentEnd(NamedTuple):
    """How a segment ends: all `SEGMENT_COLUMNS` except the length, which the segment knows."""

    terminated: bool
    truncated: bool
    bootstrap_values: float
    bootstrap_versions: int


def in_order_of(record: type[Step] | type[SegmentEnd], columns: Mapping[str, T], not_in_it: str) -> list[T]:
    """Return columns in the order of the fields of a record.

    Args:
        record: type of record, whose fields have the names of the columns.
        columns: all step columns, or all segment columns, by name.
        not_in_it: name of the one column that the record does not have.

    Raises:
        TypeError: the fields of the record do not match the columns.
    """
    fields = record._fields
    if {*fields, not_in_it} != columns.keys():
        raise TypeError(f"{record.__name__} has {', '.join(fields)}; with {not_in_it}, the columns are {[*columns]}")
    return [columns[name] for name in fields]


class Batch:
    """Training data of one update: columns of B steps, with segments one after another, and of their S segments.

    In the server the columns are NumPy arrays; a loss gets tensors of the same names.

    Attributes:
        states: [B, *state_shape] (not in a loss).
        agents: int64 [B], agent of each state, for statistics (not in a loss).
        logits, values: float32 [B, A] and [B], current outputs of the network for the states (in a loss only).
        beta: float32 scalar, current weight of the entropy (in a loss only).
        version: int64 scalar, updates done before this one; `version - versions` is the policy lag (in a loss only).
        actions, rewards, mu_values, mu_log_probabilities, versions, returns: [B], see `STEP_COLUMNS`.
        lengths, terminated, truncated, bootstrap_values, bootstrap_versions: [S], see `SEGMENT_COLUMNS`.
    """

    def __init__(self, **columns: Any):
        self.__dict__.update(columns)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a batch has no column {name!r}; it has {', '.join(self.__dict__)}")

    def __len__(self) -> int:
        return len(self.actions)

    def minibatch(self, steps: np.ndarray) -> Batch:
        """Return a batch of only some steps. It has no segment columns, because its segments are not complete.

        Args:
            steps: int64 [n], indices of the steps.
        """
        of_steps = {name: column for name, column in self.__dict__.items() if name not in SEGMENT_COLUMNS}
        return Batch(**{name: column[steps] for name, column in of_steps.items()})
