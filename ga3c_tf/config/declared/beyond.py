"""Settings from later actor-critic methods, which the paper does not use; all are off by default."""

from __future__ import annotations

from dataclasses import dataclass

from ga3c_tf.config.corrections import CLIPPED, OF_LAG, PROXIMAL, problem_of
from ga3c_tf.config.declaration import ACTOR_CRITIC, OWN, SCREENS, SET, WITH_SEGMENTS, beside, declare
from ga3c_tf.config.declared.learning import VARIABLES
from ga3c_tf.config.declared.workers import ONE_MODEL

FROM_THE_START = "the run's weights began with it"
OWN_NETWORK = beside(network=OWN, because="it has its own")


@dataclass(frozen=True)
class BeyondPaperSettings:
    """What the paper does not use."""

    advantage: str = declare(
        "nstep",
        "algorithm",
        "'nstep' (n-step return minus value), or 'gae' (generalized advantage estimation, Schulman et al. "
        "2016, from the values that the actions were chosen with; the value learns the lambda-return).",
        choices=("nstep", "gae"),
        algorithms=ACTOR_CRITIC,
    )
    gae_lambda: float = declare(
        0.95,
        "algorithm",
        "Lambda of generalized advantage estimation, or of PQN's Q(lambda).",
        low=0,
        high=1,
        read_with=[beside(advantage="gae", algorithm="pqn")],
    )
    normalize_advantages: bool = declare(
        False,
        "algorithm",
        "Shift and scale the advantages of every update to mean 0 and standard deviation 1. The advantage of "
        "an update on a single state stays as it is.",
        algorithms=ACTOR_CRITIC,
    )
    clip_ratio: float = declare(
        0.0,
        "algorithm",
        "PPO's clip range x (Schulman et al. 2017): the ratio pi/mu of an action's probability in training "
        "to that when it was chosen is clipped to [1 - x, 1 + x]; 0: off.",
        low=0,
        high=1,
        systems=ONE_MODEL,
        read_with=[beside(correction=CLIPPED, when=[SET])],
        needs=[
            beside(
                correction=CLIPPED,
                because="v-trace and ratio-mask, for example, can be joined to one, as in v-trace+ppo",
            )
        ],
        algorithms=ACTOR_CRITIC,
    )
    correction: str | None = declare(
        None,
        "algorithm",
        "Policy-lag correction: parts of four axes joined by '+', as in 'v-trace+ratio-mask+ess'. Weight of "
        "the advantages: 'none'; 'epsilon' (the authors' floor --log-epsilon); 'is' (the importance ratio "
        "pi/mu), 'clipped-is' (at most --importance-clip) or 'one-step' (at most --rho-bar: IMPALA's); "
        "'v-trace' (Espeholt et al. 2018). Mask: 'ratio-mask', 'tv-mask' or "
        "'negative-mask'. Trust region: 'ppo' or 'decoupled' (--clip-ratio; also 'decoupled-recompute' and "
        "'decoupled-ewma'), or 'm2po'. Step: 'ess'. Published combinations: 'decoupled-ppo', 'icepop', "
        "'dppo-tv', 'deepseek-v3.2', 'vcpo' and 'impact'. Default: ppo with --clip-ratio, none with "
        "--log-softmax, else epsilon.",
        problem=problem_of,
        read_with=[
            beside(
                system=ONE_MODEL, when=OF_LAG, because="agents of a3c choose and train with the same replica"
            )
        ],
        needs=[
            beside(loss="paper", because="it is a part of this loss"),
            beside(clip_ratio=SET, when=CLIPPED),
            beside(
                log_softmax=False, when=["epsilon"], because="it is the floor that --log-softmax leaves out"
            ),
            beside(advantage="nstep", when=["v-trace"], because="it estimates advantages itself"),
        ],
        excludes=[beside(devices=SET, when=[*PROXIMAL, "ess"], because="it is for one device")],
        algorithms=ACTOR_CRITIC,
    )
    importance_clip: float = declare(
        10.0,
        "advanced",
        "Upper bound of the importance ratio.",
        above=0,
        read_with=[beside(correction="clipped-is")],
        algorithms=ACTOR_CRITIC,
    )
    rho_bar: float = declare(
        1.0,
        "advanced",
        "Upper bound of the importance ratio that weights one-step's advantages, "
        "or V-trace's one-step errors.",
        above=0,
        read_with=[beside(correction=("one-step", "v-trace"))],
        algorithms=ACTOR_CRITIC,
    )
    c_bar: float = declare(
        1.0,
        "advanced",
        "Upper bound of the importance ratio in V-trace's trace coefficients.",
        above=0,
        read_with=[beside(correction="v-trace")],
        algorithms=ACTOR_CRITIC,
    )
    epochs: int = declare(
        1,
        "algorithm",
        "Passes over each batch.",
        low=1,
        high=100,
        systems=ONE_MODEL,
        needs=[
            beside(
                clip_ratio=SET,
                correction="m2po",
                algorithm="pqn",
                because="without them a batch can be trained on only once",
            )
        ],
        algorithms=WITH_SEGMENTS,
    )
    minibatch_size: int = declare(
        0,
        "algorithm",
        "Steps in one update: in each epoch a batch is shuffled and cut into equal parts of about this size; "
        "0: the whole batch. Where an update needs whole segments, these are shuffled, the parts "
        "differ by up to --t-max, and none is shorter than a segment.",
        low=0,
        high=100_000,
        systems=ONE_MODEL,
        algorithms=WITH_SEGMENTS,
    )
    value_coefficient: float = declare(
        1.0,
        "algorithm",
        "Weight of the value loss, which is 0.5 * (R - V)^2 for each state.",
        low=0,
        algorithms=ACTOR_CRITIC,
    )
    loss_reduction: str = declare(
        "sum",
        "algorithm",
        "Reduction of the loss over the states of an update.",
        choices=("sum", "mean"),
    )
    grad_clip_global: float = declare(
        0.0, "optimizer", "Clip the norm of all gradients together to this; 0: off.", low=0
    )
    optimizer: str = declare(
        "rmsprop",
        "optimizer",
        "'rmsprop', or 'adam' (Kingma & Ba 2015).",
        choices=("rmsprop", "adam"),
        fixed=VARIABLES,
    )
    adam_epsilon: float = declare(
        1e-5,
        "advanced",
        "Adam: added to the root of the mean square before its bias is corrected, as in Keras. PyTorch adds "
        "it after: the same number counts 32 times as much here in the first update, "
        "and 3 times in the 100th.",
        above=0,
        read_with=[beside(optimizer="adam")],
    )
    initialization: str = declare(
        "fan-in",
        "network",
        "Initial weights of the built-in networks: 'fan-in' (the authors': uniform within +-1/sqrt(fan_in), "
        "biases too), 'orthogonal' or 'he' (normal), both with biases 0 and a gain of sqrt(2) for hidden "
        "layers, 0.01 for the policy and 1 for the value.",
        choices=("fan-in", "orthogonal", "he"),
        excludes=[OWN_NETWORK],
        fixed=FROM_THE_START,
    )
    normalize_images: bool = declare(
        False,
        "network",
        "Screens enter the built-in networks as x / 255 instead of the authors' x / 128 - 1.",
        environments=SCREENS,
        excludes=[OWN_NETWORK, beside(normalize_observations=True)],
        fixed=FROM_THE_START,
    )
    normalize_observations: bool = declare(
        False,
        "network",
        "States enter the built-in networks as (x - mean) / deviation, clipped to +-5. The mean and "
        "deviation of each pixel or number are those of 10,000 steps of the random policy, before the "
        "training.",
        systems=ONE_MODEL,
        excludes=[OWN_NETWORK],
        fixed=FROM_THE_START,
    )
    dtype_policy: str = declare(
        "float32",
        "advanced",
        "Keras's dtype policy of the hidden layers while training: 'float32', 'mixed_bfloat16' (they compute "
        "in bfloat16; weights, policy and value stay float32), or 'auto' (mixed_bfloat16 on a CPU that "
        "computes faster with it, measured at the start, else float32).",
        choices=("float32", "mixed_bfloat16", "auto"),
        systems=ONE_MODEL,
    )
