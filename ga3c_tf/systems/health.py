"""Reports problems of a running training: skipped updates, stalls and rare updates."""

from __future__ import annotations

import time

from ga3c_tf.console import counted
from ga3c_tf.systems.session import Session
from ga3c_tf.systems.system import System
from ga3c_tf.workers.standstill import Standstill

LOOK_SECONDS = 0.25
STALL_SECONDS = 30.0
"""Seconds without progress of a stage after which it is reported, and again after as many more."""
SPEED_SECONDS = 5.0
"""Seconds after the first step until the measured speed counts as the speed of the run."""
RARE_SECONDS = 60.0
"""Seconds between two updates above which a warning is printed once, since the settings may be a mistake."""


class HealthMonitor:
    """Checks a training a few times a second and reports problems.

    Args:
        session: session of the training.
        system: system that trains.
    """

    def __init__(self, session: Session, system: System):
        self._session = session
        self._system = system
        self._standstill = Standstill[str]()
        self._reported: dict[str, float] = {}  # by stage, the seconds without progress at the last report
        self._look_at = 0.0
        self._skipped = 0  # skipped updates that have been reported
        self._first_step: tuple[float, int] | None = None  # time at which it was seen, and agent steps then
        self._speed_known = False

    def look(self) -> None:
        """Check the training and report new problems, if a check is due."""
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + LOOK_SECONDS
        self.tell_skipped()
        self._tell_rare_updates()
        self._tell_stalls()

    def tell_skipped(self) -> None:
        """Report the number of updates skipped since the last call, if there are any."""
        count = self._session.stats.skips.count - self._skipped
        if count > 0:
            self._skipped += count
            self._session.tell(
                "skipped", f"{counted(count, 'update')} skipped: a loss or gradient was not finite"
            )

    def _tell_stalls(self) -> None:
        session = self._session
        counts = self._system.counts()
        counters = {
            "step": session.agent_steps,
            "prediction": session.stats.predictions,
            "update": session.stats.updates + session.stats.skips.count + counts.gathered,
        }
        for stage, seconds in self._standstill.seconds(counters).items():
            reported = min(seconds, self._reported.get(stage, 0.0))
            is_due = seconds - reported >= STALL_SECONDS
            self._reported[stage] = seconds if is_due else reported
            if not is_due:
                continue
            segments = len(session.training_queue)
            waiting = (
                f"{counted(counts.requests, 'request')} for a prediction, "
                f"{counted(segments, 'segment')} for an update"
            )
            session.tell("stall", f"no {stage} for {seconds:.0f} s; waiting: {waiting}")

    def _tell_rare_updates(self) -> None:
        """Warn once, as soon as the speed is known, if an update takes longer than `RARE_SECONDS`."""
        session = self._session
        now = session.seconds  # evaluations would make it seem slow
        steps = session.agent_steps
        if self._first_step is None and steps > session.steps_before:
            self._first_step = now, steps
        if self._speed_known or self._first_step is None or now < self._first_step[0] + SPEED_SECONDS:
            return
        self._speed_known = True
        states = session.config.states_per_update
        speed = (steps - self._first_step[1]) / (now - self._first_step[0])
        if states > RARE_SECONDS * speed:
            about = f"about {states / speed:.0f} s" if speed else "for ever"
            session.warn(
                f"an update needs {states} new states or more: "
                f"at {speed:.0f} steps per second, {about} for each"
            )
