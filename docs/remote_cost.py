"""What a remote agent costs against a local one: processor time by kind of process, on one machine with two
Ray nodes.

python docs/remote_cost.py [BLOCKS]; each block measures every setting once and prints one line of JSON for
each.
"""

import csv
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from ray.cluster_utils import Cluster

WARM_UP_ROWS, SECONDS = 15, 20.0
COMMON = [
    "ALE/Pong-v5",
    "--adjustment",
    "off",
    "--seed",
    "1",
    "--log-seconds",
    "1",
    "--min-training-batch",
    "40",
]
REMOTE = ["--agents", "1", "--remote-agents"]
SETTINGS = {
    "32 local": ["--agents", "32"],
    "32 remote": [*REMOTE, "32", "--agents-per-actor", "32"],
    "64 remote": [*REMOTE, "64", "--agents-per-actor", "64"],
}
RAYS_OWN = (
    "raylet",
    "gcs_server",
    "ray::",
    "dashboard",
    "default_worker",
    "runtime_env",
    "log_monitor",
    "monitor.py",
)


def kind_of(process: psutil.Process, server: int) -> str | None:
    words = " ".join(process.cmdline())
    if process.pid == server:
        return "server"
    if "ray::RemoteAgents" in words:
        return "actor"
    if any(word in words for word in RAYS_OWN):
        return "ray"
    if server in [parent.pid for parent in process.parents()]:
        return "bridge" if any("_raylet" in part.path for part in process.memory_maps()) else "agents"
    return None


def processor_seconds(server: int) -> dict[str, float]:
    total = dict.fromkeys(("server", "agents", "bridge", "actor", "ray"), 0.0)
    for process in psutil.process_iter():
        try:
            kind = kind_of(process, server)
            times = process.cpu_times()
        except psutil.Error:
            continue
        if kind:
            total[kind] += times.user + times.system
    return total


def rows_of(file: Path) -> list[dict[str, float | str]]:
    if not file.exists():
        return []
    with file.open() as stream:
        return [
            {name: text if name == "node" else float(text or "nan") for name, text in row.items()}
            for row in csv.DictReader(stream)
        ]


def mean(rows: list[dict], column: str) -> float:
    return sum(row[column] for row in rows) / len(rows)


def measure(name: str, words: list[str], address: str, folder: Path) -> dict:
    ray = ["--ray", address] if "--remote-agents" in words else []
    command = [sys.executable, "-m", "ga3c_tf", "train", *COMMON, *words, *ray, "--run-dir", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while len(rows_of(folder / "metrics.csv")) < WARM_UP_ROWS:
        if process.poll() is not None:
            sys.exit("the training ended")
        time.sleep(0.5)
    before, start = processor_seconds(process.pid), time.monotonic()
    since = rows_of(folder / "metrics.csv")[-1]["time_s"]
    time.sleep(SECONDS)
    after, seconds = processor_seconds(process.pid), time.monotonic() - start
    rows = [row for row in rows_of(folder / "metrics.csv") if row["time_s"] > since]
    nodes = [row for row in rows_of(folder / "nodes.csv") if row["time_s"] > since]
    process.send_signal(signal.SIGINT)
    process.wait()
    there = [row for row in nodes if row["node"] != "server"]
    steps = {"all": mean(rows, "pps"), "there": mean(there, "pps") if there else 0.0}
    steps["here"] = steps["all"] - steps["there"]
    whose = {"server": "all", "agents": "here", "bridge": "there", "actor": "there", "ray": "there"}
    return {
        "setting": name,
        "pps": {place: round(value, 1) for place, value in steps.items()},
        "ms_per_step": {
            kind: round(1000 * (after[kind] - before[kind]) / seconds / steps[place], 4)
            for kind, place in whose.items()
            if steps[place]
        },
        "policy_lag": round(mean(there or rows, "policy_lag_mean"), 2),
        "round_trip_ms": round(mean(there, "round_trip_ms"), 2) if there else None,
        "steps_per_call": round(steps["there"] * mean(there, "round_trip_ms") / 1000, 1) if there else None,
    }


def main() -> None:
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    cluster.add_node(num_cpus=2)
    for block in range(int(sys.argv[1]) if len(sys.argv) > 1 else 1):
        for name, words in SETTINGS.items():
            with tempfile.TemporaryDirectory() as folder:
                print(
                    json.dumps(measure(name, words, cluster.address, Path(folder) / f"run-{block}")),
                    flush=True,
                )
    cluster.shutdown()


if __name__ == "__main__":
    main()
