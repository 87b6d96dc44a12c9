"""Settings of the environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ga3c_tf.config.declaration import ATARI_GAMES, declare

ONE_ENVIRONMENT = "with another the run's scores would be of two environments"


def of_atari(default: Any, help: str, **limits: Any) -> Any:
    """Declare a setting of Atari games; see `declare`."""
    text = f"Atari: {help}"
    return declare(default, "environment", text, environments=ATARI_GAMES, fixed=ONE_ENVIRONMENT, **limits)


@dataclass(frozen=True)
class EnvironmentSettings:
    """What is played."""

    env_id: str = declare(
        "ALE/Pong-v5", "environment", "Gymnasium id of the environment.", fixed=ONE_ENVIRONMENT
    )
    preprocessing: str = of_atari(
        "standard",
        "frames are 'standard' (maximum over the last two, area resize) or 'nvlabs' (the authors': each "
        "frame stretched to its own range, bilinear).",
        choices=("standard", "nvlabs"),
    )
    frame_skip: int = of_atari(4, "frames each action is repeated for.", low=1, high=1000)
    frame_stack: int = of_atari(4, "frames in one state.", low=1, high=32)
    repeat_action_probability: float = of_atari(
        0.25, "probability that a frame repeats the previous action (sticky).", low=0, high=1
    )
    full_action_space: bool = of_atari(False, "all 18 actions instead of the game's own.")
    noop_max: int = of_atari(0, "at most this many random no-op frames at reset.", low=0, high=10_000)
    terminal_on_life_loss: bool = of_atari(
        False,
        "a lost life ends the returns that are trained on. The game continues until it is over, and scores "
        "and numbers of episodes are those of whole games.",
    )
