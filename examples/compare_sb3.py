"""Compares A2C and PPO of Stable-Baselines3 with ga3c_tf: the score after equal steps, in one CSV file.

    python examples/compare_sb3.py CartPole-v1 --steps 100000 --seeds 1 2 3 --output scores.csv
    python examples/compare_sb3.py --scores scores.csv

Stable-Baselines3 (`pip install stable-baselines3`) is imported here; ga3c_tf is run by its command, which may
belong to another virtual environment (`--ga3c-tf PATH`). Runs follow one another: seed by seed, and within a
seed in the order given to `--systems`, so that a slow phase of the machine meets all systems.

Both programs have the same network and the settings in compare_sb3_settings.py. The systems are `sb3-a2c` and
`sb3-ppo`; `a2c` and `ppo`, which are `--system a2c` with those settings; and `ga3c` with those of PPO. With
`--options`, `ga3c` has these options instead, and Stable-Baselines3 its defaults. The speed is compared by
compare_sb3_speed.py.

Columns: system, environment, seed, agent_steps, time_s and score. The score is the mean raw score of the last
100 training episodes (fewer at the start) after so many steps. The time is in seconds since
training began: of the processor for Stable-Baselines3, of the clock for ga3c_tf.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from compare_sb3_settings import PAIRS, ga3c_options, sb3_model

POINTS = 50
"""Number of points of each learning curve."""
WINDOW = 100
"""Number of episodes in the mean of a score."""
Episode = tuple[float, int, float]
"""Time in seconds, agent steps and raw score at the end of an episode."""


def train_sb3(
    system: str, environment: str, seed: int, steps: int, usual: bool
) -> tuple[list[Episode], float]:
    """Train with Stable-Baselines3, by its defaults if `usual`; return the episodes and time in seconds."""
    import torch
    from stable_baselines3.common.callbacks import BaseCallback

    episodes: list[Episode] = []

    class Recorder(BaseCallback):
        def _on_step(self) -> bool:
            for info in self.locals["infos"]:
                if "episode" in info:
                    episodes.append((clock() - began, self.num_timesteps, float(info["episode"]["r"])))
            return True

    # The seconds of the processor: the time of this single thread on its own core, whatever else is running.
    clock = time.process_time
    torch.set_num_threads(1)
    algorithm = sb3_model(system, environment, seed, usual)
    began = clock()
    algorithm.learn(steps, callback=Recorder())
    return episodes, clock() - began


def train_ga3c(
    command: str, environment: str, seed: int, steps: int, options: list[str]
) -> tuple[list[Episode], float]:
    """Train with the command `ga3c-tf train`; return the episodes and the total time in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        arguments = [environment, "--steps", str(steps), "--seed", str(seed), "--run-dir", str(run), *options]
        subprocess.run([command, "train", *arguments], check=True, stdout=subprocess.DEVNULL)
        with open(run / "episodes.csv", newline="") as file:
            rows = [
                (float(row["time_s"]), int(row["agent_steps"]), float(row["score"]))
                for row in csv.DictReader(file)
            ]
    return rows, rows[-1][0]


def curve(episodes: list[Episode], steps: int, seconds: float) -> list[tuple[int, float, float]]:
    """Return `POINTS` points of the curve: agent steps, time in seconds, mean score of the last episodes."""
    points = []
    for number in range(1, POINTS + 1):
        limit = steps * number // POINTS
        done = [episode for episode in episodes if episode[1] <= limit]
        if done:
            recent = [score for _, _, score in done[-WINDOW:]]
            points.append((limit, done[-1][0] if number < POINTS else seconds, sum(recent) / len(recent)))
    return points


def table(file: Path) -> str:
    """Return a Markdown table of the scores at equal steps, and at the time that ga3c needed for them."""
    with open(file, newline="") as opened:
        rows = list(csv.DictReader(opened))
    lines = [
        "| environment | system | score | time | score when ga3c has ended |",
        "|---|---|---|---|---|",
    ]
    for environment in dict.fromkeys(row["environment"] for row in rows):
        curves = {}
        for row in rows:
            if row["environment"] == environment:
                point = (float(row["time_s"]), float(row["score"]), int(row["agent_steps"]))
                curves.setdefault(row["system"], {}).setdefault(row["seed"], []).append(point)
        end = statistics.median(points[-1][0] for points in curves["ga3c"].values())
        steps = next(iter(curves["ga3c"].values()))[-1][2]
        for system, by_seed in curves.items():
            scores = [points[-1][1] for points in by_seed.values()]
            seconds = statistics.median(points[-1][0] for points in by_seed.values())
            early = [[score for time_s, score, _ in points if time_s <= end] for points in by_seed.values()]
            then = f"{statistics.mean(scores[-1] for scores in early):.0f}" if all(early) else "-"
            lines.append(
                f"| {environment}, {steps:,} steps | {system} | {statistics.mean(scores):.0f} "
                f"({min(scores):.0f} to {max(scores):.0f}) | {seconds:.0f} s | "
                f"{'' if system == 'ga3c' else then} |"
            )
    return "\n".join(lines)


def scores(file: Path) -> str:
    """Return a Markdown table of the scores at equal steps."""
    with open(file, newline="") as opened:
        rows = list(csv.DictReader(opened))
    steps = {row["environment"]: int(row["agent_steps"]) for row in rows}
    by_system: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if int(row["agent_steps"]) == steps[row["environment"]]:
            by_system.setdefault((row["environment"], row["system"]), []).append(float(row["score"]))
    lines = ["| environment | system | score | seeds |", "|---|---|---|---|"]
    for (environment, system), values in by_system.items():
        lines.append(
            f"| {environment}, {steps[environment]:,} steps | {system} | {statistics.mean(values):.1f} "
            f"({min(values):.1f} to {max(values):.1f}) | {len(values)} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Train each system with each seed, and write the curves."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("environment", nargs="?")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--systems", nargs="+", default=[*PAIRS, "sb3-a2c", "sb3-ppo"])
    parser.add_argument("--output", type=Path, default=Path("scores.csv"))
    parser.add_argument("--table", type=Path, help="print a file's table of scores and times")
    parser.add_argument("--scores", type=Path, help="print a file's table of scores at equal steps")
    parser.add_argument("--ga3c-tf", default="ga3c-tf", help="path of the command ga3c-tf")
    parser.add_argument("--options", help="options of ga3c, beside the defaults of Stable-Baselines3")
    given = parser.parse_args()
    if given.table or given.scores:
        print(table(given.table) if given.table else scores(given.scores))
        return
    if given.options and {*given.systems} & {*PAIRS} - {"ga3c"}:
        parser.error("--options are those of ga3c; give --systems ga3c, and systems of Stable-Baselines3")
    if not given.environment:
        parser.error("name an environment, such as CartPole-v1, or --scores FILE")
    new = not given.output.exists()
    with open(given.output, "a", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(["system", "environment", "seed", "agent_steps", "time_s", "score"])
        for seed in given.seeds:
            for system in given.systems:
                run = (given.environment, seed, given.steps)
                if system in PAIRS:
                    options = (given.options or "").split() or ga3c_options(system, given.environment)
                    episodes, seconds = train_ga3c(given.ga3c_tf, *run, options)
                else:
                    episodes, seconds = train_sb3(system, *run, usual=bool(given.options))
                points = curve(episodes, given.steps, seconds)
                for agent_steps, time_s, score in points:
                    row = [system, given.environment, seed, agent_steps, round(time_s, 2), round(score, 2)]
                    writer.writerow(row)
                file.flush()
                print(
                    system,
                    given.environment,
                    f"seed {seed}: {points[-1][2]:.1f} in {seconds:.0f} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
