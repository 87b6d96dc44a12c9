"""How soon Pong is learned with later actor-critics' settings, next to published results of this protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.figures import pictures
from ga3c_tf.reproduce.figures.figure import Figure, Measure, Table, mean_of, smoke_spec, unfinished
from ga3c_tf.reproduce.figures.learning import scores
from ga3c_tf.reproduce.figures.measurements import Measurements
from ga3c_tf.reproduce.measures.curves import first_reaching, score_by
from ga3c_tf.reproduce.measures.estimates import paired
from ga3c_tf.reproduce.measures.verdicts import Above, Claim
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import RunSpec
from ga3c_tf.reproduce.runs.tuned import tuned_spec

GOOD = 18.0
"""Score of the paper's GA3C on Pong."""
STICKY = "sticky actions (0.25)"
NOOPS = "no sticky actions, up to 30 no-ops"
NOOPS_SEEDS = 3
NOOPS_SETTINGS: dict[str, Any] = {"repeat_action_probability": 0.0, "noop_max": 30, "steps": 2_500_000}
EARLY_STEPS = 3_000_000
EARLY = f"training score after {EARLY_STEPS:,} agent steps"
STEPS_TO = f"agent steps to a training score of {GOOD:g}"
MINUTES_TO = f"minutes to a training score of {GOOD:g}"


class Limit(NamedTuple):
    """The limit that the mean of a metric should exceed under a protocol.

    With sticky actions the runs were extended, as in `scores`, so their p values are multiplied by the number
    of looks.
    """

    protocol: str
    metric: str
    limit: float
    looks: int
    text: str


LIMITS = {
    "early": Limit(
        STICKY,
        EARLY,
        15.0,
        2,
        "with sticky actions the training score after 3 million agent steps is at least 15",
    ),
    "ppo": Limit(
        STICKY,
        scores.SCORE,
        16.7,  # SLM-Lab's PPO with sticky actions after 10 million agent steps, a mean of four runs
        2,
        "with sticky actions 4 million agent steps bring more than 10 million of SLM-Lab's PPO, 16.7",
    ),
    "noops": Limit(
        NOOPS,
        scores.SCORE,
        GOOD - 2.0,
        1,
        "without sticky actions 2.5 million agent steps bring at least 16",
    ),
}


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return one run for each protocol, without sticky actions on the first seeds only.

    The run with sticky actions is the one that `scores` uses.

    Raises:
        UserError: the game is not Pong.
    """
    if budget == "smoke":
        return [smoke_spec(game, seed).called(STICKY)]
    if game != "pong":
        raise UserError(f"the figure sample-efficiency is about pong; it does not go with {game}")
    sticky = scores.training(budget, game, seed).called(STICKY)
    noops = tuned_spec(game, seed, **NOOPS_SETTINGS).called(NOOPS)
    return [sticky, noops] if seed <= NOOPS_SEEDS else [sticky]


def measures(run: RecordedRun) -> list[Measure]:
    """Return the scores of the evaluation, the training score early on, and how soon `GOOD` was reached."""
    window = run.spec.config.rolling_episodes
    protocol = f"mean of {window} episodes of training"
    early = score_by(run.curve, EARLY_STEPS, "agent_steps")
    steps = first_reaching(run.curve, GOOD, "agent_steps", window)
    minutes = first_reaching(run.curve, GOOD, "time_s", window) / 60
    return [
        *scores.measures(run),
        Measure(EARLY, early, "points", protocol, "the run is shorter"),
        Measure(STEPS_TO, steps, "steps", protocol, "never reached"),
        Measure(MINUTES_TO, minutes, "min", protocol, "never reached"),
    ]


def claims(table: Measurements) -> list[Claim]:
    """Return for each of `LIMITS` the claim that the mean over the seeds is above the limit."""
    listed = []
    for key, limit in LIMITS.items():
        part = table.select(label=limit.protocol)
        estimate = paired(part.series(limit.metric), limit.limit).looked(limit.looks)
        listed.append(Claim(key, limit.text, Above(estimate), [part.missing]))
    return listed


def reached(part: Measurements) -> str:
    """Return a cell with the number of runs that reached `GOOD`."""
    return f"{len(part.numbers(STEPS_TO))} of {sum(run.ended for run in part.runs)}"


def plot(table: Measurements, stem: Path) -> None:
    """Draw the score against time and against agent steps for both protocols."""
    random = dict.fromkeys(["pong"], next(iter(table.numbers(scores.RANDOM)), None))
    pictures.draw(pictures.curves(table, "label"), stem, random=random)


FIGURE = Figure(
    name="sample-efficiency",
    place=13,
    paper="not in the paper",
    shows="how soon Pong is learned with later actor-critics' settings, with and without sticky actions",
    headline="how many steps does Pong take?",
    games={"smoke": ("pong",), "tuned": ("pong",)},
    seeds=lambda budget, game: 1 if budget == "smoke" else scores.seeds(budget, game),
    specs=specs,
    measures=measures,
    main=(scores.SCORE, "points"),
    scores=(scores.SCORE, EARLY),
    claims=claims,
    tables=[
        Table(
            ("label",),
            {
                scores.SCORE: mean_of(scores.SCORE),
                EARLY: mean_of(EARLY),
                f"reached {GOOD:g}": reached,
                STEPS_TO: mean_of(STEPS_TO),
                MINUTES_TO: mean_of(MINUTES_TO),
                "not finished": unfinished,
            },
        )
    ],
    plot=plot,
)
