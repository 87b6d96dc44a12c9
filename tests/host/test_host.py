"""The limits of containers: cores by quota, memory without what the kernel would give up."""

import math
import os

import pytest

from ga3c_tf.host import cgroups, memory
from ga3c_tf.runs import folder as run_folder

GIB = 2**30


@pytest.fixture
def group(tmp_path, monkeypatch):
    """Makes this process a member of control groups with these files."""
    monkeypatch.setattr(cgroups, "MOUNT", tmp_path / "mount")
    monkeypatch.setattr(cgroups, "OWN", tmp_path / "own")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(64)))

    def make(own, files):
        (tmp_path / "own").write_text(own)
        for name, text in files.items():
            path = tmp_path / "mount" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")

    return make


@pytest.mark.parametrize(
    ("own", "files", "cores"),
    [
        ("0::/", {"cpu.max": "200000 100000"}, 2),  # docker --cpus 2
        ("0::/", {"cpu.max": "150000 100000"}, 2),
        ("0::/", {"cpu.max": "50000 100000"}, 1),
        ("0::/", {"cpu.max": "max 100000"}, 64),
        ("0::/", {"cpu.max": "9900000 100000"}, 64),
        ("0::/a/b", {"a/cpu.max": "400000 100000", "a/b/cpu.max": "max 100000"}, 4),  # a limit further up holds too
        ("0::/docker/x", {"cpu.max": "300000 100000"}, 3),  # the container sees its own group as the root
        (
            "3:cpu,cpuacct:/x\n1:name=systemd:/",
            {"cpu/x/cpu.cfs_quota_us": 250000, "cpu/x/cpu.cfs_period_us": 100000},
            3,
        ),
        ("3:cpu:/", {"cpu/cpu.cfs_quota_us": -1, "cpu/cpu.cfs_period_us": 100000}, 64),
        ("", {}, 64),
    ],
)
def test_a_quota_is_cores_that_cannot_be_used(group, own, files, cores):
    group(own, files)
    assert run_folder.usable_cores() == run_folder.machine()["cores"] == cores


STAT = "anon 1000\nfile 9000000000\nactive_file 3221225472\ninactive_file 4294967296\nshmem 1234567"


@pytest.mark.parametrize(
    ("own", "files", "room"),
    [
        # 7 GiB of files that the kernel would give up; shared memory, which it would not, is counted in `file` only
        ("0::/", {"memory.max": 10 * GIB, "memory.current": 10 * GIB, "memory.stat": STAT}, 7 * GIB),
        ("0::/", {"memory.max": 10 * GIB, "memory.current": 4 * GIB}, 6 * GIB),
        ("0::/", {"memory.max": "max", "memory.current": 4 * GIB}, math.inf),
        (
            "4:memory:/x",
            {
                "memory/x/memory.limit_in_bytes": 10 * GIB,
                "memory/x/memory.usage_in_bytes": 10 * GIB,
                "memory/x/memory.stat": "total_active_file 1073741824\ntotal_inactive_file 1073741824\nactive_file 1",
            },
            2 * GIB,
        ),
    ],
)
def test_cached_files_are_room(group, monkeypatch, own, files, room):
    group(own, files)
    assert cgroups.memory_room() == room
    monkeypatch.setattr(memory, "_read", lambda file: "MemAvailable: 99999999999 kB\n")
    assert memory.available_bytes() == min(room, 99999999999 * 1024)


def test_this_machine_tells_something():
    assert cgroups.cpu_quota() > 0 and 0 < memory.available_bytes() < math.inf
