"""Settings of the system: its agents, predictors and trainers, and what adjusts their numbers."""

from __future__ import annotations

from dataclasses import dataclass

from ga3c_tf.config.declaration import SET, SYSTEMS, WITH_SEGMENTS, beside, declare

MOST = 10**6
"""Upper bound for counts without a natural bound. Its square is that for budgets in steps and episodes."""
GA3C = ("ga3c",)
QUEUED = ("ga3c", "serial")
"""Systems in which segments wait in a training queue."""
ONE_MODEL = ("ga3c", "a2c", "serial")
"""Systems that train one model, on batches of several segments."""
WITH_PROCESSES = ("ga3c", "a2c")
"""Systems whose agents share processes."""
ADJUSTMENTS = ("fast", "paper", "nvlabs")
"""Rules of dynamic adjustment."""
WITH_ADJUSTMENT = beside(adjustment=ADJUSTMENTS)


@dataclass(frozen=True)
class WorkerSettings:
    """The system, and its workers."""

    system: str = declare(
        "ga3c",
        "workers",
        "'ga3c', or a baseline: 'a2c' (synchronous: each step has one prediction for all agents, and after "
        "--t-max steps the model is updated on all their segments; no policy lag without --lag, --epochs and "
        "--minibatch-size) or 'a3c' (on the CPU: each agent process has a replica of the network and updates "
        "shared weights without locks). 'serial' is GA3C in one process: "
        "the same seed gives the same weights.",
        choices=SYSTEMS,
        fixed="the run's speeds and lags would be of two systems",
    )

    num_agents: int = declare(
        32,
        "workers",
        "Number of agents (N_A). With --system a3c, one per core, unless the preset has another number.",
        low=1,
        high=4096,
        option="agents",
    )
    agent_processes: int | None = declare(
        None,
        "workers",
        "Number of processes that run the agents (default: one per core; "
        "with plain scheduling, one per agent).",
        low=1,
        high=4096,
        systems=WITH_PROCESSES,
    )
    t_max: int = declare(5, "algorithm", "Maximum number of steps in a segment.", low=1, high=1000)
    gamma: float = declare(0.99, "algorithm", "Discount factor.", low=0, high=1)
    clip_rewards: bool = declare(
        True,
        "algorithm",
        "Clip each reward to [-1, 1] for training; scores stay raw.",
        fixed="values have been learned on this scale",
    )
    train_last_transition: bool = declare(
        True,
        "algorithm",
        "Train on the last transition of an episode, which the authors' code drops.",
        systems=QUEUED,
        refused_elsewhere=True,
        algorithms=WITH_SEGMENTS,
    )

    remote_agents: int = declare(
        0,
        "workers",
        "Additional agents on other machines, in actors of the Ray cluster that --ray names.",
        low=0,
        high=4096,
        systems=GA3C,
        refused_elsewhere=True,
    )
    agents_per_actor: int = declare(
        64,
        "advanced",
        "Remote agents in one actor. An actor takes one CPU.",
        low=1,
        high=512,
        systems=GA3C,
        read_with=[beside(remote_agents=SET)],
    )

    num_predictors: int = declare(
        2, "workers", "Number of predictor threads (N_P).", low=1, high=256, option="predictors", systems=GA3C
    )
    max_prediction_batch: int = declare(
        128, "advanced", "Maximum number of states in one prediction.", low=1, high=16384, systems=QUEUED
    )

    scheduling: str = declare(
        "tuned",
        "workers",
        "'tuned', for machines with few cores: predictors wait for more requests while trainers are behind; "
        "on a CPU, simultaneous updates are limited to half of the cores at first; threads run as "
        "SCHED_BATCH; and agents share one process per core. 'plain': none of these, as in the paper.",
        choices=("tuned", "plain"),
        systems=WITH_PROCESSES,
    )
    compile: str = declare(
        "auto",
        "run",
        "Compile predictions and updates with XLA: 'auto' (on a GPU), 'on' or 'off'. The results are the "
        "same; on a CPU they take longer. A trainer then makes up to 8 updates in one call, on batches that "
        "already wait. What cannot be compiled, such as your own loss, runs as with 'off', and a line says "
        "why.",
        choices=("auto", "on", "off"),
        systems=ONE_MODEL,
    )
    num_trainers: int = declare(
        2, "workers", "Number of trainer threads (N_T).", low=1, high=256, option="trainers", systems=GA3C
    )
    min_training_batch: int = declare(
        20,
        "workers",
        "A trainer merges segments until the batch exceeds this many states (section 5.4).",
        low=0,
        high=100_000,
        systems=QUEUED,
        algorithms=WITH_SEGMENTS,
    )
    max_training_queue: int = declare(
        100,
        "workers",
        "Maximum number of segments that wait for training. It is divided evenly among the agents (with "
        "adjustment, among --max-agents), with at least one for each. With --epochs above 1, predictors "
        "pause while as many segments as this, or one full batch, wait.",
        low=1,
        high=10_000,
        systems=QUEUED,
    )

    max_policy_lag: int | None = declare(
        None,
        "advanced",
        "Drop segments whose oldest step is more than this many updates old when a trainer reads them from "
        "the queue (default: none).",
        low=0,
        high=MOST,
        systems=QUEUED,
        algorithms=WITH_SEGMENTS,
    )
    lag: int = declare(
        0,
        "workers",
        "Train on the batch collected this many rounds earlier. With one update per round, this is the "
        "policy lag of every state, in updates.",
        low=0,
        high=100_000,
        systems=("a2c",),
        algorithms=WITH_SEGMENTS,
    )
    lag_distribution: str = declare(
        "constant",
        "workers",
        "How the rounds that a batch waits vary around --lag: 'constant'; 'uniform' (from 0 to twice as "
        "many); 'geometric' (any number, fewer being likelier).",
        choices=("constant", "uniform", "geometric"),
        systems=("a2c",),
        algorithms=WITH_SEGMENTS,
        read_with=[beside(lag=SET, when=["uniform", "geometric"])],
    )

    adjustment: str = declare(
        "off",
        "workers",
        "Dynamic adjustment of N_A, N_P and N_T during the run (section 4.3): 'fast' (doubles and halves "
        "first), 'paper' (changes one number by 1 at a time), 'nvlabs' (the authors' rule: changes all three "
        "at once) or 'off'.",
        choices=("off", *ADJUSTMENTS),
        systems=GA3C,
        refused_elsewhere=True,
        algorithms=WITH_SEGMENTS,
    )
    adjustment_seconds: float = declare(
        20.0,
        "advanced",
        "Seconds for which each choice of N_A, N_P and N_T is measured.",
        low=1,
        high=MOST,
        systems=GA3C,
        read_with=[WITH_ADJUSTMENT],
    )
    max_agents: int | None = declare(
        None,
        "workers",
        "Maximum number of agents under dynamic adjustment (default: 128, or --agents if larger).",
        low=1,
        high=4096,
        systems=GA3C,
        read_with=[WITH_ADJUSTMENT],
        fixed="the adjustment may have started as many",
    )
