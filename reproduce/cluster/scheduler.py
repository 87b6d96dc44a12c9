"""Schedules the runs of a storage on a Ray cluster: an actor on the head node, for all its commands."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import time
from collections.abc import Sequence
from typing import NamedTuple

import ray
from ray.exceptions import RayTaskError, TaskCancelledError

from ga3c_tf.remote.cluster import NAMESPACE
from ga3c_tf.reproduce.cluster import ray_task
from ga3c_tf.reproduce.cluster.ray_task import Job, NotShared, Progress
from ga3c_tf.reproduce.cluster.storage import Storage, TakenOver
from ga3c_tf.reproduce.runs.archive import RUN_FILE
from ga3c_tf.reproduce.runs.run import INTERRUPTED

TRIES = 3
"""Number of tries lost one after another, without a newer checkpoint, after which a run is given up."""
RETRY_SECONDS = 2.0
LINGER_SECONDS = 30.0
SILENT_SECONDS = 60.0
"""A command that has not asked for news for longer than this counts as killed."""
WAITING = "waiting"
RUNNING = "running"
STOPPED = "stopped"
CANCELLED = "cancelled"
"""Status of a try that was cancelled because no command wanted its run any more."""


class State(NamedTuple):
    """State of a run.

    Attributes:
        status: `WAITING` (for a node), `RUNNING`, `STOPPED`, or the status in the run's run.json.
        progress: progress of the run when it was last stored.
    """

    status: str
    progress: Progress


class News(NamedTuple):
    """Answer to a command that asks how its runs are going.

    Attributes:
        lines: lines of progress that the command does not have yet.
        states: states of all runs by id, in the order in which the runs were added.
        fault: reason why none of the runs can be executed; None if they can.
    """

    lines: list[str]
    states: dict[str, State]
    fault: str | None


class Scheduler:
    """Executes each run to its end, even if workers and nodes die. All methods run in one event loop.

    Args:
        url: path or URL of the storage.
    """

    def __init__(self, url: str):
        self._url = url
        self._marker = b""
        self._lines: list[str] = []
        self._states: dict[str, State] = {}
        self._tasks: dict[str, asyncio.Task] = {}
        self._tries: dict[str, ray.ObjectRef] = {}
        self._wanted_by: dict[str, set[str]] = {}
        self._heard: dict[str, float] = {}
        self._fault: str | None = None
        self._asked = time.monotonic()
        self._watch: asyncio.Task | None = None

    async def add(
        self, jobs: Sequence[Job], force: bool, marker: bytes, command: str, detached: bool
    ) -> None:
        """Begin runs; those that are already waiting or running go on unchanged.

        Args:
            jobs: the runs and their resources.
            force: whether to remove the stored files of each run when it begins.
            marker: content of `ray_task.MARKER` in the storage.
            command: id of the command that wants the runs; a run that no command wants any more is stopped.
            detached: whether the command still wants the runs when it no longer asks for news.
        """
        if not self._tasks:
            self._marker = marker
            self._fault = None
        self._watch = self._watch or asyncio.create_task(self._watch_commands())
        self._heard[command] = math.inf if detached else time.monotonic()
        for job in jobs:
            self._wanted_by.setdefault(job.spec.id, set()).add(command)
            if job.spec.id not in self._tasks:
                self._states[job.spec.id] = State(WAITING, Progress())
                self._tasks[job.spec.id] = asyncio.create_task(self._lead(job, force))

    async def news(self, since: int, command: str) -> News:
        """Return the lines after the first `since` and all runs' states; note that `command` is alive."""
        self._asked = time.monotonic()
        if command in self._heard:  # else it was silent for too long, and its runs have been stopped
            self._heard[command] = max(self._heard[command], self._asked)
        return News(self._lines[since:], self._states, self._fault)

    async def stop(self, command: str) -> None:
        """Stop the runs that no other command wants: they save a checkpoint and end. Return afterwards."""
        self._heard.pop(command, None)
        unwanted = []
        for name, commands in self._wanted_by.items():
            if command in commands:
                commands.remove(command)
                if not commands:
                    unwanted.append(name)
        for name in unwanted:
            if name in self._tries:
                ray.cancel(self._tries[name])
        await asyncio.gather(*(self._tasks[name] for name in unwanted if name in self._tasks))

    async def say(self, run_id: str, text: str) -> None:
        """Add a line of progress about a run."""
        self._lines.append(f"{run_id}: {text}")

    async def started(self, run_id: str) -> None:
        """Note that a try of this run has found a node."""
        if run_id in self._tasks:  # else the run has already ended
            self._states[run_id] = self._states[run_id]._replace(status=RUNNING)

    async def report(self, run_id: str, progress: Progress) -> None:
        """Note the progress of a run that has been stored."""
        self._states[run_id] = self._states[run_id]._replace(progress=progress)

    async def _lead(self, job: Job, force: bool) -> None:
        """Try a run until it finishes, fails for a reason of its own, is stopped, or makes no progress."""
        name = job.spec.id
        try:
            status, reason = await self._tries_of(job, force)
        except Exception as error:
            status = INTERRUPTED
            reason = _in_words(error)
        self._states[name] = self._states[name]._replace(status=status)
        await self.say(name, f"{status}: {reason}" if reason else status)
        del self._tasks[name]
        self._wanted_by.pop(name, None)

    async def _tries_of(self, job: Job, force: bool) -> tuple[str, str]:
        name = job.spec.id
        lost = 0
        saved = -1
        while self._wanted_by[name] and not self._fault:
            status, reason = await self._try(job, force and self._states[name].progress.saved_steps < 0)
            if status == CANCELLED:
                self._states[name] = self._states[name]._replace(status=WAITING)
                continue  # no command wants it any more, or one has asked for it again meanwhile
            if status != INTERRUPTED:
                return status, reason
            newest = self._states[name].progress.saved_steps
            lost = 1 if newest > saved else lost + 1
            saved = max(saved, newest)
            if lost == TRIES:
                reason = f"{TRIES} tries in a row were lost without a new checkpoint; the last one: {reason}"
                result = {
                    "status": INTERRUPTED,
                    "reason": reason,
                    "ended": "",
                    "spec": json.loads(job.spec.to_json()),
                }
                content = json.dumps(result, indent=2).encode() + b"\n"
                await asyncio.to_thread(Storage(self._url).write, [(f"runs/{name}/{RUN_FILE}", content)])
                return INTERRUPTED, reason
            self._states[name] = self._states[name]._replace(status=WAITING)
            await self.say(name, f"{reason}; tried again")
            await asyncio.sleep(RETRY_SECONDS)
        return STOPPED, ""

    async def _try(self, job: Job, fresh: bool) -> tuple[str, str]:
        """Try a run once; it is `INTERRUPTED` if a worker or node dies, or the storage cannot be written.

        Args:
            job: the run and its resources.
            fresh: whether to remove its stored files, once a node has been found.
        """
        name = job.spec.id
        try:
            self._tries[name] = _attempt.options(
                num_cpus=job.cpus, num_gpus=job.gpus, max_retries=0, scheduling_strategy="SPREAD", name=name
            ).remote(job, self._url, self._marker, ray.get_runtime_context().current_actor, fresh)
            return await self._tries[name]
        except TaskCancelledError:
            return CANCELLED, ""
        except TakenOver as error:
            return STOPPED, str(error.args[0])
        except NotShared as error:
            self._fault = str(error.args[0])
            return STOPPED, ""
        except Exception as error:
            return INTERRUPTED, _in_words(error)
        finally:
            self._tries.pop(name, None)

    async def _watch_commands(self) -> None:
        """Stop the runs of silent commands; end this actor if it has no runs and no command asks for news."""
        while self._tasks or time.monotonic() < self._asked + LINGER_SECONDS:
            await asyncio.sleep(1)
            for command in [
                command for command, at in self._heard.items() if at < time.monotonic() - SILENT_SECONDS
            ]:
                await self.stop(command)
        ray.kill(ray.get_runtime_context().current_actor)


@ray.remote
def _attempt(
    job: Job, url: str, marker: bytes, scheduler: ray.actor.ActorHandle, fresh: bool
) -> tuple[str, str]:
    name = job.spec.id
    scheduler.started.remote(name)
    return ray_task.attempt(
        job,
        url,
        marker,
        say=lambda text: scheduler.say.remote(name, text),
        report=lambda progress: scheduler.report.remote(name, progress),
        fresh=fresh,
    )


def scheduler_of(url: str) -> ray.actor.ActorHandle:
    """Return the scheduler of the storage `url` on the cluster; start it if there is none.

    It outlives the command that starts it, since other commands may have runs there too.
    """
    return (
        ray.remote(Scheduler)
        .options(
            name=f"scheduler-{hashlib.sha256(url.encode()).hexdigest()[:16]}",
            namespace=NAMESPACE,
            get_if_exists=True,
            lifetime="detached",
            num_cpus=0,
            resources={"node:__internal_head__": 0.001},
            max_concurrency=1000,
        )
        .remote(url)
    )


def _in_words(error: Exception) -> str:
    """Return an error's type and first sentence of its text; of an error from a task, those of its cause."""
    cause = error.cause if isinstance(error, RayTaskError) else error
    return f"{type(cause).__name__}: {(str(cause).splitlines() or [''])[0].partition('. ')[0]}"
