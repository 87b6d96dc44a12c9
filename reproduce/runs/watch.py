"""What is measured of the machine beside a run: its speed before and after, and how busy it is."""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from pathlib import Path

from ga3c_tf.host.calibration import calibrate
from ga3c_tf.host.gpu import gpu_id, gpu_utilization
from ga3c_tf.host.machine import usable_cores
from ga3c_tf.host.processes import process_group
from ga3c_tf.runs.csv_rows import METRIC_COLUMNS, read_rows

SAMPLE_SECONDS = 2.0
FRESH_SECONDS = 5.0
FIRST_UPDATE = "first row of metrics with an update"
"""Where the measurement of the utilization begins."""


class Calibrations:
    """Calibrates the machine; the calibration after a run also serves as the one before the next run."""

    def __init__(self) -> None:
        self._taken_at = -math.inf
        self._taken: list[dict] = []

    def latest(self) -> list[dict]:
        """Return the last calibration if it is younger than `FRESH_SECONDS`, else a new one."""
        fresh = self._taken and time.monotonic() - self._taken_at < FRESH_SECONDS
        return self._taken if fresh else self.now()

    def now(self) -> list[dict]:
        """Calibrate now; return [] if this fails, which is no reason to lose a run."""
        try:
            self._taken = [dataclasses.asdict(calibrate())]
        except RuntimeError:
            self._taken = []
        self._taken_at = time.monotonic()
        return self._taken


CALIBRATIONS = Calibrations()


class Utilization:
    """Samples the utilization of processor and GPU from the first row of metrics.csv with a new update on.

    Before, the run is starting: its agents begin one after another, and nothing is trained.
    """

    def __init__(self, folder: Path, device: str):
        self._folder = folder
        self._gpu = gpu_id(device if device.startswith("gpu") else "gpu")
        self._next = 0.0
        self._updates_before: int | None = None
        self._has_updated = False
        self._samples: list[tuple[float, float]] = []
        self._gpu_busy: list[float] = []

    def __call__(self, process: int) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + SAMPLE_SECONDS
        if not self._has_updated:
            rows = read_rows(self._folder / "metrics.csv", METRIC_COLUMNS)
            updates = int(rows[-1]["updates"]) if rows else 0
            if self._updates_before is None:
                self._updates_before = updates
            self._has_updated = updates > self._updates_before
            if not self._has_updated:
                return
        cpu_s = sum(member["cpu_s"] for member in process_group(process).values())
        if not self._samples or cpu_s >= self._samples[-1][1]:  # the sum falls when agents end
            self._samples.append((time.monotonic(), cpu_s))
            self._gpu_busy += gpu_utilization(self._gpu)

    def shares(self) -> dict:
        """Return the utilization of the cores and of the GPU, 0 to 1; None if there were too few samples."""
        cpu = None
        if len(self._samples) > 1:
            (start, before), (end, after) = self._samples[0], self._samples[-1]
            cpu = (after - before) / ((end - start) * usable_cores())
        gpu = statistics.median(self._gpu_busy) if self._gpu_busy else None
        return {"cpu_utilization": cpu, "gpu_utilization": gpu, "utilization_from": FIRST_UPDATE}
