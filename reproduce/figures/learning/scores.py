"""Table 3: the score of trained agents on nine games."""

from __future__ import annotations

from ga3c_tf.reproduce.drawing import score_plots
from ga3c_tf.reproduce.figures.figure import Figure
from ga3c_tf.reproduce.figures.learning import table_3
from ga3c_tf.reproduce.figures.measurements import Measurements
from ga3c_tf.reproduce.figures.metrics import EVALUATED, RANDOM, evaluations
from ga3c_tf.reproduce.figures.normalized import papers_score, random_score
from ga3c_tf.reproduce.figures.tables import Table
from ga3c_tf.reproduce.measures.estimates import paired
from ga3c_tf.reproduce.measures.text import game_title, mean_ci
from ga3c_tf.reproduce.measures.verdicts import Claim, above
from ga3c_tf.reproduce.runs.specs import NINE_GAMES


class ScoresFigure(Figure):
    """At the tuned budget a game takes hours, so only one has several seeds."""

    name = "scores"
    games = {"smoke": ("pong",), "quick": NINE_GAMES, "tuned": NINE_GAMES, "paper": NINE_GAMES}
    measured = (evaluations,)
    main = (EVALUATED, "points")
    tables = (
        Table(
            ("game",),
            {
                **{f"{words} (paper)": table_3.printed(method) for method, words in table_3.METHODS.items()},
                "random policy (ours)": lambda part: mean_ci(part.numbers(RANDOM)),
                "ours": table_3.with_interval,
                "million steps (ours)": table_3.millions,
                "normalized score": table_3.percent,
            },
        ),
        Table(
            ("game",),
            {
                "ours": table_3.of_tuned(table_3.with_interval),
                **{name: table_3.of_tuned(table_3.published(name)) for name in table_3.PUBLISHED},
            },
            "published training scores of other systems",
        ),
    )
    words = {"papers_steps": table_3.PAPERS_STEPS}

    def seeds(self, budget, game):
        return table_3.EXTENDED.get(game, 1) if budget == "tuned" else super().seeds(budget, game)

    def planned(self, budget, game, seed):
        return [table_3.training(budget, game, seed)]

    def claims(self, table):
        games = table_3.scored_games(table).items()
        return [self._claim(game, part) for game, part in games if table_3.tested(part)]

    def _claim(self, game: str, part: Measurements) -> Claim:
        looks = 2 if part.budget == "tuned" and game in table_3.EXTENDED else 1
        estimate = paired(part.series(EVALUATED), limit=table_3.needed(part)).looked(looks)
        return self.claim(game, above(estimate), [part.missing], game=game, name=game_title(game))

    def answer(self, table):
        return table_3.answer(table)

    def plot(self, table, stem):
        games = []
        curves = []
        for game in NINE_GAMES:
            part = table.select(game=game)
            papers = {method: table.papers("scores", game=game, method=method) for method in table_3.METHODS}
            printed = {method: score for method, score in papers.items() if score is not None}
            ours = part.numbers(EVALUATED)
            sample = ours if len(ours) > 1 else table_3.episodes(part)
            games.append(score_plots.GameScores(game, printed, part.numbers(RANDOM), ours, sample))
            of_seeds = {"GA3C, ours": [run.curve for run in part.finished]}
            if part.finished:
                curves.append(score_plots.Panel(game, of_seeds, random_score(part), papers_score(part)))
        score_plots.score_panels(games, stem)
        if curves:
            score_plots.curve_panels(curves, stem.with_name(f"{stem.name}-curves"))
