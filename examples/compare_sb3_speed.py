"""Compares the speed of Stable-Baselines3 and ga3c_tf with the settings of compare_sb3_settings.py.

    python examples/compare_sb3_speed.py CartPole-v1 --output speed.json

All systems start, and then train in turn, `--repeats` times: while one trains for `--seconds`, the others are
stopped (SIGSTOP). The result is agent steps per second, and the processor time per step, which depends less
on what else the machine does. The table has the medians of the turns that other programs did not disturb,
or the turn that they disturbed least. Results are added to the file.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from compare_sb3_settings import PAIRS, ga3c_options, sb3_model

ENDLESS = 10**9
"""Agent steps of a run that is ended from outside."""
SYSTEMS = ("sb3-a2c", "a2c", "sb3-ppo", "ppo", "ga3c")
ROW_SECONDS = 0.2
"""Least time between two rows of steps."""
DISTURBED = 0.15
"""Cores that other programs may use during an undisturbed turn."""
Turn = tuple[float, float, float]
"""Agent steps per second, microseconds of processor time per agent step, cores that other programs used."""


class Side:
    """One system, which trains in a process group of its own and writes rows with time_s and agent_steps."""

    def __init__(self, system: str, environment: str, command: str, folder: Path, threads: int):
        run = folder / system
        if system in PAIRS:
            options = [*ga3c_options(system, environment), "--log-seconds", str(ROW_SECONDS)]
            words = [command, "train", environment, *options, "--steps", str(ENDLESS), "--run-dir", str(run)]
            self._file = run / "metrics.csv"
        else:
            self._file = folder / f"{system}.csv"
            words = [sys.executable, __file__, environment, "--train", system, "--output", str(self._file)]
            words += ["--threads", str(threads)]
        self._output = open(folder / f"{system}.txt", "w")  # noqa: SIM115
        self._process = subprocess.Popen(
            words, stdout=self._output, stderr=subprocess.STDOUT, start_new_session=True
        )

    def rows(self) -> list[tuple[float, float]]:
        """Return the time in seconds and the agent steps of each complete row since the first step."""
        if self._process.poll() is not None:
            sys.exit(Path(self._output.name).read_text())
        if not self._file.exists():
            return []
        text = self._file.read_text()
        rows = csv.DictReader(text[: text.rfind("\n") + 1].splitlines())
        steps = [(float(row["time_s"]), float(row["agent_steps"])) for row in rows]
        return [row for row in steps if row[1] > 0]

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all processes of the system."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def end(self) -> None:
        """End all processes of the system."""
        self.signal(signal.SIGKILL)
        self._process.wait()
        self._output.close()

    def processor_seconds(self) -> float:
        """Return the processor time that the processes of the system have used."""
        ticks = 0
        for file in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):  # a process has ended
                fields = file.read_text().rpartition(")")[2].split()
                if int(fields[2]) == self._process.pid:
                    ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def turn(self, seconds: float) -> Turn:
        """Let the system train for some seconds, or for three rows."""
        earlier = self.rows()
        used, busy, began = self.processor_seconds(), busy_seconds(), time.monotonic()
        self.signal(signal.SIGCONT)
        time.sleep(seconds)
        while len(self.rows()) < len(earlier) + 3:
            time.sleep(0.1)
        self.signal(signal.SIGSTOP)
        used, busy = self.processor_seconds() - used, busy_seconds() - busy
        others = (busy - used) / (time.monotonic() - began)
        rows = self.rows()
        first, last = rows[len(earlier) + 1], rows[-1]  # the row before `first` may cover the stop
        speed = (last[1] - first[1]) / (last[0] - first[0])
        return round(speed, 1), round(1e6 * used / (last[1] - earlier[-1][1]), 1), round(others, 2)


def busy_seconds() -> float:
    """Return the processor time that all programs, and the machine's other guests, have used."""
    user, nice, system, _, _, *rest = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")


def train_sb3(system: str, environment: str, file: Path, threads: int) -> None:
    """Train without end, and write a row at the begin of a rollout."""
    import torch
    from stable_baselines3.common.callbacks import BaseCallback

    class Recorder(BaseCallback):
        newest = 0.0

        def _on_step(self) -> bool:
            return True

        def _on_rollout_start(self) -> None:
            now = time.monotonic()
            if now - self.newest >= ROW_SECONDS:
                self.newest = now
                print(f"{now},{self.num_timesteps}", file=opened, flush=True)

    torch.set_num_threads(threads)
    model = sb3_model(system, environment, seed=1)
    with open(file, "w") as opened:
        print("time_s,agent_steps", file=opened, flush=True)
        model.learn(ENDLESS, callback=Recorder())


def compare(given: argparse.Namespace) -> dict[str, list[Turn]]:
    """Return by system the results of its turns, as `Side.turn` does."""
    turns: dict[str, list[Turn]] = {system: [] for system in given.systems}
    sides: dict[str, Side] = {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            for system in given.systems:
                command = (system, given.environment, given.ga3c_tf, Path(folder), given.threads)
                sides[system] = Side(*command)
            for side in sides.values():
                while len(side.rows()) < given.warm_rows:
                    time.sleep(0.1)
                side.signal(signal.SIGSTOP)
            for _ in range(given.repeats):
                for system, side in sides.items():
                    turns[system].append(side.turn(given.seconds))
        finally:
            for side in sides.values():
                side.end()
    return turns


def table(file: Path) -> str:
    """Return a Markdown table of the medians: steps per second, and processor time per step."""
    lines = ["| environment | system | steps per second | processor time per step |", "|---|---|---|---|"]
    for result in json.loads(file.read_text())["results"]:
        for system, turns in result["turns"].items():
            turns = [turn for turn in turns if turn[2] <= DISTURBED] or [min(turns, key=lambda turn: turn[2])]
            speed, used, _ = (statistics.median(values) for values in zip(*turns, strict=True))
            threads = "" if result["threads"] == 1 else f", {result['threads']} threads"
            lines.append(f"| {result['environment']} | {system}{threads} | {speed:,.0f} | {used:,.0f} µs |")
    return "\n".join(lines)


def main() -> None:
    """Compare the speed of the systems, and write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("environment", nargs="?")
    parser.add_argument("--systems", nargs="+", default=SYSTEMS)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1, help="threads of PyTorch")
    parser.add_argument("--warm-rows", type=int, default=5, help="rows of steps before a system is ready")
    parser.add_argument("--output", type=Path, default=Path("speed.json"))
    parser.add_argument("--ga3c-tf", default="ga3c-tf", help="path of the command ga3c-tf")
    parser.add_argument("--table", type=Path, help="print the table of a file instead")
    parser.add_argument("--train", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.table:
        print(table(given.table))
        return
    if not given.environment:
        parser.error("name an environment, such as CartPole-v1, or --table FILE")
    if given.train:
        train_sb3(given.train, given.environment, given.output, given.threads)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # which ends the systems too
    turns = compare(given)
    record = {"results": []}
    if given.output.exists():
        record = json.loads(given.output.read_text())
    result = {"environment": given.environment, "threads": given.threads, "command": sys.argv, "turns": turns}
    record["results"].append(result)
    given.output.write_text(json.dumps(record, indent=1) + "\n")
    print(table(given.output))


if __name__ == "__main__":
    main()
