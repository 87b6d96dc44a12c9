"""An hour of Pong with an agent process killed every half minute (GA3C_TF_SOAK_MINUTES, _PAUSE change it)."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from checks import alive, descendants, parent_of

from ga3c_tf.runs.csv_rows import EVENT_COLUMNS, METRIC_COLUMNS, read_rows

MINUTES = float(os.environ.get("GA3C_TF_SOAK_MINUTES", 60))
PAUSE_SECONDS = float(os.environ.get("GA3C_TF_SOAK_PAUSE", 30))


def pss_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


@pytest.mark.slow
@pytest.mark.timeout(60 * MINUTES + 300)
def test_soak(tmp_path):
    run, before = tmp_path / "run", set(os.listdir("/dev/shm"))
    words = ["train", "ALE/Pong-v5", "--adjustment", "off", "--agent-processes", "4", "--json", "--seed", "1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "ga3c_tf", *words, "--minutes", str(MINUTES), "--run-dir", run],
        stdout=(tmp_path / "stdout").open("w"),  # a pipe that nobody reads is full after half an hour
        stderr=(tmp_path / "stderr").open("w"),
    )
    chance, kills, server_mib, everyone = random.Random(0), 0, [], set()
    started = next_kill = time.monotonic()
    while process.poll() is None and time.monotonic() < started + 60 * MINUTES:
        time.sleep(1)
        if time.monotonic() < next_kill + PAUSE_SECONDS:
            continue
        next_kill += PAUSE_SECONDS
        forkservers = [child for child in descendants(process.pid) if parent_of(child) == process.pid]
        agents = sorted(set().union(*(descendants(child) for child in forkservers)))
        server_mib.append(pss_mib(process.pid))
        everyone = descendants(process.pid)
        os.kill(chance.choice(agents), signal.SIGKILL)
        kills += 1
    process.wait(timeout=120)
    summary = json.loads((tmp_path / "stdout").read_text().splitlines()[-1])
    events = read_rows(run / "events.csv", EVENT_COLUMNS)
    rates = [float(row["pps"]) for row in read_rows(run / "metrics.csv", METRIC_COLUMNS)]
    after_5 = server_mib[min(int(300 / PAUSE_SECONDS), len(server_mib) - 1)]
    print(f"\n{MINUTES:g} minutes, {kills} kills, {summary['agent_steps']} steps")
    print(f"server's PSS {after_5:.1f} MiB after 5 minutes, {server_mib[-1]:.1f} at the end")
    print(
        f"sent {summary['sent_steps']}, trained {summary['trained_steps']}, PPS {min(rates):.0f} to "
        f"{max(rates):.0f}"
    )
    assert process.returncode == 0 and summary["ended"] == "minutes"
    assert summary["replaced_processes"] == kills and {row["event"] for row in events} == {"lost"}
    # At most: segments in the training queue, and two batches that were gathered.
    waiting = 32 * 5 * 4 + 2 * 25
    killed_in_between = 16 * 4 * 5 * kills  # at most: segments of a killed process that no trainer had read
    assert 0 <= summary["sent_steps"] - summary["trained_steps"] <= waiting + killed_in_between
    assert server_mib[-1] < 1.02 * after_5
    deadline = time.monotonic() + 5  # the forkserver ends when it notices that the server has
    while alive(everyone) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not alive(everyone) and set(os.listdir("/dev/shm")) <= before
