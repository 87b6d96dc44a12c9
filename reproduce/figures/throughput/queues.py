"""Figure 4 and slide 48: length of the training queue and size of prediction batches, in Figure 3's runs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ga3c_tf.reproduce.drawing import speed_plots
from ga3c_tf.reproduce.figures.measurements import Measure, Measurements
from ga3c_tf.reproduce.figures.tables import Table, mean_of, means_of
from ga3c_tf.reproduce.figures.throughput import tps
from ga3c_tf.reproduce.figures.throughput.tps import SETTING, TpsFigure
from ga3c_tf.reproduce.measures.estimates import paired, paired_ratio
from ga3c_tf.reproduce.measures.verdicts import NEEDS_GPU, RUNS_MISSING, Guard, above
from ga3c_tf.reproduce.runs.run import RecordedRun

FASTEST_SHARE = 1 / 3
FAR_BELOW = 0.5
QUEUE = "training queue"
BATCH = "prediction batch"


def filled(table: Measurements) -> pd.Series:
    """Return the mean length of the queue as a share of the segments that may wait, by setting."""
    lengths = table.series(QUEUE, SETTING)
    configs = {row.key(SETTING): row.run.spec.config for row in table.rows}
    return lengths / [configs[key].num_agents * configs[key].segments_per_agent for key in lengths.index]


def fast_to_slow(table: Measurements) -> pd.Series:
    """Return the prediction batch of the fastest third of settings divided by that of the others, as
    geometric means.

    Settings are compared within each scheduling and number of predictors, because both of these change the
    batches as well as the speed.
    """
    ratios = {}
    for group, part in table.parts("scheduling", "predictors"):
        speed = part.series("tps", SETTING).sort_values(ascending=False, kind="stable")
        batches = np.log(part.series(BATCH, SETTING).reindex(speed.index))
        count = round(FASTEST_SHARE * len(batches))
        if 0 < count < len(batches):
            ratios[group] = float(np.exp(batches[:count].mean() - batches[count:].mean()))
    return pd.Series(ratios, dtype=float)


def _measures(run: RecordedRun) -> list[Measure]:
    steady = tps.steady(run)
    protocol = f"mean over the rows of metrics.csv of the last {steady['seconds']:.0f} s"
    return [
        Measure(QUEUE, steady["training_queue"], "segments", protocol),
        Measure(BATCH, steady["prediction_batch"], "states", protocol),
        Measure("tps", steady["tps"], "updates/s", protocol),
    ]


class QueuesFigure(TpsFigure):
    """Has the runs of `tps`, and some on a GPU."""

    name = "queues"
    games = {**TpsFigure.games, "gpu": ("pong",)}
    measured = (_measures,)
    main = (QUEUE, "segments")
    tables = (
        Table(
            ("scheduling", "agents", "trainers"),
            {"TPS": mean_of("tps"), **means_of(QUEUE, BATCH)},
            "settings with 2 predictors",
            {"predictors": 2},
        ),
    )

    def claims(self, table):
        short = above(paired(filled(table), limit=FAR_BELOW, of="setting"), below=True)
        ratio = paired_ratio(fast_to_slow(table), of="group")
        needs_gpu = Guard(NEEDS_GPU, not all(run.on_gpu for run in table.finished))
        missing = Guard(RUNS_MISSING, len(table.numbers("tps")) < len(table.runs))
        is_compared = table.budget != "gpu"  # there are too few settings to compare their batches
        return [
            self.claim("short-queue", short, [needs_gpu, missing], table.judges_gpu),
            self.claim("large-batch", above(ratio), [missing, table.several_machines], is_compared),
        ]

    def plot(self, table, stem):
        rows = {
            f"{scheduling} scheduling": part.series("tps", SETTING).to_dict()
            for scheduling, part in table.parts("scheduling")
        }
        quantities = {
            "training queue (% of room)": (100 * filled(table)).to_dict(),
            "prediction batch (states)": table.series(BATCH, SETTING).to_dict(),
        }
        speed_plots.against_speed(rows, quantities, stem)
