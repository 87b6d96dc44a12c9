"""Figure 6: score against wall-clock for several games, three runs for each of two learning rates.

Beside them, on the same machine, our CPU A3C, whose scores the paper's reviewers asked for and never got.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from reproduce.figures import pps, scores
from reproduce.figures.figure import Figure, Measure, Results, seeds_by_budget, smoke_spec
from reproduce.measures.text import number, spread, table
from reproduce.measures.verdicts import Finding, greater
from reproduce.runs.run import Run
from reproduce.runs.specs import NINE_GAMES, SYSTEMS, RunSpec, run_spec

FINAL, BEST, STEPS = "final rolling score", "best rolling score", "agent steps"


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Two learning rates, the first being the run of `scores`, and A3C."""
    if budget == "smoke":
        chosen = [smoke_spec(game, seed), smoke_spec(game, seed, "a3c")]
    else:
        normal, lower = (scores.training(budget, game, seed, rate) for rate in scores.LEARNING_RATES.values())
        same = {name: value for name, value in normal.settings if name != "num_agents"}
        chosen = [normal, lower, run_spec(game, seed, "a3c", **same, num_agents=pps.AGENTS[budget]["a3c"])]
    return [spec.called(f"{SYSTEMS[spec.system]}, learning rate {spec.config.learning_rate:g}") for spec in chosen]


def measures(run: Run) -> list[Measure]:
    """The rolling score at the end and at its best."""
    window, rolling = run.spec.config.rolling_episodes, run.curve["rolling_score"]
    whole = rolling[run.curve["episodes"] >= window]
    protocol = f"mean score of the last {window} episodes of training"
    final = float(rolling[-1]) if len(rolling) else float("nan")
    best = float(whole.max()) if len(whole) else float("nan")
    return [
        Measure(FINAL, final, "points", f"{protocol}, of all if fewer", "no episode ended"),
        Measure(BEST, best, "points", protocol, f"fewer than {window} episodes ended"),
    ]


def groups(results: Results) -> dict[str, dict[str, list[Run]]]:
    """The runs by game, and by system and learning rate, in words."""
    found: dict[str, dict[str, list[Run]]] = {}
    for run in results.runs:
        [rate] = run.spec.label
        found.setdefault(run.spec.game.replace("_", " "), {}).setdefault(rate, []).append(run)
    return found


def random_play(rates: dict[str, list[Run]]) -> float | None:
    """The mean score of random play, which one of the game's runs measured, or None."""
    played = [
        float(np.mean(run.result["random"]["scores"]))
        for runs in rates.values()
        for run in runs
        if "random" in run.result
    ]
    return played[0] if played else None


def section(results: Results) -> list[str]:
    """Final and best rolling score by game, system and learning rate."""
    rows, findings = [], []
    for game, rates in groups(results).items():
        ours, other = (
            results.values(FINAL, [run for run in runs if run.spec.system == system and run.finished])
            for system in ("ga3c", "a3c")
            for runs in [next((runs for runs in rates.values() if runs[0].spec.system == system), [])]
        )
        findings.append(
            Finding(
                f"{game}: GA3C scores more than A3C after the same time",
                greater(ours, other),
                "final rolling score, first learning rate",
                f"{spread(ours)} against {spread(other)}",
            )
        )
        for rate, runs in rates.items():
            reasons = [f"seed {run.spec.seed}: {results.status(run)}" for run in runs if not run.finished]
            final, best = (spread(results.values(metric, runs)) for metric in (FINAL, BEST))
            rows.append([game, rate, number(random_play(rates)), final, best, "; ".join(reasons)])
    header = ["game", "setting", "random play", "rolling score at the end", "best rolling score", "not finished"]
    return [
        *table(header, rows),
        "",
        "The paper's curves could not be read and its two learning rates are not named; ours are the default and the "
        "authors' code's. Scores are rolling means of training, random play's is the mean of episodes played apart. "
        "The best of many noisy means lies above the level even where nothing is learnt. The paper states no finding "
        "to test here; the comparison below is what its reviewers asked for.",
        "",
        *(finding.line() for finding in findings),
    ]


def plot(results: Results, stem: Path) -> None:
    """Score against time and against agent steps, a row for each game."""
    from reproduce.drawing import plots

    finished = {
        game: {rate: [run.curve for run in runs if run.finished] for rate, runs in rates.items()}
        for game, rates in groups(results).items()
    }
    plots.score_curves(finished, stem)


FIGURE = Figure(
    name="learning-curves",
    paper="Figure 6",
    shows="score against time and agent steps for several games and two learning rates, and A3C",
    games={"smoke": ("cartpole",), "quick": ("boxing", "pong"), "paper": NINE_GAMES},
    seeds=seeds_by_budget(),
    specs=specs,
    measures=measures,
    main=(FINAL, "points"),
    section=section,
    plot=plot,
)
