"""Schedules the runs of a command on a Ray cluster: an actor on the head node, which may outlive it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import ray
from ray.exceptions import RayTaskError, TaskCancelledError

from ga3c_tf.remote.cluster import NAMESPACE
from ga3c_tf.reproduce.cluster import ray_task
from ga3c_tf.reproduce.cluster.ray_task import Job
from ga3c_tf.reproduce.cluster.storage import TakenOver
from ga3c_tf.reproduce.runs.run import INTERRUPTED

TRIES_AGAIN = 9
"""Times that Ray tries a run again whose worker or node dies, or that cannot be stored."""
WAITING = "waiting"
RUNNING = "running"
STOPPED = "stopped"
GOING_ON = (WAITING, RUNNING)


class State(NamedTuple):
    """State of a run: `WAITING` (for a node), `RUNNING`, `STOPPED`, or the status in run.json."""

    status: str
    progress: str = ""  # newest line of the run's log


class Scheduler:
    """Executes each run to its end, even if workers and nodes die. All methods run in one event loop."""

    def __init__(self, url: str):
        self._url = url
        self._lines: list[str] = []
        self._states: dict[str, State] = {}
        self._tries: dict[str, ray.ObjectRef] = {}
        self._ends: dict[str, asyncio.Task] = {}

    async def begin(self, jobs: Sequence[Job]) -> None:
        """Begin runs; those that are already waiting or running go on."""
        for job in jobs:
            name = job.spec.id
            if name not in self._states or self._states[name].status not in GOING_ON:
                self._states[name] = State(WAITING)
                self._tries[name] = self._try(job)
                self._ends[name] = asyncio.create_task(self._end(name))

    async def news(self, since: int) -> tuple[list[str], dict[str, State]]:
        """Return the lines after the first `since`, and the states of all runs by id."""
        return self._lines[since:], self._states

    async def stop(self) -> None:
        """Stop all runs: they save a checkpoint and end. Return afterwards."""
        for tried in self._tries.values():
            ray.cancel(tried)
        await asyncio.gather(*self._ends.values())

    async def say(self, run_id: str, text: str) -> None:
        """Add a line about a run."""
        self._lines.append(f"{run_id}: {text}")

    async def report(self, run_id: str, progress: str) -> None:
        """Note the progress of a run, unless it has already ended."""
        if self._states[run_id].status in GOING_ON:
            self._states[run_id] = State(RUNNING, progress)

    async def _end(self, name: str) -> None:
        """Wait for the end of a run, and note its status."""
        status, reason = STOPPED, ""
        try:
            status, reason = await self._tries[name]
        except TaskCancelledError:
            pass
        except Exception as error:
            cause = error.cause if isinstance(error, RayTaskError) else error
            status = STOPPED if isinstance(cause, TakenOver) else INTERRUPTED
            reason = f"{type(cause).__name__}: {(str(cause).splitlines() or [''])[0]}"
        self._states[name] = State(status)
        await self.say(name, f"{status}: {reason}" if reason else status)

    def _try(self, job: Job) -> ray.ObjectRef:
        return _attempt.options(
            num_cpus=job.cpus,
            num_gpus=job.gpus,
            max_retries=TRIES_AGAIN,
            retry_exceptions=[OSError],
            scheduling_strategy="SPREAD",
            name=job.spec.id,
        ).remote(job, self._url, ray.get_runtime_context().current_actor)


@ray.remote
def _attempt(job: Job, url: str, scheduler: ray.actor.ActorHandle) -> tuple[str, str]:
    def say(text: str) -> None:
        scheduler.say.remote(job.spec.id, text)

    def report(line: str) -> None:
        scheduler.report.remote(job.spec.id, line)

    report("")
    return ray_task.attempt(job, url, say, report)


def scheduler_of(url: str, run_ids: Iterable[str], detach: bool) -> ray.actor.ActorHandle:
    """Return the scheduler of these runs in the storage `url`; start it if there is none.

    It ends with the command that starts it, unless `detach`.
    """
    name = hashlib.sha256("\n".join([url, *sorted(run_ids)]).encode()).hexdigest()
    return (
        ray.remote(Scheduler)
        .options(
            name=f"scheduler-{name}",
            namespace=NAMESPACE,
            get_if_exists=True,
            lifetime="detached" if detach else None,
            num_cpus=0,
            resources={"node:__internal_head__": 0.001},
            max_concurrency=1000,
        )
        .remote(url)
    )
