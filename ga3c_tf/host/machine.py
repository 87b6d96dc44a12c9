"""What this machine is, and which source and versions ran on it: what a session's record says."""

from __future__ import annotations

import contextlib
import math
import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path

from ga3c_tf.host.cgroups import cpu_quota
from ga3c_tf.host.memory import total_gib
from ga3c_tf.host.processor import processor

PACKAGE = Path(__file__).resolve().parents[1]
PACKAGES = (
    "ga3c_tf",
    "tensorflow",
    "tensorflow-cpu",
    "keras",
    "numpy",
    "gymnasium",
    "ale-py",
    "opencv-python-headless",
    "pillow",
    "minatar",
)


def package_versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages that a run's numbers depend on."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def source_version() -> dict:
    """Return the git commit of this package's source and whether it was changed since; None without a checkout."""

    def git(*arguments):
        return subprocess.run(
            ["git", "-C", str(PACKAGE), *arguments], capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "host/machine.py")  # or the checkout around it is somebody else's
        return {
            "commit": git("rev-parse", "HEAD"),
            "dirty": bool(git("status", "--porcelain", "--", ".", "../reproduce")),
        }
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "dirty": None}


def machine() -> dict:
    """Return the processor's name and identity, the cores this process may use, memory in GiB, operating system."""
    cpu = platform.processor() or platform.machine()
    with contextlib.suppress(OSError, AttributeError):
        cpu = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())[1]  # type: ignore[index]
    return {
        "cpu": cpu,
        "processor": processor(),
        "cores": usable_cores(),
        "memory_gib": round(total_gib(), 1),
        "os": platform.platform(),
    }


def usable_cores() -> int:
    """Return the number of cores that this process may use: its affinity, or fewer under a quota of their time."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cpu_quota()
    return allowed if quota >= allowed else max(1, math.ceil(quota))
