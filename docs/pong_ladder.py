"""Draw the exploratory runs on Pong as a ladder: each step changes something in the step before.

python docs/pong_ladder.py [STEM] writes STEM.svg and STEM.png, docs/pong-ladder unless named. The scores are
those of docs/data: the mean of the last 100 training episodes, and of half a million agent steps in the first
run.
"""

import csv
import sys
from pathlib import Path

from ga3c_tf.reproduce.drawing.canvas import COLORS, canvas, handles, legend_above, save
from ga3c_tf.reproduce.drawing.score_plots import LINE_STYLES

DOCS = Path(__file__).parent
FIRST = "run e of pong.md"
STEPS = {  # what each changes, and its runs
    "+ samples reused (p1)": ["p1"],
    "+ segments of 128 (p4, p7)": ["p4", "p7"],
    "+ RMSProp (p8)": ["p8"],
    "+ clip range 0.2 (p10, p13)": ["p10", "p13"],
    "+ 8 agents (p14, p17)": ["p14", "p17"],
    "+ standardized (p18)": ["p18"],
    "+ rate 2e-4 (p19)": ["p19"],
}
MILLIONS = 2.5
Points = list[tuple[float, float]]


def first_run() -> Points:
    """Return the mean scores of run e, each at the middle of its agent steps in millions."""
    with (DOCS / "data/pong-trials.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["run"] == "e"]
    middles = [(float(row["from_million_steps"]) + float(row["to_million_steps"])) / 2 for row in rows]
    return [(middle, float(row["mean_score"])) for middle, row in zip(middles, rows, strict=True)]


def exploratory_runs() -> dict[str, Points]:
    """Return the scores of each exploratory run, by agent steps in millions."""
    found = {}
    with (DOCS / "data/learning-exploration.csv").open() as file:
        for row in csv.DictReader(file):
            scores = {
                name.split("_")[2]: text
                for name, text in row.items()
                if name.startswith("score_at_") and text
            }
            points = [(float(millions), float(score)) for millions, score in scores.items()]
            found[row["run"]] = [*points, (int(row["agent_steps"]) / 1e6, float(row["last_score"]))]
    return found


def draw(stem: Path) -> None:
    """Draw one line for each run, in the color of its step."""
    figure, axes = canvas(1, 1, 3.4)
    axis = axes[0, 0]
    axis.plot(*zip(*first_run(), strict=True), color="#7F7F7F", label=FIRST)
    points = exploratory_runs()
    for number, (label, runs) in enumerate(STEPS.items()):
        style = LINE_STYLES[number % len(LINE_STYLES)]
        for run in runs:
            axis.plot(*zip(*points[run], strict=True), style, color=COLORS[number], label=label)
    axis.set_xlim(0, MILLIONS)
    axis.set_xlabel("agent steps (millions)")
    axis.set_ylabel("training score")
    legend_above(figure, handles(axes.flat), 2)
    save(figure, stem)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS / "pong-ladder")
