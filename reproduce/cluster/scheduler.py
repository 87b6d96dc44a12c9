"""Schedules the runs of a storage on a Ray cluster: an actor on the head node, for all its commands."""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
import uuid
from collections.abc import Sequence
from typing import NamedTuple

import ray
from ray.exceptions import RayTaskError, TaskCancelledError

from ga3c_tf.remote.cluster import NAMESPACE
from ga3c_tf.reproduce.cluster import ray_task
from ga3c_tf.reproduce.cluster.ray_task import Job, Progress
from ga3c_tf.reproduce.cluster.storage import TakenOver
from ga3c_tf.reproduce.runs.run import INTERRUPTED

TRIES_AGAIN = 9
"""Times that Ray tries a run again whose worker or node dies, or that cannot be stored."""
LINGER_SECONDS = 30.0
SILENT_SECONDS = 60.0
"""A command that has not asked for news for longer than this counts as killed."""
WAITING = "waiting"
RUNNING = "running"
STOPPED = "stopped"


class State(NamedTuple):
    """State of a run: `WAITING` (for a node), `RUNNING`, `STOPPED`, or the status in run.json."""

    status: str
    progress: Progress


class Scheduler:
    """Executes each run of a storage to its end, even if workers and nodes die.

    All methods run in one event loop.
    """

    def __init__(self, url: str):
        self._url = url
        self._lines: list[str] = []
        self._states: dict[str, State] = {}
        self._leads: dict[str, asyncio.Task] = {}
        self._tries: dict[str, ray.ObjectRef] = {}
        self._wanted_by: dict[str, set[str]] = {}
        self._heard: dict[str, float] = {}
        self._asked = time.monotonic()
        self._watch: asyncio.Task | None = None

    async def add(self, jobs: Sequence[Job], force: bool, command: str, detached: bool) -> None:
        """Begin runs; those that are already waiting or running go on unchanged.

        Args:
            jobs: the runs and their resources.
            force: whether to remove the stored files of each run when it begins.
            command: id of the command that wants the runs; a run that no command wants any more is stopped.
            detached: whether the command still wants the runs when it no longer asks for news.
        """
        self._watch = self._watch or asyncio.create_task(self._watch_commands())
        self._heard[command] = math.inf if detached else time.monotonic()
        for job in jobs:
            name = job.spec.id
            self._wanted_by.setdefault(name, set()).add(command)
            if name not in self._leads:
                self._states[name] = State(WAITING, Progress())
                self._leads[name] = asyncio.create_task(self._lead(job, force))

    async def news(self, since: int, command: str) -> tuple[list[str], dict[str, State]]:
        """Return the lines after the first `since` and all runs' states; note that `command` is alive."""
        self._asked = time.monotonic()
        if command in self._heard:  # else it was silent for too long, and its runs have been stopped
            self._heard[command] = max(self._heard[command], self._asked)
        return self._lines[since:], self._states

    async def stop(self, command: str) -> None:
        """Stop the runs that no other command wants: they save a checkpoint and end. Return afterwards."""
        self._heard.pop(command, None)
        unwanted = [name for name, commands in self._wanted_by.items() if commands == {command}]
        for commands in self._wanted_by.values():
            commands.discard(command)
        for name in unwanted:
            if name in self._tries:
                ray.cancel(self._tries[name])
        await asyncio.gather(*(self._leads[name] for name in unwanted if name in self._leads))

    async def say(self, run_id: str, text: str) -> None:
        """Add a line of progress about a run."""
        self._lines.append(f"{run_id}: {text}")

    async def report(self, run_id: str, progress: Progress) -> None:
        """Note the progress of a run that is running."""
        if run_id in self._leads:  # else the run has already ended
            self._states[run_id] = State(RUNNING, progress)

    async def _lead(self, job: Job, fresh: bool) -> None:
        """Have a run tried until it ends or no command wants it."""
        name = job.spec.id
        leader = uuid.uuid4().hex
        status, reason = STOPPED, ""
        while self._wanted_by[name]:
            try:
                self._tries[name] = self._try(job, leader, fresh)
                status, reason = await self._tries[name]
                break
            except TaskCancelledError:  # a command may have asked for it again meanwhile
                self._states[name] = self._states[name]._replace(status=WAITING)
            except Exception as error:
                cause = error.cause if isinstance(error, RayTaskError) else error
                status = STOPPED if isinstance(cause, TakenOver) else INTERRUPTED
                reason = f"{type(cause).__name__}: {(str(cause).splitlines() or [''])[0]}"
                break
            finally:
                self._tries.pop(name, None)
        del self._leads[name]
        self._wanted_by.pop(name)
        self._states[name] = self._states[name]._replace(status=status)
        await self.say(name, f"{status}: {reason}" if reason else status)

    def _try(self, job: Job, leader: str, fresh: bool) -> ray.ObjectRef:
        return _attempt.options(
            num_cpus=job.cpus,
            num_gpus=job.gpus,
            max_retries=TRIES_AGAIN,
            retry_exceptions=[OSError],
            scheduling_strategy="SPREAD",
            name=job.spec.id,
        ).remote(job, self._url, leader, fresh, ray.get_runtime_context().current_actor)

    async def _watch_commands(self) -> None:
        """Stop the runs of silent commands; end this actor if it has no runs and no command asks for news."""
        while self._leads or time.monotonic() < self._asked + LINGER_SECONDS:
            await asyncio.sleep(1)
            silent = time.monotonic() - SILENT_SECONDS
            for command in [command for command, at in self._heard.items() if at < silent]:
                await self.stop(command)
        ray.kill(ray.get_runtime_context().current_actor)


@ray.remote
def _attempt(
    job: Job, url: str, leader: str, fresh: bool, scheduler: ray.actor.ActorHandle
) -> tuple[str, str]:
    name = job.spec.id
    scheduler.report.remote(name, Progress())
    return ray_task.attempt(
        job,
        url,
        leader,
        fresh,
        say=lambda text: scheduler.say.remote(name, text),
        report=lambda progress: scheduler.report.remote(name, progress),
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
