"""Reads the outcome and the numbers of a run from its folder."""

from __future__ import annotations

import functools
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from ga3c_tf.errors import UserError
from ga3c_tf.host.calibration import Calibration
from ga3c_tf.reproduce.measures.random_policy import RANDOM_POLICY
from ga3c_tf.reproduce.measures.records import NOT_RUN
from ga3c_tf.reproduce.runs.archive import FINISHED, RUN_FILE, has_ended, read_record, read_run
from ga3c_tf.reproduce.runs.specs import RunSpec
from ga3c_tf.runs import outcomes
from ga3c_tf.runs.csv_rows import ADJUSTMENT_COLUMNS, METRIC_COLUMNS, columns_of
from ga3c_tf.runs.curve import CURVE_COLUMNS, Columns
from ga3c_tf.runs.folder import has_checkpoint
from ga3c_tf.runs.sessions import cores_of, machine_of

FAILED = "failed"
INTERRUPTED = "interrupted"
NOT_FINISHED = "not finished"
"""Status of a run that was begun but has no run.json, such as one that was killed."""
AVERAGED = (
    "prediction_batch",
    "training_batch",
    "training_queue",
    "prediction_queue",
    "policy_lag_mean",
    "policy_lag_p95",
    "kl",
    "total_variation",
    "effective_sample_size",
    "clipped",
    "floored",
    "version_spread",
    "bootstrap_lag",
    "chi_squared",
    "k3",
    "m2",
    "masked",
)
"""Columns of metrics.csv with a meaningful mean."""


@dataclass(frozen=True)
class RecordedRun:
    """A run and its outcome.

    Attributes:
        spec: specification of the run.
        path: run folder, which may not exist.
        result: content of run.json; {} before the run has come to an end.
    """

    spec: RunSpec
    path: Path
    result: dict

    @classmethod
    def of(cls, spec: RunSpec, runs: Path) -> RecordedRun:
        """Return the run of this specification in the folder `runs`."""
        return cls(spec, runs / spec.id, read_run(runs / spec.id))

    @property
    def finished(self) -> bool:
        """Whether training and evaluation came to their end."""
        return self.result.get("status") == FINISHED

    @property
    def diverged(self) -> bool:
        """Whether the training ended because losses or weights were not finite: a result, not tried again."""
        return self.result.get("ended") == outcomes.DIVERGED

    @property
    def ended(self) -> bool:
        """Whether the run has a result: it is finished or diverged."""
        return has_ended(self.result)

    @property
    def resumable(self) -> bool:
        """Whether the run folder has a checkpoint from which the training can continue."""
        return has_checkpoint(self.path)

    @property
    def outcome(self) -> str:
        """The status in run.json; without one, `NOT_FINISHED` if the run was begun, else `NOT_RUN`."""
        begun = (self.path / "config.json").exists()
        return self.result.get("status", NOT_FINISHED if begun else NOT_RUN)

    @property
    def status_text(self) -> str:
        """The outcome in words: 'finished', 'not run', or what went wrong."""
        went_wrong = self.result and not self.finished
        return f"{self.outcome}: {self.result['reason']}" if went_wrong else self.outcome

    @functools.cached_property
    def metrics(self) -> Columns:
        """The columns of metrics.csv; not-a-number where a cell is empty."""
        return self._columns("metrics.csv", METRIC_COLUMNS)

    @functools.cached_property
    def curve(self) -> Columns:
        """The columns of curve.csv: the rolling score over time and agent steps."""
        return self._columns("curve.csv", CURVE_COLUMNS)

    @functools.cached_property
    def adjustment(self) -> Columns:
        """The columns of adjustment.csv except `why`."""
        return self._columns("adjustment.csv", ADJUSTMENT_COLUMNS)

    def _columns(self, name: str, columns: tuple[str, ...]) -> Columns:
        text = (read_record(self.path, name) or b"").decode(errors="replace")
        return columns_of(io.StringIO(text, newline="\n"), columns)

    @property
    def hours(self) -> float:
        """Hours of training."""
        return self._total("time_s") / 3600

    @property
    def agent_steps(self) -> int:
        """Agent steps of training."""
        return int(self._total("agent_steps"))

    def _total(self, name: str) -> float:
        """Return a total that the training printed at its end; for a killed one, the last logged value."""
        totals = self.result.get("training") or {}
        return totals[name] if name in totals else float([0.0, *self.metrics[name]][-1])

    @property
    def sessions(self) -> list[dict]:
        """The training processes, oldest first, each with its command, source, machine and versions.

        Raises:
            UserError: no session is known, because meta.json was damaged when the run ended.
        """
        if not self.result.get("sessions"):
            raise UserError(f"{self.path / RUN_FILE} has no sessions; remove {self.path} to run it again")
        return self.result["sessions"]

    @property
    def commit(self) -> str | None:
        """Commit of the source in the last session; None if it is unknown."""
        return self.sessions[-1]["commit"]

    @property
    def dirty(self) -> bool | None:
        """Whether any session had a changed source or another commit than the last; None if unknown."""
        if self.commit is None:
            return None
        return any(session["dirty"] or session["commit"] != self.commit for session in self.sessions)

    @property
    def started_s(self) -> float:
        """Start of the first session, in seconds since 1970."""
        return datetime.fromisoformat(self.sessions[0]["started"]).timestamp()

    @property
    def hardware(self) -> str:
        """The machine in words; several machines if the run was resumed on another one."""
        return "; ".join(dict.fromkeys(machine_of(session) for session in self.sessions))

    @property
    def machine(self) -> str:
        """A text that tells machines apart: the cores in words and the properties of the processor, if known.

        It does not depend on whether a GPU was used: on one machine, GA3C may use the GPU and A3C not.
        """
        processors = [json.dumps(session.get("processor"), sort_keys=True) for session in self.sessions]
        cores = map(cores_of, self.sessions)
        return "; ".join(dict.fromkeys(map(" ".join, zip(cores, processors, strict=True))))

    @property
    def calibrations(self) -> list[Calibration]:
        """Calibrations of the machine before and after the run; empty if there were none."""
        return [Calibration(**values) for values in self.result.get("calibrations", [])]

    @property
    def on_gpu(self) -> bool:
        """Whether the model was on a GPU in the last session."""
        return "GPU" in self.sessions[-1]["device"].upper()

    @property
    def random_score(self) -> float:
        """Score of the random policy, which counts as the score of a diverged run.

        For games without a recorded one, it is the run's first rolling score over a full window of episodes,
        or its last rolling score if the window was never full; not-a-number if no episode ended.
        """
        if self.spec.game in RANDOM_POLICY:
            return RANDOM_POLICY[self.spec.game].mean
        scores = self.curve["rolling_score"]
        whole = scores[self.curve["episodes"] >= self.spec.config.rolling_episodes]
        return float([*whole[:1], *scores[-1:], float("nan")][0])

    def steady(self, after_s: float) -> dict[str, float]:
        """Return rates and means without the start of each session, when processes start and queues fill.

        A run in which no session has two rows of metrics.csv after its start is taken as a whole.

        Args:
            after_s: seconds of each session that are left out.

        Returns:
            'seconds' covered; 'pps' and 'tps', agent steps and updates per second; and the means of the
            columns `AVERAGED` of metrics.csv, not-a-number if nothing was logged.
        """
        starts = [float(session.get("time_s", 0.0)) for session in self.sessions]
        return _steady_rates(self.metrics, starts, after_s)


def _steady_rates(metrics: Columns, starts: Sequence[float], after_s: float) -> dict[str, float]:
    """Return what `RecordedRun.steady` describes, of sessions that start at these seconds of training."""
    counted = [metrics[name] for name in ("time_s", "agent_steps", "updates")]
    parts = _steady_parts(metrics["time_s"], starts, after_s)
    if parts:
        seconds, steps, updates = (
            sum(count[rows[-1]] - count[rows[0]] for rows in parts) for count in counted
        )
        # A row describes the time since the row before it, so a part's first row only marks its beginning.
        inside = np.concatenate([rows[1:] for rows in parts])
    else:
        seconds, steps, updates = (count[-1] if len(count) else math.nan for count in counted)
        inside = np.arange(len(metrics["time_s"]))
    rates = {"seconds": float(seconds), "pps": float(steps / seconds), "tps": float(updates / seconds)}
    return rates | {name: _mean(metrics[name][inside]) for name in AVERAGED}


def _steady_parts(times: np.ndarray, starts: Sequence[float], after_s: float) -> list[np.ndarray]:
    """Return the rows of each session after its start, of sessions that have several such rows."""
    ends = [*starts[1:], math.inf]
    parts = [
        np.flatnonzero((times >= start + after_s) & (times <= end))
        for start, end in zip(starts, ends, strict=True)
    ]
    return [rows for rows in parts if len(rows) > 1]


def _mean(values: np.ndarray) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")
