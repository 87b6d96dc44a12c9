"""What a run has left in its folder, as numbers."""

from __future__ import annotations

import functools
import itertools
import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from ga3c_tf.errors import UserError
from ga3c_tf.host.calibration import Calibration, agree
from ga3c_tf.reproduce.measures.random_policy import RANDOM_SCORES
from ga3c_tf.reproduce.measures.records import NOT_RUN
from ga3c_tf.reproduce.runs.curve import Columns, read_curve
from ga3c_tf.reproduce.runs.specs import RunSpec
from ga3c_tf.reproduce.runs.steady import steady_rates
from ga3c_tf.runs import outcomes
from ga3c_tf.runs.log import ADJUSTMENT_COLUMNS, METRIC_COLUMNS, read_columns

FINISHED = "finished"
FAILED = "failed"
INTERRUPTED = "interrupted"
NOT_FINISHED = "not finished"
"""Of a run that was killed, so that it has no run.json."""
RUN_FILE = "run.json"
"""What is kept of a run besides its curves: how it ended, its specification, settings, sessions and scores."""
STARTING_S = 5.0
"""By so much two runs may seem to overlap that followed one another."""


@dataclass(frozen=True)
class Run:
    """One run and what came of it.

    Attributes:
        spec: what was to be run.
        path: its folder, which may not be there.
        result: what run.json says, or {} before the run has come to an end.
    """

    spec: RunSpec
    path: Path
    result: dict

    @classmethod
    def of(cls, spec: RunSpec, runs: Path) -> Run:
        """Return the run of this specification in the folder `runs`."""
        return cls(spec, runs / spec.id, read_run(runs / spec.id))

    @classmethod
    def not_made(cls, spec: RunSpec, runs: Path) -> Run:
        """Return the run of this specification as one that was never made, in a folder that is not there."""
        return cls(spec, runs / "not made" / spec.id, {})

    @property
    def finished(self) -> bool:
        """It came to its end: training and evaluation."""
        return self.result.get("status") == FINISHED

    @property
    def diverged(self) -> bool:
        """Whether its training ended because losses or weights were not finite: a result, which is not tried again."""
        return self.result.get("ended") == outcomes.DIVERGED

    @property
    def ended(self) -> bool:
        """Whether it has a result: it is finished, or diverged."""
        return has_ended(self.result)

    @property
    def resumable(self) -> bool:
        """Whether its folder has a checkpoint from which its training can continue.

        After a kill, it may be one whose place another was about to take.
        """
        names = (path.name.removeprefix("replaced-") for path in (self.path / "checkpoints").glob("*"))
        return any(name.isdigit() for name in names)

    @property
    def outcome(self) -> str:
        """Return the status in run.json; without one, whether the run was begun: `NOT_FINISHED` or `NOT_RUN`."""
        if self.result:
            return self.result["status"]
        return NOT_FINISHED if (self.path / "config.json").exists() else NOT_RUN

    @property
    def status_text(self) -> str:
        """Return in words what became of it: 'finished', 'not run', or what went wrong."""
        if self.outcome == NOT_FINISHED:
            return f"{NOT_FINISHED}: it was interrupted"
        return f"{self.outcome}: {self.result['reason']}" if self.result and not self.finished else self.outcome

    @functools.cached_property
    def metrics(self) -> Columns:
        """The columns of metrics.csv; not-a-number where a cell is empty."""
        return read_columns(self.path / "metrics.csv", METRIC_COLUMNS)

    @functools.cached_property
    def curve(self) -> Columns:
        """The columns of curve.csv: the rolling score over time and agent steps."""
        return read_curve(self.path)

    @functools.cached_property
    def adjustment(self) -> Columns:
        """The columns of adjustment.csv but `why`."""
        return read_columns(self.path / "adjustment.csv", ADJUSTMENT_COLUMNS)

    @property
    def hours(self) -> float:
        """Hours of training."""
        return self._total("time_s") / 3600

    @property
    def agent_steps(self) -> int:
        """Agent steps of training."""
        return int(self._total("agent_steps"))

    @property
    def sessions(self) -> list[dict]:
        """The processes that trained it, oldest first, each with its command, source, machine and versions.

        Raises:
            UserError: none is known, because meta.json was damaged when the run ended.
        """
        if not self.result.get("sessions"):
            raise UserError(f"{self.path / RUN_FILE} has no sessions; remove {self.path} to run it again")
        return self.result["sessions"]

    @property
    def commit(self) -> str | None:
        """The commit of the source, of its last session."""
        return self.sessions[-1]["commit"]

    @property
    def dirty(self) -> bool | None:
        """Whether any session ran with a changed source, or another commit than the last."""
        if self.commit is None:
            return None
        return any(session["dirty"] or session["commit"] != self.commit for session in self.sessions)

    @property
    def started_s(self) -> float:
        """When its first session began, in seconds since 1970."""
        return datetime.fromisoformat(self.sessions[0]["started"]).timestamp()

    @property
    def hardware(self) -> str:
        """The machine in words; several where it was resumed on another."""
        return "; ".join(dict.fromkeys(machine_of(session) for session in self.sessions))

    @property
    def identified(self) -> bool:
        """Whether it says which processors it ran on."""
        return all("processor" in session for session in self.sessions)

    @property
    def machine(self) -> str:
        """The cores in words and, where it is known, the identity of the processors: what tells machines apart.

        It does not depend on whether a GPU was used: on one machine, GA3C may use it and A3C not.
        """
        cores = [f"{_cores_of(each)} {json.dumps(each.get('processor'), sort_keys=True)}" for each in self.sessions]
        return "; ".join(dict.fromkeys(cores))

    @property
    def calibrations(self) -> list[Calibration]:
        """The speed of its machine before and after it; empty where that was not measured."""
        return [Calibration(**values) for values in self.result.get("calibrations", [])]

    @property
    def on_gpu(self) -> bool:
        """Whether the model was on a GPU."""
        return "GPU" in self.sessions[-1]["device"].upper()

    @property
    def final_score(self) -> float:
        """The mean of the rolling score over the last tenth of the time; not-a-number where no episode ended."""
        scores = self.curve["rolling_score"]
        last = scores[self.curve["time_s"] >= 0.9 * 3600 * self.hours]
        if not len(last):  # no episode ended then: the rolling score is still the last one
            last = scores[-1:]
        return float(last.mean()) if len(last) else float("nan")

    @property
    def random_score(self) -> float:
        """The score of the random policy, which counts for a run that diverged.

        Of games without one on record, it is the first rolling score; not-a-number where no episode ended.
        """
        if self.spec.game in RANDOM_SCORES:
            return RANDOM_SCORES[self.spec.game]
        scores = self.curve["rolling_score"]
        whole = scores[self.curve["episodes"] >= self.spec.config.rolling_episodes]
        first = [*whole[:1], *scores[-1:]]  # before a whole window has ended, the last one is of most episodes
        return float(first[0]) if first else float("nan")

    def _total(self, name: str) -> float:
        """Return what the training said at its end; of one that was killed, what was logged last."""
        return (self.result.get("training") or {}).get(name, _last(self.metrics[name]))

    def steady(self, after_s: float) -> dict[str, float]:
        """Rates and means without the start of each session, in which processes start and queues fill.

        Args:
            after_s: seconds of each session that are left out.

        Returns:
            'seconds' that it covers; 'pps' and 'tps', agent steps and updates per second; means over the rows of
            'prediction_batch', 'training_batch', 'training_queue', 'prediction_queue', 'policy_lag_mean',
            'policy_lag_p95' and of the columns of `Divergence` and `SegmentLag`, not-a-number where nothing was logged.
            A run without two such rows of one session is taken as a whole.
        """
        starts = [float(session.get("time_s", 0.0)) for session in self.sessions]
        return steady_rates(self.metrics, starts, after_s)


def comparable(runs: Iterable[Run]) -> bool:
    """Return whether speeds of finished runs may be compared: their machines' calibrations, where known, agree."""
    return agree(calibration for run in runs for calibration in run.calibrations)


def seeds_have_one_machine(runs: Iterable[Run]) -> bool:
    """Return whether all finished runs of a seed were made on one machine, so that its speed favors none of them."""
    machines: dict[int, set[str]] = {}
    for run in runs:
        if run.finished:
            machines.setdefault(run.spec.seed, set()).add(run.machine)
    return all(len(each) == 1 for each in machines.values())


def made_together(runs: Iterable[Run]) -> bool:
    """Return whether some of the finished runs trained at the same time, so that their minutes are longer than alone.

    Runs that were interrupted are left out, since their pauses are not recorded.
    """
    starts_and_ends = []
    for run in runs:
        if run.finished and len(run.sessions) == 1:
            starts_and_ends.append((run.started_s, run.started_s + 3600 * run.hours))
    starts_and_ends.sort()
    return any(later[0] < earlier[1] - STARTING_S for earlier, later in itertools.pairwise(starts_and_ends))


def read_run(folder: Path) -> dict:
    """Read the run.json of a run folder; return {} where there is none.

    Returns:
        'status', 'reason' and 'ended' (what ended the training, of `ga3c_tf.runs.outcomes`, or empty), 'spec', and as
        far as the run came: 'config', 'sessions', 'training', 'calibrations', 'cpu_utilization', 'gpu_utilization',
        'evaluation' and 'random'.

    Raises:
        UserError: it is damaged.
    """
    file = folder / RUN_FILE
    try:
        result = json.loads(file.read_text())
        if not {"status", "reason", "ended", "spec"} <= set(result):
            raise ValueError("it lacks status, reason, ended or spec")
        return result
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"{file} is damaged: {error}; remove {folder} to run it again") from None


def has_ended(result: Mapping[str, Any]) -> bool:
    """Return whether a run.json says that the run has a result: it is finished, or diverged."""
    return result.get("status") == FINISHED or result.get("ended") == outcomes.DIVERGED


def remove_run(folder: Path) -> None:
    """Remove a run folder, renamed first: half of it would look like a run that can be resumed."""
    aside = folder.with_name(f"{folder.name}.removed")
    shutil.rmtree(aside, ignore_errors=True)
    folder.rename(aside)
    shutil.rmtree(aside)


def _last(values: np.ndarray) -> float:
    return float(values[-1]) if len(values) else 0.0


def machine_of(session: dict) -> str:
    """Return the machine of a session, in words."""
    gpus = ", ".join(session["gpus"]) if "GPU" in session["device"].upper() else "no GPU used"
    return f"{_cores_of(session)}, {gpus}"


def _cores_of(session: dict) -> str:
    return f"{session['cores']} core{'' if session['cores'] == 1 else 's'} of {session['cpu']}"
