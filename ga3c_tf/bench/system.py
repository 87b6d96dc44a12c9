"""The whole system in the benchmark: `ga3c-tf train`, stopped (SIGSTOP) while the components are measured."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.host.gpu import gpu_samples
from ga3c_tf.host.machine import allowed_cores, usable_cores
from ga3c_tf.host.processes import end_with_parent, process_group
from ga3c_tf.host.resources import proportional_mib
from ga3c_tf.host.scheduling import busy_seconds
from ga3c_tf.runs.csv_rows import METRIC_COLUMNS, read_rows

START_SECONDS = 300.0  # until the system's first row
CLOSE_SECONDS = 30.0
COPIED = (  # columns of metrics.csv that a window has too
    "prediction_batch",
    "training_batch",
    "policy_lag_mean",
    "policy_lag_p95",
    "prediction_queue",
    "training_queue",
)


class TrainingProcess:
    """`ga3c-tf train` in a folder of its own, running only during `warm_up` and `measure`.

    Its processes form a process group of this session. If this process dies, the kernel ends them, stopped or
    not.

    Args:
        config: the settings.
        folder: folder for the run and its output.
        window_s: seconds of one window.
        minutes: budget of the training in minutes, long enough that it does not end by itself.
    """

    def __init__(self, config: Config, folder: Path, window_s: float, minutes: float):
        self._run = folder / "run"
        self._output = folder / "output.txt"
        self._window_s = window_s
        settings = config.replace(
            run_dir=str(self._run), minutes=minutes, log_seconds=window_s, checkpoint_minutes=2 * minutes
        )
        with self._output.open("w") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ga3c_tf", "train", *settings.arguments()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
                preexec_fn=end_with_parent,
            )

    def __enter__(self) -> TrainingProcess:
        return self

    def __exit__(self, *_: Any) -> None:
        """End the system as Ctrl-C would; kill it if it does not end within `CLOSE_SECONDS`."""
        self._signal(signal.SIGCONT)
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        finally:
            self._signal(signal.SIGKILL)
            self._process.wait()

    def warm_up(self, seconds: float) -> None:
        """Run the system until its first update, which can take seconds on a GPU, and for `seconds` more.

        Raises:
            UserError: the system rejected its settings.
            RuntimeError: the system ended by itself or made no update; the text has the end of its output.
        """
        deadline = time.monotonic() + START_SECONDS
        while not any(float(row["updates"]) for row in self._rows()):
            self._wait(deadline, "no update was made")
        time.sleep(seconds)
        self._signal(signal.SIGSTOP)

    def measure(self, count: int, gpu: str | None = None) -> dict:
        """Run the system for `count` windows.

        Args:
            count: number of windows.
            gpu: name of the GPU whose utilization is measured, from `gpu_id`; None without a GPU.

        Returns:
            'windows', a list of results of `window`; 'cpu_utilization', the share of the cores' time that the
            system used; 'others_utilization', the share that everything else used, including the hypervisor;
            'gpu_utilization', a list of samples of the share of time that the GPU was busy; 'memory', from
            `memory`.

        Raises:
            UserError: as for `warm_up`.
            RuntimeError: the system ended by itself or logged too few windows; the text has the end of its
                output.
        """
        first = len(self._rows())
        own_before = self._cpu_seconds()
        all_before = busy_seconds()
        start = time.monotonic()
        deadline = start + 5 * count * self._window_s + START_SECONDS
        gpu_busy: list[float] = []
        if gpu is not None:
            gpu_samples(gpu)  # those of the time before
        self._signal(signal.SIGCONT)
        while len(windows := windows_of(self._rows()[first:], self._window_s)) < count:
            self._wait(deadline, f"only {len(windows)} of {count} windows were logged")
            if gpu is not None:
                gpu_busy += gpu_samples(gpu)
        seconds = time.monotonic() - start
        cores_s = seconds * usable_cores()
        all_cores_s = seconds * allowed_cores()  # in a container with a quota these are more
        self._signal(signal.SIGSTOP)
        training_s = self._cpu_seconds() - own_before
        everybody = busy_seconds() - all_before
        return {
            "windows": windows[:count],
            "cpu_utilization": training_s / cores_s,
            "others_utilization": max(0.0, everybody - training_s) / all_cores_s,
            "gpu_utilization": gpu_busy,
            "memory": memory(self._process.pid, process_group(self._process.pid)),
        }

    def _rows(self) -> list[dict[str, str]]:
        return read_rows(self._run / "metrics.csv", METRIC_COLUMNS)

    def _wait(self, deadline: float, problem: str) -> None:
        time.sleep(min(1.0, self._window_s))
        ended = self._process.poll()
        if ended is None and time.monotonic() < deadline:
            return
        said = self._output.read_text(errors="replace").strip().splitlines() or [""]
        if ended == 2:
            raise UserError(said[-1].removeprefix("ga3c-tf: "))
        outcome = "came to no result" if ended is None else f"ended, exit code {ended}"
        raise RuntimeError("\n".join([f"the system {outcome}: {problem}", *said[-20:]]))

    def _cpu_seconds(self) -> float:
        return sum(member["cpu_s"] for member in process_group(self._process.pid).values())

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


def windows_of(rows: Sequence[Mapping[str, str]], window_s: float) -> list[dict[str, Any]]:
    """Return the windows between consecutive rows that were logged since a stop, each from `window`.

    Windows shorter than half of `window_s` are left out. The first row usually covers the stop. If that row
    was being written when the system was stopped, the second row covers it, and the window between the two is
    left out.
    """
    windows = [window(before, after) for before, after in itertools.pairwise(rows)]
    if windows and windows[0]["seconds"] > 2 * window_s:
        windows = windows[1:]
    return [window for window in windows if window["seconds"] > window_s / 2]


def window(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, Any]:
    """Return the rates between two rows of metrics.csv.

    Returns:
        'seconds' between the rows; 'pps' and 'tps', true agent steps and updates per second, None without
        time between the rows; and the columns `COPIED` of the second row, None where the cell is empty.
    """
    seconds, steps, updates = (
        float(after[name]) - float(before[name]) for name in ("time_s", "agent_steps", "updates")
    )
    rates = {"pps": steps / seconds, "tps": updates / seconds} if seconds > 0 else {"pps": None, "tps": None}
    return {
        "seconds": seconds,
        **rates,
        **{name: float(after[name]) if after[name] else None for name in COPIED},
    }


def memory(server: int, members: Mapping[int, dict]) -> dict[str, float | int | None]:
    """Return the memory (PSS) in MiB of the median and the largest agent process, the server, and all
    processes.

    Agent processes are those whose parent, the forkserver, is a child of the server.

    Args:
        server: process id of the server.
        members: the processes of the system by id, from `process_group`.
    """
    pss = {number: proportional_mib(number) for number in members}
    agents = [
        pss[number] for number, member in members.items() if number != server and member["parent"] != server
    ]
    measured = [value for value in agents if value is not None]
    return {
        "agent_processes": len(agents),
        "agent_process_pss_mib": statistics.median(measured) if measured else None,
        "agent_process_pss_mib_max": max(measured, default=None),
        "server_pss_mib": pss.get(server),
        "total_pss_mib": sum(value for value in pss.values() if value is not None) or None,
    }
