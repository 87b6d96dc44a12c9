"""Whether large training batches learn as much from the same agent steps, with a learning rate chosen for
each size.

A2C has no policy lag, so the runs differ only in the batch size and its learning rate. A batch is one round:
5 steps of every agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ga3c_tf.reproduce.figures.figure import Figure, Measure, grouped, once_ended, seeds_by_budget, smoke_spec
from ga3c_tf.reproduce.figures.results import Results
from ga3c_tf.reproduce.measures.curves import mean_score, score_at_end
from ga3c_tf.reproduce.measures.effects import paired_ratio
from ga3c_tf.reproduce.measures.judging import judged
from ga3c_tf.reproduce.measures.random_policy import RANDOM_SCORES
from ga3c_tf.reproduce.measures.text import lines_of, mean_ci, number
from ga3c_tf.reproduce.measures.verdicts import FAILS, TOO_SHORT, Claim, Finding
from ga3c_tf.reproduce.measures.wording import described_ratio
from ga3c_tf.reproduce.runs.run import RecordedRun, made_together
from ga3c_tf.reproduce.runs.specs import RunSpec, run_spec

T_MAX = 5
STEPS = 400_000
RATES = {4: 4e-3, 16: 4e-3, 64: 1.6e-2, 256: 1.6e-2, 512: 1.6e-2}
"""Learning rate by number of agents: the best of three, docs/data/batch-size-rates.csv.

Chosen by `ga3c-tf train MinAtar/Breakout-v1 --system a2c --agents N --learning-rate R --steps 400000 --seed
101`.
"""
AS_MUCH = 0.9
"""A larger batch learns as much if its score is more than this share of the score of the smallest batch."""
SCORE = "mean score of the run"
END = "score at the end"


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return one run for each batch size."""
    if budget == "smoke":
        return [
            smoke_spec(game, seed, "a2c", num_agents=agents).called(str(agents * T_MAX)) for agents in (2, 4)
        ]
    return [
        run_spec(
            game, seed, "a2c", num_agents=agents, learning_rate=rate, steps=STEPS, log_seconds=10.0
        ).called(str(agents * T_MAX))
        for agents, rate in RATES.items()
    ]


def measures(run: RecordedRun) -> list[Measure]:
    """Return the mean score over all agent steps, and over the last tenth."""
    protocol = f"mean of {run.spec.config.rolling_episodes} episodes of training"
    reason = "no episode ended"
    return [
        Measure(SCORE, mean_score(run.curve), "points", f"{protocol}, over the agent steps", reason),
        Measure(
            END, score_at_end(run.curve), "points", f"{protocol}, over the last tenth of the steps", reason
        ),
    ]


def groups(results: Results) -> dict[int, list[RecordedRun]]:
    """Group the runs by batch size, in states."""
    return grouped(results.runs, lambda run: int(run.spec.label[0]))


def findings(results: Results) -> dict[int, Finding]:
    """Judge for each larger batch whether it learns as much as the smallest.

    Nothing is judged before all runs have ended, or if no run with the smallest batch scored more than 0. A
    batch size with a run that diverged or scored nothing does not learn as much.
    """
    judged_sizes = as_much({size: _by_seed(results, runs) for size, runs in groups(results).items()})
    if not results.ended:
        return {size: once_ended(finding, results.runs) for size, finding in judged_sizes.items()}
    by_size = {size: (len(runs), len(_by_seed(results, runs))) for size, runs in groups(results).items()}
    smallest = min(by_size)
    for size in judged_sizes:
        runs, scored = by_size[size]
        if not by_size[smallest][1]:
            judged_sizes[size] = Finding(TOO_SHORT, f"no run with batches of {smallest} scored more than 0")
        elif scored < runs:
            judged_sizes[size] = Finding(FAILS, f"{runs - scored} of {runs} runs diverged or scored nothing")
    return judged_sizes


def claims(results: Results) -> list[Claim]:
    """Return for each larger batch the claim that it learns as much as the smallest."""
    smallest = min(groups(results))
    return [
        Claim(
            f"A batch of {size:,} states learns as much as a batch of {smallest} in the same agent steps",
            finding,
        )
        for size, finding in findings(results).items()
    ]


def as_much(scores: Mapping[int, Mapping[int, float]]) -> dict[int, Finding]:
    """Judge for each batch size except the smallest whether it scores more than `AS_MUCH` times the
    smallest's score.

    Args:
        scores: mean score of each run, which must be above 0, by batch size and seed.
    """
    smallest = min(scores)
    ratios = {
        size: paired_ratio(by_seed, scores[smallest], AS_MUCH)
        for size, by_seed in scores.items()
        if size != smallest
    }
    return judged(ratios, described_ratio)


def _by_seed(results: Results, runs: list[RecordedRun]) -> dict[int, float]:
    """Return the scores above 0 by seed, because ratios need positive scores."""
    return {run.spec.seed: value for run in runs if (value := results.value(run, SCORE) or 0.0) > 0}


def details(results: Results) -> list[str]:
    """Return the table of the scores of each batch size, and of the minutes that the runs took."""
    rows = []
    for size, runs in groups(results).items():
        minutes = [60 * run.hours for run in runs if run.finished]
        rate = number(runs[0].spec.config.learning_rate)
        scores = (mean_ci(results.values(metric, runs)) for metric in (SCORE, END))
        rows.append([f"{size:,}", rate, *scores, mean_ci(minutes), results.unfinished(runs)])
    return lines_of(
        "batch-size.md",
        rows=rows,
        as_much=number(AS_MUCH),
        t_max=T_MAX,
        together=made_together(results.runs),
        steps=f"{STEPS:,}",
    )


def plot(results: Results, stem: Path) -> None:
    """Draw the score against time and against agent steps for each size."""
    from ga3c_tf.reproduce.drawing import score_plots

    curves = {
        f"batches of {size:,}": [run.curve for run in runs if run.finished]
        for size, runs in groups(results).items()
    }
    score_plots.score_curves({"": curves}, stem, {"": RANDOM_SCORES.get(results.runs[0].spec.game)})


FIGURE = Figure(
    name="batch-size",
    place=16,
    paper="not in the paper",
    shows="what A2C learns from the same agent steps with training batches of 20 to 2,560 states",
    headline="do large training batches learn as much from the same steps?",
    games={"smoke": ("cartpole",), "quick": ("minatar_breakout",)},
    seeds=seeds_by_budget(quick=5),
    specs=specs,
    measures=measures,
    main=(SCORE, "points"),
    claims=claims,
    details=details,
    plot=plot,
    by_game=True,
)
