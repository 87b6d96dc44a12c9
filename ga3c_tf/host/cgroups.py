"""Reads the limits of Linux control groups (v1 and v2) for this process, as in a container or service."""

from __future__ import annotations

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
