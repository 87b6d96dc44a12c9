"""Runs that several figures plan alike."""

from __future__ import annotations

from typing import Any

from ga3c_tf.config.presets import preset_beside
from ga3c_tf.reproduce.runs.specs import GAMES, NINE_GAMES, RunSpec, is_atari, network_of, run_spec

EVALUATION_EPISODES = 100
"""Episodes in which the final weights of a run with a preset are scored."""


AGENTS = {
    "quick": {"ga3c": 32, "a3c": 4, "a2c": 32},  # A3C: two replicas of the network for each of 2 cores
    "gpu": {"ga3c": 128, "a3c": 16},
    "paper": {"ga3c": 128, "a3c": 16, "a2c": 128},
}
"""Numbers of agents, by budget and system."""


def workers(agents: int, predictors: int = 2, trainers: int = 2) -> dict[str, Any]:
    """Return the settings of N_A, N_P and N_T."""
    return {"num_agents": agents, "num_predictors": predictors, "num_trainers": trainers}


SMALL: dict[str, Any] = {
    **workers(4, 1, 1),
    "min_training_batch": 20,
    "steps": 3000,
    "log_seconds": 1.0,
    "rolling_episodes": 20,
}
"""Settings of the default smoke run."""


def smoke_spec(game: str, seed: int, system: str = "ga3c", called: tuple = (), **settings: Any) -> RunSpec:
    """Return a run of a few seconds that checks whether everything works. Figures share these runs.

    Args:
        game: name of the game.
        seed: seed of the run.
        system: one of `SYSTEMS`.
        called: label of the run, in one or more words.
        settings: values that replace those of `SMALL`; None removes a setting.
    """
    is_played = game in NINE_GAMES or game not in GAMES
    scored: dict[str, Any] = {"evaluation_episodes": 1, "random_play": True} if is_played else {}
    given = {name: value for name, value in {**SMALL, **scored, **settings}.items() if value is not None}
    return run_spec(game, seed, system, **given).called(*called)


def speed_spec(game: str, seed: int, system: str = "ga3c", **settings: Any) -> RunSpec:
    """Return a run that measures speed: any batch is trained on, and nothing is saved before the end."""
    usual: dict[str, Any] = {"min_training_batch": 0, "checkpoint_minutes": 60.0, **network_of(game)}
    return run_spec(game, seed, system, **{**usual, **settings})


def learning_spec(game: str, seed: int, system: str = "ga3c", agents: int = 32, **settings: Any) -> RunSpec:
    """Return a run with the paper's workers and a minimum training batch of 20."""
    return run_spec(game, seed, system, **{**workers(agents), "min_training_batch": 20, **settings})


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
