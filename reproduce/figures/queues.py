"""Figure 4 and slide 48: how long the training queue is and how large prediction batches are, with figure 3's runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from reproduce.figures import tps
from reproduce.figures.figure import Figure, Measure, Results
from reproduce.measures.text import number, table
from reproduce.measures.verdicts import FAILS, HOLDS, TIE, UNKNOWN, Finding
from reproduce.runs.run import Run
from reproduce.runs.specs import workers_of

TOP_SHARE = 1 / 3
FAR_BELOW = 0.5
QUEUE, BATCH = "training queue", "prediction batch"


def measures(run: Run) -> list[Measure]:
    """Means of the queue's length, in segments, and of the prediction batch, in states."""
    steady = run.steady(tps.warm_up_s(run))
    protocol = f"mean over the rows of metrics.csv of the last {steady['seconds']:.0f} s"
    return [
        Measure(QUEUE, steady["training_queue"], "segments", protocol),
        Measure(BATCH, steady["prediction_batch"], "states", protocol),
        Measure("tps", steady["tps"], "updates/s", protocol),
    ]


def room_of(run: Run) -> int:
    """Segments that may wait for training."""
    return run.spec.config.num_agents * run.spec.config.segments_per_agent


def section(results: Results) -> list[str]:
    """Queue and batch of the fastest settings, and the findings."""
    speed, queue, batch = (tps.by_setting(results, metric) for metric in ("tps", QUEUE, BATCH))
    order = sorted(speed, key=lambda each: -speed[each])
    room = {workers_of(run.spec.config): room_of(run) for run in results.runs}
    rows = [
        [tps.words(each), number(speed[each]), number(queue.get(each)), str(room[each]), number(batch.get(each))]
        for each in order[:10]
    ]
    on_gpu = all(run.on_gpu for run in results.runs if run.finished)
    whole = len(speed) == len(room) > tps.PLOTTED and results.one_machine
    share = float(np.mean([queue[each] / room[each] for each in queue])) if queue else None
    fastest = [each for each in order if speed[each] >= (1 - TIE) * speed[order[0]] and each in batch]
    large = [each for each in fastest if _rank(batch, batch[each] / (1 + TIE)) <= TOP_SHARE * len(batch)]
    small = [each for each in fastest if _rank(batch, batch[each] * (1 + TIE)) >= TOP_SHARE * len(batch)]
    verdict = HOLDS if large == fastest else FAILS if small == fastest else UNKNOWN
    findings = [
        Finding(
            "the training queue settles far below its maximum",
            (HOLDS if share < FAR_BELOW else FAILS) if whole and on_gpu and share is not None else UNKNOWN,
            f"its mean is below {FAR_BELOW:.0%} of the segments that may wait (D9), on average over all settings; "
            "judged with the model on a GPU only, as in the paper: on a CPU training is the slowest part, and the "
            "queue fills",
            "nothing measured" if share is None else f"{share:.0%} of the maximum",
        ),
        Finding(
            "the fastest setting has one of the largest prediction batches",
            verdict if whole and fastest else UNKNOWN,
            f"its mean batch is among the largest third, by more than {TIE:.0%}; so for all within {TIE:.0%} of the "
            "fastest",
            f"so it is for {len(large)} of the {len(fastest)} settings that may be it"
            if fastest
            else "nothing measured",
        ),
    ]
    return [
        *table(["N_A/N_P/N_T", "TPS", "training queue (segments)", "room for", "prediction batch (states)"], rows),
        "",
        f"The fastest {min(10, len(order))} of {len(speed)} settings. The paper's curves could not be read.",
        "",
        *(finding.line() for finding in findings),
        *(f"- {run.spec.id}: {results.status(run)}" for run in results.runs if not run.finished and run.result),
    ]


def _rank(batches: Mapping[Any, float], size: float) -> int:
    """How many of the batches are larger than this size."""
    return sum(batch > size for batch in batches.values())


def plot(results: Results, stem: Path) -> None:
    """How full the queue is, and the prediction batch, of every setting against its speed."""
    from reproduce.drawing import plots

    speed, queue, batch = (tps.by_setting(results, metric) for metric in ("tps", QUEUE, BATCH))
    room = {workers_of(run.spec.config): room_of(run) for run in results.runs}
    full = {each: 100 * length / room[each] for each, length in queue.items()}
    plots.against_speed(speed, {"training queue (% of its room)": full, "prediction batch (states)": batch}, stem)


FIGURE = Figure(
    name="queues",
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
