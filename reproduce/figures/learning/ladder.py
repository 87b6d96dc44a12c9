"""What the options of later actor-critics bring, added one after the other to the paper's settings.

These runs choose settings, so their seeds are 101 and up. The chosen settings are then judged on seeds 1 to
3.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.figures.figure import Figure, Measure, grouped, smoke_spec
from ga3c_tf.reproduce.figures.learning.learning_curves import FINAL
from ga3c_tf.reproduce.figures.results import Results
from ga3c_tf.reproduce.measures.curves import mean_score, score_at_end
from ga3c_tf.reproduce.measures.random_policy import RANDOM_SCORES
from ga3c_tf.reproduce.measures.text import lines_of, mean_ci
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import RunSpec, run_spec

MEAN = "mean score of the run"
FIRST_SEED = 101
SEEDS = {"pong": 3, "minatar_breakout": 1, "minatar_asterix": 1}
"""Number of seeds of the last rung by game; the other rungs have one."""
STEPS = {"pong": 1_500_000, "minatar_breakout": 1_500_000, "minatar_asterix": 1_500_000}
PAPER = "the paper's settings"
PONG_FIRST = "the paper's settings, but a smaller RMSProp epsilon and learning rate"
"""Run *e* of docs/pong.md: the authors' epsilon and default rate learn too slowly on Pong to be compared."""
Settings = dict[str, Any]

# The summed gradient of 128 steps is 128 times their mean gradient. To keep the sizes of updates comparable,
# the reuse of samples comes with mean losses and an optimizer whose steps do not depend on the size of the
# gradient.
REUSE: Settings = {
    "num_agents": 16,
    "num_predictors": 1,
    "num_trainers": 1,
    "minibatch_size": 128,
    "optimizer": "adam",
    "loss_reduction": "mean",
    "value_coefficient": 0.5,
    "grad_clip_global": 0.5,
}
PONG_REUSE = REUSE | {"t_max": 16, "min_training_batch": 255, "epochs": 3, "clip_ratio": 0.2}
MINATAR_REUSE = REUSE | {"t_max": 32, "min_training_batch": 511, "epochs": 4, "clip_ratio": 0.2}
ADDED_LATER: dict[str, Settings] = {
    "+ generalized advantages": {"advantage": "gae", "normalize_advantages": True},
    "+ orthogonal weights": {"initialization": "orthogonal", "normalize_images": True},
}
LARGER = "+ long segments, large batches"
STANDARDIZED = "+ standardized pixels"
FALLING = "+ falling learning rate"
ADDED_LAST: dict[str, dict[str, Settings]] = {
    "pong": {
        LARGER: {"t_max": 128, "min_training_batch": 1023},
        "+ RMSProp, which has no momentum": {"optimizer": "rmsprop", "rmsprop_epsilon": 1e-9},
        "+ half of the agents, so less policy lag": {"num_agents": 8},
        STANDARDIZED: {"normalize_images": False, "normalize_observations": True},
        FALLING: {"learning_rate_end": 0.0, "anneal_steps": 4_000_000},
    },
    "minatar": {
        FALLING: {"learning_rate_end": 0.0, "anneal_fraction": 1.0},
        LARGER: {"num_agents": 64, "t_max": 128, "min_training_batch": 4095, "minibatch_size": 1024},
    },
}
PONG_RATES = {PONG_FIRST: (3e-4,), STANDARDIZED: (2e-4, 5e-4), FALLING: (2e-4,)}
PONG_LATER_RATES = (5e-4,)
MINATAR_RATES = {PAPER: (1e-3, 2e-3, 4e-3), LARGER: (5e-3, 1e-2, 2e-2)}
MINATAR_LATER_RATES = (3e-4, 1e-3, 3e-3)


def rungs(game: str) -> dict[str, Settings]:
    """Return the settings of each rung, by the name of what it changes in the rung before."""
    settings: Settings = {"num_agents": 32, "num_predictors": 2, "num_trainers": 2, "min_training_batch": 20}
    ladder = {PONG_FIRST: settings | {"rmsprop_epsilon": 1e-4}} if game == "pong" else {PAPER: settings}
    settings = dict(PONG_REUSE if game == "pong" else MINATAR_REUSE)
    ladder["+ samples reused"] = settings
    for name, changed in (ADDED_LATER | ADDED_LAST[game.split("_")[0]]).items():
        settings = settings | changed
        ladder[name] = settings
    return ladder


def rates(game: str, rung: str) -> tuple[float, ...]:
    """Return the learning rates that a rung is run with: three on MinAtar, where a run takes minutes."""
    if game == "pong":
        return PONG_RATES.get(rung, PONG_LATER_RATES)
    return MINATAR_RATES.get(rung, MINATAR_LATER_RATES)


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return the runs of all rungs for the first seed, and those of the last rung for the other seeds.

    Raises:
        UserError: the game has no rungs.
    """
    if budget == "smoke":
        reused = ADDED_LATER["+ generalized advantages"] | {"epochs": 2, "clip_ratio": 0.2}
        return [
            smoke_spec(game, seed).called(PAPER),
            smoke_spec(game, seed, **reused).called("+ samples reused"),
        ]
    if game not in STEPS:
        raise UserError(f"the figure ladder has no settings for {game}; it has them for {', '.join(STEPS)}")
    ladder = rungs(game)
    names = list(ladder) if seed == FIRST_SEED else list(ladder)[-1:]
    return [
        run_spec(
            game,
            seed,
            **ladder[name],
            learning_rate=rate,
            steps=STEPS[game],
            log_seconds=30.0,
        ).called(name, f"rate {rate:g}")
        for name in names
        for rate in rates(game, name)
    ]


def measures(run: RecordedRun) -> list[Measure]:
    """Return the score over the last tenth of steps, and over the whole run, to tell how soon it learned."""
    final = score_at_end(run.curve)
    whole = mean_score(run.curve)
    protocol = f"mean of {run.spec.config.rolling_episodes} episodes of training"
    return [
        Measure(FINAL, final, "points", f"{protocol}, over the last tenth", "no episode ended"),
        Measure(MEAN, whole, "points", f"{protocol}, over all agent steps", "no episode ended"),
    ]


def groups(results: Results) -> dict[str, dict[str, list[RecordedRun]]]:
    """Group the runs by game, then by rung and learning rate."""
    games = grouped(results.runs, lambda run: run.spec.game)
    return {game: grouped(runs, lambda run: ", ".join(run.spec.label)) for game, runs in games.items()}


def best_rates(by_name: dict[str, list[RecordedRun]], results: Results) -> dict[str, list[RecordedRun]]:
    """Return for each rung of a game the runs at the learning rate with the highest mean score of the run.

    Args:
        by_name: runs by rung and learning rate, as `groups` returns them.
        results: results that have these runs.
    """
    at_rates: dict[str, list[list[RecordedRun]]] = {}
    for runs in by_name.values():
        at_rates.setdefault(runs[0].spec.label[0], []).append(runs)
    return {
        rung: max(alternatives, key=lambda runs: float(np.mean(results.values(MEAN, runs) or [-np.inf])))
        for rung, alternatives in at_rates.items()
    }


def details(results: Results) -> list[str]:
    """Return a table of both scores of each rung at its best learning rate, and folded that at all rates."""
    games = groups(results)
    best = {game: best_rates(by_name, results) for game, by_name in games.items()}
    return lines_of("ladder.md", best=_rows(best, results), rows=_rows(games, results))


def _rows(games: dict[str, dict[str, list[RecordedRun]]], results: Results) -> list[list[str]]:
    """Return a row of the table for each group of runs of which one has begun."""
    return [
        [
            game.replace("_", " "),
            runs[0].spec.label[0],
            f"{runs[0].spec.config.learning_rate:g}",
            mean_ci(results.values(FINAL, runs)),
            mean_ci(results.values(MEAN, runs)),
            _minutes(runs),
            results.unfinished(runs),
        ]
        for game, by_name in games.items()
        for runs in by_name.values()
        if any(run.result for run in runs)
    ]


def _minutes(runs: list[RecordedRun]) -> str:
    minutes = [60 * run.hours for run in runs if run.finished]
    return f"{np.mean(minutes):.0f}" if minutes else "-"


def plot(results: Results, stem: Path) -> None:
    """Draw for each rung the runs at the learning rate with the highest mean score over all steps."""
    from ga3c_tf.reproduce.drawing import score_plots

    games = groups(results)
    finished = {run.spec.game for run in results.runs if run.finished}
    begun = {game: by_name for game, by_name in games.items() if game in finished}
    curves = {
        game.replace("_", " "): {
            rung: [run.curve for run in runs if run.finished]
            for rung, runs in best_rates(by_name, results).items()
        }
        for game, by_name in (begun or games).items()
    }
    score_plots.score_curves(
        curves, stem, {game.replace("_", " "): RANDOM_SCORES.get(game) for game in games}
    )


FIGURE = Figure(
    name="ladder",
    place=12,
    paper="not in the paper",
    shows="what options of later actor-critics bring, added one after the other",
    headline="which options of later actor-critics help?",
    games={"smoke": ("cartpole",), "tuned": tuple(STEPS)},
    seeds=lambda budget, game: 1 if budget == "smoke" else SEEDS.get(game, 1),
    specs=specs,
    measures=measures,
    main=(FINAL, "points"),
    details=details,
    plot=plot,
    first_seed=FIRST_SEED,
)
