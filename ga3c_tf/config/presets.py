"""Presets: named sets of settings to start from."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ga3c_tf.config.rules import conflicts, spelled, unread
from ga3c_tf.config.settings import Settings

USUAL_PRESET = "default"
BUDGETS: tuple[str, ...] = ("steps", "minutes", "episodes")

# Settings from later actor-critic methods. docs/learning.md says which of their effects have been measured.
TUNED_COMMON = {
    "num_predictors": 1,
    "num_trainers": 1,
    "advantage": "gae",
    "normalize_advantages": True,
    "loss_reduction": "mean",
    "value_coefficient": 0.5,
    "grad_clip_global": 0.5,
    "clip_ratio": 0.2,
    "learning_rate_end": 0.0,
    "anneal_fraction": 1.0,
    "initialization": "orthogonal",
}
PQN_COMMON = {
    "algorithm": "pqn",
    "num_predictors": 1,
    "num_trainers": 1,
    "t_max": 32,
    "minibatch_size": 128,
    "optimizer": "adam",
    "learning_rate": 1e-3,
    "learning_rate_end": 0.0,
    "anneal_fraction": 1.0,
    "grad_clip_global": 10.0,
    "loss_reduction": "mean",
    "initialization": "orthogonal",
}
DQN_COMMON = {
    "algorithm": "dqn",
    "num_predictors": 1,
    "num_trainers": 1,
    "optimizer": "adam",
    "loss_reduction": "mean",
    "initialization": "he",
}
PRESETS: dict[str, dict[str, Any]] = {
    # The paper's settings; those that the paper does not state are from the authors' code. Different from
    # both: a larger learning rate, the standard Atari preprocessing, and dynamic adjustment that starts with
    # larger moves.
    "default": {"adjustment": "fast"},
    # The same with the paper's own adjustment.
    "paper": {"adjustment": "paper"},
    # The authors' code as published (NVlabs/GA3C).
    "nvlabs": {
        "preprocessing": "nvlabs",
        "learning_rate": 3e-4,
        "min_training_batch": 0,
        "train_last_transition": False,
        "adjustment": "nvlabs",
        "scheduling": "plain",
        "episodes": 400_000,
    },
    # For Atari. These are not the paper's settings.
    "tuned": TUNED_COMMON
    | {
        "num_agents": 8,
        "t_max": 128,
        "min_training_batch": 1023,
        "minibatch_size": 128,
        "epochs": 3,
        "optimizer": "rmsprop",  # may learn sooner than Adam on Pong, docs/learning.md
        "rmsprop_epsilon": 1e-9,
        "learning_rate": 2e-4,
        "normalize_observations": True,  # helped most on Pong, docs/learning.md
        "steps": 4_000_000,
    },
    # The same for MinAtar and other small images.
    "tuned-small": TUNED_COMMON
    | {
        "num_agents": 64,
        "t_max": 128,
        "min_training_batch": 4095,
        "minibatch_size": 1024,
        "epochs": 4,
        "optimizer": "adam",
        "learning_rate": 5e-3,
        "steps": 5_000_000,
    },
    # The same for vectors, such as those of CartPole, Acrobot and LunarLander.
    "tuned-vector": TUNED_COMMON
    | {
        "num_agents": 16,
        "t_max": 128,
        "min_training_batch": 2047,
        "minibatch_size": 128,
        "epochs": 10,
        "optimizer": "adam",
        "learning_rate": 1e-3,
        "beta": 0.0,
        "steps": 300_000,
    },
    # Q-learning without a replay memory, for vectors, with Adam where PQN's authors have RAdam, ten times
    # their rate for CartPole, a shorter horizon and standardized states: without the last two, some runs on
    # CartPole had not learned it.
    "pqn": PQN_COMMON
    | {
        "num_agents": 32,
        "min_training_batch": 1023,
        "epochs": 4,
        "gamma": 0.98,
        "gae_lambda": 0.95,
        "normalize_observations": True,
        "epsilon_steps": 100_000,
        "steps": 500_000,
    },
    # The same for MinAtar and other small images. Lambda, epochs and minibatches are those of PQN's authors
    # (purejaxql, config/alg/pqn_minatar.yaml), with Adam at twice their rate. With half of their agents and
    # segments of half their length, a run on Breakout learned as soon, with a third of the policy lag.
    "pqn-small": PQN_COMMON
    | {
        "num_agents": 64,
        "t_max": 16,
        "min_training_batch": 1023,
        "epochs": 2,
        "gae_lambda": 0.65,
        "epsilon_steps": 300_000,
        "steps": 3_000_000,
    },
    # Q-learning with a replay memory, for vectors. Half of the trained states of Stable-Baselines3's zoo for
    # CartPole (hyperparams/dqn.yml) for each step, in a quarter of its updates, and returns of 3 steps. The
    # rate that falls to 0 keeps what was learned, and with a gamma of 0.99 some runs did not learn CartPole.
    "dqn": DQN_COMMON
    | {
        "num_agents": 8,
        "gamma": 0.98,
        "replay_size": 100_000,
        "replay_batch": 128,
        "training_intensity": 16.0,
        "target_period": 100,
        "n_step": 3,
        "learning_rate": 1e-3,
        "learning_rate_end": 0.0,
        "anneal_fraction": 1.0,
        "epsilon_end": 0.04,
        "epsilon_steps": 20_000,
        "steps": 300_000,
    },
    # The same for MinAtar and other small images. Memory, exploration and rate are MinAtar's for DQN (Young
    # and Tian, arXiv 1903.03176), with a quarter of its trained states: 8 a step in batches of 128, not 32 in
    # one of 32. With its RMSProp, a target network renewed every 16,000 steps, or returns of 3 steps, runs
    # learned Asterix or Freeway several times as slowly.
    "dqn-small": DQN_COMMON
    | {
        "num_agents": 16,
        "replay_size": 100_000,
        "replay_start": 5_000,
        "replay_batch": 128,
        "training_intensity": 8.0,
        "target_period": 250,
        "learning_rate": 2.5e-4,
        "epsilon_end": 0.1,
        "epsilon_steps": 100_000,
        "steps": 3_000_000,
    },
    # The same for Atari, for few cores: half of the updates of rlpyt's DQN (configs/atari/dqn/atari_dqn.py),
    # at five times its rate, and no double Q-learning, which costs speed. Batch and the period of the target
    # network are rlpyt's, returns of 3 steps those of Rainbow (Hessel et al. 2018). 200,000 states take
    # 1.3 GiB.
    "dqn-atari": DQN_COMMON
    | {
        "num_agents": 16,
        "replay_size": 200_000,
        "replay_start": 10_000,
        "replay_batch": 128,
        "training_intensity": 4.0,
        "target_period": 312,
        "n_step": 3,
        "double_q": False,
        "learning_rate": 5e-4,
        "normalize_images": True,
        "epsilon_end": 0.01,
        "epsilon_steps": 100_000,
        "steps": 4_000_000,
    },
    # Takes seconds on a laptop. Shows that everything runs, not that it learns.
    "smoke": {
        "num_agents": 4,
        "agent_processes": 2,
        "num_predictors": 1,
        "num_trainers": 1,
        "steps": 2_000,
        "log_seconds": 1.0,
    },
}


MOST_PRESET_AGENTS_A3C = 32
"""Maximum number of agents that a preset may set for A3C, where each agent is a process with TensorFlow."""


def preset_beside(preset: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the settings `given`, together with those of a preset that have an effect and no conflict beside
    them.

    Any given budget replaces the preset's budget. A preset's annealing needs steps or minutes: without both,
    learning rate and beta stay constant.

    Args:
        preset: name of the preset, one of `PRESETS`.
        given: values by name of setting.
    """
    values = {name: value for name, value in PRESETS[preset].items() if name not in given}
    if any(budget in given for budget in BUDGETS):
        for budget in BUDGETS:
            values.pop(budget, None)
    if given.get("system") == "a3c" and values.get("num_agents", 0) > MOST_PRESET_AGENTS_A3C:
        del values["num_agents"]
    while (name := _out_of_place(values, given)) is not None:
        del values[name]
    return values | given


def left_out(preset: str, config: Settings, given: Collection[str]) -> list[str]:
    """Return the options of a preset that a run has not, budgets and what is given aside."""
    values = {name: value for name, value in PRESETS[preset].items() if name not in {*given, *BUDGETS}}
    return [spelled(name, value) for name, value in values.items() if getattr(config, name) != value]


def _out_of_place(values: dict[str, Any], given: dict[str, Any]) -> str | None:
    """Return the name of a preset's value that conflicts with the others or that nothing reads, or None."""
    # What is no setting is refused later, or is a removed one that a figure's plan still gives.
    fields = Settings.__dataclass_fields__
    config = Settings(**{name: value for name, value in (values | given).items() if name in fields})
    for name in values:
        if unread(config, name):
            return name
    for conflict in conflicts(config):
        for name in conflict.settings:
            if name in values:
                return name
    return None
