"""How soon Pong is learned with later actor-critics' settings, next to published results of this protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.figures.figure import Figure, Measure, grouped, once_ended, smoke_spec
from ga3c_tf.reproduce.figures.learning import scores
from ga3c_tf.reproduce.figures.results import Results
from ga3c_tf.reproduce.measures.curves import first_reaching, score_by
from ga3c_tf.reproduce.measures.effects import judged_again, paired_effect
from ga3c_tf.reproduce.measures.judging import judged
from ga3c_tf.reproduce.measures.text import lines_of, mean_ci, number
from ga3c_tf.reproduce.measures.verdicts import Claim, Finding
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
EARLY_SCORE = 15.0
"""Training score that should be exceeded after `EARLY_STEPS`."""
PPO_SCORE = 16.7
"""Score of SLM-Lab's PPO on Pong with sticky actions after 10 million agent steps, a mean of four runs."""
LIMITS = {
    "early": (STICKY, EARLY, EARLY_SCORE),
    "ppo": (STICKY, scores.SCORE, PPO_SCORE),
    "noops": (NOOPS, scores.SCORE, GOOD - 2.0),
}
"""Protocol, metric and the limit that the mean of the metric should exceed, by finding."""
STEPS_TO = f"agent steps to a training score of {GOOD:g}"
MINUTES_TO = f"minutes to a training score of {GOOD:g}"


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
    curve = run.curve
    minutes = first_reaching(curve, GOOD, "time_s", window) / 60
    return [
        *scores.measures(run),
        Measure(EARLY, score_by(curve, EARLY_STEPS, "agent_steps"), "points", protocol, "the run is shorter"),
        Measure(
            STEPS_TO, first_reaching(curve, GOOD, "agent_steps", window), "steps", protocol, "never reached"
        ),
        Measure(MINUTES_TO, minutes, "min", protocol, "never reached"),
    ]


def groups(results: Results) -> dict[str, list[RecordedRun]]:
    """Group the runs by protocol."""
    return grouped(results.runs, lambda run: run.spec.label[0])


def findings(results: Results) -> dict[str, Finding]:
    """Judge whether the mean over the seeds is above a limit, for each of `LIMITS`, once its runs have ended.

    A run that diverged scores as the random policy. With sticky actions the runs were extended, as in
    `scores`, so their p values are multiplied by the number of times that they are judged.
    """
    runs = groups(results)
    effects = {}
    for name, (protocol, metric, limit) in LIMITS.items():
        values = {run.spec.seed: results.score(run, metric) for run in runs.get(protocol, [])}
        measured = {seed: value for seed, value in values.items() if value is not None}
        effect = paired_effect(measured, dict.fromkeys(measured, limit))
        effects[name] = judged_again(effect) if protocol == STICKY else effect
    by_claim = judged(effects)
    return {
        name: once_ended(by_claim[name], runs.get(protocol, [])) for name, (protocol, _, _) in LIMITS.items()
    }


def claims(results: Results) -> list[Claim]:
    """Return for each of `LIMITS` the claim that the mean over the seeds is above the limit."""
    early, ppo, noops = (number(limit) for _, _, limit in LIMITS.values())
    texts = {
        "early": f"with sticky actions the training score after 3 million agent steps is at least {early}",
        "ppo": (
            f"with sticky actions 4 million agent steps bring more than 10 million of SLM-Lab's PPO, {ppo}"
        ),
        "noops": f"without sticky actions 2.5 million agent steps bring at least {noops}",
    }
    return [Claim(texts[name], finding) for name, finding in findings(results).items()]


def details(results: Results) -> list[str]:
    """Return the table of both protocols, and published results."""
    rows = [
        [
            protocol,
            *(mean_ci(results.values(metric, runs)) for metric in (scores.SCORE, EARLY)),
            f"{len(results.values(STEPS_TO, runs))} of {sum(run.ended for run in runs)}",
            *(mean_ci(results.values(metric, runs)) for metric in (STEPS_TO, MINUTES_TO)),
            results.unfinished(runs),
        ]
        for protocol, runs in groups(results).items()
    ]
    return lines_of(
        "sample-efficiency.md",
        rows=rows,
        header=[scores.SCORE, EARLY, f"reached {number(GOOD)}", STEPS_TO, MINUTES_TO],
        least=number(GOOD - 2.0),
    )


def plot(results: Results, stem: Path) -> None:
    """Draw the score against time and against agent steps for both protocols."""
    from ga3c_tf.reproduce.drawing import score_plots

    curves = {
        protocol: [run.curve for run in runs if run.finished] for protocol, runs in groups(results).items()
    }
    random = results.values(scores.RANDOM, results.runs)
    score_plots.score_curves({"pong": curves}, stem, {"pong": random[0] if random else None})


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
    claims=claims,
    details=details,
    plot=plot,
)
