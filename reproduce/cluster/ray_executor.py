"""Executes runs on a Ray cluster, as many at once as it has room for."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayActorError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ga3c_tf.errors import UserError
from ga3c_tf.host.machine import usable_cores
from ga3c_tf.remote.cluster import connect
from ga3c_tf.reproduce.cluster.ray_task import Job
from ga3c_tf.reproduce.cluster.scheduler import GOING_ON, State, scheduler_of
from ga3c_tf.reproduce.cluster.storage import Storage, StoredRun
from ga3c_tf.reproduce.runs.executor import order
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import RunSpec

LOCAL = "local"
MARKER = "logs/storage-id"
"""File by which a node recognizes the storage of this command."""
POLL_SECONDS = 1.0
PROGRESS_SECONDS = 30.0
AGENTS_PER_CPU = 8


@dataclass(frozen=True)
class RayExecutor:
    """Executes each run as a task of a Ray cluster, and keeps its files in a storage that all nodes see.

    Attributes:
        address: address of the cluster, host:port or 'auto', or `LOCAL` for a cluster on this machine that
            ends with the command.
        storage: path or URL of the storage; None for the results folder.
        cpus: cores for each run; None for one core per `AGENTS_PER_CPU` agents of the run that has most of
            them.
        gpus: GPUs for each run, or the share of one; None for one GPU if the run can use it and the cluster
            has any.
        detach: whether a signal ends only this command, and the runs go on.
        say: called with one line of progress at a time.

    Raises:
        UserError: `detach` with `LOCAL`.
    """

    address: str
    storage: str | None
    cpus: int | None
    gpus: float | None
    detach: bool
    say: Callable[[str], None]

    def __post_init__(self) -> None:
        if self.detach and self.address == LOCAL:
            raise UserError(
                "--detach needs a cluster that outlives the command: begin one with ray start --head"
            )

    def execute(self, specs: Sequence[RunSpec], runs: Path, force: bool) -> list[RecordedRun]:
        """Execute the runs as described for `Executor.execute`.

        Raises:
            UserError: the cluster does not exist or is too small, or not all of its nodes can use the
                storage.
        """
        url = self.storage or str(runs.parent)
        if "://" not in url:
            url = os.path.abspath(url)
        left = [spec for spec in sorted(specs, key=order) if force or _is_left(spec, runs)]
        self.say(f"{len(specs) - len(left)} of {len(specs)} runs have ended")
        try:
            if left:
                with self._cluster():
                    # As many cores for a run that is resumed later as for the others of its figure.
                    every = jobs_for(sorted(specs, key=order), self.cpus, self.gpus, _nodes())
                    jobs = [job for job in every if job.spec in left]
                    _check_shared(Storage(url), url)
                    scheduler = scheduler_of(url, [spec.id for spec in specs], self.detach)
                    self._execute(scheduler, jobs, Storage(url), runs, force)
        except OSError as error:
            raise UserError(f"--storage {url} or {runs.parent}: {error}") from None
        return [RecordedRun.of(spec, runs) for spec in specs]

    def _execute(
        self, scheduler: ray.actor.ActorHandle, jobs: Sequence[Job], storage: Storage, runs: Path, force: bool
    ) -> None:
        stored = {job: StoredRun(storage, runs.parent.absolute(), job.spec.id) for job in jobs}
        for job, run in stored.items():
            folder = runs / job.spec.id
            if force:
                run.remove()
                shutil.rmtree(_before(folder), ignore_errors=True)
                if folder.exists():
                    folder.rename(_before(folder))
                else:
                    _before(folder).mkdir(parents=True)  # the run may be packed
            elif not run.pull():
                run.push()
        try:
            self._lead(scheduler, [job for job in jobs if _is_left(job.spec, runs)])
        except (KeyboardInterrupt, SystemExit):
            if not self.detach:
                self._collect(stored, runs)
            raise
        self._collect(stored, runs)

    def _collect(self, stored: Mapping[Job, StoredRun], runs: Path) -> None:
        """Copy the runs from the storage; in the results folder, ended ones are then of no use there."""
        for job, run in stored.items():
            run.pull()
            _end_repetition(job.spec, runs)
            if self.storage is None and RecordedRun.of(job.spec, runs).ended:
                run.remove()

    @contextlib.contextmanager
    def _cluster(self) -> Iterator[None]:
        """Connect to the cluster for the duration of the block."""
        options = {"num_cpus": usable_cores(), "include_dashboard": False} if self.address == LOCAL else {}
        # Else a dead node's log is printed.
        ray._private.worker.print_to_stdstream = lambda *given, **named: None
        connect(self.address, **options)
        try:
            yield
        finally:
            ray.shutdown()

    def _lead(self, scheduler: ray.actor.ActorHandle, jobs: list[Job]) -> None:
        """Have the scheduler execute the runs, and follow them; at a signal, stop them unless `detach`."""
        try:
            _answer(scheduler.begin.remote(jobs))
            self._follow(scheduler)
            ray.kill(scheduler)  # a detached one would stay
        except (KeyboardInterrupt, SystemExit):
            if self.detach:
                self.say("the runs go on; the same command again, without --force, follows them")
            else:
                self.say("every run saves a checkpoint and ends")
                _answer(scheduler.stop.remote())
            raise
        except RayActorError:
            self.say(
                "what led the runs has ended; the same command again resumes those that are not finished"
            )

    def _follow(self, scheduler: ray.actor.ActorHandle) -> None:
        """Report the progress of the runs until none is waiting or running."""
        reported = 0
        tell_at = time.monotonic() + PROGRESS_SECONDS
        while True:
            lines, states = _answer(scheduler.news.remote(reported))
            for line in lines:
                self.say(line)
            reported += len(lines)
            if not any(state.status in GOING_ON for state in states.values()):
                return
            if time.monotonic() >= tell_at:
                tell_at = time.monotonic() + PROGRESS_SECONDS
                for line in summary(states):
                    self.say(line)
            time.sleep(POLL_SECONDS)


def _before(folder: Path) -> Path:
    """Return the folder that a run that is repeated had before; it is empty where the run had none."""
    return folder.with_name(f"{folder.name}.before")


def _is_left(spec: RunSpec, runs: Path) -> bool:
    """Return whether a run has not ended, or not again."""
    return _before(runs / spec.id).exists() or not RecordedRun.of(spec, runs).ended


def _end_repetition(spec: RunSpec, runs: Path) -> None:
    """Remove the folder that a repeated run had before once it has ended again. Restore it if it has not
    begun.
    """
    folder = runs / spec.id
    before = _before(folder)
    if not before.exists():
        return
    if not folder.exists() and any(before.iterdir()):
        before.rename(folder)
    elif not folder.exists() or RecordedRun.of(spec, runs).ended:
        shutil.rmtree(before)


def _answer(reference: ray.ObjectRef) -> Any:
    """Return the result of an actor's method. Unlike `ray.get`, signal handlers' SystemExit gets through."""
    return reference.future().result()


def summary(states: Mapping[str, State]) -> list[str]:
    """Return a line with the number of runs of each status, and the progress of those that are running."""
    counts = Counter(state.status for state in states.values())
    running = [f"{name}: {state.progress}" for name, state in states.items() if state.progress]
    return [", ".join(f"{count} {status}" for status, count in counts.items()), *running]


def jobs_for(
    specs: Sequence[RunSpec], cpus: int | None, gpus: float | None, nodes: Sequence[Mapping[str, float]]
) -> list[Job]:
    """Return the cores and GPUs that each run asks for.

    All runs get the same number of cores: their speeds would not be comparable otherwise.

    Args:
        specs: specifications of the runs.
        cpus, gpus: as for `RayExecutor`.
        nodes: resources of each node of the cluster, 'CPU' and 'GPU'.

    Raises:
        UserError: no node has enough cores or GPUs, or `gpus` is neither a share of one GPU nor a whole
            number.
    """
    if gpus is not None and gpus > 1 and gpus % 1:
        raise UserError(
            f"--gpus-per-run is {gpus:g}; it must be a share of one GPU, or a whole number of them"
        )
    has_gpus = any(node.get("GPU") for node in nodes)
    wanted = [_uses_gpu(spec) * float(has_gpus) if gpus is None else gpus for spec in specs]
    most = [
        max((int(node.get("CPU", 0)) for node in nodes if node.get("GPU", 0) >= need), default=0)
        for need in wanted
    ]
    agents = max((spec.config.most_agents for spec in specs), default=0)
    cores = cpus or max(1, min([agents // AGENTS_PER_CPU, *most]))
    for spec, need, limit in zip(specs, wanted, most, strict=True):
        if cores > limit:
            largest = max(nodes, key=lambda node: (node.get("GPU", 0) if need else 0, node.get("CPU", 0)))
            raise UserError(
                f"{spec.id} asks for {cores} CPUs and {need:g} GPUs of one node; the largest has "
                f"{largest.get('CPU', 0):g} CPUs and {largest.get('GPU', 0):g} GPUs (--cpus-per-run, "
                "--gpus-per-run)"
            )
    return [Job(spec, cores, need) for spec, need in zip(specs, wanted, strict=True)]


def _uses_gpu(spec: RunSpec) -> bool:
    return spec.config.system != "a3c" and spec.config.device != "cpu"


def _nodes() -> list[dict[str, float]]:
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def _check_shared(storage: Storage, url: str) -> None:
    """Check that this machine can write to the storage, and that all nodes see the same.

    Raises:
        UserError: one of them does not.
    """
    try:
        if storage.read(MARKER) is None:
            storage.write(MARKER, uuid.uuid4().hex.encode())
        marker = storage.read(MARKER)
    except Exception as error:  # each file system raises errors of its own
        raise UserError(f"--storage {url} cannot be written: {type(error).__name__}: {error}") from None
    for node in ray.nodes():
        if node["Alive"]:
            on_node = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            if _answer(_marker.options(scheduling_strategy=on_node).remote(url)) != marker:
                remedy = "is not the storage of this command; name one that all nodes see with --storage"
                raise UserError(f"{url} on the node {node['NodeManagerHostname']} {remedy}")


@ray.remote(num_cpus=0)
def _marker(url: str) -> bytes | None:
    return Storage(url).read(MARKER)
