"""Figures made of invented runs, written into run folders as training would: numbers, findings, reasons."""

import contextlib
import functools
import json
import math
import shutil

import numpy as np
import pytest
from invented_runs import ON_GPU, SESSION, failed, invent, labelled, made, of_session, write_table

from ga3c_tf.config import Config
from ga3c_tf.environments.environment import make_environment
from ga3c_tf.errors import UserError
from ga3c_tf.host.calibration import Calibration
from ga3c_tf.reproduce import command
from ga3c_tf.reproduce.figures.learning import batch_size, environments, sample_efficiency, speed, wall_clock
from ga3c_tf.reproduce.figures.learning import scores as scores_figure
from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.figures.throughput import pps, queues, tps, utilization
from ga3c_tf.reproduce.measures.random_policy import RANDOM_SCORES
from ga3c_tf.reproduce.measures.verdicts import (
    FAILS,
    FEW_SEEDS,
    HOLDS,
    NEEDS_GPU,
    NO_DIFFERENCE,
    NOT_TRIED,
    RUNS_MISSING,
    TOO_SHORT,
    Finding,
)
from ga3c_tf.reproduce.pages.report import page
from ga3c_tf.reproduce.pages.summary import summarize
from ga3c_tf.reproduce.results import comparison
from ga3c_tf.reproduce.runs import execute
from ga3c_tf.reproduce.runs.curve import curve_of, write_curve
from ga3c_tf.reproduce.runs.run import Run, made_together
from ga3c_tf.reproduce.runs.specs import GAMES, run_spec
from ga3c_tf.runs import outcomes
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
        ratio = speeds[spec.config.network] * (0.97 + spec.seed / 100)
        session = ON_GPU if spec.system == "ga3c" else SESSION
        rate = {"ga3c": 100.0 * ratio, "a3c": 100.0, "a2c": 50.0}[spec.system]
        invent(folder.runs, spec, rate=rate, sessions=[session])
    results = made(folder, "pps")
    ratios = [pps.speed_ups(results, each, "a3c") for each in pps.networks(results)]
    assert [round(by_seed[2]) for by_seed in ratios] == list(speeds.values()) and set(ratios[0]) == {1, 2, 3, 4, 5}
    text = "\n".join(pps.FIGURE.section(results))
    assert f"more predictions per second than A3C: **{HOLDS}** - small: 4 times [3.9" in text
    assert f"grows with the network: **{HOLDS}**" in text and "| large stride 1 | 4,5" in text
    assert "A2C: 32 agents, 5 states an update, cores 50 % busy" in text
    fast, *_ = pps.runs_of(results, "large stride 1", "ga3c")
    of_session(fast, SESSION)  # on the CPU, as A3C
    text = "\n".join(pps.FIGURE.section(made(folder, "pps")))
    assert f"than A3C: **{HOLDS}**" in text and f"grows with the network: **{NEEDS_GPU}**" in text
    for run in results.runs:
        of_session(run, SESSION)  # none on a GPU
    text = "\n".join(pps.FIGURE.section(made(folder, "pps")))
    assert f"than A3C: **{HOLDS}**" in text and "grows with the network: **" not in text
    assert "grows with the network is judged at the `gpu` budget" in text
    of_session(pps.runs_of(results, "small", "ga3c")[0], ON_GPU)
    for slow in pps.runs_of(results, "large stride 1", "a3c")[:3]:
        of_session(slow, {**SESSION, "cpu": "another"})
    results = made(folder, "pps")
    assert set(pps.speed_ups(results, "large stride 1", "a3c")) == {4, 5}
    assert f"than A3C: **{FEW_SEEDS}**" in "\n".join(pps.FIGURE.section(results))
    for run in pps.runs_of(results, "large stride 1", "a3c"):
        shutil.rmtree(run.path)
    text = "\n".join(pps.FIGURE.section(made(folder, "pps")))
    assert f"than A3C: **{RUNS_MISSING}**" in text and f"grows with the network: **{RUNS_MISSING}**" in text


def test_speed_ups_that_shrink_do_not_grow(folder):
    for spec in FIGURES["pps"].all_specs("quick"):
        place = list(pps.NETWORKS).index(spec.config.network)
        rate = {"ga3c": 90.0 - 10 * place + spec.seed, "a3c": 100.0, "a2c": 50.0}[spec.system]
        invent(folder.runs, spec, rate=rate, sessions=[ON_GPU if spec.system == "ga3c" else SESSION])
    found = pps.findings(made(folder, "pps"))
    assert found["faster"].verdict == found["grows"].verdict == FAILS
    assert "from one to the next 0.8" in found["grows"].because


def calibrated(*speeds):
    """Calibrations of machines that are so many times as fast as one whose unit is 500 steps/s."""
    return [{"gflops": 26.7 * speed, "copy_gb_s": 5.0 * speed, "frames_s": 4000.0 * speed} for speed in speeds]


A_MINUTE_LATER = {**SESSION, "started": "2026-11-22T10:01:00+0000"}
LATER = {**SESSION, "started": "2026-11-22T10:01:01+0000"}


def test_speeds_are_compared_where_calibrations_agree_and_stated_by_the_unit(folder):
    for spec in FIGURES["pps"].all_specs("quick"):
        speeds = (1.0, 2.0) if (spec.system, spec.config.network) == ("a3c", "large-1") else (1.0, 1.1)
        session = LATER if spec.system == "a3c" else SESSION
        invent(folder.runs, spec, rate=1050.0, calibrations=calibrated(*speeds), sessions=[session])
    results = made(folder, "pps")
    assert pps.speed_ups(results, "large stride 1", "a3c") == {}
    assert pps.speed_ups(results, "small", "a3c") == pytest.approx(dict.fromkeys(range(1, 6), 1.0))
    text = page(folder)
    assert "Calibrations differ by more than 15 %" in text
    row, *_ = [line for line in text.splitlines() if line.startswith("| pong-ga3c-32x2x2-small-m0-0.75min")]
    assert row.split(" | ")[1:4] == ["1,050", "2", "-"]  # a unit at 1.05 times 500
    for run in pps.runs_of(results, "large stride 1", "a3c")[:2]:
        of_session(run, A_MINUTE_LATER)
    assert set(pps.speed_ups(made(folder, "pps"), "large stride 1", "a3c")) == {1, 2}
    assert "Processor not identified: 75 of 75 finished runs" in text


@pytest.mark.parametrize(("settings", "calibrations"), [({"minutes": 1.0}, 2), ({"steps": 100}, 0)])
def test_a_run_is_calibrated_before_and_after_if_the_clock_ends_it(tmp_path, monkeypatch, settings, calibrations):
    spec = run_spec("cartpole", 1, **settings)
    course = []
    monkeypatch.setattr(execute, "_train", lambda *arguments: course.append("training") or {"ended": "minutes"})
    monkeypatch.setattr(execute, "calibrate", lambda: course.append("calibration") or Calibration(1.0, 2.0, 3.0))
    monkeypatch.setattr(execute, "CALIBRATIONS", execute._Calibrations())
    run = execute.execute_run(spec, tmp_path / "runs")
    assert run.finished and run.calibrations == [Calibration(1.0, 2.0, 3.0)] * calibrations
    assert course == ["calibration"] * (calibrations // 2) + ["training"] + ["calibration"] * (calibrations // 2)


def test_the_calibration_after_a_run_serves_as_the_one_before_the_next(tmp_path, monkeypatch):
    taken = iter(range(1, 10))
    monkeypatch.setattr(execute, "_train", lambda *arguments: {"ended": "minutes"})
    monkeypatch.setattr(execute, "calibrate", lambda: Calibration(float(next(taken)), 2.0, 3.0))
    monkeypatch.setattr(execute, "CALIBRATIONS", execute._Calibrations())

    def failing():
        raise RuntimeError

    def speeds(seed):
        run = execute.execute_run(run_spec("cartpole", seed, minutes=1.0), tmp_path / "runs")
        return [each.gflops for each in run.calibrations]

    assert [speeds(1), speeds(2)] == [[1.0, 2.0], [2.0, 3.0]]
    monkeypatch.setattr(execute, "FRESH_SECONDS", 0.0)
    assert speeds(3) == [4.0, 5.0]
    monkeypatch.setattr(execute, "FRESH_SECONDS", 60.0)
    monkeypatch.setattr(execute, "calibrate", failing)
    assert speeds(4) == [5.0]
    monkeypatch.setattr(execute, "calibrate", lambda: Calibration(float(next(taken)), 2.0, 3.0))
    assert speeds(5) == [6.0, 7.0]  # the one that failed is not reused


def sweep(tps_of, scatter=0.0, rng=None):
    """The TPS of every run of `tps`, as a setting has it, with a scatter."""
    noise = rng or np.random.default_rng(0)
    return {
        tps.Conditions(each, 1, "an abacus"): tps_of(each) * math.exp(scatter * noise.normal()) for each in settings()
    }


@functools.cache
def settings():
    return [tps.setting_of(Run(spec, None, {})) for spec in tps.specs("quick", "pong", 1)]


def verdicts_of(known, planned=96):
    return [finding.verdict for finding in tps.findings(known, planned).values()]


def test_numbers_of_workers_are_compared_by_runs_that_differ_in_nothing_else():
    assert len(sweep(lambda each: 1.0)) == 96
    more_agents = sweep(lambda each: (9 + each.agents / 64) * (2 if each.scheduling == "tuned" else 1))
    found = tps.findings(more_agents, 96)
    assert verdicts_of(more_agents) == [HOLDS, HOLDS, HOLDS]
    assert found["most_agents"].because.startswith("TPS with 64 against 32 agents: 1.05 times [1.05, 1.05]")
    assert found["close_together"].because.startswith("the slowest three against the fastest: 0.912 times")
    speeds = {each.setting: value + each.setting.predictors for each, value in more_agents.items()}
    assert [each.predictors for each in tps.fastest(speeds, 64, "tuned")] == [8, 8, 8]
    assert {(each.agents, each.scheduling) for each in tps.fastest(speeds, 64, "tuned")} == {(64, "tuned")}
    assert verdicts_of(more_agents, planned=97) == [RUNS_MISSING] * 3
    assert verdicts_of({}) == [RUNS_MISSING] * 3
    fewer_agents = sweep(lambda each: 10 - each.agents / 16 + each.predictors)
    assert verdicts_of(fewer_agents) == [FAILS, FAILS, FAILS]
    few = {each: value for each, value in more_agents.items() if each.setting.predictors <= 4}
    assert verdicts_of(few, len(few)) == [HOLDS, NOT_TRIED, HOLDS]
    elsewhere = {each._replace(machine=str(each.setting.agents)): value for each, value in more_agents.items()}
    nothing = "TPS with 64 against 8 agents: nothing to compare yet"
    assert tps.findings(elsewhere, 96)["most_agents"] == Finding(FEW_SEEDS, nothing)


def test_a_sweep_seldom_finds_what_is_not_there_and_mostly_what_is():
    """Runs that scatter by 5 %: equal settings, those at the two limits, and 6 % more for each doubling of agents."""
    rng = np.random.default_rng(1)

    def shares(tps_of):
        """Of 100 sweeps the shares in which each of the three findings holds, and fails."""
        rounds = [verdicts_of(sweep(tps_of, 0.05, rng)) for _ in range(100)]
        return [
            [np.mean([each[place] == verdict for each in rounds]) for verdict in (HOLDS, FAILS)] for place in range(3)
        ]

    most, few, close = shares(lambda each: 10.0)
    assert sum(most) <= 0.05 and few[0] >= 0.65 and close[0] >= 0.85
    _, few, close = shares(lambda each: (1.05 if each.predictors == 8 else 1) * (0.86 if each.agents == 8 else 1))
    assert sum(few) <= 0.05 and sum(close) <= 0.05
    most, *_ = shares(lambda each: 1.06 ** math.log2(each.agents))
    assert most[0] >= 0.85 and not most[1]


def test_shares_of_busy_time_are_judged_on_a_gpu_once_all_runs_are_made(folder):
    rng = np.random.default_rng(0)

    def found(session, seeds, rise=0.1):
        for seed in seeds:
            for place, spec in enumerate(FIGURES["utilization"].specs("quick", "pong", seed)):
                noise = 0.01 * rng.normal()
                busy = {"cpu_utilization": 0.9 - rise * place + noise, "gpu_utilization": 0.2 + rise * place + noise}
                invent(folder.runs, spec, sessions=[session], **busy)
        findings = utilization.findings(made(folder, "utilization"))
        assert findings["gpu_rises"].verdict == findings["cpu_falls"].verdict
        return findings["gpu_rises"].verdict

    def anew():
        shutil.rmtree(folder.runs)
        folder.runs.mkdir()

    assert found(SESSION, [1]) == NEEDS_GPU
    anew()
    assert found(ON_GPU, [1, 2]) == RUNS_MISSING
    assert found(ON_GPU, [3, 4, 5]) == HOLDS
    anew()
    assert found(ON_GPU, range(1, 6), rise=0.0) == NO_DIFFERENCE
    anew()
    assert found(ON_GPU, range(1, 6), rise=-0.03) == FAILS


@pytest.mark.parametrize(
    ("session", "queue", "share", "verdict"),
    [(SESSION, 1.0, 1, None), (ON_GPU, 1.0, 1, HOLDS), (ON_GPU, 60.0, 70, FAILS)],
)
def test_queues_are_judged_by_the_room_of_each_setting(folder, session, queue, share, verdict):
    for spec in FIGURES["tps"].specs("quick", "pong", 1):
        invent(folder.runs, spec, sessions=[session], queue=queue)
        assert queues.room_of(Run.of(spec, folder.runs)) == {8: 96, 16: 96, 32: 96, 64: 64}[spec.config.num_agents]
    text = "\n".join(queues.FIGURE.section(made(folder, "queues")))
    finding = f"far below its maximum: **{verdict}** - {share}% of"
    assert finding in text if verdict else "far below its maximum: **" not in text and "at the `gpu` budget" in text
    assert f"larger prediction batches: **{NO_DIFFERENCE}**" in text  # all batches are equal


@pytest.mark.parametrize(
    ("session", "queue", "verdict"), [(SESSION, 1.0, NEEDS_GPU), (ON_GPU, 1.0, HOLDS), (ON_GPU, 90.0, FAILS)]
)
def test_six_settings_on_a_gpu_decide_about_the_queue_alone(folder, session, queue, verdict):
    specs = FIGURES["queues"].all_specs("gpu")
    assert len(specs) == 6
    for spec in specs:
        invent(folder.runs, spec, sessions=[session], queue=queue)
    text = "\n".join(queues.FIGURE.section(made(folder, "queues", budget="gpu")))
    assert f"far below its maximum: **{verdict}**" in text and "larger prediction batches: **" not in text


def test_short_runs_on_a_gpu_are_measured_once_their_agents_have_started(folder):
    specs = FIGURES["pps"].all_specs("gpu")
    assert len(specs) == 30 and {spec.system for spec in specs} == {"ga3c", "a3c"}
    for spec in (specs[0], FIGURES["queues"].all_specs("gpu")[0]):
        invent(folder.runs, spec, sessions=[ON_GPU])
    (speed,) = pps.measures(Run.of(specs[0], folder.runs))
    assert "over the last 10 s, 128 agents" in speed.protocol
    queue, *_ = queues.measures(Run.of(FIGURES["queues"].all_specs("gpu")[0], folder.runs))
    assert "of the last 9 s" in queue.protocol


@pytest.mark.parametrize(("batch", "verdict"), [(20.0, HOLDS), (5.0, NO_DIFFERENCE), (2.0, FAILS)])
def test_prediction_batches_of_the_fastest_third_are_compared_with_the_others(folder, batch, verdict):
    rng = np.random.default_rng(0)
    for spec in FIGURES["tps"].specs("quick", "pong", 1):
        fast = spec.config.num_agents == 64
        sizes = (batch if fast else 5.0) * math.exp(0.2 * rng.normal())
        invent(folder.runs, spec, rate=100.0 if fast else 50.0, prediction=sizes)
    assert f"larger prediction batches: **{verdict}**" in "\n".join(queues.FIGURE.section(made(folder, "queues")))


def test_few_games_of_table_3_are_named_and_many_counted(folder):
    """The paper's GA3C scores 18 on Pong, and 14,966 on Qbert."""
    training = {"time_s": 60.0, "agent_steps": 4000}
    for game, score in (("pong", 17.0), ("qbert", 7500.0), ("boxing", 90.0), ("seaquest", 100.0)):
        [spec] = FIGURES["scores"].specs("quick", game, 1)
        played = {"scores": [score] * 30, "protocol": "30 episodes", "agent_steps": 4000}
        random = {**played, "scores": [{"pong": -20.0}.get(game, 0.0)] * 30}
        invent(folder.runs, spec, training=training, evaluation=played, random=random)
        if game == "qbert":
            answer = FIGURES["scores"].answer(made(folder, "scores"))
            pong = "pong: reached, n = 1, normalized score 97 %"
            assert answer == f"against the paper's GA3C: {pong}; qbert: short by 50 %, n = 1, normalized score 50 %"
    answer = FIGURES["scores"].answer(made(folder, "scores"))
    assert answer.startswith("against the paper's GA3C: its score is reached in 2 of 4 games")


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
    ended(folder, "minatar_breakout", {"ga3c": (9.9, 10, 10.1), "a3c": (9.9, 10, 10.1), "a2c": (9.9, 10, 10.1)})
    text = "\n".join(environments.FIGURE.section(made(folder, "environments")))
    assert f"GA3C scores as much as A3C after the same agent steps: **{HOLDS}**" in text
    assert "in points of the normalized score, on average over cartpole (-3), minatar_breakout (+0)\n" in text
    assert f"GA3C scores as much as A2C after the same agent steps: **{FAILS}**" in text
    assert "| minatar_freeway | - | - | - | - | - / - / - | 9 not run |" in text
    [row] = [line.split(" | ") for line in text.splitlines() if line.startswith("| cartpole |")]
    assert 0.45 < float(row[1].split()[0]) / np.mean([52, 53, 92]) < 0.6 and row[5] == "1 / 4 / 2"


def test_systems_are_not_judged_before_the_games_they_have_begun_are_complete(folder):
    ended(folder, "cartpole", {"ga3c": (51, 52, 53), "a2c": (51, 52, 53)})
    found = environments.findings(made(folder, "environments"))
    assert found["A2C"].verdict == HOLDS
    assert found["A3C"] == Finding(RUNS_MISSING, "nothing measured")
    ended(folder, "minatar_breakout", {"ga3c": (9.9, 10, 10.1), "a2c": (9.9, 10)})
    assert environments.findings(made(folder, "environments"))["A2C"].verdict == RUNS_MISSING


def test_final_weights_are_judged_where_they_played(folder):
    """In training GA3C ended far below A2C; its final weights score as much."""
    for seed in (1, 2, 3):
        for spec in environments.specs("tuned", "minatar_asterix", seed):
            played = {"scores": [20 + seed / 10] * 100, "protocol": "100 episodes", "agent_steps": spec.config.steps}
            last = {"ga3c": 5.0, "a2c": 20.0}[spec.system]
            random = {"random": {**played, "scores": [0.5] * 100}} if spec.random_play else {}
            training = {"time_s": 60.0, "agent_steps": spec.config.steps}
            invent(folder.runs, spec, scores=(0.0, last), training=training, evaluation=played, **random)
    results = made(folder, "environments", budget="tuned")
    assert environments.findings(results)["A2C"].verdict == HOLDS
    text = "\n".join(environments.FIGURE.section(results))
    assert "the score is that of the final weights)" in text and "kinds of machines" not in text
    of_session(next(run for run in results.runs if run.finished), {**SESSION, "cpu": "another"})
    text = "\n".join(environments.FIGURE.section(made(folder, "environments", budget="tuned")))
    assert "The runs are from 2 kinds of machines, so do not compare the minutes of two systems." in text


def test_a_game_that_no_system_learned_is_left_out(folder):
    ended(folder, "cartpole", {"ga3c": (-1, 0, 1), "a2c": (-1, 0, 1)})
    assert environments.findings(made(folder, "environments"))["A2C"] == Finding(TOO_SHORT, "no game was learned")
    ended(folder, "minatar_breakout", {"ga3c": (9.9, 10, 10.1), "a2c": (9.9, 10, 10.1)})
    found = environments.findings(made(folder, "environments"))["A2C"]
    assert found.verdict == HOLDS and found.because.endswith("over minatar_breakout (+0)")


def test_a_run_that_diverged_counts_as_the_random_policy(folder):
    ended(folder, "minatar_breakout", {"ga3c": (9.9, 10), "a2c": (9.9, 10, 10.1)})
    [diverged] = [spec for spec in environments.specs("quick", "minatar_breakout", 3) if spec.system == "ga3c"]
    failed(folder, diverged, "train: the training diverged", outcomes.DIVERGED)
    found = environments.findings(made(folder, "environments"))["A2C"]
    assert found.verdict == NO_DIFFERENCE and "minatar_breakout (-34)" in found.because


def test_a_game_in_which_nothing_was_gained_is_left_out(folder):
    """With fewer than three seeds it cannot be told from the random policy, and has no way to divide by."""
    for system in ("ga3c", "a2c"):
        [spec] = [spec for spec in environments.specs("quick", "minatar_seaquest", 1) if spec.system == system]
        invent(folder.runs, spec, scores=(RANDOM_SCORES["minatar_seaquest"], RANDOM_SCORES["minatar_seaquest"]))
    found = environments.findings(made(folder, "environments", ("minatar_seaquest",), 1))
    assert found["A2C"] == Finding(TOO_SHORT, "no game was learned")


def test_a_score_of_table_3_is_that_of_all_seeds(folder):
    """The paper's GA3C scores 18 on Pong, and its random policy -20.7."""
    for seed, score in ((1, 18.5), (2, 18.5)):
        [spec] = FIGURES["scores"].specs("quick", "pong", seed)
        played = {"scores": [score] * 30, "protocol": "30 episodes", "agent_steps": 4000}
        invent(folder.runs, spec, training={"time_s": 60.0, "agent_steps": 4000}, evaluation=played)
    results = made(folder, "scores", seeds=2)
    assert scores_figure.verdict(results, "pong") == "reached, n = 2"
    [spec] = FIGURES["scores"].specs("quick", "pong", 3)
    failed(folder, spec, "train: the training diverged", outcomes.DIVERGED)
    results = made(folder, "scores", seeds=3)
    assert scores_figure.scored(results, "pong") == [18.5, 18.5, scores_figure.random_score(results, "pong")]
    assert scores_figure.verdict(results, "pong") == NO_DIFFERENCE


@pytest.mark.parametrize("game", RANDOM_SCORES)
def test_the_line_of_the_random_policy_is_what_random_actions_score(game):
    config = Config.from_values({"env_id": GAMES[game], "steps": 1})
    with contextlib.closing(make_environment(config)) as env:
        env.reset(seed=1)
        scores = [played_at_random(env, np.random.default_rng(seed)) for seed in range(100)]
    assert abs(np.mean(scores) - RANDOM_SCORES[game]) < 4 * np.std(scores) / math.sqrt(len(scores))


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
    assert f"- A batch of 2,560 states learns as much as a batch of 20 in the same agent steps: **{FAILS}**" in text
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
    assert len(found) == 4 and {finding.verdict for finding in found.values()} == {FAILS}


def test_batches_at_the_limit_are_seldom_judged_and_others_mostly():
    """Five seeds that scatter by 8 %: verdicts at the limit by chance alone, 85 % or more at 0.7 and 1.15."""
    rng = np.random.default_rng(1)

    def verdicts(ratio):
        for _ in range(400):
            scores = {
                size: {seed: share * math.exp(0.08 * rng.normal()) for seed in range(5)}
                for size, share in zip((20, 80, 320, 1280, 2560), (1, ratio, ratio, ratio, ratio), strict=True)
            }
            yield [finding.verdict for finding in batch_size.as_much(scores).values()]

    at_limit = list(verdicts(batch_size.AS_MUCH))
    wrong = np.mean([any(verdict != NO_DIFFERENCE for verdict in each) for each in at_limit])
    assert wrong <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / len(at_limit))
    assert np.mean([each.count(HOLDS) / 4 for each in verdicts(1.15)]) >= 0.85
    assert np.mean([each.count(FAILS) / 4 for each in verdicts(0.7)]) >= 0.85


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
    assert finding.verdict == HOLDS and finding.because.endswith("(3 seeds)")
    assert 3 < float(finding.because.split()[0]) < 4.2  # the rolling score is behind by half a window
    assert "| cartpole | 150 | A3C | 3 of 3 |" in "\n".join(wall_clock.FIGURE.section(results))


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
    assert float(finding.because.split()[2]) == pytest.approx(geometric, rel=0.01)  # without the time to start


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
    assert finding.verdict == HOLDS and finding.because.startswith("at least ") and "(4 seeds)" in finding.because


def test_the_start_of_later_sessions_does_not_count_in_a_race(folder):
    """The second session takes 6 of 30 s to start: no episode ends between 10 and 16 s."""
    [spec] = [spec for spec in wall_clock.specs("quick", "cartpole", 1) if spec.system == "ga3c"]
    run = invent(folder.runs, spec, sessions=[SESSION, {**SESSION, "time_s": 10.0}])
    times = [1.0, 5.0, 10.0, 16.0, 20.0]
    curve = {"time_s": times, "agent_steps": times, "episodes": [100] * 5, "rolling_score": [1, 50, 90, 100, 160]}
    write_curve(run.path, curve)
    [seconds, *_] = wall_clock.measures(Run.of(spec, folder.runs))
    assert seconds.value == 20.0 - 1.0 - 6.0
    sessions = [SESSION, *({**SESSION, "time_s": start} for start in (10.0, 12.0, 12.0))]  # two ended before an episode
    (run.path / "run.json").write_text(json.dumps({**run.result, "sessions": sessions}))
    [seconds, *_] = wall_clock.measures(Run.of(spec, folder.runs))
    assert seconds.value == 20.0 - 1.0 - 6.0


def test_runs_that_shared_the_machine_are_noticed(folder):
    """Each takes a minute."""
    specs = [spec for seed in (1, 2, 3) for spec in wall_clock.specs("smoke", "cartpole", seed)]
    training = {"time_s": 60.0, "agent_steps": 4000}
    starts = ("10:00:00", "10:01:05", "10:02:10")
    runs = [
        invent(folder.runs, spec, sessions=({**SESSION, "started": f"2026-11-22T{start}+0000"},), training=training)
        for spec, start in zip(specs, starts, strict=False)
    ]
    assert not made_together(runs)
    late = {**SESSION, "started": "2026-11-22T10:01:30+0000"}
    assert made_together([*runs, invent(folder.runs, specs[3], sessions=(late,), training=training)])


def test_other_games_have_no_score_to_reach():
    with pytest.raises(UserError, match="no score to reach for pong; it has one for cartpole"):
        wall_clock.specs("quick", "pong", 1)


@pytest.mark.parametrize(("dynamic", "verdict"), [(290.0, FAILS), (321.0, NO_DIFFERENCE), (360.0, HOLDS)])
def test_dynamic_adjustment_is_held_against_the_best(folder, dynamic, verdict):
    for seed in (1, 2, 3):
        for label, spec in labelled(speed.specs, "quick", "minatar_breakout", seed).items():
            rate = {"1/1/1": 100.0, "16/1/1": 300.0, "dynamic from 1/1/1": dynamic * (1 + seed / 100)}.get(label, 400.0)
            invent(folder.runs, spec, rate=rate, scores=(0.0, rate + seed))
    text = "\n".join(speed.FIGURE.section(made(folder, "speed")))
    assert f"faster convergence: **{HOLDS}** - 'fixed, 32/2/2' against '1/1/1': +" in text
    assert f"best fixed setting: **{verdict}** - 'dynamic from 1/1/1' against 'fixed, 32/2/2'" in text
    shutil.rmtree(folder.runs / spec.id)
    assert text.count(RUNS_MISSING) == 0
    assert "\n".join(speed.FIGURE.section(made(folder, "speed"))).count(RUNS_MISSING) == 2


def test_pong_is_held_against_what_others_published(folder):
    for seed in (1, 2, 3):
        sticky, noops = FIGURES["sample-efficiency"].specs("tuned", "pong", seed)
        for spec, score in ((sticky, 16.7), (noops, 19.0)):
            played = {"scores": [score + seed / 10] * 100, "protocol": "100 episodes", "agent_steps": spec.config.steps}
            invent(folder.runs, spec, scores=(-21.0, *[18.0 + seed / 10] * 8), evaluation=played)
    results = made(folder, "sample-efficiency", budget="tuned")
    found = sample_efficiency.findings(results)
    assert found["early"].verdict == found["noops"].verdict == HOLDS
    assert found["ppo"][:2] == (NO_DIFFERENCE, "+0.2 [-0.0484, 0.448], p = 0.074 (3 seeds)")
    shutil.rmtree(folder.runs / noops.id)
    again = sample_efficiency.findings(made(folder, "sample-efficiency", budget="tuned"))
    assert again["noops"].verdict == RUNS_MISSING and again["early"].verdict == HOLDS
    failed(folder, noops, "train: the training diverged", outcomes.DIVERGED)
    write_curve(folder.runs / noops.id, {"time_s": [9], "agent_steps": [9], "episodes": [3], "rolling_score": [-20.5]})
    diverged = sample_efficiency.findings(made(folder, "sample-efficiency", budget="tuned"))
    assert diverged["noops"].verdict == NO_DIFFERENCE and diverged["noops"].because.startswith("-10.1 [")


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


def test_the_summary_names_the_game_of_a_finding_where_there_are_several(folder):
    for game in ("minatar_breakout", "cartpole"):
        for seed in (1, 2, 3, 4, 5):
            for spec in batch_size.specs("quick", game, seed):
                invent(folder.runs, spec, scores=(0.0, 10.0 + seed))
    made(folder, "batch-size", ("cartpole",))
    claims = [each.claim for each in summarize(folder).undecided if each.figure == "batch-size"]
    assert len(claims) == 8
    assert {claim.split(":")[0] for claim in claims} == {"minatar_breakout", "cartpole"}


def test_what_a_fault_has_falsified_is_superseded_until_it_is_measured_again(folder):
    spec = next(spec for spec in FIGURES["pps"].all_specs("quick") if spec.system == "a3c")
    others = next(spec for spec in FIGURES["pps"].all_specs("quick") if spec.system == "ga3c")
    for each in (spec, others):
        invent(folder.runs, each, sessions=[{**SESSION, "commit": "before"}])
    entry = {"reason": "The steps of other agents were applied.", "runs": {spec.id: "before"}}
    same_reason = {**entry, "runs": {"another run": "before"}}
    (folder.path / "superseded.json").write_text(json.dumps([entry, same_reason]))
    note = "**Superseded: 1 run of A3C, to be measured again.** The steps of other agents were applied."
    results = made(folder, "pps")
    assert note in page(folder) and "1 measured, 1 superseded, 73 not run" in page(folder)
    assert {run.spec.id for run in results.runs if run.finished} == {others.id}
    assert [record.run_id for record in results.records if record.value is not None] == [others.id]
    shutil.rmtree(folder.runs / spec.id)
    invent(folder.runs, spec, sessions=[{**SESSION, "commit": "after"}])
    made(folder, "pps")
    assert "**Superseded" not in page(folder) and "2 measured, 73 not run" in page(folder)


def test_what_is_superseded_is_run_again_and_nothing_else(folder):
    specs = FIGURES["wall-clock"].all_specs("quick", 1, ["cartpole"])
    runs = [invent(folder.runs, spec, sessions=[{**SESSION, "commit": "before"}]) for spec in specs]
    falsified, *sound = runs
    entries = [{"reason": reason, "runs": {falsified.spec.id: "before"}} for reason in ("A fault.", "Another fault.")]
    (folder.path / "superseded.json").write_text(json.dumps(entries))
    figures = [FIGURES["wall-clock"]]
    listed = command.commands(figures, "quick", 1, ["cartpole"], {}, folder.path)
    assert len(listed) == 1 and falsified.spec.id in listed[0]
    missing = []
    said = []

    class Executor:
        def execute(self, specs, runs, force):
            missing.extend(spec for spec in specs if not Run.of(spec, runs).finished)
            return [Run.of(spec, runs) for spec in specs]

    command.reproduce(figures, "quick", 1, ["cartpole"], {}, folder.path, False, Executor(), said.append)
    assert missing == [falsified.spec] and len(sound) == len(specs) - 1 > 0
    assert "1 of the runs are superseded: removed, to be measured again" in said


def test_a_run_without_a_commit_is_not_superseded_unless_it_is_listed(folder):
    """As from a wheel, or a zip of the source, which know of no commit."""
    one, other, *_ = FIGURES["wall-clock"].all_specs("quick", 1, ["cartpole", "minatar_breakout"])
    for spec in (one, other):
        invent(folder.runs, spec, sessions=[{**SESSION, "commit": None}])
    (folder.path / "superseded.json").write_text(json.dumps([{"reason": "A fault.", "runs": {one.id: None}}]))
    folder.remove_superseded([one, other], print)
    assert not (folder.runs / one.id).exists() and (folder.runs / other.id).exists()


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
        for label, spec in labelled(speed.specs, "quick", "minatar_breakout", seed).items():
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
    assert "`ga3c-tf reproduce --figure speed --budget quick --loss mine:huber`" in huber_part
    pictures = folder.pictures(FIGURES["speed"], "quick", huber)
    assert [picture.as_posix() for picture in pictures] == [
        "figures/mine.huber/speed-quick-comparison",
        "figures/mine.huber/speed-quick-minatar-breakout",
    ]
    assert all(f"({picture}.svg)" in huber_part and f"({picture}.svg)" not in plain for picture in pictures)


def test_a_method_is_not_judged_before_all_its_runs_have_ended(folder):
    """What belongs to it is known from the figure, not from the folders that are there."""
    huber = {"loss": "mine:huber"}
    for spec in speed.specs("quick", "minatar_breakout", 1):
        invent(folder.runs, spec.changed(huber))
    folder.add_method(huber, print)
    folder.update(FIGURES["speed"], "quick", (), 0, print)
    paper, own = (folder.results(FIGURES["speed"], "quick", changes=changes) for changes in ({}, huber))
    assert len(own.runs) == 12 and sum(run.finished for run in own.runs) == 4 and not own.ended
    rows = [line for line in comparison.section(FIGURES["speed"], paper, own) if line.startswith("| minatar")]
    assert len(rows) == 4 and all(f"| {RUNS_MISSING} |" in row for row in rows)
    assert not folder.results(FIGURES["pps"], "quick", changes=huber).runs


def test_all_seeds_of_a_setting_are_compared_with_a_method_of_the_users_own(folder):
    """The first seed also plays at random, which is another run and the same setting."""
    huber = {"loss": "mine:huber"}
    for seed in (1, 2, 3):
        [spec] = FIGURES["scores"].specs("quick", "pong", seed)
        for each, score in ((spec, 5.0), (spec.changed(huber), 15.0)):
            played = {"scores": [score + seed] * 30, "protocol": "30 episodes", "agent_steps": 4000}
            invent(folder.runs, each, training={"time_s": 60.0, "agent_steps": 4000}, evaluation=played)
    folder.add_method(huber, print)
    folder.update(FIGURES["scores"], "quick", ("pong",), 3, print)
    paper, own = (folder.results(FIGURES["scores"], "quick", changes=changes) for changes in ({}, huber))
    [row] = [line for line in comparison.section(FIGURES["scores"], paper, own) if "(3 seeds)" in line]
    assert row.count("(3 seeds)") == 2 and f"| {HOLDS} |" in row


def test_a_damaged_list_of_methods_is_refused_by_name(folder):
    for text in ("{", '{"loss": 3}', '[{"los": "mine:huber"}]', "[3]"):
        (folder.path / "methods.json").write_text(text)
        with pytest.raises(UserError, match=r"methods\.json is damaged"):
            folder.methods()
