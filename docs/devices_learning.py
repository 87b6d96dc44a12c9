"""Trains with one, two and four logical devices of the CPU: the table of learning in docs/devices.md.

python docs/devices_learning.py FOLDER    # makes the runs that data/devices-learning.csv lacks

Frozen before the first run: settings, seeds, steps, and the measure, which is the mean score of the training
episodes that ended in the last tenth of the steps. Three seeds cannot show that learning is the same; that an
update is the same is shown by tests/algorithms/test_replicas.py. So the table is an observation.
"""

import csv
import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np

import ga3c_tf

SEEDS = (11, 12, 13)
TASKS = {
    "CartPole-v1": "--preset tuned-vector --steps 100000",
    "MinAtar/Breakout-v1": "--preset tuned-small --steps 500000",
}
DEVICES = {
    "1": "",
    "2, mean": "--devices cpu:2 --sync mean",
    "4, mean": "--devices cpu:4 --sync mean",
    "2, none": "--devices cpu:2 --sync none",
    "4, none": "--devices cpu:4 --sync none",
}
RECORD = Path(__file__).parent / "data" / "devices-learning.csv"


def score_at_end(run):
    """Return the mean score of the episodes that ended in the last tenth of the steps."""
    episodes = run.episodes()
    return np.mean(episodes["score"][episodes["agent_steps"] > 0.9 * run.config.steps])


def train_what_is_missing(folder):
    recorded = {(row["environment"], row["devices"], int(row["seed"])) for row in rows()}
    for env_id, seed, devices in itertools.product(TASKS, SEEDS, DEVICES):
        if (env_id, devices, seed) in recorded:
            continue
        path = Path(folder) / f"{env_id}-{devices}-{seed}".replace("/", "-").replace(", ", "-")
        command = f"ga3c-tf train {env_id} --seed {seed} --run-dir {path} {TASKS[env_id]} {DEVICES[devices]}"
        subprocess.run(command.split(), check=True)  # TensorFlow has its devices for a whole process
        with RECORD.open("a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(
                [env_id, devices, seed, f"{score_at_end(ga3c_tf.Run(path)):.1f}"]
            )


def rows():
    with RECORD.open(newline="") as file:
        return list(csv.DictReader(file))


def table():
    """Return the scores of the seeds by task and devices, in Markdown."""
    lines = [f"| devices | {' | '.join(TASKS)} |", "|---|" + "---|" * len(TASKS)]
    for devices in DEVICES:
        cells = []
        for env_id in TASKS:
            of_cell = [row for row in rows() if (row["environment"], row["devices"]) == (env_id, devices)]
            cells.append(", ".join(f"{float(row['score']):.3g}" for row in of_cell))
        lines.append(f"| {devices} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    train_what_is_missing(sys.argv[1])
    print(table())
