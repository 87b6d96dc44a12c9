"""Dynamic adjustment: N_A, N_P and N_T are changed while the run goes on, and what is faster is kept (section 4.3)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ga3c_tf.runs.log import ADJUSTMENT_COLUMNS
from ga3c_tf.workers.adjustment_rules import Decision, Reading, Search, Window, WorkerCounts, read
from ga3c_tf.workers.thread import Worker

WINDOWS = 10
"""Parts of a period: enough for a standard error, and to leave some out."""


class DynamicAdjustment(Worker):
    """The thread of dynamic adjustment: applies what the search proposes, measures it, logs what was decided.

    A rejected setting runs until the next proposal, made at once: the accepted setting, or that with another change.

    Args:
        search: the rule; used by this thread alone, but for reading `accepted`.
        apply: brings the system to a setting, called in this thread and only when the setting differs from the last
            one, the start included. It should return soon: a stop waits for it.
        samples: how many samples have been trained on so far (`Stats.trained_samples`), a count that never falls.
        log: called in this thread with a row of `ADJUSTMENT_COLUMNS` after each period. time_s: the clock's time at the
            end of the period. rate, noise: samples per second (or what `samples` counts) and its standard error within
            this period. accepted: 1 if the row's setting is the accepted one from here on, else 0. why: one line.
        on_error: called in this thread after `error` has been set.
        clock: seconds; measures the windows, and gives the rows' time_s.
        period: seconds of one setting. The paper's are 60, the authors' code's 20.
        warm_up: share of the period, 0 to 1, that is left out after a change: new agents have to start.

    Raises:
        ValueError: a period or warm-up out of range.
    """

    def __init__(
        self,
        search: Search,
        apply: Callable[[WorkerCounts], None],
        samples: Callable[[], int],
        log: Callable[[dict], None],
        on_error: Callable[[], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        period: float = 20.0,
        warm_up: float = 0.25,
    ):
        super().__init__("adjustment", on_error)
        if not (period > 0 and 0 <= warm_up < 1):
            raise ValueError(f"a period of {period} s with {warm_up} of it as warm-up leaves nothing to measure")
        self.search = search
        self._apply = apply
        self._samples = samples
        self._log = log
        self._clock = clock
        self._period = period
        self._warm_up = warm_up
        self._stopping = threading.Event()

    def stop(self) -> None:
        """End the thread at once, or as soon as `apply` returns; a setting under trial stays as it is."""
        self._stopping.set()

    def work(self) -> None:
        running: WorkerCounts | None = None
        while not self._stopping.is_set():
            setting = self.search.propose()
            left_out = 0.0
            if setting != running:
                self._apply(setting)
                running = setting
                left_out = self._warm_up * self._period
            windows = self._measure(left_out)
            if windows:
                self._log(self._row(setting, read(windows), self.search.observe(windows)))

    def _measure(self, left_out: float) -> list[Window]:
        """Return the windows of one period after its first `left_out` seconds; none at a stop."""
        self._stopping.wait(left_out)
        windows = []
        count = self._samples()
        start = self._clock()
        for _ in range(WINDOWS):
            if self._stopping.wait((self._period - left_out) / WINDOWS):
                return []
            before = count
            began = start
            count = self._samples()
            start = self._clock()
            windows.append(Window(count - before, start - began))
        return windows

    def _row(self, setting: WorkerCounts, reading: Reading, decision: Decision) -> dict:
        values = (self._clock(), *setting, *reading, int(decision.accepted), decision.why)
        return dict(zip(ADJUSTMENT_COLUMNS, values, strict=True))
