"""The number of files that this process may have open."""

from __future__ import annotations

import resource


def open_files_allowed(wanted: int) -> int:
    """Raise the soft limit of open files to `wanted`, or as far as the hard limit allows, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return max(soft, wanted)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed
