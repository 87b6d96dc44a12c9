"""The machine: limits of containers, memory, processes and cores, and what libraries are told of it."""

import contextlib
import math
import os
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import psutil
import pytest

from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.host import libraries, machine, resources, scheduling
from ga3c_tf.host.processes import process_group
from ga3c_tf.host.resources import open_files_allowed
from ga3c_tf.host.signals import TimeLimitReached, time_limit

GIB = 2**30


@pytest.fixture
def group(tmp_path, monkeypatch):
    """Makes this process a member of control groups with these files."""
    monkeypatch.setattr(resources, "MOUNT", tmp_path / "mount")
    monkeypatch.setattr(resources, "OWN", tmp_path / "own")
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
        # A limit further up holds too.
        ("0::/a/b", {"a/cpu.max": "400000 100000", "a/b/cpu.max": "max 100000"}, 4),
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
    assert machine.usable_cores() == machine.machine()["cores"] == cores


STAT = "anon 1000\nfile 9000000000\nactive_file 3221225472\ninactive_file 4294967296\nshmem 1234567"


@pytest.mark.parametrize(
    ("own", "files", "room"),
    [
        # 7 GiB of files that the kernel would give up; shared memory, which it keeps, counts in `file` only
        ("0::/", {"memory.max": 10 * GIB, "memory.current": 10 * GIB, "memory.stat": STAT}, 7 * GIB),
        ("0::/", {"memory.max": 10 * GIB, "memory.current": 4 * GIB}, 6 * GIB),
        ("0::/", {"memory.max": "max", "memory.current": 4 * GIB}, math.inf),
        (
            "4:memory:/x",
            {
                "memory/x/memory.limit_in_bytes": 10 * GIB,
                "memory/x/memory.usage_in_bytes": 10 * GIB,
                "memory/x/memory.stat": (
                    "total_active_file 1073741824\ntotal_inactive_file 1073741824\nactive_file 1"
                ),
            },
            2 * GIB,
        ),
    ],
)
def test_cached_files_are_room(group, monkeypatch, own, files, room):
    group(own, files)
    assert resources.memory_room() == room
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=99 * GIB))
    assert resources.available_bytes() == min(room, 99 * GIB)


def test_this_machine_tells_something():
    assert resources.cpu_quota() > 0 and 0 < resources.available_bytes() < math.inf


# memory and processes, against what the kernel says


def test_available_and_total_memory_are_those_of_the_kernel(group):
    group("", {})
    with open("/proc/meminfo") as stream:
        kernel = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in stream}
    assert resources.available_bytes() == pytest.approx(kernel["MemAvailable"], rel=0.1)
    assert resources.total_gib() * GIB == kernel["MemTotal"]
    assert machine.machine()["memory_gib"] == round(kernel["MemTotal"] / GIB, 1)


def test_resident_memory_is_that_of_this_process_in_mib():
    """In a process of its own: other tests leave threads whose memory changes."""
    program = (
        "from ga3c_tf.host import resources\n"
        "before = resources.resident_mib()\n"
        "held = b'x' * (50 * 2**20)\n"
        "print(resources.resident_mib() - before)"
    )
    assert 45 < float(subprocess.check_output([sys.executable, "-c", program])) < 60


@pytest.fixture
def ended():
    """A process that has ended and is not waited for."""
    process = subprocess.Popen(["true"])
    while psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    yield process.pid
    process.wait()


def test_proportional_memory_is_known_of_processes_that_live(ended):
    with open("/proc/self/smaps_rollup") as stream:
        [kernel] = [int(line.split()[1]) / 1024 for line in stream if line.startswith("Pss:")]
    assert resources.proportional_mib(os.getpid()) == pytest.approx(kernel, rel=0.2)
    assert resources.proportional_mib(ended) is None
    assert resources.proportional_mib(2**22 + 1) is None


def test_a_group_has_all_its_processes_with_parent_and_processor_time(ended):
    work = (
        "import time; start = time.process_time()\n"
        "while time.process_time() < 0.3: pass\nprint(flush=True); input()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", work],
        process_group=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    child.stdout.readline()
    own, other = process_group(os.getpgid(0)), process_group(child.pid)
    child.communicate("\n")
    assert own[os.getpid()]["parent"] == os.getppid() and own[os.getpid()]["cpu_s"] > 0
    assert own[ended]["parent"] == os.getpid() and child.pid not in own
    assert list(other) == [child.pid] and other[child.pid]["parent"] == os.getpid()
    assert 0.25 < other[child.pid]["cpu_s"] < 3
    assert process_group(child.pid) == {}


def test_agent_processes_do_without_psutil():
    program = "import sys, ga3c_tf.workers.agent_process; sys.exit('psutil' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


# cores


def test_work_makes_the_cores_busy():
    before, start = scheduling.busy_seconds(), time.monotonic()
    work_until = time.process_time() + 0.3
    while time.process_time() < work_until:
        pass
    busy = scheduling.busy_seconds() - before
    assert 0.2 < busy <= (time.monotonic() - start + 0.1) * len(os.sched_getaffinity(0))


def test_only_the_cores_that_this_process_may_use_count_by_their_number(tmp_path, monkeypatch):
    """Core 1 is offline, so that the second line is that of core 2."""
    columns = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"]
    of_core = {
        0: [100, 20, 30, 400, 50, 6, 7, 8, 90, 10],
        2: [9000] * len(columns),
        3: [1, 1, 1, 1, 1, 1, 1, 1, 0, 0],
    }
    lines = ["cpu " + " ".join(str(sum(ticks)) for ticks in zip(*of_core.values(), strict=True))]
    lines += [f"cpu{core} " + " ".join(map(str, ticks)) for core, ticks in of_core.items()]
    (tmp_path / "stat").write_text("\n".join([*lines, "intr 12345 0 1", "ctxt 6"]) + "\n")
    monkeypatch.setattr(scheduling, "Path", lambda file: tmp_path / "stat")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 3})
    assert scheduling._core_times() == (450 + 2, 621 + 8)
    assert scheduling.busy_seconds() == (171 + 6) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize(
    ("limits", "allowed", "set_to"),
    [
        ((1024, 4096), 2000, (2000, 4096)),
        ((3000, 4096), 3000, None),
        ((1024, 1500), 1500, (1500, 1500)),
        ((1024, resource.RLIM_INFINITY), 2000, (2000, resource.RLIM_INFINITY)),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), 2000, None),
    ],
)
def test_the_limit_of_open_files_is_raised_as_far_as_needed(monkeypatch, limits, allowed, set_to):
    set_limits = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda kind, values: set_limits.append(values))
    assert open_files_allowed(2000) == allowed
    assert set_limits == ([set_to] if set_to else [])


@pytest.mark.parametrize(
    ("changed", "dirty"),
    [("ga3c_tf/host/machine.py", True), ("beside/templates/page.md", True), ("docs/page.md", False)],
)
def test_a_changed_source_is_noticed_also_in_a_package_beside_this_one(tmp_path, monkeypatch, changed, dirty):
    """Runs are recorded as dirty if the source that made them is not what was committed."""

    def git(*words):
        identity = ("-c", "user.name=x", "-c", "user.email=x@x")
        subprocess.run(["git", "-C", tmp_path, *identity, *words], check=True, capture_output=True)

    for name in ("ga3c_tf/host/machine.py", "ga3c_tf/__init__.py", "beside/__init__.py", "docs/page.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("before")
    git("init")
    git("add", ".")
    git("commit", "-m", "all")
    monkeypatch.setattr(machine, "PACKAGE", tmp_path / "ga3c_tf")
    before = machine.source_version()
    assert len(before["commit"]) == 40 and before["dirty"] is False
    (tmp_path / changed).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / changed).write_text("after")
    assert machine.source_version() == {"commit": before["commit"], "dirty": dirty}


# where TensorFlow is told to use oneDNN


ON_AVX2 = {"flags": ["avx2"]}
ON_AVX512 = {"flags": ["avx2", "avx512_vnni"]}
ELSEWHERE = {"flags": []}


@pytest.mark.parametrize(
    ("machine", "users", "decided"),
    [
        (ON_AVX2, None, "on"),
        (ON_AVX512, None, "on"),
        (ELSEWHERE, None, "as TensorFlow decides"),
        (ON_AVX2, "0", "off"),
        (ON_AVX2, "False", "off"),
        (ELSEWHERE, "1", "on"),
    ],
)
def test_onednn_is_on_with_avx2_unless_the_user_decides(monkeypatch, machine, users, decided):
    monkeypatch.setattr(libraries, "processor", lambda: machine)
    monkeypatch.setenv(libraries.SWITCH, users or "")  # put back afterwards as it was
    if users is None:
        monkeypatch.delenv(libraries.SWITCH)
    before = libraries.onednn()
    libraries.enable_onednn()
    assert libraries.onednn() == decided
    assert libraries.enabled_too_late(before) is (machine is ON_AVX2 and users is None)
    assert not libraries.enabled_too_late(libraries.onednn())


TRAINING = """
import sys
from ga3c_tf.config import Config
from ga3c_tf.runner import new_training
config = Config(env_id=sys.argv[1], num_agents=1, steps=1, seed=1, run_dir=sys.argv[2])
_, run = new_training(config, ["train"], print)
run.close()
from ga3c_tf.model.tensorflow import ONEDNN
print(ONEDNN)
"""


@pytest.mark.skipif("avx2" not in libraries.processor()["flags"], reason="needs a processor with AVX2")
@pytest.mark.parametrize(
    ("env_id", "decided"),
    [
        ("ALE/Pong-v5", "on"),
        pytest.param("CartPole-v1", "as TensorFlow decides", marks=pytest.mark.slow),
    ],
)
def test_a_training_on_screens_decides_before_tensorflow_is_imported(tmp_path, env_id, decided):
    without = {name: value for name, value in os.environ.items() if name != libraries.SWITCH}
    words = [sys.executable, "-c", TRAINING, env_id, tmp_path / "run"]
    done = subprocess.run(words, capture_output=True, text=True, env=without)
    assert done.stdout.splitlines()[-1:] == [decided], done.stderr
    assert f'"onednn": "{decided}"' in (tmp_path / "run" / "meta.json").read_text()


@pytest.mark.parametrize(
    ("shape", "screen"), [((84, 84, 4), True), ((10, 10, 10), False), ((28_224,), False)]
)
def test_what_counts_as_a_screen(shape, screen):
    assert EnvironmentSpec(shape, "uint8", 2).is_screen is screen


def test_a_time_limit_is_no_error_of_the_operating_system():
    with (
        pytest.raises(TimeLimitReached, match=r"^not done after 0.05 s$"),
        time_limit(0.05),
        contextlib.suppress(OSError),
    ):
        time.sleep(30)


@pytest.mark.parametrize(("policy", "after"), [("OTHER", "BATCH"), ("BATCH", "BATCH"), ("IDLE", "IDLE")])
def test_a_policy_that_the_user_chose_is_left(policy, after):
    def scheduled():
        os.sched_setscheduler(0, getattr(os, f"SCHED_{policy}"), os.sched_param(0))
        scheduling.schedule_as("tuned")
        return os.sched_getscheduler(0)

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(scheduled).result() == getattr(os, f"SCHED_{after}")
