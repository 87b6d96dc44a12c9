"""Settings of the environment."""

from __future__ import annotations

from dataclasses import dataclass

from ga3c_tf.config.declaration import ATARI_GAMES, declare

ONE_ENVIRONMENT = "with another the run's scores would be of two environments"


@dataclass(frozen=True)
class EnvironmentSettings:
    """What is played."""

    env_id: str = declare("ALE/Pong-v5", "environment", "Gymnasium id of the environment.", fixed=ONE_ENVIRONMENT)
    preprocessing: str = declare(
        "standard",
        "environment",
        "Atari frames: 'standard' (maximum over the last two, area resize) or 'nvlabs' "
        "(the authors': each frame stretched to its own range, bilinear).",
        choices=("standard", "nvlabs"),
        environments=ATARI_GAMES,
        fixed=ONE_ENVIRONMENT,
    )
    frame_skip: int = declare(
        4,
        "environment",
        "Atari: frames each action is repeated for.",
        low=1,
        high=1000,
        environments=ATARI_GAMES,
        fixed=ONE_ENVIRONMENT,
    )
    frame_stack: int = declare(
        4,
        "environment",
        "Atari: frames in one state.",
        low=1,
        high=32,
        environments=ATARI_GAMES,
        fixed=ONE_ENVIRONMENT,
    )
    repeat_action_probability: float = declare(
        0.25,
        "environment",
        "Atari: probability that a frame repeats the previous action (sticky).",
        low=0,
        high=1,
        environments=ATARI_GAMES,
        fixed=ONE_ENVIRONMENT,
    )
    full_action_space: bool = declare(
        False,
        "environment",
        "Atari: all 18 actions instead of the game's own.",
        environments=ATARI_GAMES,
        fixed=ONE_ENVIRONMENT,
    )
    noop_max: int = declare(
        0,
        "environment",
        "Atari: at most this many random no-op frames at reset.",
        low=0,
        high=10_000,
        environments=ATARI_GAMES,
        fixed=ONE_ENVIRONMENT,
    )
    terminal_on_life_loss: bool = declare(
        False,
        "environment",
        "Atari: a lost life ends the returns that are trained on. The game continues until it is over, and scores and "
        "numbers of episodes are those of whole games.",
        environments=ATARI_GAMES,
        fixed=ONE_ENVIRONMENT,
    )
