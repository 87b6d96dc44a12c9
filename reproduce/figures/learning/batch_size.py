"""Whether large training batches learn as much from the same agent steps, with a learning rate chosen for
each size.

A2C has no policy lag, so the runs differ only in the batch size and its learning rate. A batch is one round:
5 steps of every agent.
"""

from __future__ import annotations

from ga3c_tf.reproduce.figures.figure import (
    Figure,
    Measure,
    Table,
    mean_of,
    minutes,
    seeds_by_budget,
    smoke_spec,
    unfinished,
)
from ga3c_tf.reproduce.figures.measurements import Measurements
from ga3c_tf.reproduce.figures.pictures import curves_by
from ga3c_tf.reproduce.figures.training import END, SCORE, final_score, score_of_run
from ga3c_tf.reproduce.measures.estimates import paired_ratio
from ga3c_tf.reproduce.measures.verdicts import FAILS, TOO_SHORT, Above, Claim, Guard, Settled
from ga3c_tf.reproduce.runs.run import RecordedRun
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


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return one run for each batch size."""
    if budget == "smoke":
        sizes = {agents: smoke_spec(game, seed, "a2c", num_agents=agents) for agents in (2, 4)}
    else:
        sizes = {
            agents: run_spec(
                game, seed, "a2c", num_agents=agents, learning_rate=rate, steps=STEPS, log_seconds=10.0
            )
            for agents, rate in RATES.items()
        }
    return [spec.called(str(agents * T_MAX)) for agents, spec in sizes.items()]


def dimensions(spec: RunSpec) -> dict[str, object]:
    """Return the size of the batch, in states, and the learning rate."""
    return {"batch": int(spec.label[0]), "learning_rate": spec.config.learning_rate}


def measures(run: RecordedRun) -> list[Measure]:
    """Return the mean score over all agent steps, and over the last tenth."""
    return [score_of_run(run), final_score(run)]


def claims(table: Measurements) -> list[Claim]:
    """Return for each larger batch the claim that it learns as much as the smallest.

    A batch size with a run that diverged or scored nothing does not learn as much.
    """
    scores = {size: part.series(SCORE) for size, part in table.parts("batch")}
    smallest, *larger = scores
    positive = {size: values[values > 0] for size, values in scores.items()}
    nothing = Guard(TOO_SHORT, positive[smallest].empty)
    listed = []
    for size in larger:
        ratio = paired_ratio(positive[size], positive[smallest], AS_MUCH)
        failed = len(positive[size]) < len(table.select(batch=size).runs)
        listed.append(
            Claim(
                f"batch-{size}",
                f"A batch of {size:,} states learns as much as a batch of {smallest} in the same agent steps",
                Settled(FAILS, ratio) if failed else Above(ratio),
                [table.missing, nothing],
            )
        )
    return listed


FIGURE = Figure(
    name="batch-size",
    place=16,
    paper="not in the paper",
    shows="what A2C learns from the same agent steps with training batches of 20 to 2,560 states",
    headline="do large training batches learn as much from the same steps?",
    games={"smoke": ("cartpole",), "quick": ("minatar_breakout",)},
    seeds=seeds_by_budget(quick=5),
    specs=specs,
    dimensions=dimensions,
    measures=measures,
    main=(SCORE, "points"),
    claims=claims,
    tables=[
        Table(
            ("batch", "learning_rate"),
            {
                SCORE: mean_of(SCORE),
                END: mean_of(END),
                "minutes": minutes,
                "not finished": unfinished,
            },
        )
    ],
    plot=curves_by("batch"),
    by_game=True,
    words={"as_much": AS_MUCH, "t_max": T_MAX, "steps": STEPS},
)
