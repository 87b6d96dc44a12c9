"""The rows of metrics.csv, written at regular times while a system trains."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ga3c_tf.host.resources import resident_mib
from ga3c_tf.systems.callbacks import Callbacks
from ga3c_tf.systems.session import Session
from ga3c_tf.systems.system import System


class Rows:
    """Writes the rows of metrics.csv, one every `log_seconds`."""

    def __init__(
        self, session: Session, system: System, callbacks: Callbacks, report: Callable[[dict], None]
    ):
        self._session = session
        self._system = system
        self._callbacks = callbacks
        self._report = report
        self._period = session.config.log_seconds
        self._window_start = session.time_s
        self._window_steps = session.agent_steps
        self._due = session.time_s + self._period
        self._count = 0

    def seconds_left(self) -> float:
        """Return the seconds until the next row is due."""
        return max(0.0, self._due - self._session.time_s)

    def write_if_due(self) -> None:
        """Write a row if one is due, or a callback wants one.

        Rows are due at regular times. If the next time has already passed, the next row is due one period
        from now.
        """
        if self._session.time_s < self._due:
            if self._callbacks.want_row():
                self._write()
            return
        self._write()
        now = self._session.time_s
        in_time = self._due + self._period
        self._due = in_time if in_time > now else now + self._period

    def write_last(self) -> None:
        """Write a row for the time since the last one, unless that time is too short for meaningful rates.

        It is written in any case if callbacks have logged something, or want a row for which workers rest.
        """
        is_long = self._session.time_s - self._window_start > self._period / 2
        rests = self._system.rests_while_paused and not self._session.stopping
        is_wanted = self._callbacks.has_logged or (rests and self._callbacks.want_row())
        if self._count == 0 or is_long or is_wanted:
            self._write()

    def _write(self) -> None:
        session = self._session
        self._system.before_row()
        time_s = session.time_s
        steps = session.agent_steps
        seconds = max(time_s - self._window_start, 1e-9)
        pps = (steps - self._window_steps) / seconds  # not predictions: some only give a bootstrap value
        self._window_start = time_s
        self._window_steps = steps
        self._count += 1
        counts = self._system.counts()
        window = session.stats.window(seconds)
        row = {
            "time_s": time_s,
            "agent_steps": steps,
            "updates": session.stats.updates,
            "pps": pps,
            **window,
            "policy_lag_states": window["policy_lag_mean"] * window["training_batch"],
            "prediction_queue": counts.requests,
            "training_queue": len(session.training_queue),
            "agents": counts.agents,
            "predictors": counts.predictors,
            "trainers": counts.trainers,
            "training_intensity": window["tps"] * window["training_batch"] / pps if pps else math.nan,
            "rss_mb": resident_mib(),
            "dropped_steps": session.lag_limit.dropped_steps,
            **session.rates()._asdict(),
        }
        started = int(np.count_nonzero(session.memory.steps))
        standing = {
            "started": min(started, counts.agents),
            "episodes": session.stats.episodes,
            "rolling_score": session.stats.rolling_score,
            "progress": session.progress(),
        }
        of_callbacks = self._callbacks.metrics_of({**row, **standing})
        session.log.metrics({**row, **of_callbacks})
        self._report({**row, **standing, **of_callbacks})
