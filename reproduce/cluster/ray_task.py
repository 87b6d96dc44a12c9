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

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.files import lock
from ga3c_tf.reproduce.cluster.cores import pinned
from ga3c_tf.reproduce.cluster.storage import Storage, StoredRun, TakenOver
from ga3c_tf.reproduce.runs.execute import execute_run
from ga3c_tf.reproduce.runs.run import FAILED
from ga3c_tf.reproduce.runs.specs import RunSpec
from ga3c_tf.runs.log import EPISODE_COLUMNS, METRIC_COLUMNS, read_last_rows

SCRATCH = "ga3c_tf-scratch-"
POLL_SECONDS = 2.0


class Job(NamedTuple):
    """A run, and what it needs on a node: a number of cores, and of GPUs or the share of one."""

    spec: RunSpec
    cpus: int
    gpus: float


class Progress(NamedTuple):
    """Progress of a run.

    Attributes:
        agent_steps: agent steps in the newest row of metrics.csv.
        share: used share of the budget, 0 to 1.
        score: rolling score: the mean raw score of the newest episodes; None before the first episode.
    """

    agent_steps: int = 0
    share: float = 0.0
    score: float | None = None

    def __str__(self) -> str:
        score = "" if self.score is None else f", score {self.score:.4g}"
        return f"{self.share:.0%}, {self.agent_steps} agent steps{score}"


def attempt(
    job: Job,
    url: str,
    leader: str,
    fresh: bool,
    say: Callable[[str], None],
    report: Callable[[Progress], None],
) -> tuple[str, str]:
    """Execute a run from its stored state until it ends.

    Args:
        job: the run and its resources.
        url: path or URL of the storage.
        leader: who has the run tried, as for `StoredRun.take`.
        fresh: whether the leader's first try removes the stored run.
        say: called with one line about what happens.
        report: called with the progress of the run every `POLL_SECONDS`.

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
        again = run.take(leader)
        if fresh and not again:
            run.remove()
        run.pull()
        saved = "".join(f", from agent step {steps} on" for steps in list(run.checkpoints())[-1:])
        say(f"{'tried again ' if again else ''}on {platform.node()}{saved}")
        progress = (spec.config, folder / "runs" / spec.id)
        try:
            with _stored(run, lambda: report(_progress(*progress)), say):
                executed = execute_run(spec, folder / "runs", say=say)
        except UserError as error:
            return FAILED, str(error)
        if not executed.result:
            raise OSError(f"the result of {spec.id} could not be written to {folder}")
        return executed.result["status"], executed.result["reason"]


@contextlib.contextmanager
def _stored(run: StoredRun, report: Callable[[], None], say: Callable[[str], None]) -> Iterator[None]:
    """Store the run at every checkpoint during the block, and at its end."""
    ended = threading.Event()

    def keep_stored() -> None:
        before = run.checkpoints()
        while not ended.wait(POLL_SECONDS):
            report()
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


def _progress(config: Config, folder: Path) -> Progress:
    """Return the progress of a run from its curves."""
    metrics = read_last_rows(folder / "metrics.csv", METRIC_COLUMNS, 1)
    episodes = read_last_rows(folder / "episodes.csv", EPISODE_COLUMNS, config.rolling_episodes)
    steps, seconds = (int(metrics[-1]["agent_steps"]), float(metrics[-1]["time_s"])) if metrics else (0, 0.0)
    ended = int(episodes[-1]["episode"]) if episodes else 0
    scores = [float(row["score"]) for row in episodes]
    share = config.progress(steps, seconds, ended) or 0.0
    return Progress(steps, share, float(np.mean(scores)) if scores else None)
