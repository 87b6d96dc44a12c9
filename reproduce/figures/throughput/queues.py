"""Figure 4 and slide 48: length of the training queue and size of prediction batches, in Figure 3's runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ga3c_tf.reproduce.figures.figure import Figure, Measure, on_one_machine
from ga3c_tf.reproduce.figures.results import Results
from ga3c_tf.reproduce.figures.throughput import tps
from ga3c_tf.reproduce.measures.effects import paired_ratio
from ga3c_tf.reproduce.measures.judging import effect_verdict
from ga3c_tf.reproduce.measures.text import lines_of, number
from ga3c_tf.reproduce.measures.verdicts import NEEDS_GPU, RUNS_MISSING, Claim, Finding, interval_verdict
from ga3c_tf.reproduce.measures.wording import described_ratio
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.trained.intervals import student_interval

FINDINGS = 2
CONFIDENCE = 1 - 0.05 / FINDINGS
"""Confidence of an interval, so that both findings together are wrong in at most 5 % of repetitions."""
FASTEST_SHARE = 1 / 3
FAR_BELOW = 0.5
SHOWN = 10
"""Number of settings that the table shows."""
QUEUE = "training queue"
BATCH = "prediction batch"


def measures(run: RecordedRun) -> list[Measure]:
    """Return the mean training queue in segments, the mean prediction batch in states, and the TPS."""
    steady = run.steady(tps.warm_up_s(run))
    protocol = f"mean over the rows of metrics.csv of the last {steady['seconds']:.0f} s"
    return [
        Measure(QUEUE, steady["training_queue"], "segments", protocol),
        Measure(BATCH, steady["prediction_batch"], "states", protocol),
        Measure("tps", steady["tps"], "updates/s", protocol),
    ]


def room_of(run: RecordedRun) -> int:
    """Return how many segments may wait for training."""
    return run.spec.config.num_agents * run.spec.config.segments_per_agent


def rooms(results: Results) -> dict[tps.Setting, int]:
    """Return how many segments may wait at each setting."""
    return {tps.setting_of(run): room_of(run) for run in results.runs}


def findings(results: Results) -> dict[str, Finding]:
    """Judge the paper's two findings, once every run has been measured."""
    speed, queue, batch = (tps.by_setting(results, metric) for metric in ("tps", QUEUE, BATCH))
    room = rooms(results)
    missing = len(tps.rates(results)) < len(results.runs)
    on_gpu = all(run.on_gpu for run in results.runs if run.finished)
    shares = [queue[setting] / room[setting] for setting in queue]
    return {
        "short_queue": _short_queue(shares, missing, on_gpu),
        "large_batch": on_one_machine(_large_batch(speed, batch, missing), results.runs),
    }


def claims(results: Results) -> list[Claim]:
    """Return the paper's claims about the queue and the batches."""
    by_claim = findings(results)
    short_queue = Claim(
        "the training queue settles far below its maximum",
        by_claim["short_queue"],
        f"its mean over all settings is below {FAR_BELOW:.0%} of the segments that may wait (D9), with its "
        "97.5 % interval; judged with the model on a GPU only, as in the paper",
    )
    large_batch = Claim(
        "fast settings have larger prediction batches",
        by_claim["large_batch"],
        "the fastest third of the settings against the others with the same scheduling and number of "
        "predictors: a t test of the logarithms over these groups, its p value doubled for two findings",
    )
    if results.budget == "gpu":
        return [short_queue]  # there are too few settings to compare their batches
    return [short_queue, large_batch] if results.judges_gpu else [large_batch]


def _short_queue(shares: Sequence[float], missing: bool, on_gpu: bool) -> Finding:
    """Judge whether the training queue settles far below its maximum.

    Args:
        shares: mean length of the queue at each setting, as a share of the segments that may wait.
        missing: whether runs are missing.
        on_gpu: whether the model was on a GPU in all finished runs.
    """
    if not shares:
        return tps.NOTHING_MEASURED
    low, high = student_interval(shares, CONFIDENCE)
    interval = f" [{low:.0%}, {high:.0%}]" if len(shares) > 1 else ""
    because = (
        f"{sum(shares) / len(shares):.0%} of the maximum{interval}, limit {FAR_BELOW:.0%} "
        f"({len(shares)} settings)"
    )
    if not on_gpu:
        return Finding(NEEDS_GPU, because)
    return Finding(RUNS_MISSING if missing else interval_verdict(-high, -low, -FAR_BELOW), because)


def _large_batch(
    speed: Mapping[tps.Setting, float], batch: Mapping[tps.Setting, float], missing: bool
) -> Finding:
    """Judge whether fast settings have larger prediction batches than others with the same scheduling and
    predictors.

    Args:
        speed: TPS by setting.
        batch: mean prediction batch by setting, in states.
        missing: whether runs are missing.
    """
    ratios = fast_to_slow(speed, batch)
    effect = paired_ratio(ratios, dict.fromkeys(ratios, 1.0))
    corrected = min(1.0, FINDINGS * effect.chance)
    because = (
        f"batch of the fastest third relative to the others: {described_ratio(effect, corrected, 'group')}"
    )
    return Finding(RUNS_MISSING if missing else effect_verdict(effect, corrected), because)


def fast_to_slow(
    speed: Mapping[tps.Setting, float], batch: Mapping[tps.Setting, float]
) -> dict[tuple[str, int], float]:
    """Return the prediction batch of the fastest third of settings divided by that of the others, as
    geometric means.

    Settings are compared within each scheduling and number of predictors, because both of these change the
    batches as well as the speed.
    """
    groups: dict[tuple[str, int], list[tps.Setting]] = {}
    for setting in batch:
        groups.setdefault((setting.scheduling, setting.predictors), []).append(setting)
    ratios = {}
    for group, settings in groups.items():
        order = sorted(settings, key=lambda setting: -speed[setting])
        count = round(FASTEST_SHARE * len(order))
        logarithms = [math.log(batch[setting]) for setting in order]
        if 0 < count < len(order):
            ratios[group] = math.exp(np.mean(logarithms[:count]) - np.mean(logarithms[count:]))
    return ratios


def by_predictors(results: Results) -> list[list[str]]:
    """Return a row per number of predictors: the ratio of `fast_to_slow` by scheduling, as in `details`."""
    speed, batch = (tps.by_setting(results, metric) for metric in ("tps", BATCH))
    ratios = fast_to_slow(speed, batch)
    schedulings = dict.fromkeys(setting.scheduling for setting in speed)
    return [
        [str(predictors), *(number(ratios.get((scheduling, predictors))) for scheduling in schedulings)]
        for predictors in sorted({setting.predictors for setting in batch})
    ]


def details(results: Results) -> list[str]:
    """Return the tables of training queue and prediction batch."""
    speed, queue, batch = (tps.by_setting(results, metric) for metric in ("tps", QUEUE, BATCH))
    room = rooms(results)
    order = sorted(speed, key=lambda setting: -speed[setting])
    rows = [
        [
            setting.scheduling,
            "/".join(map(str, setting[:3])),
            number(speed[setting]),
            number(queue.get(setting)),
            str(room[setting]),
            number(batch.get(setting)),
        ]
        for setting in order[:SHOWN]
    ]
    return lines_of(
        "queues.md",
        rows=rows,
        schedulings=list(tps.by_scheduling(speed)),
        within=by_predictors(results) if results.budget != "gpu" else [],
        judges_gpu=results.judges_gpu,
        measured=len(speed),
        failed=results.failed,
    )


def plot(results: Results, stem: Path) -> None:
    """Draw the fill level of the training queue and the prediction batch of every setting against its TPS."""
    from ga3c_tf.reproduce.drawing import speed_plots

    speed, queue, batch = (tps.by_setting(results, metric) for metric in ("tps", QUEUE, BATCH))
    room = rooms(results)
    full = {setting: 100 * length / room[setting] for setting, length in queue.items()}
    rows = tps.by_scheduling(speed)
    speed_plots.against_speed(
        rows, {"training queue (% of room)": full, "prediction batch (states)": batch}, stem
    )


FIGURE = Figure(
    name="queues",
    place=5,
    paper="Figure 4, slide 48",
    shows="length of the training queue and size of prediction batches, same runs as tps",
    headline="the training queue stays far below its maximum, "
    "and fast settings have large prediction batches",
    games={**tps.FIGURE.games, "gpu": ("pong",)},
    seeds=tps.FIGURE.seeds,
    specs=tps.specs,
    measures=measures,
    main=(QUEUE, "segments"),
    claims=claims,
    details=details,
    plot=plot,
    by_game=True,
)
