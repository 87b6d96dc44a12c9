"""Figure 4 and slide 48: length of the training queue and size of prediction batches, in Figure 3's runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ga3c_tf.reproduce.figures.figure import Figure, Measure, Table, mean_of
from ga3c_tf.reproduce.figures.measurements import Measurements
from ga3c_tf.reproduce.figures.throughput import tps
from ga3c_tf.reproduce.measures.estimates import Effect, paired_ratio
from ga3c_tf.reproduce.measures.verdicts import NEEDS_GPU, RUNS_MISSING, Above, Between, Claim, Guard
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.trained.intervals import student_interval

CONFIDENCE = 0.975
"""Confidence of an interval, so that both claims together are wrong in at most 5 % of repetitions."""
FASTEST_SHARE = 1 / 3
FAR_BELOW = 0.5
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


def filled(table: Measurements) -> pd.Series:
    """Return the mean length of the queue as a share of the segments that may wait, by setting."""
    lengths = table.series(QUEUE, tps.SETTING)
    room = {
        setting: run.spec.config.num_agents * run.spec.config.segments_per_agent
        for setting, part in table.parts(*tps.SETTING)
        for run in part.runs
    }
    return lengths / pd.Series(room)[lengths.index]


def claims(table: Measurements) -> list[Claim]:
    """Return the paper's claims about the queue and the batches."""
    shares = filled(table)
    ends = student_interval(shares, CONFIDENCE)
    share = Effect(float(shares.mean()), *ends, n=len(shares), limit=FAR_BELOW, of="setting")
    ratio = paired_ratio(
        fast_to_slow(table), of="group", what="batch of the fastest third relative to the others"
    )
    on_gpu = all(run.on_gpu for run in table.finished)
    missing = Guard(RUNS_MISSING, len(table.numbers("tps")) < len(table.runs))
    judges_gpu = table.results.judges_gpu
    return [
        Claim(
            "short-queue",
            "the training queue settles far below its maximum",
            Between(share, below=True, counts=True),
            [Guard(NEEDS_GPU, not on_gpu), missing],
            f"its mean over all settings is below {FAR_BELOW:.0%} of the segments that may wait (D9), with "
            "its 97.5 % interval; judged with the model on a GPU only, as in the paper",
            shown=judges_gpu,
        ),
        Claim(
            "large-batch",
            "fast settings have larger prediction batches",
            Above(ratio),
            [missing, table.several_machines],
            "the fastest third of the settings against the others with the same scheduling and number of "
            "predictors: a t test of the logarithms over these groups, its p value doubled for two findings",
            shown=table.results.budget != "gpu",  # there are too few settings to compare their batches
        ),
    ]


def fast_to_slow(table: Measurements) -> pd.Series:
    """Return the prediction batch of the fastest third of settings divided by that of the others, as
    geometric means.

    Settings are compared within each scheduling and number of predictors, because both of these change the
    batches as well as the speed.
    """
    ratios = {}
    for group, part in table.parts("scheduling", "predictors"):
        batches = np.log(part.series(BATCH, tps.SETTING))
        speed = part.series("tps", tps.SETTING)[batches.index]
        order = batches[speed.sort_values(ascending=False, kind="stable").index]
        count = round(FASTEST_SHARE * len(order))
        if 0 < count < len(order):
            ratios[group] = float(np.exp(order[:count].mean() - order[count:].mean()))
    return pd.Series(ratios, dtype=float)


def plot(table: Measurements, stem: Path) -> None:
    """Draw the fill level of the training queue and the prediction batch of every setting against its TPS."""
    from ga3c_tf.reproduce.drawing import speed_plots

    rows = {
        f"{scheduling} scheduling": part.series("tps", tps.SETTING).to_dict()
        for scheduling, part in table.parts("scheduling")
    }
    quantities = {
        "training queue (% of room)": (100 * filled(table)).to_dict(),
        "prediction batch (states)": table.series(BATCH, tps.SETTING).to_dict(),
    }
    speed_plots.against_speed(rows, quantities, stem)


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
    dimensions=tps.dimensions,
    measures=measures,
    main=(QUEUE, "segments"),
    claims=claims,
    tables=[
        Table(
            ("scheduling", "agents", "trainers"),
            {"TPS": mean_of("tps"), QUEUE: mean_of(QUEUE), BATCH: mean_of(BATCH)},
            where={"predictors": 2},
            title="settings with 2 predictors",
        )
    ],
    plot=plot,
    by_game=True,
)
