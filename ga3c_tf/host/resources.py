"""Processor time, memory and open files that this process may use, also in a container.

Functions import psutil themselves, because agent processes import this module and do not need psutil.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")


def cpu_quota() -> float:
    """Return the processor time this process may use, in cores (such as 2.5), or infinity without a limit."""
    quotas = [float("inf")]
    for folder in _folders(""):
        quota, _, period = _read(folder / "cpu.max").partition(" ")
        quotas += _ratio(quota, period)
    for folder in _folders("cpu"):
        quotas += _ratio(_read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us"))
    return min(quotas)


def memory_room() -> float:
    """Return the memory that this process's groups can still allocate, in bytes, or infinity without a limit.

    The kernel counts cached pages of files as used memory, but frees them when memory is needed. They count
    as free here.
    """
    rooms = [float("inf")]
    for folder in _folders(""):
        rooms += _room(folder, "memory.max", "memory.current", ("active_file", "inactive_file"))
    for folder in _folders("memory"):
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
        rooms += _room(folder, *names, ("total_active_file", "total_inactive_file"))
    return min(rooms)


def _folders(controller: str) -> Iterator[Path]:
    """Yield the folders of this process's group and of all groups above it. The limits of all of them apply.

    Args:
        controller: name of a version 1 controller, or '' for version 2.
    """
    for line in _read(OWN).splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            mount = MOUNT / controller
            cgroup = mount / path.strip("/")
            yield cgroup
            yield from (parent for parent in cgroup.parents if parent.is_relative_to(mount))


def _ratio(quota: str, period: str) -> list[float]:
    """Return the quota in cores as a list of one number; the list is empty without a quota ('max' or -1)."""
    return [int(quota) / int(period)] if quota.isdigit() and period.isdigit() and int(period) else []


def _room(folder: Path, limit_name: str, usage_name: str, file_names: tuple[str, str]) -> list[float]:
    """Return the rest of a group's memory limit, in bytes, as a list of one number, empty without a limit."""
    limit = _read(folder / limit_name)
    usage = _read(folder / usage_name)
    if not (limit.isdigit() and usage.isdigit()):
        return []
    entries = dict(line.split(" ", 1) for line in _read(folder / "memory.stat").splitlines() if " " in line)
    reclaimable = sum(int(entries.get(name, 0)) for name in file_names)
    return [float(limit) - float(usage) + reclaimable]


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def available_bytes() -> float:
    """Return the memory that processes can still allocate, in bytes, within the limit of a container."""
    import psutil

    return max(0.0, min(memory_room(), psutil.virtual_memory().available))


def total_gib() -> float:
    """Return the memory of this machine in GiB."""
    import psutil

    return psutil.virtual_memory().total / 2**30


def resident_mib() -> float:
    """Return the resident memory of this process in MiB."""
    import psutil

    return psutil.Process().memory_info().rss / 2**20


def proportional_mib(process: int) -> float | None:
    """Return the proportional set size (PSS) of a process in MiB: shared pages are divided among their
    processes.

    Return None for a process that has ended (zombies included), or that this user may not inspect.

    Args:
        process: id of the process.
    """
    import psutil

    try:
        return psutil.Process(process).memory_full_info().pss / 2**20 or None
    except psutil.Error:
        return None


def open_files_allowed(wanted: int) -> int:
    """Raise the soft limit of open files to `wanted`, or as far as the hard limit allows, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return max(soft, wanted)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed
