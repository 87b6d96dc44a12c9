"""The learning curve of a run: its rolling score at up to 300 times, stored as curve.csv."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ga3c_tf.files import write_aside
from ga3c_tf.runs.csv_rows import EPISODE_COLUMNS, read_columns

CURVE_COLUMNS = ("time_s", "agent_steps", "episodes", "rolling_score")
CURVE_POINTS = 300
Columns = dict[str, np.ndarray]


def read_curve(folder: Path) -> Columns:
    """Return the columns of curve.csv in a folder: the rolling score over time and agent steps."""
    return read_columns(folder / "curve.csv", CURVE_COLUMNS)


def curve_of(run: Path, rolling_episodes: int) -> Columns:
    """Return the columns of curve.csv: the rolling score at evenly spaced times, at most `CURVE_POINTS`.

    Args:
        run: the run folder, with episodes.csv.
        rolling_episodes: number of episodes in the rolling score; it has fewer at the start.
    """
    episodes = read_columns(run / "episodes.csv", EPISODE_COLUMNS)
    times = episodes["time_s"]
    count = len(episodes["time_s"])
    places = np.linspace(times[0], times[-1], min(CURVE_POINTS, count)) if count else times
    ends = np.unique(np.searchsorted(times, places, side="right"))
    scores = [episodes["score"][max(0, end - rolling_episodes) : end].mean() for end in ends]
    return {
        "time_s": times[ends - 1],
        "agent_steps": episodes["agent_steps"][ends - 1],
        "episodes": ends.astype(float),
        "rolling_score": np.array(scores),
    }


def write_curve(folder: Path, curve: Columns) -> None:
    """Write curve.csv to a folder."""
    lines = [
        f"{time_s:.6g},{int(agent_steps)},{int(episodes)},{score:.6g}"
        for time_s, agent_steps, episodes, score in zip(*(curve[name] for name in CURVE_COLUMNS), strict=True)
    ]
    write_aside(folder / "curve.csv", "\n".join([",".join(CURVE_COLUMNS), *lines]) + "\n")
