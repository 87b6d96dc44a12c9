"""Executes runs on a Ray cluster, as many at once as it has room for."""

from __future__ import annotations

import contextlib
import json
import os
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayActorError

from ga3c_tf.errors import UserError
from ga3c_tf.host.machine import usable_cores
from ga3c_tf.remote.cluster import connect
from ga3c_tf.reproduce.cluster.ray_task import MARKER, Job
from ga3c_tf.reproduce.cluster.scheduler import RUNNING, WAITING, News, State, scheduler_of
from ga3c_tf.reproduce.cluster.storage import Mirror, Storage
from ga3c_tf.reproduce.runs.archive import RUN_FILE
from ga3c_tf.reproduce.runs.executor import order
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import RunSpec

LOCAL = "local"
POLL_SECONDS = 1.0
PROGRESS_SECONDS = 30.0
AGENTS_PER_CPU = 8


class RayExecutor:
    """Executes each run as a task of a Ray cluster, and keeps its files in a storage that all nodes see.

    Args:
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

    def __init__(
        self,
        address: str,
        storage: str | None,
        cpus: int | None,
        gpus: float | None,
        detach: bool,
        say: Callable[[str], None],
    ):
        if detach and address == LOCAL:
            raise UserError(
                "--detach needs a cluster that outlives the command: begin one with ray start --head"
            )
        self._address = address
        self._storage = storage
        self._cpus = cpus
        self._gpus = gpus
        self._detach = detach
        self._say = say

    def execute(self, specs: Sequence[RunSpec], runs: Path, force: bool) -> list[RecordedRun]:
        """Execute the runs as described for `Executor.execute`.

        Raises:
            UserError: the cluster does not exist or is too small, or not all of its nodes can use the
                storage.
        """
        url = _absolute(self._storage or str(runs.parent))
        try:
            return self._execute(specs, runs, force, url)
        except OSError as error:
            raise UserError(f"--storage {url} or {runs.parent}: {error}") from None

    def _execute(self, specs: Sequence[RunSpec], runs: Path, force: bool, url: str) -> list[RecordedRun]:
        folder = runs.parent.absolute()
        storage = Storage(url)
        left = [spec for spec in specs if force or not RecordedRun.of(spec, runs).ended]
        self._say(f"{len(specs) - len(left)} of {len(specs)} runs have ended")
        if not left:
            return [RecordedRun.of(spec, runs) for spec in specs]
        with self._cluster():
            jobs = [
                job
                for job in jobs_for(sorted(specs, key=order), self._cpus, self._gpus, _nodes())
                if job.spec in left
            ]
            marker = _marker(storage, url)
            if storage.is_folder(folder):
                self._lead(jobs, url, marker, force)
            else:
                mirrors = [Mirror(storage, folder, spec.id) for spec in left]
                for spec, mirror in zip(left, mirrors, strict=True):
                    if (runs / spec.id).exists() and not storage.names(f"runs/{spec.id}"):
                        mirror.push()
                try:
                    self._lead(
                        [job for job in jobs if force or not _ended(storage, job.spec)], url, marker, force
                    )
                except BaseException:
                    if not self._detach:
                        _collect(mirrors, self._say)
                    raise
                _collect(mirrors, self._say)
        return [RecordedRun.of(spec, runs) for spec in specs]

    @contextlib.contextmanager
    def _cluster(self) -> Iterator[None]:
        """Connect to the cluster for the duration of the block."""
        options = {"num_cpus": usable_cores(), "include_dashboard": False} if self._address == LOCAL else {}
        # Else a dead node's log is printed.
        ray._private.worker.print_to_stdstream = lambda *given, **named: None
        connect(self._address, **options)
        try:
            yield
        finally:
            ray.shutdown()

    def _lead(self, jobs: list[Job], url: str, marker: bytes, force: bool) -> None:
        """Have the scheduler execute the runs, and follow them; at a signal, stop them unless `detach`."""
        scheduler = scheduler_of(url)
        command = uuid.uuid4().hex
        try:
            _answer(scheduler.add.remote(jobs, force, marker, command, self._detach))
            self._follow(scheduler, command, [job.spec.id for job in jobs])
        except (KeyboardInterrupt, SystemExit):
            if self._detach:
                self._say("the runs go on; the same command again, without --force, follows them")
            else:
                self._say("every run that no other command wants saves a checkpoint and ends")
                _answer(scheduler.stop.remote(command))
            raise
        except RayActorError:
            raise UserError(
                "what led the runs has ended, with the head node; the same command again resumes"
            ) from None

    def _follow(self, scheduler: ray.actor.ActorHandle, command: str, names: list[str]) -> None:
        """Report the progress of the runs until none is waiting or running."""
        reported = 0
        tell_at = time.monotonic() + PROGRESS_SECONDS
        while True:
            news: News = _answer(scheduler.news.remote(reported, command))
            for line in news.lines:
                self._say(line)
            reported += len(news.lines)
            if news.fault:
                _answer(scheduler.stop.remote(command))
                raise UserError(news.fault)
            states = {name: news.states[name] for name in names}
            if not any(state.status in (WAITING, RUNNING) for state in states.values()):
                return
            if time.monotonic() >= tell_at:
                tell_at = time.monotonic() + PROGRESS_SECONDS
                self._say(summary(states))
            time.sleep(POLL_SECONDS)


def _collect(mirrors: Sequence[Mirror], say: Callable[[str], None]) -> None:
    """Copy the runs from the storage; a run that is further on this machine is kept under another name."""
    for mirror in mirrors:
        if mirror.is_ahead():
            say(f"the storage has an earlier state of a run; the later one is kept in {mirror.set_aside()}")
        mirror.pull()


def _answer(reference: ray.ObjectRef) -> Any:
    """Return the result of an actor's method. Unlike `ray.get`, signal handlers' SystemExit gets through."""
    return reference.future().result()


def summary(states: Mapping[str, State]) -> str:
    """Return one line with the number of runs of each status, and the progress of those that are running."""
    counts = Counter(state.status for state in states.values())
    running = [f"{name}: {state.progress}" for name, state in states.items() if state.status == RUNNING]
    return "; ".join([", ".join(f"{count} {status}" for status, count in counts.items()), *running])


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
    wanted = [_gpus(spec, gpus, nodes) for spec in specs]
    most = [
        max((int(node.get("CPU", 0)) for node in nodes if node.get("GPU", 0) >= need), default=0)
        for need in wanted
    ]
    agents = max((spec.config.most_agents for spec in specs), default=0)
    cores = cpus or max(1, min([agents // AGENTS_PER_CPU, *most]))
    jobs = [Job(spec, cores, need) for spec, need in zip(specs, wanted, strict=True)]
    for job, limit in zip(jobs, most, strict=True):
        if cores > limit:
            largest = max(nodes, key=lambda node: (node.get("GPU", 0) if job.gpus else 0, node.get("CPU", 0)))
            raise UserError(
                f"{job.spec.id} asks for {cores} CPUs and {job.gpus:g} GPUs of one node; the largest has "
                f"{largest.get('CPU', 0):g} CPUs and {largest.get('GPU', 0):g} GPUs (--cpus-per-run, "
                "--gpus-per-run)"
            )
    return jobs


def _gpus(spec: RunSpec, given: float | None, nodes: Sequence[Mapping[str, float]]) -> float:
    """Return the GPUs that a run asks for: as given, or one if it can use it and there is any.

    Raises:
        UserError: `given` is neither a share of one GPU nor a whole number.
    """
    if given is None:
        config = spec.config
        return float(
            config.system != "a3c" and config.device != "cpu" and any(node.get("GPU") for node in nodes)
        )
    if given > 1 and given % 1:
        raise UserError(
            f"--gpus-per-run is {given:g}; it must be a share of one GPU, or a whole number of them"
        )
    return given


def _nodes() -> list[dict[str, float]]:
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def _absolute(url: str) -> str:
    return url if "://" in url else os.path.abspath(url)


def _marker(storage: Storage, url: str) -> bytes:
    """Return the content of `MARKER`, which identifies the storage; write it if there is none yet."""
    try:
        if storage.read(MARKER) is None:
            storage.write([(MARKER, uuid.uuid4().hex.encode())])
        return storage.read(MARKER) or b""
    except Exception as error:  # each file system raises errors of its own
        raise UserError(f"--storage {url} cannot be written: {type(error).__name__}: {error}") from None


def _ended(storage: Storage, spec: RunSpec) -> bool:
    """Return whether the storage has a result of the run."""
    file = f"runs/{spec.id}/{RUN_FILE}"
    content = storage.read(file)
    if content is None:
        return False
    try:
        result = json.loads(content)
        return RecordedRun(spec, Path(file), {name: result[name] for name in ("status", "ended")}).ended
    except (ValueError, KeyError, TypeError):
        raise UserError(
            f"{file} in the storage is damaged; remove runs/{spec.id} there to run it again"
        ) from None
