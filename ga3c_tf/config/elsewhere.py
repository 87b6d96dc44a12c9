"""The names that other programs have for settings: for suggestions, and docs/stable-baselines3.md."""

from __future__ import annotations

import dataclasses

from ga3c_tf.config.declaration import option_name
from ga3c_tf.config.settings import Settings


def _row(sb3: str, cleanrl: str, rllib: str, authors: str) -> dict[str, tuple[str, ...]]:
    names = {"Stable-Baselines3": sb3, "CleanRL": cleanrl, "RLlib": rllib, "the authors' `Config`": authors}
    return {program: tuple(name.split()) for program, name in names.items()}


ELSEWHERE = {
    "num_agents": _row("n_envs", "num_envs", "", "AGENTS"),
    "num_predictors": _row("", "", "", "PREDICTORS"),
    "num_trainers": _row("", "", "", "TRAINERS"),
    "t_max": _row("n_steps", "num_steps", "rollout_fragment_length", "TIME_MAX"),
    "steps": _row("total_timesteps", "total_timesteps", "", ""),
    "episodes": _row("", "", "", "EPISODES"),
    "gamma": _row("gamma", "gamma", "gamma", "DISCOUNT"),
    "gae_lambda": _row("gae_lambda", "gae_lambda", "lambda_", ""),
    "learning_rate": _row("learning_rate", "learning_rate", "lr", "LEARNING_RATE_START"),
    "beta": _row("ent_coef", "ent_coef", "entropy_coeff", "BETA_START"),
    "value_coefficient": _row("vf_coef", "vf_coef", "vf_loss_coeff", ""),
    "normalize_advantages": _row("normalize_advantage", "norm_adv", "", ""),
    "clip_ratio": _row("clip_range", "clip_coef", "clip_param", ""),
    "epochs": _row("n_epochs", "update_epochs", "num_epochs", ""),
    "minibatch_size": _row("batch_size", "minibatch_size", "minibatch_size", ""),
    "grad_clip_global": _row("max_grad_norm", "max_grad_norm", "grad_clip", ""),
    "rmsprop_epsilon": _row("rms_prop_eps", "", "", "RMSPROP_EPSILON"),
    "min_training_batch": _row("", "", "", "TRAINING_MIN_BATCH_SIZE"),
    "max_training_queue": _row("", "", "", "MAX_QUEUE_SIZE"),
    "max_prediction_batch": _row("", "", "", "PREDICTION_BATCH_SIZE"),
    "log_epsilon": _row("", "", "", "LOG_EPSILON"),
    "adjustment": _row("", "", "", "DYNAMIC_SETTINGS"),
    "env_id": _row("env", "env_id", "env", "ATARI_GAME"),
}
"""Names of settings in other programs, by setting and program."""
OTHER_NAMES = {"pretrained": "initial_weights", "serial": "system"}
"""Settings of a training by the name that other commands or earlier versions have for the like."""


def setting_called(name: str) -> str | None:
    """Return the setting that `name` means here or in another program, whatever its case and dashes; None if
    unknown.

    Args:
        name: name of a setting or option.
    """
    plain = name.lstrip("-").replace("-", "_").lower()
    for setting in dataclasses.fields(Settings):
        if plain in (setting.name, option_name(setting).replace("-", "_")):
            return setting.name
    for setting_name, row in ELSEWHERE.items():
        if any(plain == other.lower() for names in row.values() for other in names):
            return setting_name
    return OTHER_NAMES.get(plain)
