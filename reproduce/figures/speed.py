"""Figure 5 and slide 35: how soon four settings learn, and how many frames they see meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reproduce.figures import adjustment
from reproduce.figures.figure import Figure, Measure, Results, seeds_by_budget, smoke_spec
from reproduce.measures.text import spread, table
from reproduce.measures.verdicts import FAILS, HOLDS, TIE, UNKNOWN, Finding, greater
from reproduce.runs.run import Run
from reproduce.runs.specs import RunSpec, run_spec

MINUTES = {"quick": 15.0, "paper": 24 * 60.0}
FIXED = {"quick": (32, 2, 2), "paper": (128, 2, 2)}
"""A fixed setting: the best of the paper's, and one that docs/performance.md and `tps` found good on 2 cores."""
NEARLY = 0.8
SCORE, FRAMES = "score at the end", "frames"


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Returns three fixed settings, the best of them last, and dynamic adjustment."""
    if budget == "smoke":
        return [
            smoke_spec(game, seed).called("fixed"),
            adjustment.dynamic(budget, game, seed).called("dynamic"),
        ]
    good = FIXED[budget]
    fixed = {"1/1/1": (1, 1, 1), "16/1/1": (16, 1, 1), f"fixed, {'/'.join(map(str, good))}": good}
    common: dict[str, Any] = {
        "network": "small",
        "min_training_batch": 0,
        "minutes": MINUTES[budget],
        "log_seconds": 5.0 if budget == "quick" else 30.0,
        "checkpoint_minutes": 60.0,
    }
    runs = [
        run_spec(game, seed, num_agents=agents, num_predictors=predictors, num_trainers=trainers, **common).called(
            label
        )
        for label, (agents, predictors, trainers) in fixed.items()
    ]
    dynamic = adjustment.dynamic(budget, game, seed, MINUTES[budget])
    return [*runs, dynamic.called("dynamic from 1/1/1")]


def measures(run: Run) -> list[Measure]:
    """The mean of the rolling score over the last tenth of the time, and the frames seen."""
    config = run.spec.config
    protocol = (
        f"mean of the rolling score (training, {config.rolling_episodes} episodes) over the last tenth of the time"
    )
    frames = run.agent_steps * (config.frame_skip if config.env_id.startswith("ALE/") else 1)
    return [
        Measure(SCORE, run.final_score, "points", protocol, "no episode ended"),
        Measure(FRAMES, float(frames), "frames", "emulator frames of training, agent steps times frame skip"),
    ]


def groups(results: Results) -> dict[str, list[Run]]:
    """The runs of each setting, of all seeds."""
    found: dict[str, list[Run]] = {}
    for run in results.runs:
        [label] = run.spec.label
        found.setdefault(label, []).append(run)
    return found


def section(results: Results) -> list[str]:
    """Score and frames of each setting, and the findings."""
    runs = groups(results)
    rows = [
        [label, spread(results.values(FRAMES, each)), spread(results.values(SCORE, each)), _unfinished(results, each)]
        for label, each in runs.items()
    ]
    frames = {label: results.values(FRAMES, each) for label, each in runs.items()}
    means = {label: sum(values) / len(values) for label, values in frames.items() if values}
    most, least = max(means, key=means.__getitem__, default=""), min(means, key=means.__getitem__, default="")
    fixed, dynamic = list(runs)[-2:]
    ratio = means[dynamic] / means[fixed] if {dynamic, fixed} <= set(means) and results.one_machine else None
    findings = [
        Finding(
            "more frames in the same time mean faster convergence",
            greater(*(results.values(SCORE, runs[label]) for label in (most, least)))
            if len(means) == len(runs)
            else UNKNOWN,
            "the score at the end of the setting with most frames is greater than of that with fewest",
            f"most: {most}, fewest: {least}" if means else "nothing measured",
        ),
        Finding(
            "dynamic adjustment is nearly as good as the best fixed setting",
            UNKNOWN if ratio is None or abs(ratio - NEARLY) <= TIE else HOLDS if ratio > NEARLY else FAILS,
            f"it sees at least {NEARLY:.0%} of the frames in the same time, on the same hardware; {TIE:.0%} may be "
            "noise",
            "not both measured"
            if ratio is None
            else f"{ratio:.0%} of those of '{fixed}', which stands for the best (D20)",
        ),
    ]
    return [
        *table(["N_A/N_P/N_T", "frames", "score at the end", "not finished"], rows),
        "",
        "The paper's curves and frame counts could not be read. Scores are those of training, not of an evaluation. "
        "With the number of agents differs how many segments may wait for training, and with it the policy lag (D9).",
        "",
        *(finding.line() for finding in findings),
    ]


def _unfinished(results: Results, runs: list[Run]) -> str:
    return "; ".join(f"seed {run.spec.seed}: {results.status(run)}" for run in runs if not run.finished)


def plot(results: Results, stem: Path) -> None:
    """Score against time and against agent steps, with the frames in the legend."""
    from reproduce.drawing import plots

    curves = {}
    for label, runs in groups(results).items():
        frames = results.values(FRAMES, runs)
        total = f" ({sum(frames) / len(frames) / 1e6:.1f} M frames)" if frames else ""
        curves[f"{label}{total}"] = [run.curve for run in runs if run.finished]
    plots.score_curves({"": curves}, stem)


FIGURE = Figure(
    name="speed",
    paper="Figure 5, slide 35",
    shows="score against time for four settings of agents, predictors and trainers",
    games={"smoke": ("cartpole",), "quick": ("boxing",), "paper": ("pong",)},
    seeds=seeds_by_budget(),
    specs=specs,
    measures=measures,
    main=(SCORE, "points"),
    section=section,
    plot=plot,
    by_game=True,
)
