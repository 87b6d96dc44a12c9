"""Progress display of a training: a live panel on a terminal, one plain line every few seconds elsewhere."""

from __future__ import annotations

import math
import shlex
import sys
from pathlib import Path
from types import TracebackType

from ga3c_tf.config import Config, spelled
from ga3c_tf.config.presets import BUDGETS
from ga3c_tf.console import counted, say, write_errors_ignored

LEGEND = (
    "Steps: agent steps; RScore: mean score of the last episodes; PPS, TPS: agent steps and updates per "
    "second; Lag: policy lag in updates; NT, NP, NA: trainers, predictors, agents"
)
"""What the fields of a line mean."""
SHOWN_METRICS = {"entropy", "q_value"}
"""The metric of each algorithm that the panel shows."""


def line(row: dict) -> str:
    """Format a row of metrics as a line, with the fields of the authors' code, agent steps and policy lag."""
    parts = [
        f"[Time: {row['time_s']:7.0f} s]",
        f"[Steps: {row['agent_steps']:9d} Episode: {row['episodes']:6d} RScore: "
        f"{_number(row['rolling_score']):>8}]",
        f"[PPS: {row['pps']:5.0f} TPS: {row['tps']:4.0f}]",
        f"[Lag: {_number(row['policy_lag_mean'])} mean, {_number(row['policy_lag_p95'])} p95, "
        f"{_number(row['policy_lag_max'])} max]",
        f"[NT: {row['trainers']} NP: {row['predictors']} NA: {row['agents']}]",
    ]
    if row["started"] < row["agents"]:
        parts.append(f"[{row['started']} of {row['agents']} agents have started]")
    if row["progress"] is not None:
        parts.append(f"[{row['progress']:4.0%}]")
    parts += [f"[{name}: {_number(value)}]" for name, value in _of_callbacks(row).items()]
    return " ".join(parts)


def _of_callbacks(row: dict) -> dict[str, float]:
    """Return the metrics of callbacks that have a value in a row."""
    return {name: value for name, value in row.items() if "/" in name and not math.isnan(value)}


def beginning(config: Config, path: Path) -> str:
    """Format the first lines of a training: environment, run folder, seed and budget, and what it starts."""
    budgets = []
    if config.steps:
        budgets.append(counted(config.steps, "agent step"))
    if config.minutes:
        budgets.append(counted(config.minutes, "minute"))
    if config.episodes:
        budgets.append(counted(config.episodes, "episode"))
    if config.target_score is not None:
        budgets.append(f"a rolling score of {config.target_score:g}")
    until = " or ".join(budgets) or "Ctrl-C (no --minutes, --steps or --episodes was given)"
    agents = counted(config.num_agents + config.remote_agents, "agent")
    return (
        f"ga3c-tf: {config.env_id} in {path}, seed {config.seed}, until {until}\n"
        f"ga3c-tf: starting {agents} of {config.system}; the first numbers come after "
        f"{config.log_seconds:g} s"
    )


def ending(summary: dict, own_code: bool = False, random_score: float | None = None) -> str:
    """Format the summary of a training, with the commands that evaluate and continue the run.

    Args:
        summary: summary that `Training.run` returned.
        own_code: whether the run's settings name user code.
        random_score: mean score of the random policy, if it is known.
    """
    ended = summary["ended"]
    run = shlex.quote(summary["run"]) + (" --trust-code" if own_code else "")
    reached = {**dict.fromkeys(BUDGETS, "budget reached"), "target_score": "target score reached"}
    more = f" {spelled(ended)} N" if ended in reached else ""
    so_far = {
        "steps": f"{summary['agent_steps']:,}",
        "minutes": f"{summary['time_s'] / 60:.1f}",
        "episodes": f"{summary['episodes']:,}",
    }
    total = f"  (N in total; so far {so_far[ended]})" if ended in so_far else ""
    troubles = {
        "agent steps dropped": summary["dropped_steps"],
        "agent processes replaced": summary["replaced_processes"],
        "updates skipped": summary["skipped_updates"],
    }
    lines = [
        f"{reached.get(ended, ended)}: {counted(summary['agent_steps'], 'agent step')}, "
        f"{counted(summary['episodes'], 'episode')} and {counted(summary['updates'], 'update')} in "
        f"{_duration(summary['time_s'])}, {summary['pps']:,.0f} steps per second in this session",
        _score(min(summary["rolling_episodes"], summary["episodes"]), summary["rolling_score"])
        + beside_random(random_score),
        *_best_evaluated(summary),
        *(f"{words}: {count:,}" for words, count in troubles.items() if count),
        f"evaluate:  ga3c-tf evaluate {run}",
        f"continue:  ga3c-tf resume {run}{more}{total}",
    ]
    return "\n".join(lines)


def _score(episodes: int, score: float) -> str:
    """Format the rolling score, which is the mean of so many episodes."""
    if episodes == 0:
        return "no episode has ended"
    what = "score of the only episode" if episodes == 1 else f"mean score of the last {episodes:,} episodes"
    return f"{what}: {_number(score)}"


def _best_evaluated(summary: dict) -> list[str]:
    """Return a line about the best evaluation; none without `--evaluate-every` or the callback `Evaluate`."""
    if "best_evaluated" not in summary:
        return []
    return [f"best evaluation: {_number(summary['best_score'])}, weights in {summary['best_evaluated']}"]


def beside_random(score: float | None) -> str:
    """Format the score of the random policy, to be put after another score; nothing if it is not known."""
    return "" if score is None else f" (random policy: {_number(score)})"


def _number(value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:.2g}" if 0 < abs(value) < 1 else f"{value:.1f}"


class PlainStatus:
    """Prints one line per row of metrics, and before the first one what its fields mean."""

    def __init__(self):
        self._is_explained = False

    def __enter__(self) -> PlainStatus:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass

    def show(self, row: dict) -> None:
        """Print a row of metrics."""
        if not self._is_explained:
            say(LEGEND)
            self._is_explained = True
        say(line(row))


class LiveStatus:
    """A panel redrawn with each row of metrics, with the progress towards the budget and the time left."""

    def __init__(self, title: str):
        from rich.live import Live

        self._title = title
        # warnings that go to a file are not for the panel
        self._live = Live(auto_refresh=False, redirect_stderr=sys.stderr.isatty())
        self._of_callbacks: dict[str, float] = {}

    def __enter__(self) -> LiveStatus:
        with write_errors_ignored():
            self._live.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with write_errors_ignored():
            self._live.stop()

    def show(self, row: dict) -> None:
        """Redraw the panel with a row of metrics."""
        from rich.console import Group
        from rich.panel import Panel
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        table = Table.grid(padding=(0, 2))
        [metric] = row.keys() & SHOWN_METRICS
        lags = [_number(row[f"policy_lag_{name}"]) for name in ("mean", "p95", "max")]
        for cells in (
            ("time", _duration(row["time_s"]), "agent steps", f"{row['agent_steps']:,}"),
            ("episodes", f"{row['episodes']:,}", "rolling score", _number(row["rolling_score"])),
            ("agent steps/s (PPS)", f"{row['pps']:.0f}", "updates/s (TPS)", f"{row['tps']:.0f}"),
            (
                "prediction batch",
                _number(row["prediction_batch"]),
                "training batch",
                _number(row["training_batch"]),
            ),
            (
                "agents, predictors, trainers",
                f"{row['agents']}, {row['predictors']}, {row['trainers']}",
                metric.replace("_", " "),
                _number(row[metric]),
            ),
            ("policy lag in updates", lags[0], "95 %, maximum", f"{lags[1]}, {lags[2]}"),
        ):
            table.add_row(*cells)
        if row["started"] < row["agents"]:
            table.add_row("agents that have started", str(row["started"]))
        self._of_callbacks |= _of_callbacks(row)
        for name, value in self._of_callbacks.items():
            table.add_row(name, _number(value))
        parts: list = [table]
        done = row["progress"]
        budget = None
        if done:
            parts.append(ProgressBar(total=1.0, completed=done, width=62))
            budget = f"{done:.0%} of the budget, about {_duration(row['time_s'] * (1 / done - 1))} left"
        panel = Panel(Group(*parts), title=self._title, subtitle=budget, expand=False)
        with write_errors_ignored():
            self._live.update(panel, refresh=True)


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"


def status_for(title: str) -> LiveStatus | PlainStatus:
    """Return a live panel if standard output is a terminal, otherwise a printer of plain lines."""
    return LiveStatus(title) if sys.stdout.isatty() else PlainStatus()
