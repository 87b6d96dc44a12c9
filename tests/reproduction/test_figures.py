"""Figures made of invented runs, written into run folders as training would: numbers, findings, reasons."""

import json
import shutil

import numpy as np
import pytest
from invented_runs import ON_GPU, SESSION, failed, invent, labelled, made, of_session, write_table

from ga3c_tf.errors import UserError
from ga3c_tf.host.calibration import Calibration
from ga3c_tf.reproduce.figures import environments, pps, queues, speed, tps, wall_clock
from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.measures.verdicts import (
    FAILS,
    FEW_SEEDS,
    HOLDS,
    NEEDS_GPU,
    NO_DIFFERENCE,
    NOT_TRIED,
    RUNS_MISSING,
    TOO_SHORT,
    WITHIN_NOISE,
)
from ga3c_tf.reproduce.pages.report import page
from ga3c_tf.reproduce.results import comparison
from ga3c_tf.reproduce.runs import execute
from ga3c_tf.reproduce.runs.run import Run, curve_of, write_curve
from ga3c_tf.reproduce.runs.specs import run_spec, workers_of
from ga3c_tf.runs.log import ADJUSTMENT_COLUMNS, EPISODE_COLUMNS, METRIC_COLUMNS

# what a run says


def test_the_rates_are_those_after_the_warm_up(tmp_path):
    [spec, *_] = tps.specs("quick", "pong", 1)
    steady = invent(tmp_path, spec, rate=100.0, batch=4).steady(15.0)
    assert steady["pps"] == pytest.approx(100, rel=0.02) and steady["tps"] == pytest.approx(25, rel=0.05)
    assert 28 < steady["seconds"] <= 30


def test_the_start_of_a_resumed_session_is_left_out_too(tmp_path):
    """100 steps/s in both sessions, and in the first 10 s of each none, since processes start."""
    [spec, *_] = tps.specs("quick", "pong", 1)
    run = invent(tmp_path, spec, sessions=[SESSION, {**SESSION, "time_s": 25.0}])
    steps = {time: 100 * (max(0, min(time, 25) - 10) + max(0, time - 35)) for time in range(5, 51, 5)}
    rows = [
        {"time_s": time, "agent_steps": count, "updates": count / 4, "training_batch": 4 if count else 1}
        for time, count in steps.items()
    ]
    write_table(run.path / "metrics.csv", METRIC_COLUMNS, rows)
    steady = Run.of(spec, tmp_path).steady(10.0)
    assert steady["pps"] == 100 and steady["tps"] == 25 and steady["training_batch"] == 4
    assert steady["seconds"] == 15 + 15


def test_a_run_with_one_row_is_taken_as_a_whole(tmp_path):
    [spec, *_] = tps.specs("quick", "pong", 1)
    run = invent(tmp_path, spec)
    row = {"time_s": 10.0, "agent_steps": 500, "updates": 100, "training_batch": ""}
    write_table(run.path / "metrics.csv", METRIC_COLUMNS, [row])
    steady = Run.of(spec, tmp_path).steady(15.0)
    assert (steady["seconds"], steady["pps"], steady["tps"]) == (10.0, 50.0, 10.0)
    assert np.isnan(steady["training_batch"])


def test_the_curve_is_the_rolling_mean(tmp_path):
    rng = np.random.default_rng(1)
    times = np.sort(rng.uniform(0, 1000, 700))
    scores = rng.normal(size=700)
    rows = [
        {"time_s": time, "agent_steps": 10 * number, "episode": number, "score": score}
        for number, (time, score) in enumerate(zip(times, scores, strict=True), 1)
    ]
    write_table(tmp_path / "episodes.csv", EPISODE_COLUMNS, rows)
    write_curve(tmp_path, curve_of(tmp_path, 100))
    [spec, *_] = tps.specs("quick", "pong", 1)
    curve = Run(spec, tmp_path, {}).curve
    assert 100 < len(curve["time_s"]) <= 300 and (np.diff(curve["episodes"]) > 0).all()
    assert curve["episodes"][-1] == 700 and curve["agent_steps"][-1] == 7000
    for count, score in zip(curve["episodes"].astype(int), curve["rolling_score"], strict=True):
        assert score == pytest.approx(scores[max(0, count - 100) : count].mean(), rel=1e-4, abs=1e-5)


def test_a_run_of_two_sources_or_machines_says_so(tmp_path):
    [one, other, *_] = tps.specs("quick", "pong", 1)
    assert invent(tmp_path, one).dirty is False
    changed = {**SESSION, "commit": "d" * 40, "cpu": "two abaci"}
    run = invent(tmp_path, other, sessions=(SESSION, changed))
    assert run.dirty is True and run.commit == "d" * 40
    assert run.hardware == "2 cores of an abacus, no GPU used; 2 cores of two abaci, no GPU used"


def test_how_busy_a_run_is(tmp_path, monkeypatch):
    clock = [0.0]
    cpu = [0.0]
    monkeypatch.setattr(execute.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(execute, "process_group", lambda leader: {leader: {"cpu_s": cpu[0]}})
    monkeypatch.setattr(execute, "usable_cores", lambda: 4)
    watch = execute._Watch(tmp_path, "cpu")
    for second, cpu_s, lines in ((10, 50, 0), (20, 60, 1), (30, 80, 2), (40, 100, 3), (50, 110, 4), (60, 1, 4)):
        clock[0] = second
        cpu[0] = cpu_s
        (tmp_path / "metrics.csv").write_text("line\n" * lines)
        watch(1)
    assert watch.utilization()["cpu_utilization"] == (110 - 80) / (20 * 4)  # from the first row until agents ended
    assert execute._Watch(tmp_path, "cpu").utilization()["cpu_utilization"] is None


# findings


def test_speed_ups_are_of_one_machine_and_grow_or_do_not(folder):
    speeds = {"small": 4, "large-4": 11, "large-3": 12, "large-2": 20, "large-1": 45}
    for spec in FIGURES["pps"].all_specs("quick"):
        ratio = speeds[spec.config.network]
        session = ON_GPU if spec.system == "ga3c" else SESSION
        rate = {"ga3c": 100.0 * ratio, "a3c": 100.0, "a2c": 50.0}[spec.system]
        invent(folder.runs, spec, rate=rate, sessions=[session])
    results = made(folder, "pps")
    assert [round(pps.speed_ups(results, each, "a3c")[0]) for each in pps.networks(results)] == list(speeds.values())
    text = "\n".join(pps.section(results))
    assert f"grows with the network: **{HOLDS}**" in text and "| large stride 1 | 4,5" in text
    assert "A2C: 32 agents, 5 states an update, cores 50 % busy" in text
    [fast] = pps.runs_of(results, "large stride 1", "ga3c")
    of_session(fast, SESSION)  # on the CPU, as A3C
    text = "\n".join(pps.section(made(folder, "pps")))
    assert f"grows with the network: **{NEEDS_GPU}**" in text and "| large stride 1 | 4,5" in text
    [slow] = pps.runs_of(results, "large stride 1", "a3c")
    of_session(slow, {**SESSION, "cpu": "another"})
    results = made(folder, "pps")
    assert pps.speed_ups(results, "large stride 1", "a3c") == []
    assert f"grows with the network: **{NEEDS_GPU}**" in "\n".join(pps.section(results))


def calibrated(*speeds):
    """Calibrations of machines that are so many times as fast as one whose unit is 500 steps/s."""
    return [{"gflops": 26.7 * speed, "copy_gb_s": 5.0 * speed, "frames_s": 4000.0 * speed} for speed in speeds]


def test_speeds_are_compared_where_calibrations_agree_and_stated_by_the_unit(folder):
    for spec in FIGURES["pps"].all_specs("quick"):
        speeds = (1.0, 2.0) if (spec.system, spec.config.network) == ("a3c", "large-1") else (1.0, 1.1)
        invent(folder.runs, spec, rate=1050.0, calibrations=calibrated(*speeds))
    results = made(folder, "pps")
    assert pps.speed_ups(results, "large stride 1", "a3c") == []
    assert pps.speed_ups(results, "small", "a3c") == pytest.approx([1.0])
    assert not results.one_machine
    text = page(folder)
    assert "Calibrations differ by more than 15 %" in text
    [row] = [line for line in text.splitlines() if line.startswith("| pong-ga3c-32x2x2-small-m0-2min")]
    assert row.split(" | ")[1:4] == ["1,050", "2", "-"]  # a unit at 1.05 times 500
    assert "Processor not identified: 15 of 15 finished runs" in text


@pytest.mark.parametrize(("settings", "calibrations"), [({"minutes": 1.0}, 2), ({"steps": 100}, 0)])
def test_a_run_is_calibrated_before_and_after_if_the_clock_ends_it(tmp_path, monkeypatch, settings, calibrations):
    spec = run_spec("cartpole", 1, **settings)
    course = []
    monkeypatch.setattr(execute, "_train", lambda *arguments: course.append("training") or {"ended": "minutes"})
    monkeypatch.setattr(execute, "calibrate", lambda: course.append("calibration") or Calibration(1.0, 2.0, 3.0))
    run = execute.execute_run(spec, tmp_path / "runs")
    assert run.finished and run.calibrations == [Calibration(1.0, 2.0, 3.0)] * calibrations
    assert course == ["calibration"] * (calibrations // 2) + ["training"] + ["calibration"] * (calibrations // 2)


def test_the_best_setting_is_found(folder):
    for spec in FIGURES["tps"].all_specs("quick"):
        agents, predictors, trainers = workers_of(spec.config)
        invent(folder.runs, spec, rate=1000.0 + 60 * (agents == 64) - 10 * predictors - trainers)
    results = made(folder, "tps")
    found = tps.by_setting(results, "tps")
    assert max(found, key=found.__getitem__) == (64, 1, 1)
    verdicts = [finding.verdict for finding in tps.findings(found, set(found), True).values()]
    assert verdicts == [HOLDS, NOT_TRIED, HOLDS]  # nothing above 4 predictors was tried
    gap = {each: 1000.0 if each[0] == 64 else 870.0 for each in found}  # 13 %, and 14 is the limit
    assert tps.findings(gap, set(found), True)["close_together"].verdict == WITHIN_NOISE
    wide = {each: 1000.0 if each[0] == 64 else 700.0 for each in found}
    assert tps.findings(wide, set(found), True)["close_together"].verdict == FAILS
    near = {each: 1000.0 + each[0] for each in found}  # 3 % from 32 to 64 agents: that may be noise
    assert tps.findings(near, set(found), True)["most_agents"].verdict == WITHIN_NOISE
    fewest = {each: 1000.0 - 5 * each[0] for each in found}
    assert tps.findings(fewest, set(found), True)["most_agents"].verdict == FAILS
    verdicts = [finding.verdict for finding in tps.findings({}, set(found), True).values()]
    assert verdicts == [RUNS_MISSING, NOT_TRIED, RUNS_MISSING]


@pytest.mark.parametrize(
    ("session", "queue", "share", "verdict"),
    [(SESSION, 1.0, 1, NEEDS_GPU), (ON_GPU, 1.0, 1, HOLDS), (ON_GPU, 60.0, 70, FAILS)],
)
def test_queues_are_judged_by_the_room_of_each_setting_with_several_seeds(folder, session, queue, share, verdict):
    for seed in (1, 2):
        for spec in FIGURES["tps"].specs("quick", "pong", seed):
            invent(folder.runs, spec, sessions=[session], queue=queue)
            assert queues.room_of(Run.of(spec, folder.runs)) == {8: 96, 16: 96, 32: 96, 64: 64}[spec.config.num_agents]
    text = "\n".join(queues.section(made(folder, "queues", seeds=2)))
    assert f"far below its maximum: **{verdict}** - {share}% of" in text
    assert f"prediction batches: **{WITHIN_NOISE}**" in text  # all batches are equal: none is among the largest


@pytest.mark.parametrize(
    ("second", "batch", "verdict"), [(0.97, 20.0, WITHIN_NOISE), (0.9, 20.0, HOLDS), (0.9, 2.0, FAILS)]
)
def test_the_fastest_setting_is_only_judged_by_its_batch_where_no_other_may_be_it(folder, second, batch, verdict):
    for spec in FIGURES["tps"].specs("quick", "pong", 1):
        speeds = {64: (100.0, batch), 32: (100.0 * second, 1.0)}
        rate, prediction = speeds.get(spec.config.num_agents, (10.0, 5.0))
        invent(folder.runs, spec, rate=rate, prediction=prediction)
    assert f"prediction batches: **{verdict}**" in "\n".join(queues.section(made(folder, "queues")))


def ended(folder, game, ends):
    """Runs of `environments` on a game that end at these scores, by system and seed, after they began at 0."""
    for system, scores in ends.items():
        for seed, score in enumerate(scores, 1):
            [spec] = [spec for spec in environments.specs("quick", game, seed) if spec.system == system]
            training = {"time_s": {"ga3c": 60.0, "a3c": 240.0, "a2c": 120.0}[system], "agent_steps": 4000}
            run = invent(folder.runs, spec, scores=(0.0, *[score] * 8), training=training)  # rises within 100 episodes
            reached = environments.measures(run)[-1].agent_steps
            assert 100 <= reached / (spec.config.steps / 801) < 110  # of 801 episodes


def test_other_environments_compare_the_systems_by_agent_steps(folder):
    ended(folder, "cartpole", {"ga3c": (51, 52, 53), "a3c": (52, 53, 54), "a2c": (91, 92, 93)})
    ended(folder, "minatar_breakout", {"ga3c": (9.9, 10, 10.1), "a3c": (9.9, 10, 10.1)})
    text = "\n".join(environments.section(made(folder, "environments")))
    assert f"GA3C scores as much as A3C after the same agent steps: **{HOLDS}**" in text
    assert "in percent of the way, over cartpole, minatar_breakout\n" in text
    assert f"GA3C scores as much as A2C after the same agent steps: **{FAILS}**" in text
    assert "| minatar_freeway | - | - | - | - | - / - / - | 9 not run |" in text
    [row] = [line.split(" | ") for line in text.splitlines() if line.startswith("| cartpole |")]
    assert 0.45 < float(row[1].split()[0]) / np.mean([52, 53, 92]) < 0.6 and row[5] == "1.00 / 4.00 / 2.00"


def test_a_game_that_no_system_learned_is_left_out(folder):
    ended(folder, "cartpole", {"ga3c": (-1, 0, 1), "a2c": (-1, 0, 1)})
    assert environments.findings(made(folder, "environments")) == {"A2C": (TOO_SHORT, "no game was learned")}
    ended(folder, "minatar_breakout", {"ga3c": (9.9, 10, 10.1), "a2c": (9.9, 10, 10.1)})
    found = environments.findings(made(folder, "environments"))["A2C"]
    assert found.verdict == HOLDS and found.because.endswith("over minatar_breakout")


def raced(folder, times):
    """Runs of `wall-clock` on CartPole that reach the score after these shares of their time, by system and seed."""
    for system, shares in times.items():
        for seed, share in enumerate(shares, 1):
            [spec] = [spec for spec in wall_clock.specs("quick", "cartpole", seed) if spec.system == system]
            invent(folder.runs, spec, scores=(0.0, 150.0 / share) if share < 1 else (0.0, 100.0))
    results = made(folder, "wall-clock", ("cartpole",)).of_game("cartpole")
    return results, wall_clock.findings(results)["cartpole"]


def test_who_learns_sooner_by_the_clock(folder):
    results, finding = raced(folder, {"ga3c": (0.2, 0.22, 0.21), "a3c": (0.8, 0.81, 0.85)})
    assert finding.verdict == HOLDS and finding.because.endswith("3 seeds")
    assert 3 < float(finding.because.split()[0]) < 4.2  # the rolling score is behind by half a window
    assert "| cartpole | 150 | A3C | 3 of 3 |" in "\n".join(wall_clock.section(results))


def test_a_race_that_a3c_does_not_finish_gives_a_bound(folder):
    _, finding = raced(folder, {"ga3c": (0.2, 0.22, 0.21), "a3c": (1.0, 1.0, 1.0)})
    assert finding.verdict == HOLDS and finding.because.startswith("at least ")


@pytest.mark.parametrize(
    ("ga3c", "a3c", "verdict"),
    [
        ((0.8, 0.81, 0.85), (0.2, 0.22, 0.21), FAILS),
        ((0.2, 0.5, 0.8), (0.3, 0.4, 0.7), NO_DIFFERENCE),
        ((0.2, 0.21, 1.0), (0.9, 0.91, 0.92), TOO_SHORT),
        ((0.2, 0.21), (0.9, 0.91), FEW_SEEDS),
    ],
)
def test_a_race_that_ga3c_does_not_win(folder, ga3c, a3c, verdict):
    assert raced(folder, {"ga3c": ga3c, "a3c": a3c})[1].verdict == verdict


def test_other_games_have_no_score_to_reach():
    with pytest.raises(UserError, match="no score to reach for pong; it has one for cartpole"):
        wall_clock.specs("quick", "pong", 1)


@pytest.mark.parametrize(("dynamic", "verdict"), [(290.0, FAILS), (330.0, WITHIN_NOISE), (360.0, HOLDS)])
def test_dynamic_adjustment_is_held_against_the_best(folder, dynamic, verdict):
    for seed in (1, 2, 3):
        for label, spec in labelled(speed.specs, "quick", "boxing", seed).items():
            rate = {"1/1/1": 100.0, "16/1/1": 300.0, "dynamic from 1/1/1": dynamic}.get(label, 400.0)
            invent(folder.runs, spec, rate=rate, scores=(0.0, rate + seed))
    text = "\n".join(speed.section(made(folder, "speed", seeds=3)))
    assert (
        f"faster convergence: **{HOLDS}**" in text and f"best fixed setting: **{verdict}** - {dynamic / 4:.0f}" in text
    )


def test_the_rate_of_a_setting_is_that_of_all_its_periods(folder):
    [spec, *_] = FIGURES["adjustment"].all_specs("quick")
    run = invent(folder.runs, spec)
    periods = [(1, 100.0, 1), (2, 300.0, 1), (1, 140.0, 0), (2, 200.0, 1), (3, 900.0, 0)]
    rows = [{"agents": agents, "rate": rate, "accepted": accepted} for agents, rate, accepted in periods]
    write_table(run.path / "adjustment.csv", ADJUSTMENT_COLUMNS, rows)
    results = made(folder, "adjustment")
    values = [results.value(run, metric) for metric in ("final agents", "first rate", "final rate")]
    assert values == [2.0, 120.0, 250.0]


def test_a_score_is_of_its_checkpoint_and_says_where_the_policy_repeats_itself(folder):
    for spec in FIGURES["scores"].all_specs("quick"):
        scores = [7.0] * 15 + list(range(15)) if spec.game == "amidar" else list(range(30))
        played = {"protocol": "30 whole episodes", "agent_steps": 1234, "scores": scores}
        invent(folder.runs, spec, evaluation=played)
    results = made(folder, "scores")
    text = "\n".join(FIGURES["scores"].section(results))
    assert text.count("episodes scored") == 1 and "- amidar: 16 of the 30 episodes scored 7." in text
    assert {record.agent_steps for record in results.records} == {1234}


def test_learning_curves_stand_beside_random_play_and_their_best_is_of_full_windows(folder):
    for spec in FIGURES["learning-curves"].all_specs("quick"):
        played = {"random": {"scores": [1.0, 3.0]}} if spec.game == "boxing" and spec.system == "ga3c" else {}
        run = invent(folder.runs, spec, **played)
        rows = ["1.0,10,8,99.0", "2.0,900,99,50.0", "3.0,1000,100,4.0", "4.0,2000,200,3.0"]
        (run.path / "curve.csv").write_text("\n".join(["time_s,agent_steps,episodes,rolling_score", *rows]) + "\n")
    text = "\n".join(FIGURES["learning-curves"].section(made(folder, "learning-curves")))
    assert text.count("| 2 | 3 (1 seed) | 4 (1 seed) |") == text.count("| - | 3 (1 seed) | 4 (1 seed) |") == 3


def test_what_failed_and_what_was_not_run_stays_on_the_page(folder):
    [spec, *_] = FIGURES["adjustment"].all_specs("quick")
    failed(folder, spec, "train: no | power")
    results = made(folder, "adjustment")
    text = "\n".join(FIGURES["adjustment"].sections(results))
    assert "failed: train: no \\| power" in text and "not run" in text


def test_what_a_fault_has_falsified_is_superseded_until_it_is_measured_again(folder):
    spec = next(spec for spec in FIGURES["pps"].all_specs("quick") if spec.system == "a3c")
    others = next(spec for spec in FIGURES["pps"].all_specs("quick") if spec.system == "ga3c")
    for each in (spec, others):
        invent(folder.runs, each, sessions=[{**SESSION, "commit": "before"}])
    entry = {"reason": "The steps of other agents were applied.", "runs": {spec.id: "before"}}
    (folder.path / "superseded.json").write_text(json.dumps([entry]))
    note = "**Superseded: 1 run of A3C, to be measured again.** The steps of other agents were applied."
    made(folder, "pps")
    assert note in page(folder) and "1 measured, 1 superseded, 13 not run" in page(folder)
    shutil.rmtree(folder.runs / spec.id)
    invent(folder.runs, spec, sessions=[{**SESSION, "commit": "after"}])
    made(folder, "pps")
    assert "uperseded" not in page(folder) and "2 measured, 13 not run" in page(folder)


@pytest.mark.parametrize("text", ["{", "[3]", '[{"reason": "none"}]', '[{"reason": "", "runs": 3}]'])
def test_a_damaged_list_of_what_is_superseded_is_refused_by_name(folder, text):
    (folder.path / "superseded.json").write_text(text)
    with pytest.raises(UserError, match=r"superseded\.json is damaged"):
        page(folder)


# a method of the user's own


def test_a_method_of_the_users_own_stands_beside_the_papers(folder):
    """Better in one setting, level in the others; what was run by it alone is its own section's."""
    huber = {"loss": "mine:huber"}
    for seed in (1, 2, 3):
        for label, spec in labelled(speed.specs, "quick", "boxing", seed).items():
            invent(folder.runs, spec, scores=(0.0, 10.0 + seed))
            invent(folder.runs, spec.changed(huber), scores=(0.0, (30.0 if label == "1/1/1" else 10.0) + seed))
    folder.add_method(huber, print)
    folder.add_method(huber, print)
    assert folder.methods() == [huber]
    folder.update(FIGURES["speed"], "quick", (), 3, print)
    folder.draw(FIGURES["speed"], "quick", print)
    methods = {record.method for record in folder.records(FIGURES["speed"], "quick")}
    assert methods == {"GA3C", "GA3C with loss mine:huber"}
    paper, own = (folder.results(FIGURES["speed"], "quick", changes=changes) for changes in ({}, huber))
    assert len(paper.runs) == len(own.runs) == 12
    lines = comparison.section(FIGURES["speed"], paper, own)
    [better] = [line for line in lines if "1x1x1" in line and "paper" not in line]
    assert f"| {HOLDS} |" in better and 15 < float(better.split(" | ")[3]) < 20
    assert sum(f"| {NO_DIFFERENCE} |" in line for line in lines) == 3
    text = page(folder)
    plain, huber_part = text.split("### speed, quick budget, loss mine:huber\n")
    assert "`ga3c-tf reproduce --figure speed --budget quick --seeds 3 --loss mine:huber`" in huber_part
    pictures = folder.pictures(FIGURES["speed"], "quick", huber)
    assert [picture.as_posix() for picture in pictures] == [
        "figures/mine.huber/speed-quick-boxing",
        "figures/mine.huber/speed-quick-comparison",
    ]
    assert all(f"({picture}.svg)" in huber_part and f"({picture}.svg)" not in plain for picture in pictures)


def test_a_damaged_list_of_methods_is_refused_by_name(folder):
    for text in ("{", '{"loss": 3}', '[{"los": "mine:huber"}]', "[3]"):
        (folder.path / "methods.json").write_text(text)
        with pytest.raises(UserError, match=r"methods\.json is damaged"):
            folder.methods()
