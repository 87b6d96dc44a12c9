"""Settings of the run: its budget, its folder, and how it deals with faults."""

from __future__ import annotations

from dataclasses import dataclass

from ga3c_tf.config.declaration import declare
from ga3c_tf.config.declared.workers import GA3C, MOST


@dataclass(frozen=True)
class RunSettings:
    """When a run ends, and what it writes."""

    seed: int | None = declare(
        None,
        "run",
        "Seed of weights, agents and environments (default: random, stored in config.json).",
        low=0,
        high=2**63 - 1,
        fixed="the run has begun with it",
    )
    steps: int | None = declare(
        None,
        "budget",
        "Budget: stop after this many agent steps, including earlier sessions.",
        low=1,
        high=MOST**2,
    )
    minutes: float | None = declare(
        None,
        "budget",
        "Budget: stop after this many minutes of training, including earlier sessions.",
        above=0,
    )
    episodes: int | None = declare(
        None,
        "budget",
        "Budget: stop after this many episodes, including earlier sessions.",
        low=1,
        high=MOST**2,
    )
    target_score: float | None = declare(
        None,
        "budget",
        "Stop when the rolling score, the mean of the last --rolling-episodes episodes, is at least this. A "
        "budget may end the run earlier.",
    )
    run_dir: str | None = declare(
        None,
        "run",
        "Folder of the run (default: runs/<env>-<time>).",
        fixed="the run is in its folder, which may be moved or renamed",
    )
    log_seconds: float = declare(5.0, "run", "Seconds between two rows of metrics.csv.", low=0.01)
    track: str | None = declare(
        None,
        "run",
        "Log the rows of metrics.csv to this experiment tracker too (default: none).",
        choices=("wandb", "mlflow"),
    )
    evaluate_every: int | None = declare(
        None,
        "run",
        "Evaluate the agent over 10 whole episodes every so many agent steps (default: not), and keep the "
        "best weights in RUN/best_evaluated. Training rests meanwhile and its clock stands, except with a3c.",
        low=1,
        high=MOST**2,
    )
    checkpoint_minutes: float = declare(5.0, "run", "Minutes between two checkpoints.", above=0)
    rolling_episodes: int = declare(
        100,
        "run",
        "Number of episodes that the rolling score averages.",
        low=1,
        high=MOST,
        fixed="checkpoints are compared by means over so many episodes",
    )
    max_failures: int = declare(
        10,
        "advanced",
        "Maximum number of failures within one minute; one more ends the run. Failures are updates that are "
        "skipped because their loss is not finite (a3c: of each agent), and GA3C's agent processes that die "
        "and are replaced. Each actor of remote agents adds one to the maximum.",
        low=0,
        high=MOST,
    )
    agent_timeout: float = declare(
        120.0,
        "advanced",
        "Seconds that a step or reset of an environment, or the start of its process, may take before the "
        "process is replaced.",
        above=0,
        systems=GA3C,
    )
