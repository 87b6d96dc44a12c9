"""The keyword arguments of `train` and `resume` with their types, which editors complete and mypy checks.

`tests/test_objects.py` compares them with the settings, and shows what a change of these needs.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any, Literal, TypedDict


class ChangeableSettings(TypedDict, total=False):
    """Settings that a run begins with and that a resumed run may change; and functions to pass again."""

    num_agents: int
    agent_processes: int | None
    t_max: int
    gamma: float
    train_last_transition: bool
    num_predictors: int
    max_prediction_batch: int
    scheduling: Literal["tuned", "plain"]
    compile: Literal["auto", "on", "off"]
    num_trainers: int
    min_training_batch: int
    max_training_queue: int
    max_policy_lag: int | None
    lag: int
    lag_distribution: Literal["constant", "uniform", "geometric"]
    adjustment: Literal["off", "fast", "paper", "nvlabs"]
    adjustment_seconds: float
    network: str | Callable[..., Any]
    loss: str | Callable[..., Any]
    learning_rate: float
    learning_rate_end: float | None
    beta: float
    beta_end: float | None
    anneal_steps: int | None
    anneal_fraction: float | None
    log_epsilon: float
    log_softmax: bool
    min_policy: float
    grad_clip_norm: float | None
    rmsprop_decay: float
    rmsprop_momentum: float
    rmsprop_epsilon: float
    device: str
    devices: str | None
    sync: Literal["mean", "none"]
    pull_updates: int
    epsilon: float
    epsilon_end: float
    epsilon_steps: int
    epsilon_spread: float
    advantage: Literal["nstep", "gae"]
    gae_lambda: float
    normalize_advantages: bool
    clip_ratio: float
    correction: str | None
    importance_clip: float
    rho_bar: float
    c_bar: float
    epochs: int
    minibatch_size: int
    value_coefficient: float
    loss_reduction: Literal["sum", "mean"]
    grad_clip_global: float
    adam_epsilon: float
    dtype_policy: Literal["float32", "mixed_bfloat16", "auto"]
    replay_size: int
    replay_start: int
    replay_batch: int
    training_intensity: float
    priority_exponent: float
    importance_exponent: float
    n_step: int
    target_period: int
    double_q: bool
    save_replay: bool
    steps: int | None
    minutes: float | None
    episodes: int | None
    target_score: float | None
    log_seconds: float
    track: Literal["wandb", "mlflow"] | None
    evaluate_every: int | None
    checkpoint_minutes: float
    max_failures: int
    agent_timeout: float


class TrainSettings(ChangeableSettings, total=False):
    """Settings of `train`: those above, and those that hold for a whole run."""

    preprocessing: Literal["standard", "nvlabs"]
    frame_skip: int
    frame_stack: int
    repeat_action_probability: float
    full_action_space: bool
    noop_max: int
    terminal_on_life_loss: bool
    clip_rewards: bool
    system: Literal["ga3c", "a2c", "a3c", "serial"]
    max_agents: int | None
    algorithm: Literal["actor-critic", "pqn", "dqn"]
    initial_weights: str | PathLike[str] | None
    dual_rmsprop: bool
    optimizer: Literal["rmsprop", "adam"]
    initialization: Literal["fan-in", "orthogonal", "he"]
    normalize_images: bool
    normalize_observations: bool
    rmsprop_centred: bool
    dueling: bool
    seed: int | None
    run_dir: str | PathLike[str] | None
    rolling_episodes: int


class RunChanges(ChangeableSettings, total=False):
    """Changes of `resume`: those above, and the environment, if it is a function or an object."""

    env: Any
