"""Identification of the processor. Its name alone is not enough, above all on rented machines."""

from __future__ import annotations

import math
from pathlib import Path

from ga3c_tf.host.cgroups import cpu_quota

CPUINFO = Path("/proc/cpuinfo")
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
FLAGS = ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "avx_vnni")
"""Instruction sets that the speed of predictions and updates depends on most, as named in /proc/cpuinfo."""


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
