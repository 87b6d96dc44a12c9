"""One try of a run, as a task on a cluster node: it runs in a scratch folder, which is stored regularly."""

from __future__ import annotations

import _thread
import contextlib
import platform
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from ga3c_tf.errors import UserError
from ga3c_tf.files import lock
from ga3c_tf.reproduce.cluster.cores import pinned
from ga3c_tf.reproduce.cluster.storage import Storage, StoredRun, TakenOver
from ga3c_tf.reproduce.runs.execute import execute_run
from ga3c_tf.reproduce.runs.run import FAILED
from ga3c_tf.reproduce.runs.specs import RunSpec

SCRATCH = "ga3c_tf-scratch-"
POLL_SECONDS = 2.0
Say = Callable[[str], None]


class Job(NamedTuple):
    """A run, and what it needs on a node: a number of cores, and of GPUs or the share of one."""

    spec: RunSpec
    cpus: int
    gpus: float


def attempt(job: Job, url: str, say: Say, report: Say) -> tuple[str, str]:
    """Execute a run from its stored state until it ends.

    Args:
        job: the run and its resources.
        url: path or URL of the storage.
        say: called with one line about what happens.
        report: called with the newest line of the run's log every `POLL_SECONDS`.

    Returns:
        The status of the run and the reason for it, as in run.json.

    Raises:
        TakenOver: another try has claimed the run, since this one was thought dead.
        KeyboardInterrupt: the try was cancelled; its progress is stored.
        OSError: the storage or the scratch folder cannot be written.
    """
    # ray.cancel interrupts as Ctrl-C does, and a Ray started in the background of a shell ignores that
    signal.signal(signal.SIGINT, signal.default_int_handler)
    spec = job.spec
    with _scratch() as folder, pinned(job.cpus, say):
        run = StoredRun(Storage(url), folder, spec.id)
        run.claim()
        run.pull()
        say(f"on {platform.node()}, from agent step {max(run.checkpoints(), default=0)} on")
        try:
            with _stored(run, report, say):
                executed = execute_run(spec, folder / "runs", say=say)
        except UserError as error:
            return FAILED, str(error)
        if not executed.result:
            raise OSError(f"the result of {spec.id} could not be written to {folder}")
        return executed.result["status"], executed.result["reason"]


@contextlib.contextmanager
def _stored(run: StoredRun, report: Say, say: Say) -> Iterator[None]:
    """Store the run at every checkpoint during the block, and at its end."""
    ended = threading.Event()

    def keep_stored() -> None:
        before = run.checkpoints()
        while not ended.wait(POLL_SECONDS):
            report(run.last_line)
            now = run.checkpoints()
            if now != before:
                try:
                    run.push()
                    before = now
                except TakenOver:
                    _thread.interrupt_main()
                    return
                except Exception as error:  # of any file system; only the last try has to succeed
                    say(f"cannot be stored, the next try follows: {type(error).__name__}: {error}")

    thread = threading.Thread(target=keep_stored, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        run.push()


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    """Make a scratch folder for the block, and remove the folders of tasks that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{SCRATCH}*"):
        with contextlib.suppress(OSError), (folder / "lock").open("r+") as stream:
            if lock(stream):  # else the task may still run
                shutil.rmtree(folder, ignore_errors=True)
    with (
        tempfile.TemporaryDirectory(prefix=SCRATCH, ignore_cleanup_errors=True) as name,
        (Path(name) / "lock").open("w") as stream,
    ):
        lock(stream, wait=True)
        yield Path(name)
