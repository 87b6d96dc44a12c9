"""The settings of a run, as one frozen dataclass, and quantities derived from them.

The metadata of a field holds its help text (with symbol and unit), the group it is listed under, its bounds or choices,
the name of its command-line option where that differs from the field's name, and the systems on which it has an effect.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ga3c_tf.config.declaration import SYSTEMS, declare

ATARI = (
    "preprocessing",
    "frame_skip",
    "frame_stack",
    "repeat_action_probability",
    "full_action_space",
    "noop_max",
    "terminal_on_life_loss",
)
"""Settings that have an effect on Atari games only."""
MOST = 10**6
"""Upper bound for counts without a natural bound. Its square is the bound for budgets in steps and episodes."""
BEYOND = "beyond the paper"
"""Group of the settings from later actor-critic methods, which the paper does not use; all are off by default."""
MOST_EPISODE_STEPS = 100_000
"""Agent steps after which an evaluation ends an episode. An Atari game ends by itself after 27,000, at frame skip 4."""

SMALLEST_SCREEN = 36
"""Minimum height and width, in pixels, of an image treated as a game's screen; smaller images are grids of cells."""


@dataclass(frozen=True)
class Settings:
    """The settings of one run, unchecked. Section and table numbers refer to the paper (ICLR 2017)."""

    env_id: str = declare("ALE/Pong-v5", "environment", "Gymnasium id of the environment.")
    preprocessing: str = declare(
        "standard",
        "environment",
        "Atari frames: 'standard' (maximum over the last two, area resize) or 'nvlabs' "
        "(the authors': each frame stretched to its own range, bilinear).",
        choices=("standard", "nvlabs"),
    )
    frame_skip: int = declare(4, "environment", "Atari: frames each action is repeated for.", low=1, high=1000)
    frame_stack: int = declare(4, "environment", "Atari: frames in one state.", low=1, high=32)
    repeat_action_probability: float = declare(
        0.25, "environment", "Atari: probability that a frame repeats the previous action (sticky).", low=0, high=1
    )
    full_action_space: bool = declare(False, "environment", "Atari: all 18 actions instead of the game's own.")
    noop_max: int = declare(
        0, "environment", "Atari: at most this many random no-op frames at reset.", low=0, high=10_000
    )
    terminal_on_life_loss: bool = declare(
        False,
        "environment",
        "Atari: a lost life ends the returns that are trained on. The game continues until it is over, and scores and "
        "numbers of episodes are those of whole games.",
    )

    system: str = declare(
        "ga3c",
        "system",
        "'ga3c', or a baseline: 'a2c' (synchronous: each step has one prediction for all agents, and after --t-max "
        "steps the model is updated on all their segments; no policy lag without --lag, --epochs and --minibatch-size) "
        "or 'a3c' (on the CPU: each agent process has a replica of the network and updates shared weights without "
        "locks).",
        choices=SYSTEMS,
    )

    num_agents: int = declare(
        32,
        "agents",
        "Number of agents (N_A). With --system a3c, one per core, unless the preset has another number.",
        low=1,
        high=4096,
        option="agents",
    )
    agent_processes: int | None = declare(
        None,
        "agents",
        "Number of processes that run the agents (default: one per core; with plain scheduling, one per agent).",
        low=1,
        high=4096,
        systems=("ga3c", "a2c"),
    )
    t_max: int = declare(5, "agents", "Maximum number of steps in a segment.", low=1, high=1000)
    gamma: float = declare(0.99, "agents", "Discount factor.", low=0, high=1)
    clip_rewards: bool = declare(True, "agents", "Clip each reward to [-1, 1] for training; scores stay raw.")
    train_last_transition: bool = declare(
        True, "agents", "Train on the last transition of an episode, which the authors' code drops.", systems=("ga3c",)
    )

    remote_agents: int = declare(
        0,
        "remote agents",
        "Additional agents on other machines, in actors of the Ray cluster that --ray names.",
        low=0,
        high=4096,
        systems=("ga3c",),
    )
    agents_per_actor: int = declare(
        64, "remote agents", "Remote agents in one actor. An actor takes one CPU.", low=1, high=512, systems=("ga3c",)
    )

    num_predictors: int = declare(
        2, "predictors", "Number of predictor threads (N_P).", low=1, high=256, option="predictors", systems=("ga3c",)
    )
    max_prediction_batch: int = declare(
        128, "predictors", "Maximum number of states in one prediction.", low=1, high=16384, systems=("ga3c",)
    )

    scheduling: str = declare(
        "tuned",
        "trainers",
        "'tuned', for machines with few cores: predictors wait for more requests while trainers are behind; on a CPU, "
        "simultaneous updates are limited to half of the cores at first; threads run as SCHED_BATCH; and agents share "
        "one process per core. 'plain': none of these, as in the paper.",
        choices=("tuned", "plain"),
        systems=("ga3c", "a2c"),
    )
    num_trainers: int = declare(
        2, "trainers", "Number of trainer threads (N_T).", low=1, high=256, option="trainers", systems=("ga3c",)
    )
    min_training_batch: int = declare(
        20,
        "trainers",
        "A trainer merges segments until the batch exceeds this many states (section 5.4).",
        low=0,
        high=100_000,
        systems=("ga3c",),
    )
    max_training_queue: int = declare(
        100,
        "trainers",
        "Maximum number of segments that wait for training. It is divided evenly among the agents (with adjustment, "
        "among --max-agents), with at least one for each. With --epochs above 1, predictors pause while as many "
        "segments as this, or one full batch, wait.",
        low=1,
        high=10_000,
        systems=("ga3c",),
    )

    training_queue_order: str = declare(
        "fifo",
        "trainers",
        "Order in which trainers take segments: 'fifo' (oldest first) or 'lifo' (newest first).",
        choices=("fifo", "lifo"),
        systems=("ga3c",),
    )
    max_policy_lag: int | None = declare(
        None,
        "trainers",
        "Drop segments whose oldest step is more than this many updates old when a trainer reads them from the queue "
        "(default: none).",
        low=0,
        high=MOST,
        systems=("ga3c",),
    )
    lag: int = declare(
        0,
        "trainers",
        "Train on the batch collected this many rounds earlier. With one update per round, this is the policy lag of "
        "every state, in updates.",
        low=0,
        high=100_000,
        systems=("a2c",),
    )

    adjustment: str = declare(
        "off",
        "adjustment",
        "Dynamic adjustment of N_A, N_P and N_T during the run (section 4.3, GA3C only): 'fast' (doubles and halves "
        "first), 'paper' (changes one number by 1 at a time), 'nvlabs' (the authors' rule: changes all three at once) "
        "or 'off'.",
        choices=("off", "fast", "paper", "nvlabs"),
    )
    adjustment_seconds: float = declare(
        20.0,
        "adjustment",
        "Seconds for which each choice of N_A, N_P and N_T is measured.",
        low=1,
        high=MOST,
        systems=("ga3c",),
    )
    max_agents: int | None = declare(
        None,
        "adjustment",
        "Maximum number of agents under dynamic adjustment (default: 128, or --agents if larger).",
        low=1,
        high=4096,
        systems=("ga3c",),
    )

    network: str = declare(
        "auto",
        "model",
        "'small' (the paper's), 'large-4', 'large-3', 'large-2', 'large-1' (the paper's large ones, by the first "
        "layer's stride; 'large' is 'large-4'), 'nature' (the layers of Mnih et al. 2015), 'minatar', "
        "'mlp-two-trunks' (for vectors: two tanh layers of 64 for the policy and two for the value), 'mlp' (one such "
        "trunk for both), 'auto' (small, minatar or mlp-two-trunks, by the observation), or 'module:function' that "
        "returns a keras.Model.",
    )
    loss: str = declare(
        "paper",
        "model",
        "'paper', or 'module:function' returning (policy loss, value loss, entropy), each summed over the batch.",
    )
    initial_weights: str | None = declare(
        None,
        "model",
        "Start from published weights: their folder, or their name, such as 'pong'. It requires the "
        "--normalize-images and --normalize-observations that they were trained with.",
    )
    device: str = declare("auto", "model", "'auto' (GPU when present), 'cpu', 'gpu' or 'gpu:N'.")
    learning_rate: float = declare(1e-3, "model", "Initial learning rate of the optimizer.", above=0)
    learning_rate_end: float | None = declare(
        None, "model", "Learning rate after --anneal-steps or --anneal-fraction (default: constant).", low=0
    )
    beta: float = declare(0.01, "model", "Initial coefficient of the entropy bonus.", low=0)
    beta_end: float | None = declare(
        None,
        "model",
        "Coefficient of the entropy bonus after --anneal-steps or --anneal-fraction (default: constant).",
        low=0,
    )
    anneal_steps: int | None = declare(
        None,
        "model",
        "Number of agent steps over which learning rate and beta change linearly to their end values.",
        low=1,
        high=MOST**2,
    )
    anneal_fraction: float | None = declare(
        None,
        "model",
        "Share of --steps or --minutes over which learning rate and beta change, in place of --anneal-steps.",
        above=0,
        high=1,
    )
    log_epsilon: float = declare(1e-6, "model", "Floor of a probability inside a logarithm.", above=0)
    log_softmax: bool = declare(
        False, "model", "Compute log-probabilities by log-softmax, without the floor --log-epsilon."
    )
    min_policy: float = declare(
        0.0, "model", "Added to every action's probability before renormalizing.", low=0, high=1
    )
    grad_clip_norm: float | None = declare(
        None,
        "model",
        "Maximum average norm, ||g|| / size, of each variable's gradient, as in the authors' code; with "
        "--dual-rmsprop, maximum norm ||g|| (default: off).",
        above=0,
    )
    rmsprop_decay: float = declare(0.99, "model", "RMSProp: decay of the mean square.", low=0, high=1)
    rmsprop_momentum: float = declare(0.0, "model", "RMSProp: momentum.", low=0, high=1)
    rmsprop_epsilon: float = declare(0.1, "model", "RMSProp: added to the mean square inside the root.", above=0)
    dual_rmsprop: bool = declare(False, "model", "Separate RMSProp statistics for policy and value loss.")

    advantage: str = declare(
        "nstep",
        BEYOND,
        "'nstep' (n-step return minus value), or 'gae' (generalized advantage estimation, Schulman et al. 2016, from "
        "the values that the actions were chosen with; the value learns the lambda-return).",
        choices=("nstep", "gae"),
    )
    gae_lambda: float = declare(0.95, BEYOND, "Lambda of --advantage gae.", low=0, high=1)
    normalize_advantages: bool = declare(
        False,
        BEYOND,
        "Shift and scale the advantages of every update to mean 0 and standard deviation 1. The advantage of an update "
        "on a single state stays as it is.",
    )
    clip_ratio: float = declare(
        0.0,
        BEYOND,
        "PPO's clip range x (Schulman et al. 2017): the ratio pi/mu of an action's probability in training to that "
        "when it was chosen is clipped to [1 - x, 1 + x]; 0: off.",
        low=0,
        high=1,
        systems=("ga3c", "a2c"),
    )
    correction: str | None = declare(
        None,
        BEYOND,
        "Policy-lag correction: 'none'; 'epsilon' (the authors' floor --log-epsilon); 'clipped-is' (advantages "
        "weighted by the importance ratio pi/mu, at most --importance-clip); 'one-step' (the same, at most --rho-bar: "
        "IMPALA's one-step importance sampling); 'v-trace' (Espeholt et al. 2018); 'ppo' (--clip-ratio). Default: ppo "
        "with --clip-ratio, none with --log-softmax, else epsilon.",
        choices=("none", "epsilon", "clipped-is", "one-step", "v-trace", "ppo"),
    )
    importance_clip: float = declare(
        10.0, BEYOND, "Upper bound of the importance ratio with --correction clipped-is.", above=0
    )
    rho_bar: float = declare(
        1.0,
        BEYOND,
        "Upper bound of the importance ratio that weights one-step's advantages, or V-trace's one-step errors.",
        above=0,
    )
    c_bar: float = declare(1.0, BEYOND, "Upper bound of the importance ratio in V-trace's trace coefficients.", above=0)
    epochs: int = declare(
        1,
        BEYOND,
        "Passes over each batch. Values above 1 require --clip-ratio.",
        low=1,
        high=100,
        systems=("ga3c", "a2c"),
    )
    minibatch_size: int = declare(
        0,
        BEYOND,
        "Steps in one update: in each epoch a batch is shuffled and cut into equal parts of about this size; 0: the "
        "whole batch.",
        low=0,
        high=100_000,
        systems=("ga3c", "a2c"),
    )
    value_coefficient: float = declare(
        1.0, BEYOND, "Weight of the value loss, which is 0.5 * (R - V)^2 for each state.", low=0
    )
    loss_reduction: str = declare(
        "sum", BEYOND, "Reduction of the loss over the states of an update.", choices=("sum", "mean")
    )
    grad_clip_global: float = declare(0.0, BEYOND, "Clip the norm of all gradients together to this; 0: off.", low=0)
    optimizer: str = declare("rmsprop", BEYOND, "'rmsprop', or 'adam' (Kingma & Ba 2015).", choices=("rmsprop", "adam"))
    adam_epsilon: float = declare(
        1e-5,
        BEYOND,
        "Adam: added to the root of the mean square before its bias is corrected, as in Keras. PyTorch adds it after: "
        "the same number counts 32 times as much here in the first update, and 3 times in the 100th.",
        above=0,
    )
    initialization: str = declare(
        "fan-in",
        BEYOND,
        "Initial weights of the built-in networks: 'fan-in' (the authors': uniform within +-1/sqrt(fan_in), biases "
        "too), 'orthogonal' or 'he' (normal), both with biases 0 and a gain of sqrt(2) for hidden layers, 0.01 for the "
        "policy and 1 for the value.",
        choices=("fan-in", "orthogonal", "he"),
    )
    normalize_images: bool = declare(
        False, BEYOND, "Screens enter the built-in networks as x / 255 instead of the authors' x / 128 - 1."
    )
    normalize_observations: bool = declare(
        False,
        BEYOND,
        "States enter the built-in networks as (x - mean) / deviation, clipped to +-5. The mean and deviation of each "
        "pixel or number are those of 10,000 steps of the random policy, before the training.",
        systems=("ga3c", "a2c"),
    )
    dtype_policy: str = declare(
        "float32",
        BEYOND,
        "Keras's dtype policy of the hidden layers while training: 'float32', 'mixed_bfloat16' (they compute in "
        "bfloat16; weights, policy and value stay float32), or 'auto' (mixed_bfloat16 on a CPU that has instructions "
        "for it, else float32).",
        choices=("float32", "mixed_bfloat16", "auto"),
        systems=("ga3c", "a2c"),
    )

    seed: int | None = declare(
        None,
        "run",
        "Seed of weights, agents and environments (default: random, stored in config.json).",
        low=0,
        high=2**63 - 1,
    )
    serial: bool = declare(
        False, "run", "Run everything in one process: the same seed gives the same weights (GA3C only)."
    )
    steps: int | None = declare(
        None, "run", "Budget: stop after this many agent steps, including earlier sessions.", low=1, high=MOST**2
    )
    minutes: float | None = declare(
        None, "run", "Budget: stop after this many minutes of training, including earlier sessions.", above=0
    )
    episodes: int | None = declare(
        None, "run", "Budget: stop after this many episodes, including earlier sessions.", low=1, high=MOST**2
    )
    target_score: float | None = declare(
        None,
        "run",
        "Stop when the rolling score, the mean of the last --rolling-episodes episodes, is at least this. A budget may "
        "end the run earlier.",
    )
    run_dir: str | None = declare(None, "run", "Folder of the run (default: runs/<env>-<time>).")
    log_seconds: float = declare(5.0, "run", "Seconds between two rows of metrics.csv.", low=0.01)
    track: str | None = declare(
        None,
        "run",
        "Log the rows of metrics.csv to this experiment tracker too (default: none).",
        choices=("wandb", "mlflow"),
    )
    checkpoint_minutes: float = declare(5.0, "run", "Minutes between two checkpoints.", above=0)
    rolling_episodes: int = declare(100, "run", "Number of episodes that the rolling score averages.", low=1, high=MOST)
    max_failures: int = declare(
        10,
        "run",
        "Maximum number of failures within one minute; one more ends the run. Failures are updates that are skipped "
        "because their loss is not finite (a3c: of each agent), and GA3C's agent processes that die and are replaced. "
        "Each actor of remote agents adds one to the maximum.",
        low=0,
        high=MOST,
    )
    agent_timeout: float = declare(
        120.0,
        "run",
        "Seconds that a step or reset of an environment, or the start of its process, may take before the process is "
        "replaced.",
        above=0,
        systems=("ga3c",),
    )

    @property
    def segments_per_agent(self) -> int:
        """Maximum number of one agent's segments that wait for training; beyond it the agent itself waits."""
        if self.system != "ga3c":
            return 1
        room = self.waiting_segments or self.max_training_queue
        return max(1, room // (self.most_agents + self.remote_agents))

    @property
    def waiting_segments(self) -> int | None:
        """Number of waiting segments at which agents get no more predictions; None without such a bound.

        Each agent has room for at least one segment, so many agents can fill the queue with several batches. With
        several epochs per batch the trainers are always behind, so at most one batch may wait.
        """
        if self.system != "ga3c" or self.epochs == 1:
            return None
        return min(self.max_training_queue, math.ceil(self.states_per_update / self.t_max))

    @property
    def correction_used(self) -> str:
        """Policy-lag correction in use: the given one, or the one that the other settings imply."""
        if self.correction is not None:
            return self.correction
        if self.clip_ratio:
            return "ppo"
        return "none" if self.log_softmax else "epsilon"

    @property
    def has_minibatches(self) -> bool:
        """Whether updates use shuffled steps of a training batch instead of its whole segments."""
        return self.system != "a3c" and (self.epochs > 1 or self.minibatch_size > 0)

    @property
    def states_per_update(self) -> int:
        """Minimum number of states in a training batch."""
        if self.system == "a2c":
            return self.num_agents * self.t_max
        return 1 if self.system == "a3c" else self.min_training_batch + 1

    @property
    def most_agents(self) -> int:
        """Maximum number of agents on this machine, remote agents not included."""
        if self.adjustment == "off":
            return self.num_agents
        return self.max_agents or max(128, self.num_agents)

    def processes(self, cores: int) -> int:
        """Return the number of agent processes, at most `most_agents`.

        It is the given number, or else one per core; with plain scheduling, one per agent.

        Args:
            cores: number of cores that this process may use.
        """
        usual = self.most_agents if self.scheduling == "plain" else cores
        return min(self.most_agents, self.agent_processes or usual)

    @property
    def remote_actors(self) -> list[range]:
        """Agent numbers of each remote actor. They follow the numbers reserved for agents on this machine."""
        first = self.most_agents
        last = self.most_agents + self.remote_agents
        each = self.agents_per_actor
        return [range(start, min(start + each, last)) for start in range(first, last, each)]

    def progress(self, agent_steps: int, time_s: float, episodes: int = 0) -> float | None:
        """Return the share of the budget that is used, 0 to 1; None without a budget.

        Args:
            agent_steps: agent steps so far.
            time_s: seconds of training so far.
            episodes: episodes so far.
        """
        shares = []
        if self.steps:
            shares.append(agent_steps / self.steps)
        if self.minutes:
            shares.append(time_s / (60 * self.minutes))
        if self.episodes:
            shares.append(episodes / self.episodes)
        return min(1.0, max(shares)) if shares else None

    def annealed(self, agent_steps: int, time_s: float) -> tuple[float, float]:
        """Return learning rate and beta. Each changes linearly to its end value, where it has one, and then stays.

        Args:
            agent_steps: agent steps so far, earlier sessions included.
            time_s: seconds of training so far, earlier sessions included.
        """
        done = 0.0
        if self.anneal_steps:
            done = min(1.0, agent_steps / self.anneal_steps)
        if self.anneal_fraction:
            done = min(1.0, (self.progress(agent_steps, time_s) or 0.0) / self.anneal_fraction)

        def at(start, end):
            return start if end is None else start + (end - start) * done

        return at(self.learning_rate, self.learning_rate_end), at(self.beta, self.beta_end)
