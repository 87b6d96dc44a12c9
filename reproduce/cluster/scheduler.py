"""Leads the runs of a storage on a Ray cluster: an actor on the head node, for all commands that ask for runs there."""

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
from ga3c_tf.reproduce.runs.run import INTERRUPTED, RUN_FILE

TRIES = 3
"""That may be lost one after another without a newer checkpoint."""
RETRY_SECONDS = 2.0
LINGER_SECONDS = 30.0
SILENT_SECONDS = 60.0
"""A command that has not asked for news for so long has been killed, or its machine has."""
WAITING = "waiting"
RUNNING = "running"
STOPPED = "stopped"
CANCELLED = "cancelled"
"""What a try ends with that was cancelled because no command wanted its run any more."""


class State(NamedTuple):
    """Of a run: `WAITING` for a node, `RUNNING`, `STOPPED`, or the status in its run.json."""

    status: str
    progress: Progress


class News(NamedTuple):
    """What a command asks for.

    Attributes:
        lines: of progress, those not yet told.
        states: by the id of the run, in the order in which they were added.
        fault: why none of the runs can be carried out, None where they can.
    """

    lines: list[str]
    states: dict[str, State]
    fault: str | None


class Scheduler:
    """Leads each run to its end, through the deaths of workers and nodes. All methods run in one event loop.

    Args:
        url: of the storage.
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

    async def add(self, jobs: Sequence[Job], force: bool, marker: bytes, command: str, detached: bool) -> None:
        """Begin runs; those that are waiting or running go on as they are.

        Args:
            jobs: the runs.
            force: remove what is stored of them first.
            marker: what `ray_task.MARKER` says in the storage.
            command: who wants them; a run that no command wants any more is stopped.
            detached: the command wants them whether it is heard of or not.
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
        """Return what is new after the first `since` lines; tell that `command` is still there."""
        self._asked = time.monotonic()
        if command in self._heard:  # else it was silent for too long, and its runs have been stopped
            self._heard[command] = max(self._heard[command], self._asked)
        return News(self._lines[since:], self._states, self._fault)

    async def stop(self, command: str) -> None:
        """Have the runs that no other command wants save a checkpoint and end; return when they have."""
        self._heard.pop(command, None)
        unwanted = []
        for name, commands in self._wanted_by.items():
            if command in commands:
                commands.remove(command)
                unwanted += [] if commands else [name]
        for name in unwanted:
            if name in self._tries:
                ray.cancel(self._tries[name])
        await asyncio.gather(*(self._tasks[name] for name in unwanted if name in self._tasks))

    async def say(self, run_id: str, text: str) -> None:
        """Add a line of a run's."""
        self._lines.append(f"{run_id}: {text}")

    async def started(self, run_id: str) -> None:
        """Note that a try of this run has found a node."""
        if run_id in self._tasks:  # its end may have come first
            self._states[run_id] = self._states[run_id]._replace(status=RUNNING)

    async def report(self, run_id: str, progress: Progress) -> None:
        """Note how far a run has been stored."""
        self._states[run_id] = self._states[run_id]._replace(progress=progress)

    async def _lead(self, job: Job, force: bool) -> None:
        """One run to its end: tries until it finished, failed for its own reason, was stopped, or got nowhere."""
        name = job.spec.id
        try:
            if force:
                await asyncio.to_thread(Storage(self._url).remove, f"runs/{name}")
            status, reason = await self._tries_of(job)
        except Exception as error:
            status = INTERRUPTED
            reason = _in_words(error)
        self._states[name] = self._states[name]._replace(status=status)
        await self.say(name, f"{status}: {reason}" if reason else status)
        del self._tasks[name]
        self._wanted_by.pop(name, None)

    async def _tries_of(self, job: Job) -> tuple[str, str]:
        name = job.spec.id
        lost = 0
        saved = -1
        while self._wanted_by[name] and not self._fault:
            status, reason = await self._try(job)
            if status == CANCELLED:
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

    async def _try(self, job: Job) -> tuple[str, str]:
        """One try; a worker or node that died, or a storage that cannot be written, make it `INTERRUPTED`."""
        name = job.spec.id
        try:
            self._tries[name] = _attempt.options(
                num_cpus=job.cpus, num_gpus=job.gpus, max_retries=0, scheduling_strategy="SPREAD", name=name
            ).remote(job, self._url, self._marker, ray.get_runtime_context().current_actor)
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
        """Stop what commands wanted that are silent; end this actor when there is nothing to lead and nobody asks."""
        while self._tasks or time.monotonic() < self._asked + LINGER_SECONDS:
            await asyncio.sleep(1)
            for command in [each for each, at in self._heard.items() if at < time.monotonic() - SILENT_SECONDS]:
                await self.stop(command)
        ray.kill(ray.get_runtime_context().current_actor)


@ray.remote
def _attempt(job: Job, url: str, marker: bytes, scheduler: ray.actor.ActorHandle) -> tuple[str, str]:
    name = job.spec.id
    scheduler.started.remote(name)
    return ray_task.attempt(
        job,
        url,
        marker,
        say=lambda text: scheduler.say.remote(name, text),
        report=lambda progress: scheduler.report.remote(name, progress),
    )


def scheduler_of(url: str) -> ray.actor.ActorHandle:
    """Return the one scheduler of the storage `url` on the cluster, begun where there is none.

    It outlives the command that begins it, since it may lead the runs of others too.
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
    """Return an error's kind and the first sentence of its text: of what a task raised, that error's own."""
    cause = error.cause if isinstance(error, RayTaskError) else error
    return f"{type(cause).__name__}: {(str(cause).splitlines() or [''])[0].partition('. ')[0]}"
