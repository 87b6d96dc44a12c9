"""How much memory there is, and how much processes have.

psutil is imported by the functions that use it: agent processes import this module, and need none of it.
"""

from __future__ import annotations

from ga3c_tf.host.cgroups import memory_room


def available_bytes() -> float:
    """Return the memory that processes can still have here, a container's limit included."""
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
    """Return a process's memory (PSS) in MiB, each page divided among those that share it.

    None for a process that has ended, waited for or not, and for one that this user may not look at.
    """
    import psutil

    try:
        return psutil.Process(process).memory_full_info().pss / 2**20 or None
    except psutil.Error:
        return None
