"""Description of this machine and of the source and package versions, for the record of a session."""

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
    """Return the versions of Python and of the installed packages that affect a run's results, by name."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def source_version() -> dict:
    """Return the git commit of this package's source ('commit') and whether files have changed since
    ('dirty').

    The source is this package and the packages beside it. Both are None where it is not in a git checkout.
    """

    def git(*arguments):
        return subprocess.run(
            ["git", "-C", str(PACKAGE), *arguments], capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        # Fails where the surrounding checkout is another project.
        git("ls-files", "--error-unmatch", "host/machine.py")
        packages = [str(file.parent) for file in PACKAGE.parent.glob("*/__init__.py")]
        return {
            "commit": git("rev-parse", "HEAD"),
            "dirty": bool(git("status", "--porcelain", "--", *packages)),
        }
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "dirty": None}


def machine() -> dict:
    """Return the processor's name and properties, the usable cores, memory in GiB and operating system."""
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
    """Return the number of cores this process may use: those of its affinity, or fewer under a CPU quota."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cpu_quota()
    return allowed if quota >= allowed else max(1, math.ceil(quota))
