"""Dynamic adjustment of N_A, N_P and N_T in a run: changes that speed up training are kept (section 4.3)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ga3c_tf.runs.csv_rows import ADJUSTMENT_COLUMNS
from ga3c_tf.workers.adjustment_rules import WINDOWS, Decision, Reading, Search, Window, WorkerCounts, read
from ga3c_tf.workers.thread import Worker, WorkerErrors


class DynamicAdjustment(Worker):
    """The thread of dynamic adjustment: applies each proposed setting, measures it and logs the decision.

    A rejected setting runs until the next proposal, which is made at once. That proposal is the accepted
    setting, or the accepted setting with another change.

    Args:
        search: rule that proposes and judges settings. Only this thread uses it, but other threads may read
            `accepted`.
        apply: changes the numbers of workers to those of a setting. It is called in this thread, for the
            first setting and for each one that differs from the setting before it. It should return soon,
            because the thread cannot end before.
        samples: returns the number of samples trained on so far (`Stats.trained_samples`), which never
            decreases.
        log: called in this thread with a row of `ADJUSTMENT_COLUMNS` after each period. `time_s` is the time
            of `clock` at the end of the period. `rate` and `noise` are the samples per second (or the unit of
            `samples`) and their standard error within this period. `accepted` is 1 if the row's setting is
            the accepted one from now on, else 0. `why` is the reason, in one line.
        errors: is told of the error that ends this thread.
        clock: returns seconds; measures the windows and gives `time_s` of the rows.
        period: seconds for which a setting runs. The paper uses 60, the authors' code 20.
        warm_up: share of the period, from 0 to below 1, that is not measured after a change, since new agents
            have to start first.
    """

    def __init__(
        self,
        search: Search,
        apply: Callable[[WorkerCounts], None],
        samples: Callable[[], int],
        log: Callable[[dict], None],
        errors: WorkerErrors,
        *,
        clock: Callable[[], float] = time.monotonic,
        period: float = 20.0,
        warm_up: float = 0.25,
    ):
        super().__init__("adjustment", errors)
        self.search = search
        self._apply = apply
        self._samples = samples
        self._log = log
        self._clock = clock
        self._period = period
        self._warm_up = warm_up
        self._stopping = threading.Event()

    def stop(self) -> None:
        """End the thread at once, or as soon as `apply` returns; a setting under trial stays in effect."""
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
        """Return the windows of one period after its first `left_out` seconds; none if the thread stops.

        Windows in which the clock stood, as during an evaluation, are left out.
        """
        self._stopping.wait(left_out)
        windows = []
        count = self._samples()
        start = self._clock()
        length = (self._period - left_out) / WINDOWS
        for _ in range(WINDOWS):
            if self._stopping.wait(length):
                return []
            before = count
            began = start
            count = self._samples()
            start = self._clock()
            if start - began > length / 2:
                windows.append(Window(count - before, start - began))
        return windows

    def _row(self, setting: WorkerCounts, reading: Reading, decision: Decision) -> dict:
        values = (self._clock(), *setting, *reading, int(decision.accepted), decision.why)
        return dict(zip(ADJUSTMENT_COLUMNS, values, strict=True))
