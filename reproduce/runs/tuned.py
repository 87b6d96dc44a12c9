"""Runs with presets: settings of later methods, not the paper's."""

from __future__ import annotations

from typing import Any

from ga3c_tf.config.presets import preset_beside
from ga3c_tf.reproduce.runs.specs import RunSpec, is_atari, run_spec

EVALUATION_EPISODES = 100


def tuned_spec(game: str, seed: int, system: str = "ga3c", **settings: Any) -> RunSpec:
    """Return a run with the tuned preset for the game's kind of observation; see `preset_spec`."""
    return preset_spec("tuned" if is_atari(game) else "tuned-small", game, seed, system, **settings)


def preset_spec(preset: str, game: str, seed: int, system: str = "ga3c", **settings: Any) -> RunSpec:
    """Return a run with a preset; its final weights are scored.

    Args:
        preset: a name in `PRESETS`.
        game: a name in `GAMES`, or a Gymnasium id.
        seed: seed of the run.
        system: a name in `SYSTEMS`.
        settings: settings that override those of the preset.
    """
    return run_spec(
        game,
        seed,
        system,
        evaluation_episodes=EVALUATION_EPISODES,
        random_play=seed == 1,  # the same episodes for every seed
        checkpoint="latest",
        **preset_beside(preset, {"log_seconds": 30.0, "checkpoint_minutes": 15.0, **settings}),
    )
