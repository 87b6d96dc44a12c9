"""Checks for settings that conflict with one another or have no effect."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ga3c_tf.config.declaration import NOT_SERIAL, option_name
from ga3c_tf.config.settings import Settings
from ga3c_tf.errors import UserError

READ_BY = {
    "importance_clip": ("correction", ("clipped-is",)),
    "log_epsilon": ("correction", ("epsilon", "ppo")),
    "rho_bar": ("correction", ("one-step", "v-trace")),
    "c_bar": ("correction", ("v-trace",)),
    "gae_lambda": ("advantage", ("gae",)),
    "adam_epsilon": ("optimizer", ("adam",)),
    "rmsprop_epsilon": ("optimizer", ("rmsprop",)),
    "rmsprop_decay": ("optimizer", ("rmsprop",)),
    "rmsprop_momentum": ("optimizer", ("rmsprop",)),
    "adjustment_seconds": ("adjustment", ("fast", "paper", "nvlabs")),
    "max_agents": ("adjustment", ("fast", "paper", "nvlabs")),
}
"""For settings that are read only with certain choices: the choice, and its values that read the setting.

A user-defined loss may read the settings of any correction.
"""
RATIOS = ("clipped-is", "one-step", "v-trace")
"""Corrections that use importance ratios pi / mu: the action's probability now over that when it was chosen."""


def check_conflicts(config: Settings) -> None:
    """Refuse settings that conflict with one another.

    Raises:
        UserError: settings conflict; the message names them and what would be valid.
    """
    _check_annealing(config)
    _check_learning(config)
    _check_scaling(config)
    if config.num_agents > config.most_agents:
        raise UserError(f"--agents {config.num_agents} is more than --max-agents {config.max_agents}")
    if config.serial and config.remote_agents:
        raise UserError("--serial is one process; it cannot be combined with --remote-agents")
    if config.serial and config.adjustment != "off":
        raise UserError("--serial has nothing to adjust; it requires --adjustment off")
    if config.system != "ga3c":
        _check_baseline(config)
    if config.target_score is not None and config.episodes is not None and config.episodes < config.rolling_episodes:
        raise UserError(
            f"--target-score is for the mean of {config.rolling_episodes} episodes, and --episodes {config.episodes} "
            "are fewer; give more, or fewer --rolling-episodes"
        )


def check_effects(config: Settings, given: Iterable[str]) -> None:
    """Refuse settings that a user gave and that have no effect. Settings of a preset may have no effect.

    Args:
        config: all settings of the run.
        given: names of the settings that the user gave.

    Raises:
        UserError: a given setting has no effect; the message names it and what it needs.
    """
    fields = {field.name: field for field in dataclasses.fields(config)}
    for name in given:
        systems = fields[name].metadata["systems"]
        if config.system not in systems:
            raise UserError(
                f"--{option_name(fields[name])} has no effect with --system {config.system}; "
                f"it is for {' and '.join(systems)}"
            )
        if config.serial and name in NOT_SERIAL:
            raise UserError(f"--{option_name(fields[name])} has no effect with --serial, which is one process")
        if name == "correction" and config.system == "a3c" and config.correction in RATIOS:
            raise UserError(
                f"--correction {config.correction} has no effect with --system a3c, whose agents choose and train with "
                "the same replica"
            )
        if name == "agents_per_actor" and not config.remote_agents:
            raise UserError("--agents-per-actor does nothing without --remote-agents")
        if name in READ_BY:
            choice, values = READ_BY[name]
            by_users_loss = choice == "correction" and ":" in config.loss
            if _chosen(config, choice) not in values and not by_users_loss:
                option = option_name(fields[name])
                raise UserError(f"--{option} does nothing without --{choice} {' or '.join(values)}")
        if name == "log_epsilon" and config.log_softmax:
            raise UserError("--log-epsilon is the floor that --log-softmax leaves out")


def _chosen(config: Settings, choice: str) -> str:
    """Return the value of a choice; the correction may follow from other settings."""
    return config.correction_used if choice == "correction" else getattr(config, choice)


def _check_annealing(config: Settings) -> None:
    """Check that annealed settings have a duration, and that a duration has an annealed setting."""
    ends = [name for name in ("learning_rate_end", "beta_end") if getattr(config, name) is not None]
    durations = [name for name in ("anneal_steps", "anneal_fraction") if getattr(config, name) is not None]
    if ends and not durations:
        raise UserError(
            f"--{_option(config, ends[0])} needs --anneal-steps, the agent steps to reach it in, or --anneal-fraction, "
            "a share of --steps or --minutes"
        )
    if durations and not ends:
        raise UserError(f"--{_option(config, durations[0])} does nothing without --learning-rate-end or --beta-end")
    if len(durations) == 2:
        raise UserError("--anneal-steps and --anneal-fraction exclude each other")
    if config.anneal_fraction is not None and config.steps is None and config.minutes is None:
        raise UserError(
            "--anneal-fraction is a share of the budget --steps or --minutes, and there is neither; give one of them"
        )


def _check_learning(config: Settings) -> None:
    """Check the combinations of the settings for losses, updates and optimizers."""
    if config.epochs > 1 and not config.clip_ratio:
        raise UserError(f"--epochs {config.epochs} needs --clip-ratio: without it a batch can be trained on only once")
    if config.correction == "ppo" and config.system == "a3c":
        raise UserError("--correction ppo needs --clip-ratio, which --system a3c does not have")
    if (config.clip_ratio > 0) != (config.correction_used == "ppo"):
        raise UserError(
            "--correction ppo needs --clip-ratio"
            if config.correction == "ppo"
            else f"--clip-ratio is --correction ppo; it cannot be combined with --correction {config.correction}"
        )
    if ":" in config.loss and config.correction is not None:
        raise UserError(f"--correction is a part of --loss paper; it cannot be combined with --loss {config.loss}")
    if config.log_softmax and config.correction == "epsilon":
        raise UserError("--correction epsilon is the floor that --log-softmax leaves out")
    if config.correction == "v-trace" and config.advantage != "nstep":
        raise UserError("--correction v-trace estimates advantages itself; it requires --advantage nstep")
    if config.correction == "v-trace" and config.has_minibatches:
        raise UserError("--correction v-trace needs whole segments; it requires --minibatch-size 0")
    if config.grad_clip_global and config.grad_clip_norm is not None:
        raise UserError("--grad-clip-global and --grad-clip-norm exclude each other")
    if config.dual_rmsprop and (config.grad_clip_global or config.optimizer != "rmsprop"):
        raise UserError("--dual-rmsprop requires --optimizer rmsprop and cannot be combined with --grad-clip-global")


def _check_scaling(config: Settings) -> None:
    """Check that the network allows the settings for initial weights and for scaling of states."""
    normalized = config.normalize_images or config.normalize_observations
    if ":" in config.network and (config.initialization != "fan-in" or normalized):
        raise UserError(
            "--initialization, --normalize-images and --normalize-observations are for the built-in networks; "
            f"{config.network} has its own"
        )
    if config.normalize_images and config.normalize_observations:
        raise UserError("--normalize-images and --normalize-observations exclude each other")


def _check_baseline(config: Settings) -> None:
    """Check that a baseline ('a2c' or 'a3c') has no settings that only GA3C supports, and the baseline's own limits."""
    system = f"--system {config.system}"
    if config.remote_agents:
        raise UserError(f"{system} has no --remote-agents")
    if config.adjustment != "off":
        raise UserError(f"{system} has nothing to adjust; it requires --adjustment off")
    if config.serial:
        raise UserError(f"--serial runs GA3C in one process; it cannot be combined with {system}")
    if not config.train_last_transition:
        raise UserError(
            f"--no-train-last-transition is how the authors' GA3C cuts segments; {system} requires "
            "--train-last-transition"
        )
    if config.system == "a3c" and config.device.startswith("gpu"):
        raise UserError(f"{system} computes on the CPU; it cannot be combined with --device {config.device}")
    if config.system == "a2c" and config.num_agents * config.t_max > 100_000:
        raise UserError(
            f"{system} trains on --agents x --t-max states at once, {config.num_agents * config.t_max} here; it must "
            "be at most 100000"
        )


def _option(config: Settings, name: str) -> str:
    return option_name(config.__dataclass_fields__[name])
