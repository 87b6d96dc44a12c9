"""How much memory there is, and how much this process has. Linux only, as shared memory is here."""

from __future__ import annotations

import os
from pathlib import Path

from ga3c_tf.host.cgroups import memory_room


def available_bytes() -> float:
    """Memory that processes can still have here, a container's limit included; infinite where nothing tells."""
    rooms = [memory_room()]
    for line in _read("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable"):
            rooms.append(float(line.split()[1]) * 1024)
    return max(0.0, min(rooms))


def resident_mib() -> float:
    """Resident memory of this process in MiB; not-a-number where /proc does not tell."""
    fields = _read("/proc/self/statm").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20 if fields else float("nan")


def _read(file: str) -> str:
    try:
        return Path(file).read_text()
    except OSError:
        return ""
