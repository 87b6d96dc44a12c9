"""Figure 4 and slide 48: how long the training queue is and how large prediction batches are, with figure 3's runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ga3c_tf.reproduce.figures import tps
from ga3c_tf.reproduce.figures.figure import Figure, Measure, Results
from ga3c_tf.reproduce.measures.text import lines_of, number
from ga3c_tf.reproduce.measures.verdicts import NEEDS_GPU, RUNS_MISSING, TIE, WITHIN_NOISE, Finding, holds_if
from ga3c_tf.reproduce.runs.run import Run
from ga3c_tf.reproduce.runs.specs import workers_of

TOP_SHARE = 1 / 3
FAR_BELOW = 0.5
SHOWN = 10
"""Settings that the table shows."""
QUEUE = "training queue"
BATCH = "prediction batch"


def measures(run: Run) -> list[Measure]:
    """Return the means of the queue's length, in segments, and of the prediction batch, in states."""
    steady = run.steady(tps.warm_up_s(run))
    protocol = f"mean over the rows of metrics.csv of the last {steady['seconds']:.0f} s"
    return [
        Measure(QUEUE, steady["training_queue"], "segments", protocol),
        Measure(BATCH, steady["prediction_batch"], "states", protocol),
        Measure("tps", steady["tps"], "updates/s", protocol),
    ]


def room_of(run: Run) -> int:
    """Return how many segments may wait for training."""
    return run.spec.config.num_agents * run.spec.config.segments_per_agent


def rooms(results: Results) -> dict[tuple[int, int, int], int]:
    """Return how many segments may wait at each N_A, N_P, N_T."""
    return {workers_of(run.spec.config): room_of(run) for run in results.runs}


def findings(results: Results) -> dict[str, Finding]:
    """Judge the paper's two findings where all settings were measured, on one machine."""
    speed, queue, batch = (tps.by_setting(results, metric) for metric in ("tps", QUEUE, BATCH))
    room = rooms(results)
    lacking = tps.lacking(len(speed), len(room), results.one_machine)
    on_gpu = all(run.on_gpu for run in results.runs if run.finished)
    shares = [queue[each] / room[each] for each in queue]
    return {
        "short_queue": _short_queue(shares, lacking, on_gpu),
        "large_batch": _large_batch(speed, batch, lacking),
    }


def _short_queue(shares: list[float], lacking: str, on_gpu: bool) -> Finding:
    """Judge whether the queue settles far below its maximum."""
    if not shares:
        return Finding(RUNS_MISSING, "nothing measured")
    share = float(np.mean(shares))
    because = f"{share:.0%} of the maximum"
    if not on_gpu:
        return Finding(NEEDS_GPU, because)
    return Finding(lacking or holds_if(share < FAR_BELOW), because)


def _large_batch(
    speed: Mapping[tuple[int, int, int], float], batch: Mapping[tuple[int, int, int], float], lacking: str
) -> Finding:
    """Judge whether the fastest setting has one of the largest prediction batches."""
    # Any setting within the noise of the fastest may be the fastest.
    limit = (1 - TIE) * max(speed.values(), default=0.0)
    fastest = [each for each in speed if speed[each] >= limit and each in batch]
    if not fastest:
        return Finding(RUNS_MISSING, "nothing measured")
    top = TOP_SHARE * len(batch)
    large = [each for each in fastest if _rank(batch, batch[each] / (1 + TIE)) <= top]
    small = [each for each in fastest if _rank(batch, batch[each] * (1 + TIE)) >= top]
    because = f"so it is for {len(large)} of the {len(fastest)} settings that may be it"
    if lacking:
        return Finding(lacking, because)
    if len(fastest) not in (len(large), len(small)):
        return Finding(WITHIN_NOISE, because)
    return Finding(holds_if(len(large) == len(fastest)), because)


def _rank(batches: Mapping[Any, float], size: float) -> int:
    """Return how many of the batches are larger than this size."""
    return sum(batch > size for batch in batches.values())


def section(results: Results) -> list[str]:
    """Return queue and batch of the fastest settings, and the findings."""
    speed, queue, batch = (tps.by_setting(results, metric) for metric in ("tps", QUEUE, BATCH))
    room = rooms(results)
    order = sorted(speed, key=lambda each: -speed[each])
    rows = [
        [tps.words(each), number(speed[each]), number(queue.get(each)), str(room[each]), number(batch.get(each))]
        for each in order[:SHOWN]
    ]
    return lines_of(
        "queues.md",
        rows=rows,
        measured=len(speed),
        far_below=f"{FAR_BELOW:.0%}",
        failed=results.failed,
        **findings(results),
    )


def plot(results: Results, stem: Path) -> None:
    """Draw how full the queue is, and the prediction batch, of every setting against its speed."""
    from ga3c_tf.reproduce.drawing import plots

    speed, queue, batch = (tps.by_setting(results, metric) for metric in ("tps", QUEUE, BATCH))
    room = rooms(results)
    full = {each: 100 * length / room[each] for each, length in queue.items()}
    plots.against_speed(speed, {"training queue (% of its room)": full, "prediction batch (states)": batch}, stem)


FIGURE = Figure(
    name="queues",
    place=5,
    paper="Figure 4, slide 48",
    shows="length of the training queue and size of prediction batches, same runs as tps",
    games=tps.FIGURE.games,
    seeds=tps.FIGURE.seeds,
    specs=tps.specs,
    measures=measures,
    main=(QUEUE, "segments"),
    section=section,
    plot=plot,
    by_game=True,
)
