"""Figure 5 and slide 35: how fast four settings learn, and how many frames they see in the same time."""

from __future__ import annotations

from pathlib import Path

from ga3c_tf.reproduce.figures.figure import (
    Figure,
    Measure,
    grouped,
    on_one_machine,
    planned,
    seeds_by_budget,
    smoke_spec,
)
from ga3c_tf.reproduce.figures.results import Results
from ga3c_tf.reproduce.figures.throughput import adjustment
from ga3c_tf.reproduce.measures.curves import mean_score
from ga3c_tf.reproduce.measures.effects import judged_again, paired_effect, paired_ratio
from ga3c_tf.reproduce.measures.judging import finding_of, holm, open_level
from ga3c_tf.reproduce.measures.random_policy import RANDOM_SCORES
from ga3c_tf.reproduce.measures.text import lines_of, mean_ci
from ga3c_tf.reproduce.measures.verdicts import FEW_PERIODS, RUNS_MISSING, Claim, Finding
from ga3c_tf.reproduce.measures.wording import described, described_ratio
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import ADDED, RunSpec, run_spec

MINUTES = {"quick": 7.0, "paper": 24 * 60.0}
FIXED = {"quick": (32, 2, 2), "paper": (128, 2, 2)}
"""Fixed setting by budget (N_A, N_P, N_T): one chosen before any run of `tps` (D20), and the paper's best."""
ADJUSTED = ("num_agents", "num_predictors", "num_trainers", "adjustment", "adjustment_seconds", "max_agents")
SEEDS = 3
"""Number of seeds after which `more_frames` was judged for the first time."""
ADDED_SEEDS = (4, 5, 6)
"""Seeds of the two settings that `more_frames` compares, added because it was undecided after three seeds."""
EXTENDED = "minatar_breakout"
"""The game with added seeds, at `quick`."""
NEARLY = 0.8
LEAST_PERIODS = 200
"""Periods a run needs for its search: from 1/1/1, the 33 moves of one to 32/2/2 are all accepted at best."""
MEAN = "mean score"
SCORE = "score at the end"
FRAMES = "frames"
FIXED_LABEL = "fixed"
DYNAMIC_LABEL = "dynamic"


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return runs with three fixed settings, the best of them last, and one with dynamic adjustment."""
    if budget == "smoke":
        return [
            smoke_spec(game, seed).called(FIXED_LABEL),
            adjustment.dynamic(budget, game, seed).called(DYNAMIC_LABEL),
        ]
    good = FIXED[budget]
    fixed = {"1/1/1": (1, 1, 1), "16/1/1": (16, 1, 1), f"{FIXED_LABEL}, {'/'.join(map(str, good))}": good}
    dynamic = adjustment.dynamic(budget, game, seed, MINUTES[budget])
    common = {name: value for name, value in dynamic.given.items() if name not in ADJUSTED}
    runs = [
        run_spec(
            game, seed, num_agents=agents, num_predictors=predictors, num_trainers=trainers, **common
        ).called(label)
        for label, (agents, predictors, trainers) in fixed.items()
    ]
    return [*runs, dynamic.called(f"{DYNAMIC_LABEL} from 1/1/1")]


def added(game: str) -> list[RunSpec]:
    """Return the runs of the added seeds: 1/1/1 and the fixed setting that represents the best one (D20)."""
    seeds = [specs("quick", game, seed) for seed in ADDED_SEEDS]
    return [run for smallest, _, best, _ in seeds for run in (smallest, best)]


def measures(run: RecordedRun) -> list[Measure]:
    """Return the mean of the rolling score over the whole time and its last tenth, and the frames seen."""
    config = run.spec.config
    rolling = f"mean of the rolling score (training, {config.rolling_episodes} episodes) over"
    frames = run.agent_steps * (config.frame_skip if config.env_id.startswith("ALE/") else 1)
    reason = "no episode ended"
    return [
        Measure(MEAN, mean_score(run.curve, "time_s"), "points", f"{rolling} the time", reason),
        Measure(SCORE, run.final_score, "points", f"{rolling} the last tenth of the time", reason),
        Measure(FRAMES, float(frames), "frames", "frames of the environment, agent steps times frame skip"),
    ]


def groups(results: Results) -> dict[str, list[RecordedRun]]:
    """Group the runs by setting, and those of added seeds apart."""
    return grouped(results.runs, lambda run: run.spec.label[0])


def findings(results: Results, runs: dict[str, list[RecordedRun]]) -> dict[str, Finding]:
    """Judge the paper's claims about frames, and about dynamic adjustment relative to the best fixed setting.

    A run that diverged scores as the random policy.

    Nothing is judged before all runs have ended, because the other seeds could still change a verdict. Added
    seeds count in the finding about frames only.
    """
    frames = {label: values for label, group in runs.items() if (values := results.values(FRAMES, group))}
    fixed = next(label for label in runs if label.startswith(FIXED_LABEL))
    dynamic = next(label for label in runs if label.startswith(DYNAMIC_LABEL))
    if len(frames) < len(runs) or not results.ended:
        return dict.fromkeys(("more_frames", "nearly_best"), Finding(RUNS_MISSING, "not every run was made"))
    means = {label: sum(values) / len(values) for label, values in frames.items() if label in planned(runs)}
    most = max(means, key=means.__getitem__)
    least = min(means, key=means.__getitem__)
    scores = paired_effect(_scores(results, runs, most), _scores(results, runs, least))
    if results.runs[0].spec.game == EXTENDED and scores.seeds > SEEDS:
        scores = judged_again(scores)
    ratio = paired_ratio(_by_machine(results, runs[dynamic]), _by_machine(results, runs[fixed]), NEARLY)
    of_scores, of_ratio = holm([scores.chance, ratio.chance])
    level = open_level([of_scores, of_ratio])
    more_frames = f"score of '{most}' minus '{least}': {described(scores, of_scores)}"
    nearly_best = f"frames of '{dynamic}' relative to '{fixed}' (D20): {described_ratio(ratio, of_ratio)}"
    searched = all(len(run.adjustment["time_s"]) >= LEAST_PERIODS for run in runs[dynamic] if run.finished)
    return {
        "more_frames": on_one_machine(finding_of(scores, of_scores, level, more_frames), results.runs),
        "nearly_best": finding_of(ratio, of_ratio, level, nearly_best)
        if searched
        else Finding(FEW_PERIODS, nearly_best),
    }


def claims(results: Results) -> list[Claim]:
    """Return the paper's claims about frames and about dynamic adjustment."""
    by_claim = findings(results, groups(results))
    return [
        Claim(
            "more frames in the same time mean faster convergence",
            by_claim["more_frames"],
            "the mean score over the time, of the setting with most frames, minus that of the one with "
            "fewest, seed by seed",
        ),
        Claim(
            "dynamic adjustment is nearly as good as the best fixed setting",
            by_claim["nearly_best"],
            f"more than {NEARLY:.0%} of the frames in the same time, as a ratio of runs of one seed on one "
            f"machine; undecided unless each run has {LEAST_PERIODS} periods of adjustment or more",
        ),
    ]


def _scores(results: Results, runs: dict[str, list[RecordedRun]], label: str) -> dict[int, float]:
    """Return the mean scores of a setting by seed, with those of added seeds."""
    every = [*runs[label], *runs.get(f"{label}{ADDED}", [])]
    return {run.spec.seed: score for run in every if (score := results.score(run, MEAN)) is not None}


def _by_machine(results: Results, runs: list[RecordedRun]) -> dict[tuple[int, str], float]:
    """Return the frames by seed and machine, because only runs on the same machine are compared."""
    return {(run.spec.seed, run.machine): value for run in runs if (value := results.value(run, FRAMES))}


def details(results: Results) -> list[str]:
    """Return the table of the scores and frames of each setting."""
    rows = [
        [
            label,
            mean_ci(results.values(FRAMES, group)),
            mean_ci(results.values(MEAN, group)),
            mean_ci(results.values(SCORE, group)),
            results.unfinished(group),
        ]
        for label, group in groups(results).items()
    ]
    return lines_of("speed.md", rows=rows, added=any(run.spec.is_added for run in results.runs))


def plot(results: Results, stem: Path) -> None:
    """Draw the score against time and agent steps, with the frames in the legend, without added seeds."""
    from ga3c_tf.reproduce.drawing import score_plots

    curves = {}
    for label, runs in planned(groups(results)).items():
        frames = results.values(FRAMES, runs)
        total = f" ({sum(frames) / len(frames) / 1e6:.1f} M frames)" if frames else ""
        curves[f"{label}{total}"] = [run.curve for run in runs if run.finished]
    score_plots.score_curves({"": curves}, stem, {"": RANDOM_SCORES.get(results.runs[0].spec.game)})


FIGURE = Figure(
    name="speed",
    place=6,
    paper="Figure 5, slide 35",
    shows="score against time for four settings of agents, predictors and trainers",
    headline="more frames mean faster convergence, "
    "and dynamic adjustment is nearly as good as the best setting",
    games={"smoke": ("cartpole",), "quick": ("minatar_breakout",), "paper": ("pong",)},
    seeds=seeds_by_budget(quick=SEEDS),
    specs=specs,
    measures=measures,
    main=(SCORE, "points"),
    claims=claims,
    details=details,
    plot=plot,
    by_game=True,
    added_games=(EXTENDED,),
    added=added,
)
