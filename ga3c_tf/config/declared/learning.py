"""Settings of the network, the loss and the optimizer, as the paper has them."""

from __future__ import annotations

from dataclasses import dataclass

from ga3c_tf.config.corrections import AXES
from ga3c_tf.config.declaration import (
    ACTOR_CRITIC,
    ALGORITHMS,
    Q_LEARNING,
    RECURRENT,
    SET,
    beside,
    declare,
)
from ga3c_tf.config.declared.workers import MOST, ONE_MODEL

VARIABLES = "the checkpoint holds the variables that it gives"
WITH_RMSPROP = beside(optimizer="rmsprop")
ANNEALED = beside(learning_rate_end=SET, beta_end=SET, because="without one of them it does nothing")
DURATION = beside(
    anneal_steps=SET,
    anneal_fraction=SET,
    because="the agent steps, or the share of --steps or --minutes, in which it is reached",
)


@dataclass(frozen=True)
class LearningSettings:
    """Network, loss and optimizer of the paper."""

    algorithm: str = declare(
        "actor-critic",
        "algorithm",
        "'actor-critic' (advantage actor-critic, the paper's), 'pqn' (Q(lambda) without a replay memory, "
        "Gallici et al. 2024; its built-in networks have layer normalization) or 'dqn' (deep Q-networks with "
        "a replay memory, Mnih et al. 2015).",
        choices=ALGORITHMS,
        needs=[beside(system=ONE_MODEL, when=Q_LEARNING)],
        fixed="the run's weights are of this algorithm",
    )
    network: str = declare(
        "auto",
        "network",
        "'small' (the paper's), 'large-4', 'large-3', 'large-2', 'large-1' (the paper's large ones, by the "
        "first layer's stride; 'large' is 'large-4'), 'nature' (the layers of Mnih et al. 2015), 'minatar', "
        "'mlp-two-trunks' (for vectors: two tanh layers of 64 for the policy and two for the value), 'mlp' "
        "(one such trunk for both), 'auto' (small, minatar or mlp-two-trunks, by the observation; Q-learning "
        "takes mlp for vectors), 'small-lstm', 'minatar-lstm', 'mlp-lstm', 'mlp-two-trunks-lstm' (these with "
        "an LSTM behind each trunk), 'lstm' (that of auto, by the observation), or 'module:function' that "
        "returns a keras.Model.",
        excludes=[
            beside(algorithm="pqn", when=["mlp-two-trunks"], because="it has no second output"),
            beside(algorithm=Q_LEARNING, when=["lstm", *RECURRENT], because="its networks have no memory"),
        ],
        fixed=VARIABLES,
    )
    loss: str = declare(
        "paper",
        "algorithm",
        "'paper', or 'module:function' returning (policy loss, value loss, entropy), "
        "each summed over the batch.",
        algorithms=ACTOR_CRITIC,
    )
    initial_weights: str | None = declare(
        None,
        "network",
        "Start from published weights: their folder, or their name, such as 'pong'. It requires the "
        "--normalize-images and --normalize-observations that they were trained with.",
        fixed="the run has begun with them",
    )
    learning_rate: float = declare(1e-3, "optimizer", "Initial learning rate of the optimizer.", above=0)
    learning_rate_end: float | None = declare(
        None,
        "optimizer",
        "Learning rate after --anneal-steps or --anneal-fraction (default: constant).",
        low=0,
        needs=[DURATION],
    )
    beta: float = declare(
        0.01,
        "algorithm",
        "Initial coefficient of the entropy bonus.",
        low=0,
        algorithms=ACTOR_CRITIC,
    )
    beta_end: float | None = declare(
        None,
        "algorithm",
        "Coefficient of the entropy bonus after --anneal-steps or --anneal-fraction (default: constant).",
        low=0,
        needs=[DURATION],
        algorithms=ACTOR_CRITIC,
    )
    anneal_steps: int | None = declare(
        None,
        "optimizer",
        "Number of agent steps over which learning rate and beta change linearly to their end values.",
        low=1,
        high=MOST**2,
        needs=[ANNEALED],
        excludes=[beside(anneal_fraction=SET)],
    )
    anneal_fraction: float | None = declare(
        None,
        "optimizer",
        "Share of --steps or --minutes over which learning rate and beta change, in place of --anneal-steps.",
        above=0,
        high=1,
        needs=[
            ANNEALED,
            beside(steps=SET, minutes=SET, because="it is a share of this budget"),
        ],
    )
    log_epsilon: float = declare(
        1e-6,
        "advanced",
        "Floor of a probability inside a logarithm.",
        low=1e-37,
        high=0.99,
        read_with=[
            beside(log_softmax=False),
            beside(correction=("epsilon", *AXES["trust regions"])),
        ],
        algorithms=ACTOR_CRITIC,
    )
    log_softmax: bool = declare(
        False,
        "advanced",
        "Compute log-probabilities by log-softmax, without the floor --log-epsilon.",
        algorithms=ACTOR_CRITIC,
    )
    min_policy: float = declare(
        0.0,
        "advanced",
        "Added to every action's probability before renormalizing.",
        low=0,
        high=1,
        algorithms=ACTOR_CRITIC,
    )
    grad_clip_norm: float | None = declare(
        None,
        "advanced",
        "Maximum average norm, ||g|| / size, of each variable's gradient, as in the authors' code; with "
        "--dual-rmsprop, maximum norm ||g|| (default: off).",
        above=0,
        excludes=[beside(grad_clip_global=SET)],
        algorithms=ACTOR_CRITIC,
    )
    rmsprop_decay: float = declare(
        0.99, "advanced", "RMSProp: decay of the mean square.", low=0, high=1, read_with=[WITH_RMSPROP]
    )
    rmsprop_momentum: float = declare(
        0.0, "advanced", "RMSProp: momentum.", low=0, high=1, read_with=[WITH_RMSPROP]
    )
    rmsprop_epsilon: float = declare(
        0.1,
        "optimizer",
        "RMSProp: added to the mean square inside the root.",
        above=0,
        read_with=[WITH_RMSPROP],
    )
    dual_rmsprop: bool = declare(
        False,
        "advanced",
        "Separate RMSProp statistics for policy and value loss.",
        needs=[WITH_RMSPROP],
        excludes=[beside(grad_clip_global=SET)],
        fixed=VARIABLES,
        algorithms=ACTOR_CRITIC,
    )
