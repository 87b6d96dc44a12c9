"""Executes a run: training and evaluation by `ga3c-tf` in processes of their own, and run.json at the end."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ga3c_tf.files import json_text, locked, write_aside
from ga3c_tf.host.processes import end_with_parent
from ga3c_tf.host.signals import ENDING
from ga3c_tf.reproduce.runs.archive import FINISHED, RUN_FILE, read_run
from ga3c_tf.reproduce.runs.run import FAILED, INTERRUPTED, RecordedRun
from ga3c_tf.reproduce.runs.specs import RunSpec
from ga3c_tf.reproduce.runs.watch import CALIBRATIONS, Utilization
from ga3c_tf.runs import outcomes
from ga3c_tf.runs.curve import curve_of, write_curve
from ga3c_tf.runs.sessions import read_sessions

POLL_SECONDS = 0.25
CLOSE_SECONDS = 60.0


class ChildEnded(Exception):
    """A command did not succeed: `FAILED`, or `INTERRUPTED` by a signal or a full disk, to be resumed.

    `ended` is what ended it, one of `ga3c_tf.runs.outcomes`; empty if it did not print this.
    """

    def __init__(self, status: str, reason: str, ended: str = ""):
        super().__init__(reason)
        self.status = status
        self.ended = ended


def execute_run(
    spec: RunSpec,
    runs: Path,
    force: bool = False,
    say: Callable[[str], None] = print,
    wait: bool = True,
    begin: Callable[[], None] = lambda: None,
) -> RecordedRun:
    """Execute a run in the folder `runs`/<id of the run>, or continue it there.

    A run that is finished is left alone, and so is a run that diverged, since this is a result. Any other run
    is resumed from its newest checkpoint, or begun anew if it has none. run.json is written last, so a run
    without it is incomplete.

    Args:
        spec: specification of the run.
        runs: folder of all run folders.
        force: whether to remove the run folder and repeat the run, whatever its outcome.
        say: called with one line about what is waited for, set aside, or cannot be written.
        wait: whether to wait for another process that is executing this run.
        begin: called before the run is trained, but not for a run that is left alone.

    Returns:
        The run, finished or not. A run that fails or cannot be recorded raises no error.

    Raises:
        Locked: another process or thread is executing this run, and `wait` is False.
    """
    folder = runs / spec.id
    lock = runs.parent / "logs" / f"{spec.id}.lock"
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        with locked(lock, say, wait):
            if force or not RecordedRun.of(spec, runs).ended:
                begin()
                _make(spec, folder, force, say, lock.with_suffix(".txt"))
    except OSError as error:
        problem = f"{error.filename or runs}: {error.strerror or error}"
        say(f"{spec.id}: {problem}; the same command again goes on from here")
    return RecordedRun.of(spec, runs)


def _make(spec: RunSpec, folder: Path, force: bool, say: Callable[[str], None], log: Path) -> None:
    """Begin or resume a run, and write its run.json."""
    if folder.exists():
        with locked(folder / "lock", say):  # its training may outlive a `reproduce` that was killed
            _prepare_folder(RecordedRun(spec, folder, {}), force, say)
    result = _result(spec, folder, log)
    folder.mkdir(parents=True, exist_ok=True)
    write_aside(folder / RUN_FILE, json_text(result, indent=2) + "\n")


def _prepare_folder(run: RecordedRun, force: bool, say: Callable[[str], None]) -> None:
    """Prepare the folder of an earlier try for resuming, set it aside or remove it."""
    folder = run.path
    if run.resumable and not force:
        (folder / RUN_FILE).unlink(missing_ok=True)
    elif not force and (folder / "config.json").exists() and read_run(folder).get("status") == FAILED:
        aside = folder.with_name(f"{folder.name}.failed-{time.time_ns()}")
        folder.rename(aside)
        failed = f"{folder.name} failed before its first checkpoint and is begun anew"
        say(f"{failed}; what it left is kept in {aside}")
    else:
        remove_run(folder)


def remove_run(folder: Path) -> None:
    """Rename a run folder, then remove it: half of it under its name would look like a resumable run."""
    aside = folder.with_name(f"{folder.name}.removed")
    shutil.rmtree(aside, ignore_errors=True)
    folder.rename(aside)
    shutil.rmtree(aside)


def _result(spec: RunSpec, folder: Path, log: Path) -> dict:
    """Run the commands, and return the content of run.json."""
    result: dict = {"status": FINISHED, "reason": "", "ended": "", "spec": json.loads(spec.to_json())}
    try:
        result |= _calibrated_training(spec, folder, log)
        for name, words in spec.evaluate_commands(folder).items():
            result[name] = _json(_call(words, log))
    except ChildEnded as error:
        result |= {"status": error.status, "reason": str(error), "ended": error.ended or result["ended"]}
    if (folder / "config.json").exists():
        with contextlib.suppress(ValueError):  # a damaged one is refused by `resume`, and the run has failed
            result["config"] = json.loads((folder / "config.json").read_text())
        result["sessions"] = read_sessions(folder)
        write_curve(folder, curve_of(folder, spec.config.rolling_episodes))
        _remove_empty_tables(folder)
    return result


def _remove_empty_tables(folder: Path) -> None:
    """Remove the CSV files without a row, so that every file that is kept has content."""
    for file in folder.glob("*.csv"):
        with file.open("rb") as stream:
            has_rows = stream.readline() and stream.readline()
        if not has_rows:
            file.unlink()


def _json(printed: str) -> dict:
    """Return the last JSON object that was printed on a line of its own.

    Raises:
        ChildEnded: there is none, because the disk was full when the command ended.
    """
    result = _last_object(printed)
    if result is None:
        raise ChildEnded(INTERRUPTED, "what it printed could not be written: is the disk full?")
    return result


def _last_object(printed: str) -> dict | None:
    objects = [line for line in printed.splitlines() if line.startswith("{")]
    try:
        return json.loads(objects[-1])
    except (IndexError, ValueError):
        return None


def _calibrated_training(spec: RunSpec, folder: Path, log: Path) -> dict:
    """Train; calibrate the machine before and after if time limits the run and it has only this session."""
    if spec.config.minutes is None or folder.exists():
        return _train(spec, folder, log)
    before = CALIBRATIONS.latest()
    trained = _train(spec, folder, log)
    return {**trained, "calibrations": before + CALIBRATIONS.now()}


def _train(spec: RunSpec, folder: Path, log: Path) -> dict:
    watch = Utilization(folder, spec.config.device)
    words = spec.resume_command(folder) if folder.exists() else spec.train_command(folder)
    summary = None
    ended = outcomes.BUDGET_REACHED
    try:
        summary = _json(_call([*words, "--json"], log, watch))
        ended = summary.get("ended", "")
    except ChildEnded as error:
        if error.ended != outcomes.BUDGET_REACHED:
            raise
    return {"ended": ended, "training": summary, **watch.shares()}


def _call(words: Sequence[str], log: Path, watch: Callable[[int], None] = lambda process: None) -> str:
    """Run `ga3c-tf` and return its output, which is added to `log`; end it if this process is ended.

    `watch` is called with the process id every `POLL_SECONDS`.

    Raises:
        ChildEnded: the exit code is not 0.
    """
    with log.open("a") as output:
        start = output.tell()
        process = subprocess.Popen(
            [sys.executable, "-m", "ga3c_tf", *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            process_group=0,
            preexec_fn=end_with_parent,
        )
        try:
            while process.poll() is None:
                watch(process.pid)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(POLL_SECONDS)
        finally:
            if process.poll() is None:
                _end(process)
    printed = log.read_bytes()[start:].decode(errors="replace")
    if process.returncode == 0:
        return printed
    raise _error_of(words[0], process.returncode, printed)


def _error_of(command: str, code: int, printed: str) -> ChildEnded:
    """Return the error for a command that ended with a `code` other than 0 and printed `printed`."""
    number = -code if code < 0 else code - 128
    if code < 0 or number in ENDING:
        reason = f"{command}: ended by {signal.Signals(number).name}"
        return ChildEnded(INTERRUPTED, reason, outcomes.INTERRUPTED)
    ended = (_last_object(printed) or {}).get("ended", "")
    status = INTERRUPTED if ended == outcomes.NOT_SAVED else FAILED
    lines = printed.strip().splitlines() or ["it printed nothing"]
    return ChildEnded(status, f"{command}: {lines[-1].removeprefix('ga3c-tf: ')}", ended)


def _end(process: subprocess.Popen) -> None:
    """Send SIGINT, so training saves a checkpoint; after at most `CLOSE_SECONDS`, kill the process group."""
    process.send_signal(signal.SIGINT)
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(CLOSE_SECONDS)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
