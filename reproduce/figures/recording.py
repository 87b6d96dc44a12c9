"""The record of one number of a run."""

from __future__ import annotations

import math
from dataclasses import replace

from ga3c_tf.reproduce.figures.measurements import Measure
from ga3c_tf.reproduce.measures.records import MEASURED, Record
from ga3c_tf.reproduce.runs.run import RecordedRun


def record_of(figure: str, run: RecordedRun, measure: Measure) -> Record:
    """Return the record of a number for the figure of this name."""
    spec = run.spec
    is_measured = not math.isnan(measure.value)
    record = Record(
        figure,
        spec.game,
        measure.method or spec.method,
        measure.metric,
        measure.value if is_measured else None,
        measure.unit,
        measure.protocol,
        source="this package",
        status=MEASURED if is_measured else " ".join(measure.why_not.split()),
        seed=spec.seed,
        run_id=spec.id,
    )
    if not run.result.get("sessions"):
        return record
    return replace(
        record,
        commit=run.commit,
        dirty=run.dirty,
        hours=round(run.hours, 4),
        agent_steps=run.agent_steps if measure.agent_steps is None else measure.agent_steps,
        hardware=run.hardware,
    )
