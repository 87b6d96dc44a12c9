"""One try of a run, as a task on a cluster node: it runs in a scratch folder, which is stored regularly."""

from __future__ import annotations

import _thread
import contextlib
import platform
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.files import lock
from ga3c_tf.reproduce.cluster.cores import pinned
from ga3c_tf.reproduce.cluster.storage import Mirror, Storage, TakenOver
from ga3c_tf.reproduce.runs.execute import execute_run
from ga3c_tf.reproduce.runs.run import FAILED
from ga3c_tf.reproduce.runs.specs import RunSpec
from ga3c_tf.runs.log import EPISODE_COLUMNS, METRIC_COLUMNS, read_last_rows

MARKER = "logs/storage-id"
"""File by which a task recognizes the storage of the command that sent it."""
SCRATCH = "ga3c_tf-scratch-"
POLL_SECONDS = 0.5
STORE_SECONDS = 10.0


class NotShared(Exception):
    """A node does not see the storage of the command; the text is one line."""


class Job(NamedTuple):
    """A run and the resources that it needs on a node.

    Attributes:
        spec: specification of the run.
        cpus: number of cores.
        gpus: number of GPUs, or the share of one.
    """

    spec: RunSpec
    cpus: int
    gpus: float


class Progress(NamedTuple):
    """Progress of a run.

    Attributes:
        saved_steps: agent steps of the newest checkpoint in the storage; -1 before the first checkpoint.
        agent_steps: agent steps in the newest row of metrics.csv.
        share: used share of the budget, 0 to 1.
        score: rolling score: the mean raw score of the newest episodes; None before the first episode.
    """

    saved_steps: int = -1
    agent_steps: int = 0
    share: float = 0.0
    score: float | None = None

    def __str__(self) -> str:
        text = f"{self.share:.0%}, {self.agent_steps} agent steps"
        if self.score is None:
            return text
        return f"{text}, score {self.score:.4g}"


def attempt(
    job: Job,
    url: str,
    marker: bytes,
    say: Callable[[str], None],
    report: Callable[[Progress], None],
    fresh: bool = False,
) -> tuple[str, str]:
    """Execute a run from its stored state until it ends.

    Args:
        job: the run and its resources.
        url: path or URL of the storage.
        marker: expected content of `MARKER` in the storage.
        say: called with one line about what happens.
        report: called with the progress of the run whenever it has been stored.
        fresh: whether to remove the stored state first.

    Returns:
        The status of the run and the reason for it, as in run.json.

    Raises:
        NotShared: this node sees another storage.
        TakenOver: another try has claimed the run, since this one was thought dead.
        KeyboardInterrupt: the try was cancelled; its progress is stored.
        OSError: the storage or the scratch folder cannot be written.
    """
    # ray.cancel interrupts as Ctrl-C does, and a Ray started in the background of a shell ignores that
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if Storage(url).read(MARKER) != marker:
        raise NotShared(
            f"{url} on the node {platform.node()} is not the storage of this command; "
            "name one that all nodes see with --storage"
        )
    with _scratch() as folder, pinned(job.cpus, say):
        mirror = Mirror(Storage(url), folder, job.spec.id)
        mirror.take()
        if fresh:
            Storage(url).remove(f"runs/{job.spec.id}")
        mirror.pull()
        saved = _saved_steps(mirror)
        say(f"on {platform.node()}" + (f", from agent step {saved} on" if saved >= 0 else ""))
        try:
            with _stored(
                mirror, lambda: report(_progress(job.spec.config, folder / "runs" / job.spec.id, mirror)), say
            ):
                run = execute_run(job.spec, folder / "runs", say=say)
        except UserError as error:
            return FAILED, str(error)
        if not run.result:
            raise OSError(f"the result of {job.spec.id} could not be written to {folder}")
        return run.result["status"], run.result["reason"]


@contextlib.contextmanager
def _stored(mirror: Mirror, report: Callable[[], None], say: Callable[[str], None]) -> Iterator[None]:
    """Store the run during the block, at every checkpoint and about every `STORE_SECONDS`, and at its end."""
    ended = threading.Event()

    def store() -> None:
        mirror.push()
        report()

    def keep_stored() -> None:
        before = mirror.checkpoints()
        at = 0.0
        while not ended.wait(POLL_SECONDS):
            start = time.monotonic()
            now = mirror.checkpoints()
            if start >= at or now != before:
                try:
                    store()
                except TakenOver:
                    _thread.interrupt_main()
                    return
                except Exception as error:  # of any file system; only the last try has to succeed
                    say(f"cannot be stored, the next try follows: {type(error).__name__}: {error}")
                before = now
                took = time.monotonic() - start
                at = time.monotonic() + max(STORE_SECONDS, 10 * took)

    thread = threading.Thread(target=keep_stored, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        store()


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    """Make a scratch folder for the block, and remove the folders of tasks that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{SCRATCH}*"):
        with contextlib.suppress(OSError), (folder / "lock").open("r+") as stream:
            if lock(stream):  # else the task may still run
                shutil.rmtree(folder, ignore_errors=True)
    with contextlib.ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix=SCRATCH, ignore_cleanup_errors=True))
        )
        lock(stack.enter_context((folder / "lock").open("w")), wait=True)
        yield folder


def _saved_steps(mirror: Mirror) -> int:
    return max(mirror.checkpoints(), default=-1)


def _progress(config: Config, folder: Path, mirror: Mirror) -> Progress:
    """Return the progress of a run, from its curves and checkpoints."""
    metrics = read_last_rows(folder / "metrics.csv", METRIC_COLUMNS, 1)
    episodes = read_last_rows(folder / "episodes.csv", EPISODE_COLUMNS, config.rolling_episodes)
    steps, seconds = (int(metrics[-1]["agent_steps"]), float(metrics[-1]["time_s"])) if metrics else (0, 0.0)
    ended = int(episodes[-1]["episode"]) if episodes else 0
    share = config.progress(steps, seconds, ended) or 0.0
    scores = [float(row["score"]) for row in episodes]
    return Progress(_saved_steps(mirror), steps, share, float(np.mean(scores)) if scores else None)
