"""Memory of the machine and of processes.

Functions import psutil themselves, because agent processes import this module and do not need psutil.
"""

from __future__ import annotations

from ga3c_tf.host.cgroups import memory_room


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
