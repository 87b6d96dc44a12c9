"""Figure 5 and slide 35: how soon four settings learn, and how many frames they see meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ga3c_tf.reproduce.figures import adjustment
from ga3c_tf.reproduce.figures.figure import Figure, Measure, Results, grouped, seeds_by_budget, smoke_spec
from ga3c_tf.reproduce.measures.effects import greater
from ga3c_tf.reproduce.measures.text import lines_of, mean_ci
from ga3c_tf.reproduce.measures.verdicts import (
    RUNS_MISSING,
    SEVERAL_MACHINES,
    TIE,
    WITHIN_NOISE,
    Finding,
    holds_if,
)
from ga3c_tf.reproduce.runs.run import Run
from ga3c_tf.reproduce.runs.specs import RunSpec, run_spec

MINUTES = {"quick": 15.0, "paper": 24 * 60.0}
FIXED = {"quick": (32, 2, 2), "paper": (128, 2, 2)}
"""A fixed setting: the best of the paper's, and one that `tps` found good on 2 cores."""
NEARLY = 0.8
SCORE = "score at the end"
FRAMES = "frames"


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return three fixed settings, the best of them last, and dynamic adjustment."""
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
    """Return the mean of the rolling score over the last tenth of the time, and the frames seen."""
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
    """Group the runs by setting, over all seeds."""
    return grouped(results.runs, lambda run: run.spec.label[0])


def findings(results: Results, runs: dict[str, list[Run]]) -> dict[str, Finding]:
    """Judge what the paper says of frames, and of dynamic adjustment against the best fixed setting."""
    frames = {label: results.values(FRAMES, each) for label, each in runs.items()}
    means = {label: sum(values) / len(values) for label, values in frames.items() if values}
    return {
        "more_frames": _more_frames(results, runs, means),
        "nearly_best": _nearly_best(results, list(runs), means),
    }


def _more_frames(results: Results, runs: dict[str, list[Run]], means: dict[str, float]) -> Finding:
    """Judge whether more frames in the same time mean faster convergence."""
    if not means:
        return Finding(RUNS_MISSING, "nothing measured")
    most = max(means, key=means.__getitem__)
    least = min(means, key=means.__getitem__)
    because = f"most: {most}, fewest: {least}"
    if len(means) < len(runs):
        return Finding(RUNS_MISSING, because)
    return Finding(greater(results.values(SCORE, runs[most]), results.values(SCORE, runs[least])), because)


def _nearly_best(results: Results, labels: list[str], means: dict[str, float]) -> Finding:
    """Judge whether dynamic adjustment sees nearly as many frames as the fixed setting that stands for the best."""
    fixed, dynamic = labels[-2:]
    if not {fixed, dynamic} <= set(means):
        return Finding(RUNS_MISSING, "not both measured")
    ratio = means[dynamic] / means[fixed]
    because = f"{ratio:.0%} of those of '{fixed}', which stands for the best (D20)"
    if not results.one_machine:
        return Finding(SEVERAL_MACHINES, because)
    if abs(ratio - NEARLY) <= TIE:
        return Finding(WITHIN_NOISE, because)
    return Finding(holds_if(ratio > NEARLY), because)


def section(results: Results) -> list[str]:
    """Return score and frames of each setting, and the findings."""
    runs = groups(results)
    rows = [
        [
            label,
            mean_ci(results.values(FRAMES, each)),
            mean_ci(results.values(SCORE, each)),
            results.unfinished(each),
        ]
        for label, each in runs.items()
    ]
    return lines_of("speed.md", rows=rows, nearly=f"{NEARLY:.0%}", **findings(results, runs))


def plot(results: Results, stem: Path) -> None:
    """Draw the score against time and against agent steps, with the frames in the legend."""
    from ga3c_tf.reproduce.drawing import plots

    curves = {}
    for label, runs in groups(results).items():
        frames = results.values(FRAMES, runs)
        total = f" ({sum(frames) / len(frames) / 1e6:.1f} M frames)" if frames else ""
        curves[f"{label}{total}"] = [run.curve for run in runs if run.finished]
    plots.score_curves({"": curves}, stem)


FIGURE = Figure(
    name="speed",
    place=6,
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
