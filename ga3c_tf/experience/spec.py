"""What the network and the shared memory need to know about an environment."""

from __future__ import annotations

from dataclasses import dataclass

from ga3c_tf.config import SMALLEST_SCREEN


@dataclass(frozen=True)
class EnvironmentSpec:
    """States and actions of an environment.

    Attributes:
        state_shape: shape of one state, without a batch axis.
        state_dtype: 'uint8' (images) or 'float32' (vectors and other images).
        num_actions: number of actions, which are 0..num_actions-1.
        stacked: number of successive frames that a state consists of, newest last along the last axis; 1 if
            a state is no stack.
    """

    state_shape: tuple[int, ...]
    state_dtype: str
    num_actions: int
    stacked: int = 1

    @property
    def frame_shape(self) -> tuple[int, ...]:
        """Shape of one frame of a state, or of a state that is no stack."""
        return self.state_shape if self.stacked == 1 else self.state_shape[:-1]

    @property
    def is_screen(self) -> bool:
        """Whether states are images at least as high and wide as `SMALLEST_SCREEN`."""
        return len(self.state_shape) == 3 and min(self.state_shape[:2]) >= SMALLEST_SCREEN
