"""Learning figures of invented runs, in folders as training writes them: numbers, findings, reasons."""

import contextlib
import dataclasses
import json
import math
import shutil
from datetime import datetime, timedelta

import numpy as np
import pytest
from invented_runs import (
    ON_GPU,
    SESSION,
    Drawn,
    failed,
    invent,
    labelled,
    made,
    of_session,
    played,
    recorded,
    write_table,
)

from ga3c_tf.config import Config
from ga3c_tf.environments.environment import make_environment
from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.drawing import score_plots
from ga3c_tf.reproduce.drawing.canvas import LOOKS, NO_SYSTEM
from ga3c_tf.reproduce.figures.learning import (
    batch_size,
    environments,
    learning_curves,
    papers_algorithm,
    sample_efficiency,
    speed,
    wall_clock,
)
from ga3c_tf.reproduce.figures.learning import scores as scores_figure
from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.measures.random_policy import RANDOM_POLICY, RANDOM_SCORES
from ga3c_tf.reproduce.measures.verdicts import (
    BUSY_MACHINE,
    FAILS,
    FEW_AGENTS,
    FEW_PERIODS,
    FEW_SEEDS,
    HOLDS,
    NO_DIFFERENCE,
    RUNS_MISSING,
    SEVERAL_MACHINES,
    SPEED_CHANGED,
    TOO_SHORT,
    Finding,
)
from ga3c_tf.reproduce.pages.summary import summarize
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import ADDED, GAMES, NINE_GAMES
from ga3c_tf.runs import outcomes
from ga3c_tf.runs.curve import write_curve
from ga3c_tf.runs.log import ADJUSTMENT_COLUMNS

PAPERS_SCORES = (218.0, 92.0, 7386.0, 5643.0, 1978.0, 18.0, 14966.0, 1706.0, 8623.0)
"""The paper's GA3C on the nine games, in the order of Table 3."""


def test_the_games_of_table_3_that_reach_the_papers_score_are_named(folder):
    """The paper's GA3C scores 18 on Pong, and 14,966 on Qbert."""
    training = {"time_s": 60.0, "agent_steps": 4000}
    for game, score in (("pong", 17.0), ("qbert", 7500.0), ("boxing", 90.0), ("seaquest", 100.0)):
        [spec] = FIGURES["scores"].specs("quick", game, 1)
        random = played({"pong": -20.0}.get(game, 0.0))
        invent(folder.runs, spec, training=training, evaluation=played(score), random=random)
    answer = FIGURES["scores"].answer(made(folder, "scores"))
    assert answer.startswith(
        "2 of 4 games reach a normalized score of 95 % (boxing, pong, one seed each); range "
    )


def test_a_game_of_table_3_whose_interval_contains_the_limit_is_undecided(folder):
    """The limit on Pong is 16.1 if the random policy scores -20."""
    for seed, score in enumerate((17.0, 18.0, 19.0), 1):
        [spec] = FIGURES["scores"].specs("quick", "pong", seed)
        invent(folder.runs, spec, evaluation=played(score), random=played(-20.0))
    answer = FIGURES["scores"].answer(made(folder, "scores", ("pong",), seeds=3))
    assert answer == "0 of 1 games reach a normalized score of 95 %, 1 undecided (pong); range 100 %"


def ended(folder, game, ends):
    """Runs of `environments` on a game that end at these scores, by system and seed, after a start at 0."""
    for system, scores in ends.items():
        for seed, score in enumerate(scores, 1):
            [spec] = [spec for spec in environments.specs("quick", game, seed) if spec.system == system]
            training = {"time_s": {"ga3c": 60.0, "a3c": 240.0, "a2c": 120.0}[system], "agent_steps": 4000}
            # Rises within 100 episodes.
            run = invent(folder.runs, spec, scores=(0.0, *[score] * 8), training=training)
            reached = environments.measures(run)[-1].agent_steps
            assert 100 <= reached / (spec.config.steps / 801) < 110  # of 801 episodes


def test_other_environments_compare_the_systems_by_agent_steps(folder):
    ended(folder, "cartpole", {"ga3c": (51, 52, 53), "a3c": (52, 53, 54), "a2c": (91, 92, 93)})
    ended(
        folder, "minatar_breakout", {"ga3c": (9.9, 10, 10.1), "a3c": (9.9, 10, 10.1), "a2c": (9.9, 10, 10.1)}
    )
    text = "\n".join(environments.FIGURE.section(made(folder, "environments")))
    assert f"GA3C scores as much as A3C after the same agent steps: **{HOLDS}**" in text
    assert "in points of the normalized score, on average over cartpole (-3), minatar_breakout (+0)\n" in text
    assert f"GA3C scores as much as A2C after the same agent steps: **{FAILS}**" in text
    assert "| minatar_freeway | - | - | - | - | - / - / - | 9 not run |" in text
    [row] = [line.split(" | ") for line in text.splitlines() if line.startswith("| cartpole |")]
    assert 0.45 < float(row[1].split()[0]) / np.mean([52, 53, 92]) < 0.6 and row[5] == "1 / 4 / 2"


def test_added_seeds_count_in_the_comparison_with_a3c_only(folder):
    best = {
        "cartpole": 50.0,
        "minatar_breakout": 10.0,
        "minatar_seaquest": 20.0,
        "minatar_space_invaders": 30.0,
    }
    for game, score in best.items():
        ended(folder, game, dict.fromkeys(("ga3c", "a3c", "a2c"), (0.9 * score, score, 1.1 * score)))
    before = made(folder, "environments")
    found = environments.findings(before)
    assert "(3 seeds)" in found["A3C"].because and found["A3C"].verdict == NO_DIFFERENCE
    added = [spec for spec in FIGURES["environments"].all_specs("quick") if spec.is_added]
    assert len(added) == 40 and {spec.system for spec in added} == {"ga3c", "a3c"}
    for spec in added:
        score = best[spec.game] * (1 + spec.seed / 1000)
        invent(folder.runs, spec, scores=(0.0, *[score] * 8), training={"agent_steps": 4000})
        if spec == added[0]:
            assert environments.findings(made(folder, "environments"))["A3C"].verdict == RUNS_MISSING
    after = made(folder, "environments")
    again = environments.findings(after)
    assert again["A3C"].verdict == HOLDS and "(8 seeds)" in again["A3C"].because
    first, second = (each["A2C"].because.split(", p =")[0] for each in (found, again))
    assert first == second  # but for Holm's correction
    text, earlier = ("\n".join(environments.FIGURE.section(each)) for each in (after, before))
    tables, earlier_tables = (
        [line for line in each.splitlines() if line.startswith("|")] for each in (text, earlier)
    )
    assert tables == earlier_tables
    assert "Seeds were added to it in four games." in text and "Seeds were added" not in earlier


def test_systems_are_not_judged_before_the_games_they_have_begun_are_complete(folder):
    ended(folder, "cartpole", {"ga3c": (51, 52, 53), "a2c": (51, 52, 53)})
    found = environments.findings(made(folder, "environments"))
    assert found["A2C"].verdict == HOLDS
    assert found["A3C"] == Finding(RUNS_MISSING, "nothing measured")
    ended(folder, "minatar_breakout", {"ga3c": (9.9, 10, 10.1), "a2c": (9.9, 10)})
    assert environments.findings(made(folder, "environments"))["A2C"].verdict == RUNS_MISSING


def test_a_game_whose_runs_have_all_failed_is_not_left_out(folder):
    ended(folder, "cartpole", {"ga3c": (51, 52, 53), "a2c": (51, 52, 53)})
    for seed in (1, 2, 3):
        for spec in environments.specs("quick", "minatar_seaquest", seed):
            failed(folder, spec, "train: no space left")
    assert environments.findings(made(folder, "environments"))["A2C"].verdict == RUNS_MISSING


def test_final_weights_are_judged_where_they_played(folder):
    """In training GA3C ended far below A2C; its final weights score as much."""
    for seed in (1, 2, 3):
        for spec in environments.specs("tuned", "minatar_asterix", seed):
            steps = spec.config.steps
            last = {"ga3c": 5.0, "a2c": 20.0}[spec.system]
            scored = {"evaluation": played(20 + seed / 10, 100, steps)}
            if spec.random_play:
                scored["random"] = played(0.5, 100, steps)
            invent(
                folder.runs,
                spec,
                scores=(0.0, last),
                training={"time_s": 60.0, "agent_steps": steps},
                **scored,
            )
    results = made(folder, "environments", budget="tuned")
    assert environments.findings(results)["A2C"].verdict == HOLDS
    text = "\n".join(environments.FIGURE.section(results))
    assert "the score is that of the final weights)" in text and "kinds of machines" not in text
    of_session(next(run for run in results.runs if run.finished), {**SESSION, "cpu": "another"})
    text = "\n".join(environments.FIGURE.section(made(folder, "environments", budget="tuned")))
    assert "The runs are from 2 kinds of machines, so do not compare the minutes of two systems." in text


def test_a_game_that_no_system_learned_is_left_out(folder):
    ended(folder, "cartpole", {"ga3c": (-1, 0, 1), "a2c": (-1, 0, 1)})
    assert environments.findings(made(folder, "environments"))["A2C"] == Finding(
        TOO_SHORT, "no game was learned"
    )
    ended(folder, "minatar_breakout", {"ga3c": (9.9, 10, 10.1), "a2c": (9.9, 10, 10.1)})
    found = environments.findings(made(folder, "environments"))["A2C"]
    assert found.verdict == HOLDS and found.because.endswith("over minatar_breakout (+0)")


def test_a_run_that_diverged_counts_as_the_random_policy(folder):
    ended(folder, "minatar_breakout", {"ga3c": (9.9, 10), "a2c": (9.9, 10, 10.1)})
    [diverged] = [
        spec for spec in environments.specs("quick", "minatar_breakout", 3) if spec.system == "ga3c"
    ]
    failed(folder, diverged, "train: the training diverged", outcomes.DIVERGED)
    found = environments.findings(made(folder, "environments"))["A2C"]
    assert found.verdict == NO_DIFFERENCE and "minatar_breakout (-34)" in found.because


def test_a_game_in_which_nothing_was_gained_is_left_out(folder):
    """With fewer than three seeds it cannot be told from the random policy, and has no way to divide by."""
    for system in ("ga3c", "a2c"):
        [spec] = [
            spec for spec in environments.specs("quick", "minatar_seaquest", 1) if spec.system == system
        ]
        invent(
            folder.runs, spec, scores=(RANDOM_SCORES["minatar_seaquest"], RANDOM_SCORES["minatar_seaquest"])
        )
    found = environments.findings(made(folder, "environments", ("minatar_seaquest",), 1))
    assert found["A2C"] == Finding(TOO_SHORT, "no game was learned")


def test_a_score_of_table_3_is_that_of_all_seeds(folder):
    """The paper's GA3C scores 18 on Pong, and its random policy -20.7."""
    for seed, score in ((1, 18.5), (2, 18.5)):
        [spec] = FIGURES["scores"].specs("quick", "pong", seed)
        invent(folder.runs, spec, training={"time_s": 60.0, "agent_steps": 4000}, evaluation=played(score))
    results = made(folder, "scores", seeds=2)
    assert scores_figure.verdict(results, "pong") == "reached, n = 2"
    [spec] = FIGURES["scores"].specs("quick", "pong", 3)
    failed(folder, spec, "train: the training diverged", outcomes.DIVERGED)
    results = made(folder, "scores", seeds=3)
    assert scores_figure.scored(results, "pong") == [18.5, 18.5, scores_figure.random_score(results, "pong")]
    assert scores_figure.verdict(results, "pong") == NO_DIFFERENCE
    [spec] = FIGURES["scores"].specs("quick", "pong", 4)
    failed(folder, spec, "train: the disk was full")
    results = made(folder, "scores", seeds=4)
    assert scores_figure.verdict(results, "pong") == f"{NO_DIFFERENCE}, n = 3 of 4"


def test_tuned_scores_stand_beside_what_others_published(folder):
    [spec] = FIGURES["scores"].specs("tuned", "up_n_down", 1)
    invent(folder.runs, spec, evaluation=played(20_000.0, 100, 4_000_000))
    text = "\n".join(scores_figure.details(made(folder, "scores", budget="tuned")))
    assert "| up_n_down | 20,000 [20,000, 20,000] (100 episodes), 1 seed | 57,099 | 147,169 |" in text
    assert text.count("| 147,169 |") == 1 and "15,460" not in text  # Q*bert has no score of ours


def test_a_system_has_its_color_in_the_picture_of_scores_and_the_papers_marks_are_open(monkeypatch, tmp_path):
    drawn = []
    monkeypatch.setattr(score_plots, "save", lambda figure, stem: drawn.append(figure))
    papers = {"random": 1.0, "human": 30.0, "A3C (4 days, CPU)": 10.0, "GA3C (1 day, GPU)": 20.0}
    score_plots.score_panels(
        [(str(number), papers, [1.0], [15.0], [15.0]) for number in range(9)], tmp_path / "scores"
    )
    lines = {line.get_label(): line for line in drawn[0].axes[0].get_lines()}
    colors = {"A3C": LOOKS["a3c"].color, "GA3C": LOOKS["ga3c"].color, "random": NO_SYSTEM, "human": NO_SYSTEM}
    assert len(lines) == 6
    for label, line in lines.items():
        assert line.get_color() == colors[label.split(",")[0].split(" ")[0]]
        assert (line.get_markerfacecolor() == "none") == label.endswith("paper")


@pytest.mark.parametrize("game", RANDOM_SCORES)
def test_the_line_of_the_random_policy_is_what_random_actions_score(game):
    config = Config.from_values({"env_id": GAMES[game], "steps": 1})
    with contextlib.closing(make_environment(config)) as env:
        env.reset(seed=1)
        scores = [played_at_random(env, np.random.default_rng(seed)) for seed in range(100)]
    assert abs(np.mean(scores) - RANDOM_SCORES[game]) < 4 * np.std(scores) / math.sqrt(len(scores))
    assert 0.6 < np.std(scores) / RANDOM_POLICY[game].deviation < 1.6


def played_at_random(env, random):
    """The score of one episode of uniformly random actions."""
    env.reset()
    score = 0.0
    while True:
        _, reward, terminated, truncated, _ = env.step(int(random.integers(env.action_space.n)))
        score += reward
        if terminated or truncated:
            return score


def batches(folder, score_of):
    """Runs of `batch-size` that end at a score by batch size, with a scatter."""
    for seed in range(1, 6):
        for label, spec in labelled(batch_size.specs, "quick", "minatar_breakout", seed).items():
            invent(folder.runs, spec, scores=(0.0, score_of(int(label)) * (1 + int(label) * seed % 7 / 300)))
    return made(folder, "batch-size").of_game("minatar_breakout")


def test_large_batches_are_held_against_the_smallest(folder):
    results = batches(folder, lambda size: 10.0 if size <= 320 else 4.0)
    found = batch_size.findings(results)
    assert [found[size].verdict for size in (80, 320, 1280, 2560)] == [HOLDS, HOLDS, FAILS, FAILS]
    assert found[2560].because.startswith("0.4") and found[2560].because.endswith("(5 seeds)")
    text = "\n".join(batch_size.FIGURE.section(results))
    assert (
        f"- A batch of 2,560 states learns as much as a batch of 20 in the same agent steps: **{FAILS}**"
        in text
    )
    assert "| 2,560 | 0.016 |" in text
    (folder.runs / results.runs[0].spec.id / "run.json").unlink()
    half = made(folder, "batch-size").of_game("minatar_breakout")
    assert {finding.verdict for finding in batch_size.findings(half).values()} == {RUNS_MISSING}


def test_a_batch_size_that_diverges_once_does_not_learn_as_much(folder):
    results = batches(folder, lambda size: 10.0)
    diverged = next(run.spec for run in results.runs if run.spec.label == ("320",))
    shutil.rmtree(folder.runs / diverged.id)
    failed(folder, diverged, "train: the training diverged", outcomes.DIVERGED)
    found = batch_size.findings(made(folder, "batch-size").of_game("minatar_breakout"))
    assert found[320] == Finding(FAILS, "1 of 5 runs diverged or scored nothing")
    assert found[80].verdict == HOLDS


def test_scores_below_zero_have_no_ratio(folder):
    for seed in (1, 2, 3, 4, 5):
        for spec in batch_size.specs("quick", "pong", seed):
            invent(folder.runs, spec, scores=(-21.0, -20.0))
    results = made(folder, "batch-size", ("pong",)).of_game("pong")
    found = batch_size.findings(results)
    assert len(found) == 4
    assert set(found.values()) == {Finding(TOO_SHORT, "no run with batches of 20 scored more than 0")}


def test_batches_at_the_limit_are_seldom_judged_and_others_mostly():
    """Five seeds that scatter by 8 %: verdicts at the limit by chance alone, 85 % or more at 0.7 and 1.15."""
    rng = np.random.default_rng(1)

    def verdicts(ratio):
        for _ in range(400):
            scores = {
                size: {seed: share * math.exp(0.08 * rng.normal()) for seed in range(5)}
                for size, share in zip(
                    (20, 80, 320, 1280, 2560), (1, ratio, ratio, ratio, ratio), strict=True
                )
            }
            yield [finding.verdict for finding in batch_size.as_much(scores).values()]

    at_limit = list(verdicts(batch_size.AS_MUCH))
    wrong = np.mean([any(verdict != NO_DIFFERENCE for verdict in each) for each in at_limit])
    assert wrong <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / len(at_limit))
    assert np.mean([each.count(HOLDS) / 4 for each in verdicts(1.15)]) >= 0.85
    assert np.mean([each.count(FAILS) / 4 for each in verdicts(0.7)]) >= 0.85


ANOTHER = {**SESSION, "cpu": "another abacus"}


def raced(folder, times):
    """Runs of `wall-clock` on CartPole reaching the score after these shares of time, by system and seed."""
    for system, shares in times.items():
        for seed, share in enumerate(shares, 1):
            [spec] = [spec for spec in wall_clock.specs("quick", "cartpole", seed) if spec.system == system]
            invent(folder.runs, spec, scores=(0.0, 150.0 / share) if share < 1 else (0.0, 100.0))
    results = made(folder, "wall-clock", ("cartpole",)).of_game("cartpole")
    return results, wall_clock.findings(results)["cartpole"]


def test_who_learns_sooner_by_the_clock(folder):
    results, finding = raced(folder, {"ga3c": (0.2, 0.22, 0.21), "a3c": (0.8, 0.81, 0.85)})
    assert finding.verdict == HOLDS and finding.because.endswith("(3 seeds)")
    assert 3 < float(finding.because.split()[0]) < 4.2  # the rolling score is behind by half a window
    assert "| cartpole | 150 | A3C | 3 of 3 |" in "\n".join(wall_clock.FIGURE.section(results))


@pytest.mark.parametrize(
    ("theirs", "verdict"),
    [
        ({"gpus": ["a loom"]}, HOLDS),  # the same machine, whose GPU only GA3C uses
        ({"cpu": ANOTHER["cpu"]}, SEVERAL_MACHINES),
        ({"processor": {"family": "7"}}, SEVERAL_MACHINES),  # of the same name, but another processor
    ],
)
def test_a_race_is_decided_on_one_machine_only(folder, theirs, verdict):
    results, _ = raced(folder, {"ga3c": (0.2, 0.22, 0.21), "a3c": (0.8, 0.81, 0.85)})
    for run in results.runs:
        of_session(run, ON_GPU if run.spec.system == "ga3c" else {**SESSION, **theirs})
    results = made(folder, "wall-clock", ("cartpole",)).of_game("cartpole")
    assert wall_clock.findings(results)["cartpole"].verdict == verdict


@pytest.mark.parametrize(
    ("seeds", "later_s", "slower", "verdict", "pairs"),
    [
        (3, 100, [], HOLDS, 3),
        (3, 100, [3], SPEED_CHANGED, 3),  # the numbers stay those of all pairs
        (3, 30, [3], HOLDS, 3),  # as in `pps`: at one time, the machine is the same
        (4, 100, [4], HOLDS, 3),
    ],
)
def test_a_race_counts_pairs_on_a_machine_of_one_speed(folder, seeds, later_s, slower, verdict, pairs):
    shares = {"ga3c": (0.2, 0.22, 0.21, 0.2)[:seeds], "a3c": (0.8, 0.81, 0.85, 0.8)[:seeds]}
    raced(folder, shares)
    began = datetime.fromisoformat(SESSION["started"])
    for run in made(folder, "wall-clock", ("cartpole",), seeds).of_game("cartpole").runs:
        a3c = run.spec.system == "a3c"
        gflops = 116.0 if a3c and run.spec.seed in slower else 100.0
        started = began + timedelta(seconds=later_s * a3c)
        calibrations = [{"gflops": gflops, "copy_gb_s": 10.0, "frames_s": 20_000.0}]
        recorded(run, sessions=[{**SESSION, "started": started.isoformat()}], calibrations=calibrations)
    finding = wall_clock.findings(made(folder, "wall-clock", ("cartpole",), seeds).of_game("cartpole"))[
        "cartpole"
    ]
    assert finding.verdict == verdict and f"({pairs} seeds)" in finding.because


@pytest.mark.parametrize(("share", "verdict"), [(0.16, BUSY_MACHINE), (0.5, HOLDS), (None, HOLDS)])
def test_a_race_is_not_won_against_an_a3c_that_lacked_the_processor(folder, share, verdict):
    results, _ = raced(folder, {"ga3c": (0.2, 0.22, 0.21), "a3c": (0.8, 0.81, 0.85)})
    for run in results.runs:
        if run.spec.system == "a3c":
            recorded(run, cpu_utilization=share)
    results = made(folder, "wall-clock", ("cartpole",)).of_game("cartpole")
    assert wall_clock.findings(results)["cartpole"].verdict == verdict


def test_a_race_that_a3c_does_not_finish_gives_a_bound(folder):
    results, finding = raced(folder, {"ga3c": (0.2, 0.22, 0.21), "a3c": (1.0, 1.0, 1.0)})
    assert finding.verdict == HOLDS and finding.because.startswith("at least ")
    ends = {run.spec.seed: run.curve["time_s"] for run in results.runs if run.spec.system == "a3c"}
    ratios = [
        (ends[run.spec.seed][-1] - ends[run.spec.seed][0]) / results.value(run, wall_clock.TIME)
        for run in results.runs
        if run.spec.system == "ga3c"
    ]
    geometric = math.exp(np.mean(np.log(ratios)))
    # Without the time to start.
    assert float(finding.because.split()[2]) == pytest.approx(geometric, rel=0.01)


@pytest.mark.parametrize(
    ("ga3c", "a3c", "verdict"),
    [
        ((0.8, 0.81, 0.85), (0.2, 0.22, 0.21), FAILS),
        ((0.2, 0.5, 0.8), (0.3, 0.4, 0.7), NO_DIFFERENCE),
        ((0.2, 0.21, 1.0), (0.9, 0.91, 0.92), TOO_SHORT),
        ((0.9, 0.91, 0.92), (0.2, 0.21, 1.0), TOO_SHORT),
        ((0.2, 0.21, 1.0), (0.9, 0.91, 1.0), TOO_SHORT),
        ((1.0, 1.0, 1.0), (1.0, 1.0, 1.0), TOO_SHORT),
        ((0.2, 0.21), (0.9, 0.91), FEW_SEEDS),
    ],
)
def test_a_race_that_ga3c_does_not_win(folder, ga3c, a3c, verdict):
    assert raced(folder, {"ga3c": ga3c, "a3c": a3c})[1].verdict == verdict


def test_a_race_that_ga3c_does_not_finish_gives_a_bound_too(folder):
    _, finding = raced(folder, {"ga3c": (1.0, 1.0, 1.0), "a3c": (0.2, 0.22, 0.21)})
    assert finding.verdict == FAILS and finding.because.startswith("at most ")


def test_who_wins_a_race_does_not_depend_on_the_names(monkeypatch):
    """If the two systems exchange their times, the verdict is the opposite one."""
    monkeypatch.setattr(wall_clock, "_length", lambda run: 60.0)
    specs = FIGURES["wall-clock"].all_specs("quick", 3, ["cartpole"])
    opposite = {HOLDS: FAILS, FAILS: HOLDS, TOO_SHORT: TOO_SHORT, NO_DIFFERENCE: NO_DIFFERENCE}

    def verdict(**times):
        results = Drawn(specs, lambda spec, metric: times[spec.system][spec.seed - 1])
        return wall_clock.findings(results)["cartpole"].verdict

    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(300):
        typical = rng.choice([10.0, 20.0, 50.0], size=(2, 1))
        times = typical * np.exp(0.2 * rng.normal(size=(2, 3)))
        ones, others = np.where(times < 60.0, times, None)
        found = verdict(ga3c=ones, a3c=others)
        assert verdict(ga3c=others, a3c=ones) == opposite[found]
        seen.add(found)
    assert seen == {*opposite}


@pytest.mark.parametrize(("cores", "verdict"), [(4, HOLDS), (5, FEW_AGENTS)])
def test_a_race_is_not_won_against_a3c_on_a_part_of_the_cores(folder, cores, verdict):
    results, _ = raced(folder, {"ga3c": (0.2, 0.22, 0.21), "a3c": (0.8, 0.81, 0.85)})
    for run in results.runs:
        of_session(run, {**SESSION, "cores": cores})
    results = made(folder, "wall-clock", ("cartpole",)).of_game("cartpole")
    assert wall_clock.findings(results)["cartpole"].verdict == verdict


@pytest.mark.parametrize(("reason", "verdict"), [("", RUNS_MISSING), (outcomes.DIVERGED, TOO_SHORT)])
def test_a_race_is_not_won_if_a_run_of_ga3c_failed(folder, reason, verdict):
    ours, theirs = wall_clock.specs("quick", "cartpole", 4)
    invent(folder.runs, theirs, scores=(0.0, 180.0))
    failed(folder, ours, "train: whatever it says", reason)
    made(folder, "wall-clock", ("cartpole",), 4)
    assert raced(folder, {"ga3c": (0.2, 0.22, 0.21), "a3c": (0.8, 0.81, 0.85)})[1].verdict == verdict


def test_a_run_of_a3c_that_diverged_has_not_reached_the_score(folder):
    _, theirs = wall_clock.specs("quick", "cartpole", 4)
    [ours] = [spec for spec in wall_clock.specs("quick", "cartpole", 4) if spec.system == "ga3c"]
    invent(folder.runs, ours, scores=(0.0, 150.0 / 0.2))
    failed(folder, theirs, "train: the training diverged", outcomes.DIVERGED)
    made(folder, "wall-clock", ("cartpole",), 4)
    _, finding = raced(folder, {"ga3c": (0.2, 0.22, 0.21), "a3c": (0.8, 0.81, 0.85)})
    assert (
        finding.verdict == HOLDS
        and finding.because.startswith("at least ")
        and "(4 seeds)" in finding.because
    )


def test_the_picture_of_a_race_shows_each_run_to_its_end_and_the_score_to_reach(folder, monkeypatch):
    results, _ = raced(folder, {"ga3c": (0.2, 0.22, 0.21), "a3c": (0.8, 0.81, 0.85)})
    for run in results.runs:
        write_curve(run.path, {name: values[: 100 * run.spec.seed] for name, values in run.curve.items()})
    results = made(folder, "wall-clock", ("cartpole",))  # the other games are not run
    drawn = []
    monkeypatch.setattr(score_plots, "save", lambda figure, stem: drawn.append(figure))
    wall_clock.plot(results, folder.path / "race")
    [time, steps] = drawn[0].axes
    for axis, column, unit in ((time, "time_s", 60.0), (steps, "agent_steps", 1e6)):
        lines = {}
        for line in axis.get_lines():
            lines.setdefault(line.get_label(), []).append(line)
        assert {label: len(found) for label, found in lines.items()} == {
            "GA3C": 3,
            "A3C": 3,
            "random policy": 1,
            "score to reach": 1,
        }
        assert set(lines["score to reach"][0].get_ydata()) == {150.0}
        ends = sorted(line.get_xdata()[-1] for line in lines["A3C"])
        curves = [run.curve[column] for run in results.runs if run.finished and run.spec.system == "a3c"]
        starts = [curve[0] if axis is time else 0 for curve in curves]  # the findings leave out the start too
        theirs = [(curve[-1] - start) / unit for curve, start in zip(curves, starts, strict=True)]
        assert ends == pytest.approx(sorted(theirs))
    assert "from the end\nof the first episode" in time.get_xlabel()


def test_the_start_of_later_sessions_does_not_count_in_a_race(folder):
    """The second session takes 6 of 30 s to start: no episode ends between 10 and 16 s."""
    [spec] = [spec for spec in wall_clock.specs("quick", "cartpole", 1) if spec.system == "ga3c"]
    run = invent(folder.runs, spec, sessions=[SESSION, {**SESSION, "time_s": 10.0}])
    times = [1.0, 5.0, 10.0, 16.0, 20.0]
    curve = {
        "time_s": times,
        "agent_steps": times,
        "episodes": [100] * 5,
        "rolling_score": [1, 50, 90, 100, 160],
    }
    write_curve(run.path, curve)
    [seconds, *_] = wall_clock.measures(RecordedRun.of(spec, folder.runs))
    assert seconds.value == 20.0 - 1.0 - 6.0
    # Two ended before an episode.
    sessions = [SESSION, *({**SESSION, "time_s": start} for start in (10.0, 12.0, 12.0))]
    (run.path / "run.json").write_text(json.dumps({**run.result, "sessions": sessions}))
    [seconds, *_] = wall_clock.measures(RecordedRun.of(spec, folder.runs))
    assert seconds.value == 20.0 - 1.0 - 6.0


def test_other_games_have_no_score_to_reach():
    with pytest.raises(UserError, match="no score to reach for pong; it has one for cartpole"):
        wall_clock.specs("quick", "pong", 1)


@pytest.mark.parametrize(
    ("dynamic", "periods", "verdict"),
    [(290.0, 200, FAILS), (321.0, 200, NO_DIFFERENCE), (360.0, 200, HOLDS), (290.0, 199, FEW_PERIODS)],
)
def test_dynamic_adjustment_is_held_against_the_best(folder, dynamic, periods, verdict):
    rates = {"1/1/1": 100.0, "16/1/1": 300.0, "fixed, 32/2/2": 400.0}
    for spec in speed.FIGURE.all_specs("quick"):
        [label] = spec.label
        rate = rates.get(label.removesuffix(ADDED), dynamic * (1 + spec.seed / 100))
        run = invent(folder.runs, spec, rate=rate, scores=(0.0, rate * (1 + spec.seed / 100)))
        write_table(run.path / "adjustment.csv", ADJUSTMENT_COLUMNS, [{"why": ""}] * periods)
    text = "\n".join(speed.FIGURE.section(made(folder, "speed")))
    assert f"faster convergence: **{HOLDS}** - score of 'fixed, 32/2/2' minus '1/1/1': +" in text
    assert (
        f"best fixed setting: **{verdict}** - frames of 'dynamic from 1/1/1' relative to 'fixed, 32/2/2'"
        in text
    )
    assert (
        "1/1/1, added seeds" in text
        and "Only this finding uses the added seeds." in text
        and "(6 seeds)" in text
    )
    shutil.rmtree(folder.runs / spec.id)
    assert text.count(RUNS_MISSING) == 0
    assert "\n".join(speed.FIGURE.section(made(folder, "speed"))).count(RUNS_MISSING) == 2


def test_scores_of_several_machines_do_not_say_what_frames_do(folder):
    for spec in speed.FIGURE.all_specs("quick"):
        fast = spec.label[0].removesuffix(ADDED) != "1/1/1"
        machine = SESSION if fast else ANOTHER
        invent(
            folder.runs,
            spec,
            rate=100.0 + 10 * fast,
            scores=(0.0, 9.0 * fast + spec.seed),
            sessions=[machine],
        )
    results = made(folder, "speed").of_game("minatar_breakout")
    assert speed.findings(results, speed.groups(results))["more_frames"].verdict == SEVERAL_MACHINES


@pytest.mark.parametrize(("game", "seeds", "again"), [("minatar_breakout", 6, 6), ("minatar_asterix", 3, 0)])
def test_without_added_seeds_frames_are_judged_once(folder, game, seeds, again):
    rates = {"1/1/1": 100.0, "fixed, 32/2/2": 400.0}
    for spec in speed.FIGURE.all_specs("quick", games=[game]):
        rate = rates.get(spec.label[0].removesuffix(ADDED), 200.0)
        invent(
            folder.runs, spec, rate=rate, scores=(0.0, 9.0 + (rate > 300.0) * spec.seed * (-1) ** spec.seed)
        )
    results = made(folder, "speed", (game,)).of_game(game)
    found = speed.findings(results, speed.groups(results))["more_frames"]
    assert found.verdict == NO_DIFFERENCE and f"({seeds} seeds)" in found.because
    assert found.test.seeds == again


def test_pong_is_held_against_what_others_published(folder):
    for seed in (1, 2, 3, 4, 5):
        sticky, *noops = FIGURES["sample-efficiency"].specs("tuned", "pong", seed)
        assert len(noops) == (seed <= 3)
        for spec, score in ((sticky, 16.6), *((each, 19.0) for each in noops)):
            evaluation = played(score + seed / 10, 100, spec.config.steps)
            invent(folder.runs, spec, scores=(-21.0, *[18.0 + seed / 10] * 8), evaluation=evaluation)
    results = made(folder, "sample-efficiency", budget="tuned")
    found = sample_efficiency.findings(results)
    assert found["early"].verdict == found["noops"].verdict == HOLDS
    # Twice that of one look.
    assert found["ppo"][:2] == (NO_DIFFERENCE, "+0.2 [0.00368, 0.396], p = 0.095 (5 seeds)")
    _, noops = FIGURES["sample-efficiency"].specs("tuned", "pong", 3)
    shutil.rmtree(folder.runs / noops.id)
    again = sample_efficiency.findings(made(folder, "sample-efficiency", budget="tuned"))
    assert again["noops"].verdict == RUNS_MISSING and again["early"].verdict == HOLDS
    failed(folder, noops, "train: the training diverged", outcomes.DIVERGED)
    write_curve(
        folder.runs / noops.id, {"time_s": [9], "agent_steps": [9], "episodes": [3], "rolling_score": [-20.5]}
    )
    diverged = sample_efficiency.findings(made(folder, "sample-efficiency", budget="tuned"))
    assert diverged["noops"].verdict == NO_DIFFERENCE and diverged["noops"].because.startswith("-10.1 [")


def test_a_score_is_of_its_checkpoint_and_says_where_the_policy_repeats_itself(folder):
    for spec in FIGURES["scores"].all_specs("quick"):
        scores = [7.0] * 15 + list(range(15)) if spec.game == "amidar" else list(range(30))
        evaluation = {"protocol": "30 whole episodes", "agent_steps": 1234, "scores": scores}
        invent(folder.runs, spec, evaluation=evaluation)
    results = made(folder, "scores")
    text = "\n".join(FIGURES["scores"].section(results))
    assert text.count("episodes scored") == 1 and "- amidar: 16 of the 30 episodes scored 7." in text
    assert {record.agent_steps for record in results.records} == {1234}


def test_learning_curves_stand_beside_random_play_and_their_best_is_of_full_windows(folder):
    for spec in FIGURES["learning-curves"].all_specs("quick"):
        random = {"random": {"scores": [1.0, 3.0]}} if spec.game == "boxing" and spec.system == "ga3c" else {}
        run = invent(folder.runs, spec, **random)
        rows = ["1.0,10,8,99.0", "2.0,900,99,50.0", "3.0,1000,100,4.0", "4.0,2000,200,3.0"]
        (run.path / "curve.csv").write_text(
            "\n".join(["time_s,agent_steps,episodes,rolling_score", *rows]) + "\n"
        )
    text = "\n".join(FIGURES["learning-curves"].section(made(folder, "learning-curves")))
    ends = "3 [3, 3] (3 seeds) | 4 [4, 4] (3 seeds)"
    assert text.count(f"| 2 | {ends} |") == text.count(f"| - | {ends} |") == 2


@pytest.mark.parametrize(
    ("theirs", "on", "verdict"),
    [
        (1.0, [SESSION, SESSION, SESSION], HOLDS),
        (1.0, [SESSION, ANOTHER, ANOTHER], HOLDS),  # each seed on one machine
        (1.0, [SESSION, SESSION, None], SEVERAL_MACHINES),  # the last seed on both
        (10.0, [SESSION, SESSION, SESSION], FAILS),
        (5.0, [SESSION, SESSION, SESSION], NO_DIFFERENCE),
    ],
)
def test_who_scores_more_after_the_same_time(folder, theirs, on, verdict):
    for seed, session in enumerate(on, 1):
        for spec in learning_curves.specs("quick", "boxing", seed):
            score = 5.0 + seed / 10 if spec.system == "ga3c" else theirs + seed / 5
            machine = session or (SESSION if spec.system == "ga3c" else ANOTHER)
            invent(
                folder.runs, spec, scores=(0.0, score, score), sessions=[machine], random={"scores": [0.0]}
            )
    results = made(folder, "learning-curves", ("boxing",)).of_game("boxing")
    assert learning_curves.findings(results)["boxing"].verdict == verdict
    for run in results.runs:
        of_session(run, {**run.sessions[0], "cores": 8})
    results = made(folder, "learning-curves", ("boxing",)).of_game("boxing")
    assert learning_curves.findings(results)["boxing"].verdict == (
        FEW_AGENTS if verdict == HOLDS else verdict
    )


def test_a_game_whose_name_has_several_words_is_on_the_page(folder):
    for spec in learning_curves.specs("quick", "ms_pacman", 1):
        invent(folder.runs, spec, scores=(0.0, 100.0), random={"scores": [0.0]})
    made(folder, "learning-curves", ("ms_pacman",))
    [undecided] = [each for each in summarize(folder).undecided if each.claim.startswith("ms pacman: ")]
    assert "at least 3 seeds" in undecided.needed


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        ((2.0, 9.0, 30.0), (1.0, 1.1, 1.2), NO_DIFFERENCE),  # its t interval begins below the random policy
        ((0.1, 9.0, 30.0), (0.0, 0.1, 0.2), TOO_SHORT),  # one seed of either is still random
        ((0.1, 0.0, 0.2), (6.0, 7.0, 8.0), FAILS),
    ],
)
def test_scores_are_compared_once_every_seed_of_one_system_has_left_the_random_policy(
    folder, ours, theirs, verdict
):
    random = {"scores": [-1.0, 0.0, 1.0] * 10}
    for seed in (1, 2, 3):
        for spec in learning_curves.specs("quick", "boxing", seed):
            score = (ours if spec.system == "ga3c" else theirs)[seed - 1]
            invent(folder.runs, spec, scores=(0.0, score, score), random=random)
    results = made(folder, "learning-curves", ("boxing",)).of_game("boxing")
    assert learning_curves.findings(results)["boxing"].verdict == verdict


def test_a_game_with_scattered_seeds_is_not_left_out(folder):
    """As on MinAtar Seaquest, where the random policy scores 0.1."""
    ended(folder, "minatar_seaquest", {"ga3c": (69.3, 96.7, 17.1), "a2c": (32.9, 6.3, 15.6)})
    found = environments.findings(made(folder, "environments"))["A2C"]
    assert "minatar_seaquest (+70)" in found.because


def of_the_papers_algorithm(folder, shares, seeds=(1, 2, 3)):
    """Runs of `papers-algorithm` of which the smaller epsilon scores so many normalized points more."""
    for spec in FIGURES["papers-algorithm"].all_specs("tuned"):
        if spec.seed not in seeds:
            continue
        place = NINE_GAMES.index(spec.game)
        share = shares[place] if spec.label[0] == papers_algorithm.SMALLER else 0.0
        score = 10.0 + share / 100 * PAPERS_SCORES[place] + spec.seed / 1000
        random = {"random": played(0.0, 100, 0)} if spec.random_play else {}
        invent(folder.runs, spec, evaluation=played(score, 100, spec.config.steps), **random)
    return made(folder, "papers-algorithm", budget="tuned")


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [
        ((1, 2, 3, 4, 5, 6, 7, 8, 9), HOLDS),
        ((1, 2, 3, 4, -5, 6, 7, 8, 900), HOLDS),  # p = 20 / 512
        ((1, 2, 3, 4, 5, -6, 7, 8, 900), NO_DIFFERENCE),  # p = 28 / 512
        ((-1, -2, -3, -4, 5, -6, -7, -8, -9), FAILS),
        ((-900, 2, 3, 4, 5, -6, 7, 8, 1), NO_DIFFERENCE),  # by the ranks, not by the mean
        ((0, 0, 0, 0, 0, 0, 0, 0, 0), NO_DIFFERENCE),
    ],
)
def test_epsilons_are_compared_by_the_ranks_of_nine_games(folder, shares, verdict):
    results = of_the_papers_algorithm(folder, shares)
    found = papers_algorithm.finding(results)
    assert found.verdict == verdict and f"in {sum(share > 0 for share in shares)} of 9 games" in found.because
    assert f"amidar ({shares[0]:+.3g})" in found.because and f"up_n_down ({shares[-1]:+.3g})" in found.because
    [claim] = papers_algorithm.FIGURE.all_claims(results)
    assert claim.finding == found


def test_epsilons_are_not_compared_before_all_runs_of_three_seeds_have_ended(folder):
    assert papers_algorithm.finding(made(folder, "papers-algorithm", budget="tuned")).verdict == RUNS_MISSING
    better = range(1, 10)
    assert papers_algorithm.finding(of_the_papers_algorithm(folder, better, (1, 2))).verdict == RUNS_MISSING
    results = of_the_papers_algorithm(folder, better, (3,))
    assert papers_algorithm.finding(results).verdict == HOLDS
    two = dataclasses.replace(results, runs=[run for run in results.runs if run.spec.seed < 3])
    assert papers_algorithm.finding(two).verdict == FEW_SEEDS
    last = results.runs[-1].spec
    shutil.rmtree(folder.runs / last.id)
    assert papers_algorithm.finding(made(folder, "papers-algorithm", budget="tuned")).verdict == RUNS_MISSING
    failed(folder, last, "train: the training diverged", outcomes.DIVERGED)
    diverged = papers_algorithm.finding(made(folder, "papers-algorithm", budget="tuned"))
    assert "up_n_down (+5.96)" in diverged.because and diverged.verdict == HOLDS


def test_the_papers_algorithm_stands_beside_the_tuned_agents_and_the_papers_score(folder):
    for seed, score in ((1, 170.0), (2, 190.0)):
        [spec] = FIGURES["scores"].specs("tuned", "amidar", seed)
        invent(folder.runs, spec, evaluation=played(score, 100, 4_000_000), random=played(2.0))
    made(folder, "scores", ("amidar",), seeds=2, budget="tuned")
    first, *_ = FIGURES["papers-algorithm"].specs("tuned", "amidar", 1)
    invent(folder.runs, first, evaluation=played(60.0, 100, 4_000_000), random=played(2.0))
    text = "\n".join(papers_algorithm.FIGURE.section(made(folder, "papers-algorithm", budget="tuned")))
    [row] = [line for line in text.splitlines() if line.startswith("| amidar |")]
    assert row.startswith(
        "| amidar | 2 | 60 [60, 60] (100 episodes), 1 seed | - | 180 [52.9, 307] (2 seeds) | 4 | 218 | "
    )
    assert row.endswith("| 5 not run |")
    assert "about 93 million" in text
