"""Table 3: the score of trained agents on nine games."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from ga3c_tf.reproduce.figures.figure import Cell, Figure, Measure, Table
from ga3c_tf.reproduce.figures.measurements import Measurements
from ga3c_tf.reproduce.figures.pictures import drawing
from ga3c_tf.reproduce.figures.plans import learning_spec, smoke_spec
from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS, Effect
from ga3c_tf.reproduce.measures.text import mean_ci, number
from ga3c_tf.reproduce.measures.verdicts import INCONCLUSIVE, LEVEL, NO_DIFFERENCE, RUNS_MISSING
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import NINE_GAMES, RunSpec, network_of
from ga3c_tf.reproduce.runs.tuned import tuned_spec
from ga3c_tf.trained.intervals import mean_interval

LEARNING_RATES = {"normal": 1e-3, "lower": 3e-4}
TUNED_STEPS = 4_000_000
PAPERS_STEPS = "about 93 million"
"""Agent steps of the paper's training: a day at the 1,080 predictions/s of its small network on system I."""
SCALES: dict[str, dict[str, Any]] = {
    "quick": {"agents": 32, "log_seconds": 5.0, "checkpoint_minutes": 5.0, "minutes": 12.0},
    "paper": {"agents": 128, "log_seconds": 60.0, "checkpoint_minutes": 15.0, "minutes": 24 * 60.0},
}
METHODS = {
    "random": "random",
    "human": "human",
    "A3C (4 days, CPU)": "A3C, 4 days on a CPU",
    "GA3C (1 day, GPU)": "GA3C, 1 day on a GPU",
}
PAPERS = "GA3C (1 day, GPU)"
PUBLISHED = ("A2C with GAE, SLM-Lab", "PPO, SLM-Lab")
"""Published methods whose scores are shown at the tuned budget: sticky actions, 10 million agent steps."""
EXTENDED = {"pong": 5}
"""Seeds of the game that was undecided after three seeds at the tuned budget, so that two more were planned.

It was first judged at a level of 5 %, before the extension was planned, and then at 2.5 %. In simulations at
the limit, 4 % are wrongly reproduced, and 7 % have any verdict.
"""
SCORE_MARGIN = 0.05
"""Share of the distance from the random policy's score to the paper's by which a score may be below that."""
SWAPPED = ("name_this_game", "ms_pacman")
REPRODUCED = "reproduced"
REACHED = "reached"
SHORT = "short"
SCORE = "score"
RANDOM = "score of the random policy"


def training(budget: str, game: str, seed: int, learning_rate: float = LEARNING_RATES["normal"]) -> RunSpec:
    """Return the run that a score comes from. The learning curves use it too."""
    if budget == "smoke":
        return smoke_spec(game, seed)
    if budget == "tuned":
        return tuned_spec(game, seed, steps=TUNED_STEPS)
    return learning_spec(
        game,
        seed,
        evaluation_episodes=30,
        random_play=seed == 1,  # the same episodes for every seed
        **{"network": "auto", **network_of(game)},  # named in any case, as in the ids of earlier runs
        learning_rate=learning_rate,
        **SCALES[budget],
    )


def measures(run: RecordedRun) -> list[Measure]:
    """Return mean scores of the evaluated checkpoint and the random policy, over as many whole episodes."""
    played = ((SCORE, "evaluation", None), (RANDOM, "random", "random"))
    return [
        Measure(
            metric,
            float(np.mean(run.result[name]["scores"])),
            "points",
            run.result[name]["protocol"],
            method=method,
            agent_steps=run.result[name]["agent_steps"],
        )
        for metric, name, method in played
        if run.result.get(name)
    ]


class ScoreVerdict(NamedTuple):
    """Whether a score reaches the paper's, less a margin of `SCORE_MARGIN`."""

    kind: str  # `REPRODUCED` by an interval, `REACHED` by a mean, `SHORT`, `INCONCLUSIVE`, or 'not run'
    estimate: Effect = Effect()  # mean score and its interval, against the limit that it must reach
    # normalized score, 0 for the random policy and 1 for the paper's GA3C; None where unknown
    share: float | None = None
    planned: int = 0  # number of planned seeds
    reason: str = ""  # why nothing is decided

    def __str__(self) -> str:
        n = self.estimate.n
        if not n:
            return self.kind
        text = f"{self.kind}: {self.reason}" if self.reason else self.kind
        if self.kind == SHORT and self.share is not None:
            text = "short, below the random policy"
            if self.share >= 0:
                text = f"short by {100 * (1 - self.share):.0f} %"
        if n < LEAST_SEEDS or n < self.planned:
            text += f", n = {n}"
        return text + (f" of {self.planned}" if n < self.planned else "")


def verdict(table: Measurements, game: str) -> ScoreVerdict:
    """Judge our scores of a game by the paper's.

    With fewer than `LEAST_SEEDS` seeds only the mean is compared.
    """
    part = table.select(game=game)
    scores = part.numbers(SCORE)
    random, paper = random_score(table, game), papers_score(table, game)
    if not scores or paper is None:
        return ScoreVerdict("not run" if not scores else "nothing to compare with")
    way = 0.0 if random is None else max(0.0, paper - random)
    looks = 2 if table.results.budget == "tuned" and game in EXTENDED else 1
    mean = float(np.mean(scores))
    ends = mean_interval(scores, 1 - LEVEL / looks) if len(scores) >= LEAST_SEEDS else (math.nan, math.nan)
    estimate = Effect(mean, ends[0], ends[1], n=len(scores), limit=paper - SCORE_MARGIN * way, looks=looks)
    share = (mean - random) / way if random is not None and way else None
    missing = looks > 1 and LEAST_SEEDS <= len(scores) < len(part.runs)
    kind, reason = (INCONCLUSIVE, RUNS_MISSING) if missing else _kind(estimate)
    return ScoreVerdict(kind, estimate, share, len(part.runs), reason)


def _kind(estimate: Effect) -> tuple[str, str]:
    """Return the kind of the verdict on a score, and the reason if it is undecided."""
    if estimate.n < LEAST_SEEDS:
        return (REACHED if estimate.effect >= estimate.limit else SHORT), ""
    if estimate.low >= estimate.limit:
        return REPRODUCED, ""
    return (SHORT, "") if estimate.high < estimate.limit else (INCONCLUSIVE, NO_DIFFERENCE)


def verdicts(table: Measurements) -> dict[str, ScoreVerdict]:
    """Return the verdicts on the games of Table 3 with a score."""
    of_games = {game: verdict(table, game) for game in NINE_GAMES if game in table.names("game")}
    return {game: judged for game, judged in of_games.items() if judged.estimate.n}


def counted(table: Measurements) -> Counter[str]:
    """Count the games with a score by verdict: `REACHED` (also `REPRODUCED`), `SHORT` or `INCONCLUSIVE`."""
    return Counter(judged.kind.replace(REPRODUCED, REACHED) for judged in verdicts(table).values())


def papers_score(table: Measurements, game: str, method: str = PAPERS) -> float | None:
    """Return the paper's score of a method, or None."""
    return table.results.papers("scores", game=game, method=method)


def random_score(table: Measurements, game: str) -> float | None:
    """Return the score of the random policy on a game: ours, or the paper's if ours was not measured."""
    measured = table.select(game=game).numbers(RANDOM)
    return float(np.mean(measured)) if measured else papers_score(table, game, "random")


def random_policies(table: Measurements) -> dict[str, float]:
    """Return our mean score of the random policy by game, of the games where it was measured."""
    return table.series(RANDOM, ["game"]).to_dict()


def episodes(part: Measurements) -> list[float]:
    """Return the scores of the episodes of the first run that was evaluated, or an empty list."""
    played = (run.result["evaluation"]["scores"] for run in part.finished if "evaluation" in run.result)
    return next(played, [])


def with_interval(part: Measurements) -> str:
    """Return a cell with the mean and interval over the seeds, or over the episodes of a single seed."""
    scores = part.numbers(SCORE)
    if len(scores) == 1 and episodes(part):
        return f"{mean_ci(episodes(part), 'episode')}, 1 seed"
    return mean_ci(scores)


def millions(part: Measurements) -> str:
    """Return a cell with the mean number of agent steps behind the evaluated checkpoints, in millions."""
    evaluations = [run.result["evaluation"] for run in part.runs if run.result.get("evaluation")]
    steps = [evaluation["agent_steps"] / 1e6 for evaluation in evaluations]
    return number(float(np.mean(steps)) if steps else None)


def printed(method: str) -> Cell:
    """Return a cell with the paper's score, and a star at the random policy's scores that look swapped."""

    def cell(part: Measurements) -> str:
        star = "*" if method == "random" and part.game in SWAPPED else ""
        return number(papers_score(part, part.game, method)) + star

    return cell


def published(method: str) -> Cell:
    """Return a cell with the published score of another system."""
    return lambda part: number(part.results.papers("published", game=part.game, method=method))


def normalized(part: Measurements) -> str:
    """Return a cell with the normalized score, such as '42 %'."""
    share = verdict(part, part.game).share
    return "-" if share is None else f"{100 * share:.0f} %"


class ScoresFigure(Figure):
    """At the tuned budget a game takes hours, so only one has several seeds."""

    name = "scores"
    place = 1
    paper = "Table 3"
    shows = "score of the trained agent on nine games, beside human, random policy and A3C"
    headline = "does our GA3C reach the scores of the paper's GA3C?"
    tuned_headline = (
        "does PPO in GA3C's architecture, after 4 million agent steps, reach the scores of the paper's GA3C "
        f"after {PAPERS_STEPS}?"
    )
    games = {"smoke": ("pong",), "quick": NINE_GAMES, "tuned": NINE_GAMES, "paper": NINE_GAMES}
    main = (SCORE, "points")
    scores = (SCORE,)
    measures: Any = staticmethod(measures)
    tables = (
        Table(
            ("game",),
            {
                **{f"{words} (paper)": printed(method) for method, words in METHODS.items()},
                "random policy (ours)": lambda part: mean_ci(part.numbers(RANDOM)),
                "ours": with_interval,
                "million steps (ours)": millions,
                "normalized score": normalized,
                "verdict": lambda part: str(verdict(part, part.game)),
            },
        ),
        Table(
            ("game",),
            {"ours": with_interval, **{method: published(method) for method in PUBLISHED}},
            "published training scores of other systems",
        ),
    )
    words = {"papers_steps": PAPERS_STEPS}

    def seeds(self, budget, game):
        return EXTENDED.get(game, 1) if budget == "tuned" else super().seeds(budget, game)

    def specs(self, budget, game, seed):
        return [training(budget, game, seed)]

    def answer(self, table):
        """Return in which games our score reaches the paper's, and the range of the normalized scores."""
        judged = verdicts(table)
        if not judged:
            return ""
        reached = [game for game, verdict in judged.items() if verdict.kind in (REACHED, REPRODUCED)]
        alone = [game for game in reached if judged[game].estimate.n == 1]
        several = [game for game in reached if game not in alone]
        lists = [", ".join(several)] if several else []
        lists += [f"{', '.join(alone)}, one seed each"] if alone else []
        text = f"{len(reached)} of {len(judged)} games reach a normalized score of 95 %"
        text += f" ({'; '.join(lists)})" if lists else ""
        undecided = [game for game, verdict in judged.items() if verdict.kind == INCONCLUSIVE]
        text += f", {len(undecided)} undecided ({', '.join(undecided)})" if undecided else ""
        shares = sorted(verdict.share for verdict in judged.values() if verdict.share is not None)
        ends = dict.fromkeys(f"{100 * share:.0f}" for share in (*shares[:1], *shares[-1:]))
        return text + (f"; range {' to '.join(ends)} %" if ends else "")

    def plot(self, table, stem):
        drawing("score_plots").score_panels([_panel(table, game) for game in NINE_GAMES], stem)
        curves = [
            (
                game.replace("_", " "),
                [run.curve for run in part.finished],
                papers_score(table, game),
                random_score(table, game),
            )
            for game, part in table.parts("game")
            if part.finished
        ]
        drawing("score_plots").curve_panels(curves, stem.with_name(f"{stem.name}-curves"))


def _panel(table: Measurements, game: str) -> tuple:
    """Return the paper's methods as marks, and ours with a sample for the interval: seeds or episodes."""
    part = table.select(game=game)
    papers = {method: papers_score(table, game, method) for method in METHODS}
    scores = part.numbers(SCORE)
    sample = scores if len(scores) > 1 else episodes(part)
    return game.replace("_", " "), papers, part.numbers(RANDOM), scores, sample


FIGURE = ScoresFigure()
