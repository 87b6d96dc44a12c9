"""The schema of a trajectory: what is stored of each step and of each segment, declared once.

Shared memory, segments, training batches, remote actors and the model's training function all iterate over these
columns. mu is the policy that chose the action, as the prediction for the step's state gave it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

T = TypeVar("T")

STEP_COLUMNS: dict[str, type] = {
    "actions": np.int32,  # the action taken
    "rewards": np.float32,  # its reward, clipped where `clip_rewards` says so
    "mu_values": np.float32,  # V of the state, from the prediction that chose the action
    "mu_log_probabilities": np.float32,  # log mu(action | state), in nats
    "versions": np.int64,  # version of the model that made that prediction
    "returns": np.float32,  # discounted return from this step on: n-step, or lambda-return with --advantage gae
}
SEGMENT_COLUMNS: dict[str, type] = {
    "lengths": np.int32,  # steps in the segment
    "terminated": np.bool_,  # whether its last step ended the episode
    "truncated": np.bool_,  # whether its last step reached a time limit
    "bootstrap_values": np.float32,  # V of the state after its last step; 0 where the episode ended there
    "bootstrap_versions": np.int64,  # version of the model that gave that value; -1 where there is none
}
NO_VERSION = -1


class Step(NamedTuple):
    """One step as an agent appends it: all `STEP_COLUMNS`, by name, but the returns, which the segment's end gives."""

    actions: int
    rewards: float
    mu_values: float
    mu_log_probabilities: float
    versions: int


class SegmentEnd(NamedTuple):
    """How a segment ends: all `SEGMENT_COLUMNS`, by name, but the length, which the segment knows."""

    terminated: bool
    truncated: bool
    bootstrap_values: float
    bootstrap_versions: int


def in_order_of(record: type[Step] | type[SegmentEnd], columns: Mapping[str, T], not_in_it: str) -> list[T]:
    """Return columns in the order of the fields of a record.

    Args:
        record: whose fields are named as the columns.
        columns: all columns of its kind, by name.
        not_in_it: the column that it does not have.

    Raises:
        TypeError: the record has other fields than the columns say.
    """
    fields = record._fields
    if {*fields, not_in_it} != columns.keys():
        raise TypeError(f"{record.__name__} has {', '.join(fields)}; with {not_in_it}, the columns are {[*columns]}")
    return [columns[name] for name in fields]


class Batch:
    """What one update trains on: columns of B steps, in segments one after another, and of their S segments.

    In the server the columns are NumPy arrays; a loss gets tensors of the same names.

    Attributes:
        states: [B, *state_shape] (not in a loss).
        agents: int64 [B], the agents that the states are from, for statistics (not in a loss).
        logits, values: float32 [B, A] and [B], what the network gives for the states now (in a loss only).
        beta: float32 scalar, weight of the entropy now (in a loss only).
        version: int64 scalar, updates done before this one; minus `versions` it is the policy lag (in a loss only).
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
        """Return a batch of these steps alone, int64 [n]; it has no columns of segments, which are no longer whole."""
        of_steps = {name: column for name, column in self.__dict__.items() if name not in SEGMENT_COLUMNS}
        return Batch(**{name: column[steps] for name, column in of_steps.items()})
