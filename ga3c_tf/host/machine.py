"""Description of this machine, and of the versions of source and packages, for the record of a session."""

from __future__ import annotations

import math
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

from ga3c_tf.host.resources import cpu_quota, total_gib

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
SERVER_CORES = 2
"""Cores that predictors and trainers keep busy while they feed a GPU."""
CPUINFO = Path("/proc/cpuinfo")
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
FLAGS = ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "avx_vnni")
"""Instruction sets that the speed of predictions and updates depends on most, as named in /proc/cpuinfo."""


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
    return {
        "cpu": _first_core().get("model name") or platform.processor() or platform.machine(),
        "processor": processor(),
        "cores": usable_cores(),
        "memory_gib": round(total_gib(), 1),
        "os": platform.platform(),
    }


def allowed_cores() -> int:
    """Return the number of cores of the affinity of this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def usable_cores() -> int:
    """Return the number of cores this process may use: those of its affinity, or fewer under a CPU quota."""
    allowed = allowed_cores()
    quota = cpu_quota()
    return allowed if quota >= allowed else max(1, math.ceil(quota))


def agent_cores(cores: int, on_gpu: bool) -> int:
    """Return how many of the usable cores are for processes of agents: with a GPU, all but `SERVER_CORES`."""
    return max(1, cores - SERVER_CORES) if on_gpu else cores


def processor() -> dict:
    """Return the properties that distinguish this machine's processor from others.

    Returns:
        A dict with
            'vendor', 'family', 'model', 'stepping': as the kernel reports them; None where it does not (ARM).
            'flags': those of `FLAGS` that the processor has.
            'caches': sizes of the first core's caches, as the kernel writes them, by name such as 'L1 data'.
            'quota': processor time that this process is limited to, in cores; None without a limit.
    """
    said = _first_core()
    flags = said.get("flags", said.get("Features", "")).split()
    quota = cpu_quota()
    return {
        "vendor": said.get("vendor_id"),
        "family": said.get("cpu family"),
        "model": said.get("model"),
        "stepping": said.get("stepping"),
        "flags": [flag for flag in FLAGS if flag in flags],
        "caches": _caches(),
        "quota": quota if math.isfinite(quota) else None,
    }


def _first_core() -> dict[str, str]:
    """Return the entries of /proc/cpuinfo for the first core, or an empty dict without that file."""
    try:
        lines = CPUINFO.read_text().split("\n\n")[0].splitlines()
    except OSError:
        return {}
    entries = (line.partition(":") for line in lines)
    return {name.strip(): value.strip() for name, _, value in entries}


def _caches() -> dict[str, str]:
    sizes = {}
    for folder in sorted(CACHES.glob("index*")):
        try:
            level, kind, size = ((folder / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        sizes[f"L{level}" if kind == "Unified" else f"L{level} {kind.lower()}"] = size
    return sizes
