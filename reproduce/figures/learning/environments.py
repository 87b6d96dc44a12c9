"""Environments other than Atari, not in the paper: score of GA3C, A3C and A2C against agent steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ga3c_tf.reproduce.figures.figure import Figure, Measure, grouped, seeds_by_budget, smoke_spec
from ga3c_tf.reproduce.figures.learning import learning_curves, scores
from ga3c_tf.reproduce.figures.results import Results
from ga3c_tf.reproduce.figures.throughput import pps
from ga3c_tf.reproduce.measures.curves import score_at_start
from ga3c_tf.reproduce.measures.effects import judged_again, pooled_effect
from ga3c_tf.reproduce.measures.judging import judged
from ga3c_tf.reproduce.measures.random_policy import (
    RANDOM_POLICY,
    RandomPolicy,
    has_left_random,
    random_policy_of,
)
from ga3c_tf.reproduce.measures.records import NOT_RUN
from ga3c_tf.reproduce.measures.text import lines_of, mean_ci, number
from ga3c_tf.reproduce.measures.verdicts import RUNS_MISSING, TOO_SHORT, Claim, Finding
from ga3c_tf.reproduce.runs.run import RecordedRun, made_together
from ga3c_tf.reproduce.runs.specs import SYSTEMS, RunSpec, run_spec
from ga3c_tf.reproduce.runs.tuned import tuned_spec

GAMES = (
    "cartpole",
    "minatar_breakout",
    "minatar_asterix",
    "minatar_freeway",
    "minatar_seaquest",
    "minatar_space_invaders",
)
STEPS = {"quick": 500_000, "tuned": 5_000_000, "paper": 5_000_000}
TUNED: dict[str, dict[str, Any]] = {
    "ga3c": {},
    "a3c": {"num_agents": pps.AGENTS["quick"]["a3c"]},
    "a2c": {"learning_rate": 1e-2},
}
"""Settings that override the preset by system. Learning rates are the best of three on Breakout, seed 101."""
TUNED_A3C_GAMES = ("minatar_breakout", "minatar_space_invaders")
"""Games that A3C is run on at the tuned budget; the others are left out to save hours."""
ADDED_SEEDS = (4, 5, 6, 7, 8)
"""Seeds at `quick` of GA3C and A3C in `EXTENDED`, added as their comparison was undecided after three."""
EXTENDED = ("cartpole", "minatar_breakout", "minatar_seaquest", "minatar_space_invaders")
"""The games that this comparison counted: in the others, neither system had left the random policy."""
MARGIN = 10.0
"""Points of the normalized score that GA3C may be below another system and still score as much."""
START = "rolling score at the start"
LEAST_SHOWN = 1.0
"""Points above the random policy that the picture shows at least."""


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return a run of each system, with the same number of agent steps."""
    if budget == "smoke":
        return [smoke_spec(game, seed), smoke_spec(game, seed, "a3c")]
    if budget == "tuned":
        systems = [system for system in SYSTEMS if system != "a3c" or game in TUNED_A3C_GAMES]
        return [
            tuned_spec(game, seed, system, steps=STEPS[budget], **TUNED.get(system, {})) for system in systems
        ]
    return [
        run_spec(
            game,
            seed,
            system,
            num_agents=pps.AGENTS[budget].get(system, pps.AGENTS[budget]["ga3c"]),
            num_predictors=2,
            num_trainers=2,
            min_training_batch=20,
            steps=STEPS[budget],
            checkpoint_minutes=15.0,
        )
        for system in SYSTEMS
    ]


def added(game: str) -> list[RunSpec]:
    """Return the runs of the added seeds, of GA3C and A3C."""
    runs = [spec for seed in ADDED_SEEDS for spec in specs("quick", game, seed)]
    return [spec for spec in runs if spec.system in ("ga3c", "a3c")]


def measures(run: RecordedRun) -> list[Measure]:
    """Return the rolling score at the end, at its best, and at the start, and the scores of an evaluation.

    At the start, little has been learned yet.
    """
    window = run.spec.config.rolling_episodes
    curve = run.curve
    whole = curve["episodes"] >= window
    start = Measure(
        START,
        score_at_start(curve, window),
        "points",
        f"mean score of the last {window} episodes, at the first point of the curve with as many",
        f"fewer than {window} episodes ended",
        agent_steps=int(curve["agent_steps"][whole][0]) if whole.any() else None,
    )
    return [*learning_curves.measures(run), start, *scores.measures(run)]


def groups(results: Results) -> dict[str, dict[str, list[RecordedRun]]]:
    """Group the runs by game and system, without those of added seeds."""
    games = grouped(_planned(results), lambda run: run.spec.game)
    return {game: grouped(runs, lambda run: SYSTEMS[run.spec.system]) for game, runs in games.items()}


def findings(results: Results) -> dict[str, Finding]:
    """Judge whether GA3C ends no lower than each other system after the same agent steps, over the games
    together.

    A normalized score is 0 for the random policy and 100 for the better of the two systems. Games in which
    neither system has left the random policy say nothing and are left out. Only the comparison with A3C uses
    added seeds.
    """
    effects = {}
    games = {}
    for other in _others(results):
        shares = {game: _shares(results, game, other) for game in groups(results)}
        compared = {game: pair for game, pair in shares.items() if pair}
        effect = pooled_effect(list(compared.values()), -MARGIN)
        effects[other] = (
            judged_again(effect) if any(_added(results, game, other) for game in compared) else effect
        )
        games[other] = [
            f"{game} ({np.mean(ga3c) - np.mean(others):+.0f})" for game, (ga3c, others) in compared.items()
        ]
    by_system = {}
    for other, finding in judged(effects).items():
        because = (
            f"{finding.because}, in points of the normalized score, on average over {', '.join(games[other])}"
        )
        if not any(_ends(results, game, other) for game in groups(results)):
            by_system[other] = Finding(RUNS_MISSING, "nothing measured")
        elif not games[other]:
            by_system[other] = Finding(TOO_SHORT, "no game was learned")
        elif _missing(results, other):
            by_system[other] = Finding(RUNS_MISSING, because)
        else:
            by_system[other] = finding._replace(because=because)
    return by_system


def claims(results: Results) -> list[Claim]:
    """Return for each other system the claim that GA3C scores as much."""
    score = "that of the final weights" if _evaluated(results) else "the rolling score at the end"
    rule = (
        f"its normalized score is at most {MARGIN:g} points below, on average over the games; 0 is the "
        "random policy, 100 the better of the two systems; games in which neither has left the random policy "
        f"are left out; the difference of each game is in brackets; the score is {score}"
    )
    return [
        Claim(f"GA3C scores as much as {other} after the same agent steps", finding, rule)
        for other, finding in findings(results).items()
    ]


def _missing(results: Results, other: str) -> bool:
    """Return whether in any game with both systems, some of their runs have begun but not all have ended."""
    for game, systems in groups(results).items():
        runs = [run for name in ("GA3C", other) for run in systems.get(name, []) if other in systems]
        runs += _added(results, game, other)
        if any(results.status(run) != NOT_RUN for run in runs) and not all(run.ended for run in runs):
            return True
    return False


def _planned(results: Results) -> list[RecordedRun]:
    return [run for run in results.runs if not run.spec.is_added]


def _added(results: Results, game: str, other: str) -> list[RecordedRun]:
    """Return the runs of the added seeds of a game; none in the comparison with A2C, which was decided."""
    return [run for run in results.runs if run.spec.game == game and run.spec.is_added and other == "A3C"]


def _others(results: Results) -> list[str]:
    """Return the systems other than GA3C, including those without runs, as Holm's method counts these too."""
    return list(
        dict.fromkeys(name for systems in groups(results).values() for name in systems if name != "GA3C")
    )


def _ends(results: Results, game: str, system: str, added: Sequence[RecordedRun] = ()) -> list[float]:
    """Return the scores of the final weights if any run was evaluated, otherwise the last rolling scores.

    A run that diverged scores as the random policy.

    Args:
        results: results of all games.
        game: name of the game.
        system: name of the system.
        added: runs of added seeds, of any system, that count too.
    """
    runs = [
        *groups(results)[game].get(system, []),
        *(run for run in added if SYSTEMS[run.spec.system] == system),
    ]
    diverged = [_before(results, game)] * sum(run.diverged for run in runs)
    ended = results.values(scores.SCORE, runs) or results.values(learning_curves.FINAL, runs)
    return [*ended, *(score for score in diverged if score is not None)]


def _shares(results: Results, game: str, other: str) -> tuple[list[float], list[float]] | None:
    """Return the normalized final scores of GA3C and of another system, or None with nothing to compare."""
    ga3c, others = (_ends(results, game, system, _added(results, game, other)) for system in ("GA3C", other))
    before = _before(results, game)
    if not ga3c or not others or before is None:
        return None
    random = _random_of(results, game)
    episodes = _episodes(results, game)
    if not any(has_left_random(ends, episodes, random) for ends in (ga3c, others)):
        return None
    way = float(max(np.mean(ga3c), np.mean(others))) - before
    if way <= 0:
        return None
    first, second = ([100 * (score - before) / way for score in ends] for ends in (ga3c, others))
    return first, second


def _runs_of(results: Results, game: str) -> list[RecordedRun]:
    return [run for run in _planned(results) if run.spec.game == game]


def _episodes(results: Results, game: str) -> int:
    """Return the smallest number of episodes that a score of `_ends` is the mean of."""
    runs = _runs_of(results, game)
    played = [len(run.result["evaluation"]["scores"]) for run in runs if "evaluation" in run.result]
    if played:
        return min(played)
    return learning_curves.fewest_episodes(runs)


def details(results: Results) -> list[str]:
    """Return the tables of the scores at the start and at the end, and of the evaluations."""
    rows = []
    for game, systems in groups(results).items():
        runs_of = [systems.get(name, []) for name in SYSTEMS.values()]
        finals = [mean_ci(results.values(learning_curves.FINAL, runs)) for runs in runs_of]
        minutes = " / ".join(_minutes(runs) for runs in runs_of)
        rows.append([game, _start(results, game), *finals, minutes, unfinished(results, systems)])
    return lines_of(
        "environments.md",
        systems=list(SYSTEMS.values()),
        rows=rows,
        evaluated=_evaluated(results),
        tuned=results.budget == "tuned",
        together=made_together(_planned(results)),
        added=any(run.spec.is_added for run in results.runs),
        machines=len({run.machine for run in _planned(results) if run.finished}),
    )


def unfinished(results: Results, systems: dict[str, list[RecordedRun]]) -> str:
    """Write the status of each run that was begun but not finished, and how many runs were not begun."""
    statuses = {
        f"{system}, seed {run.spec.seed}": results.status(run)
        for system, runs in systems.items()
        for run in runs
        if not run.finished
    }
    reasons = [f"{run}: {status}" for run, status in statuses.items() if status != NOT_RUN]
    missing = len(statuses) - len(reasons)
    if missing:
        reasons.append(f"{missing} not run")
    return "; ".join(reasons)


def _evaluated(results: Results) -> list[list[str]]:
    """Return a row for each game with evaluations: the scores of the random policy and of each system."""
    rows = []
    for game, systems in groups(results).items():
        random = learning_curves.random_score(systems)
        played = [results.values(scores.SCORE, systems.get(name, [])) for name in SYSTEMS.values()]
        if any(played):
            rows.append([game, number(random), *map(mean_ci, played)])
    return rows


def _start(results: Results, game: str) -> str:
    at_start = _policy_at_start(results, game)
    if at_start is None:
        return "-"
    ids = {run.spec.id for run in _runs_of(results, game)}
    steps = [
        record.agent_steps or 0
        for record in results.records
        if record.run_id in ids and record.metric == START
    ]
    return f"{number(at_start.mean)} (by {max(steps):,} steps)"


def _before(results: Results, game: str) -> float | None:
    """Return the mean score of the random policy, or None."""
    random = _random_of(results, game)
    return None if random is None else random.mean


def _random_of(results: Results, game: str) -> RandomPolicy | None:
    """Return the scores of the random policy: measured with these runs, or on record, or at the start."""
    measured = learning_curves.random_of(groups(results)[game])
    return measured or RANDOM_POLICY.get(game) or _policy_at_start(results, game)


def _policy_at_start(results: Results, game: str) -> RandomPolicy | None:
    """Return the scores at the start of all runs, when the policy is nearly random, or None without any."""
    runs = _runs_of(results, game)
    starts = results.values(START, runs)
    if not starts:
        return None
    window = runs[0].spec.config.rolling_episodes
    of_means = random_policy_of(starts)  # each start is the mean of a window of episodes
    return RandomPolicy(of_means.mean, of_means.deviation * math.sqrt(window), window * len(starts))


def _minutes(runs: list[RecordedRun]) -> str:
    minutes = [60 * run.hours for run in runs if run.finished]
    return number(float(np.mean(minutes))) if minutes else "-"


def plot(results: Results, stem: Path) -> None:
    """Draw the score against time and against agent steps, a row for each game."""
    from ga3c_tf.reproduce.drawing import score_plots

    curves = {}
    random = {}
    for game, systems in groups(results).items():
        of_game = {name: [run.curve for run in runs if run.finished] for name, runs in systems.items()}
        if any(of_game.values()):
            title = game.replace("_", " ")
            curves[title] = of_game
            random[title] = _before(results, game)
    if curves:
        reach = {title: score if score is None else score + LEAST_SHOWN for title, score in random.items()}
        score_plots.score_curves(curves, stem, random, reach)


FIGURE = Figure(
    name="environments",
    place=11,
    paper="not in the paper",
    shows="score against time and agent steps on CartPole and MinAtar, GA3C, A3C and A2C",
    headline="does GA3C learn as much as A2C and A3C in the same steps?",
    games={"smoke": ("cartpole",), "quick": GAMES, "tuned": GAMES[1:], "paper": GAMES},
    seeds=seeds_by_budget(quick=3, paper=5),
    specs=specs,
    measures=measures,
    main=(learning_curves.FINAL, "points"),
    claims=claims,
    details=details,
    plot=plot,
    added_games=EXTENDED,
    added=added,
)
