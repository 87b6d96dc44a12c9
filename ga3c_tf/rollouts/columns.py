"""The schema of a trajectory: what is stored of each step and of each segment, declared once.

Shared memory, segments, training batches, remote actors and the model's training function all iterate over these
columns. mu is the policy that chose the action, as the prediction for the step's state gave it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

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
    """One step as an agent appends it, in the order of `STEP_COLUMNS`; the segment's end adds the returns."""

    action: int
    reward: float
    mu_value: float
    mu_log_probability: float
    version: int


class SegmentEnd(NamedTuple):
    """How a segment ends, in the order of `SEGMENT_COLUMNS` after the length."""

    terminated: bool
    truncated: bool
    bootstrap_value: float
    bootstrap_version: int


class Batch:
    """What one update trains on: columns of B steps, in segments one after another, and of their S segments.

    In the server the columns are NumPy arrays; a loss gets tensors of the same names.

    Attributes:
        states: [B, *state_shape] (not in a loss).
        agents: int64 [B], the agents that the states are from, for statistics (not in a loss).
        logits, values: float32 [B, A] and [B], what the network gives for the states now (in a loss only).
        beta: float32 scalar, weight of the entropy now (in a loss only).
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
