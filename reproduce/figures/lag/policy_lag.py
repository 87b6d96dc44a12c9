"""Figure 7 and slide 40: effects of a minimum training batch on policy lag, stability and speed.

All planned runs have the same duration, so settings are compared by the mean score over equal time. The part
of each learning curve up to `EQUAL_STEPS` also compares them over equal steps. Throughput matters in the
first comparison only.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ga3c_tf.reproduce.drawing import lag_plots
from ga3c_tf.reproduce.figures import metrics
from ga3c_tf.reproduce.figures.figure import Added, Figure
from ga3c_tf.reproduce.figures.measurements import Measure, Measurements, Row, speed_changed
from ga3c_tf.reproduce.figures.normalized import random_score
from ga3c_tf.reproduce.figures.plans import workers
from ga3c_tf.reproduce.figures.tables import Table, mean_of, means_of
from ga3c_tf.reproduce.measures import verdicts
from ga3c_tf.reproduce.measures.curves import collapsed, mean_score, share_lost
from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS, Effect, paired, paired_ratio, welch
from ga3c_tf.reproduce.measures.records import NOT_RUN
from ga3c_tf.reproduce.measures.verdicts import Claim, Guard, Test, above, settled
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import ADDED, RunSpec, run_spec

RATES = {"normal": 1e-3, "large": 4e-3}
NO_MINIMUM = "minimum 0"
GOOD = ("minimum 20", "minimum 40")
"""The minimum batches that the paper recommends."""
LARGEST = "minimum 160"
CONTROL = "A2C"
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"minimum {size}": ("ga3c", {**workers(32), "min_training_batch": size}) for size in (0, 20, 40, 160)},
    CONTROL: ("a2c", {"num_agents": 32}),
}
"""Five ways to make batches, each as a system and its settings. A2C is the control: its policy lag is 0."""
MINUTES = {"quick": 4.0, "paper": 24 * 60.0}
LOG_SECONDS = {"quick": 5.0, "paper": 60.0}
EQUAL_STEPS = 500_000
"""Agent steps over which `SCORE_AT_STEPS` and `LOST` are measured."""
SHORT_STEPS = EQUAL_STEPS + 10_000
"""Agent steps of some added runs."""
SHORT = f", {EQUAL_STEPS:,} steps"
"""Suffix of the settings of runs that end after the steps that are compared."""
GAIN = 2.0
"""A run counts as having learned if it scores more than this many points above its first score."""
SCORE = "mean score over equal time"
SCORE_AT_STEPS = "mean score over equal steps"
LOST = "time lost"
COLLAPSED = "collapsed"
PPS = "pps"
OF_TIME = (SCORE, PPS)
"""Metrics that depend on the speed of the machine."""
EXTENDED = ("minatar_breakout",)
"""The game in which claims were undecided after five seeds, so that seeds were added to them."""
WHOLE = {"normal": (LARGEST, CONTROL), "large": (NO_MINIMUM, *GOOD)}
"""Settings of the whole runs of added seeds, by learning rate."""
LARGE_RATE_HARMS = {"pong": False, "breakout": True}
"""Whether the paper finds that runs of the game fail to learn at a large learning rate."""


class Comparison(NamedTuple):
    """What two groups of settings are compared by, at a learning rate."""

    metric: str  # metric of the runs
    # first, second: the settings of both groups
    first: tuple[str, ...]
    second: tuple[str, ...]
    rate: str  # the learning rate by name
    added: str = ""  # kind of the added seeds that count: 'whole' runs or 'short' ones


COMPARED = {
    "lowers-lag": Comparison(metrics.LAG_STATES, (NO_MINIMUM,), ("minimum 40",), "normal"),
    "raises-speed": Comparison(PPS, GOOD, (NO_MINIMUM,), "normal"),
    "stabilizes": Comparison(LOST, (NO_MINIMUM,), GOOD, "large", "whole"),
    "faster-normal": Comparison(SCORE, GOOD, (NO_MINIMUM,), "normal"),
    "better-steps-normal": Comparison(SCORE_AT_STEPS, GOOD, (NO_MINIMUM,), "normal", "short"),
    "larger-is-slower-normal": Comparison(SCORE, GOOD, (LARGEST,), "normal"),
    "without-lag-normal": Comparison(SCORE_AT_STEPS, (CONTROL,), (LARGEST,), "normal", "whole"),
    "faster-large": Comparison(SCORE, GOOD, (NO_MINIMUM,), "large"),
    "better-steps-large": Comparison(SCORE_AT_STEPS, GOOD, (NO_MINIMUM,), "large", "short"),
    "larger-is-slower-large": Comparison(SCORE, GOOD, (LARGEST,), "large"),
    "without-lag-large": Comparison(SCORE_AT_STEPS, (CONTROL,), (LARGEST,), "large"),
}


def all_ways(budget: str, game: str, seed: int, **limit: Any) -> list[RunSpec]:
    """Return a run for each of `WAYS` to make batches, at two learning rates, with a limit."""
    usual: dict[str, Any] = {"log_seconds": LOG_SECONDS[budget], "checkpoint_minutes": 30.0, **limit}
    return [
        run_spec(game, seed, system, **settings, learning_rate=number, **usual).called(name, rate)
        for rate, number in RATES.items()
        for name, (system, settings) in WAYS.items()
    ]


def short(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return the runs that end after the steps that are compared, with the minimum batches up to 40."""
    runs = all_ways(budget, game, seed, steps=SHORT_STEPS)
    compared = [spec for spec in runs if spec.label[0] in (NO_MINIMUM, *GOOD)]
    return [spec.called(f"{spec.label[0]}{SHORT}", spec.label[1]) for spec in compared]


def failed_to_learn(part: Measurements) -> int:
    """Count the runs that collapsed, diverged or never improved."""
    begun = [row for row in part.rows if part.results.status(row.run) != NOT_RUN]
    return sum(row.run.diverged or (row.run.finished and row.values.get(COLLAPSED) != 0) for row in begun)


def _values(part: Measurements, metric: str, settings: int) -> pd.Series:
    """Return the mean of a metric over settings, for each seed that has all of these settings.

    A run that diverged, or learned nothing within `EQUAL_STEPS`, counts as 1 in `LOST`.
    """
    rows = list(part.rows)
    if metric == LOST:
        rows = [row._replace(values={LOST: 1.0}) if _learned_nothing(row) else row for row in rows]
    return Measurements(part.results, rows).series(metric, least=settings)


def _learned_nothing(row: Row) -> bool:
    if LOST in row.values:
        return False
    return row.run.diverged or (row.run.finished and row.run.agent_steps >= EQUAL_STEPS)


def _compared(groups: list[pd.Series], metric: str, looks: int) -> Test:
    """Compare two groups by Welch's test, and scores over equal steps by their ratio too."""
    estimate = welch(*groups).looked(looks)
    if metric != SCORE_AT_STEPS:
        return above(estimate)
    ratio = Effect(ratio=True)
    if min(map(len, groups)) and min(group.min() for group in groups) > 0:
        ratio = welch(np.log(groups[0]), np.log(groups[1]), ratio=True)
    return above(estimate, like=ratio.looked(looks))


def _scores(run: RecordedRun) -> list[Measure]:
    rolling = run.spec.config.rolling_episodes
    settled = {name: column[run.curve["episodes"] >= rolling] for name, column in run.curve.items()}
    early = {name: column[settled["agent_steps"] <= EQUAL_STEPS] for name, column in settled.items()}
    reached = run.agent_steps >= EQUAL_STEPS
    at_steps = mean_score(early) if reached else math.nan
    lost = share_lost(early, GAIN) if reached else math.nan
    protocol = f"rolling score (training, {rolling} episodes)"
    mean = f"mean of the {protocol} over"
    steps = f"the first {EQUAL_STEPS:,} agent steps"
    return [
        Measure(SCORE, mean_score(settled, "time_s"), "points", f"{mean} time", "no such score"),
        Measure(SCORE_AT_STEPS, at_steps, "points", f"{mean} {steps}", "the run ended before"),
        Measure(LOST, lost, "share", f"of {steps}", "nothing learned in that time"),
        Measure(COLLAPSED, collapsed(settled, GAIN), "0 or 1", protocol, "nothing learned"),
    ]


def _pps(run: RecordedRun) -> list[Measure]:
    pps = run.steady(0.1 * 3600 * run.hours)["pps"]
    return [Measure(PPS, pps, "predictions/s", "after the first tenth")]


LEARNING = {
    "lag in updates": mean_of(metrics.LAG),
    "in states": mean_of(metrics.LAG_STATES),
    "PPS": mean_of(PPS),
    "mean score, equal time": mean_of(SCORE),
    "mean score, equal steps": mean_of(SCORE_AT_STEPS),
    **means_of(metrics.END, LOST),
    "failed to learn": lambda part: f"{failed_to_learn(part)} of {len(part.ended)}",
}
ROWS = ("batches", "rate")
DIVERGENCES = (metrics.SPREAD, metrics.BOOTSTRAP, metrics.KL, metrics.TOTAL_VARIATION)


class PolicyLagFigure(Figure):
    """The paper's claims about the minimum batch and our own questions, for each game."""

    name = "policy-lag"
    games = {"smoke": ("cartpole",), "quick": ("minatar_breakout",), "paper": ("pong", "breakout")}
    added = (
        Added(EXTENDED, range(6, 10), lambda spec: spec.label[0] in WHOLE[spec.label[1]]),
        Added(EXTENDED, range(10, 16), lambda spec: spec.label[1] == "normal", short),
        Added(EXTENDED, range(10, 20), lambda spec: spec.label[1] == "large", short),
    )
    smoke = (
        {"min_training_batch": 0, "called": (NO_MINIMUM, "normal")},
        {"called": ("minimum 20", "normal")},
        {"system": "a2c", "called": (CONTROL, "normal")},
    )
    measured = (
        _scores,
        metrics.final_score,
        metrics.lag_measures(metrics.LAG, metrics.LAG_STATES, *DIVERGENCES),
        _pps,
    )
    main = (SCORE, "points")
    by_game = True
    tables = (
        Table(ROWS, LEARNING, where={"kind": ""}),
        Table((*ROWS, "kind"), LEARNING, "added seeds", {"kind": ("whole", "short")}),
        Table(
            ROWS,
            means_of(*DIVERGENCES),
            "lag within a segment, and lag as a divergence",
            {"kind": ""},
        ),
    )
    words = {"rate_of": RATES, "equal_steps": EQUAL_STEPS, "gain": GAIN}

    def seeds(self, budget, game):
        """Minutes are enough to learn on MinAtar; more seeds on Atari would take days."""
        return {"smoke": 1, "quick": 5 if game.startswith("minatar") else 1, "paper": 3}[budget]

    def planned(self, budget, game, seed):
        return all_ways(budget, game, seed, minutes=MINUTES[budget])

    def dimensions(self, spec):
        """Return those of a run; `kind` is empty unless the run is added."""
        setting, rate = spec.label
        name = setting.removesuffix(ADDED)
        kind = "short" if name.endswith(SHORT) else "whole"
        return {"batches": name.removesuffix(SHORT), "rate": rate, "kind": kind * spec.is_added}

    def claims(self, table):
        claims = [self._comparison(table, key, compared) for key, compared in COMPARED.items()]
        if table.game in LARGE_RATE_HARMS:
            claims.append(self._large_rate(table))
        return claims

    def _comparison(self, table: Measurements, key: str, compared: Comparison) -> Claim:
        metric, *settings, rate, kind = compared
        groups = [{"batches": names, "rate": rate, "kind": ("", kind)} for names in settings]
        least = (len(compared.first), len(compared.second))
        guards = [table.missing]
        if metric in OF_TIME:
            pairs = table.pairs(metric, groups[0], groups[1], least=least)
            test = above((paired_ratio if metric == PPS else paired)(pairs.first, pairs.second))
            guards += [table.select(added=False).several_machines, speed_changed(pairs)]
        else:
            parts = [table.select(**where) for where in groups]
            looks = 2 if any(part.has_added for part in parts) else 1  # seeds came after a first judgement
            values = [_values(part, metric, count) for part, count in zip(parts, least, strict=True)]
            test = _compared(values, metric, looks)
        return self.claim(key, test, guards, rate=RATES[rate])

    def _large_rate(self, table: Measurements) -> Claim:
        """Return the paper's claim that runs without a minimum batch fail to learn at a large learning rate,
        or that they do not.

        If the time is too short to learn at all, a failure says nothing about the learning rate.
        """
        harms = LARGE_RATE_HARMS[table.game]
        harmed = table.select(batches=NO_MINIMUM, rate="large", added=False)
        reference = table.select(batches="minimum 20", rate="normal", added=False)
        lost = failed_to_learn(harmed)
        missing = harmed.missing.applies or reference.missing.applies or not reference.finished
        guards = [
            Guard(verdicts.FEW_SEEDS, len(harmed.ended) < LEAST_SEEDS),
            Guard(verdicts.RUNS_MISSING, missing),
            Guard(verdicts.TOO_SHORT, failed_to_learn(reference) > 0),
        ]
        kind = verdicts.HOLDS if (lost > 0) == harms else verdicts.FAILS
        test = settled(kind, Effect(note=f"{lost} of {len(harmed.ended)}"))
        effect, some = ("can fail to learn", "some") if harms else ("is hardly affected, even", "no")
        return self.claim("large-rate", test, guards, GAME=table.game.upper(), effect=effect, some=some)

    def plot(self, table, stem):
        rates = {
            f"{rate} learning rate": {name: runs.finished for name, runs in part.parts("batches")}
            for rate, part in table.select(added=False).parts("rate")
        }
        lag_plots.lag_picture(rates, random_score(table), stem)
