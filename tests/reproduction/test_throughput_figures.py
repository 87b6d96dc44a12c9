"""Throughput figures of invented runs, in folders as training writes them: numbers, findings, reasons."""

import functools
import itertools
import math
import shutil

import numpy as np
import pytest
from invented_runs import ON_GPU, SESSION, invent, made, of_session, write_table

from ga3c_tf.reproduce.drawing import speed_plots
from ga3c_tf.reproduce.drawing.canvas import LOOKS
from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.figures.throughput import fixed_numbers, pps, queues, tps, utilization
from ga3c_tf.reproduce.measures.verdicts import (
    EQUAL,
    EQUAL_WIDE,
    FAILS,
    FEW_AGENTS,
    FEW_SEEDS,
    HOLDS,
    NEEDS_GPU,
    NO_DIFFERENCE,
    NOT_TRIED,
    RUNS_MISSING,
    SEVERAL_MACHINES,
    Finding,
)
from ga3c_tf.reproduce.pages.report import page
from ga3c_tf.reproduce.runs.execute import FIRST_UPDATE
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.runs.log import ADJUSTMENT_COLUMNS


def test_speed_ups_are_of_one_machine_and_grow_or_do_not(folder):
    speeds = {"small": 4, "large-4": 11, "large-3": 12, "large-2": 20, "large-1": 45}
    for spec in FIGURES["pps"].all_specs("quick"):
        ratio = speeds[spec.config.network] * (0.97 + spec.seed / 100)
        session = ON_GPU if spec.system == "ga3c" else SESSION
        rate = {"ga3c": 100.0 * ratio, "a3c": 100.0, "a2c": 50.0}[spec.system]
        invent(folder.runs, spec, rate=rate, sessions=[session])
    results = made(folder, "pps")
    ratios = [pps.speed_ups(results, each, "a3c") for each in pps.networks(results)]
    assert [round(by_seed[2]) for by_seed in ratios] == list(speeds.values()) and set(ratios[0]) == {
        1,
        2,
        3,
        4,
        5,
    }
    text = "\n".join(pps.FIGURE.section(results))
    assert (
        f"more predictions per second than A3C with every network: **{HOLDS}** - small: 4 times [3.9" in text
    )
    assert f"grows with the network: **{HOLDS}**" in text and "| large stride 1 | 4,5" in text
    assert "A2C: 32 agents, 5 states an update, cores 50 % busy" in text
    slow, *_ = pps.runs_of(results, "small", "a3c")
    of_session(slow, {**SESSION, "cores": 5})
    text = "\n".join(pps.FIGURE.section(made(folder, "pps")))
    assert f"than A3C with every network: **{FEW_AGENTS}** - " in text
    of_session(slow, SESSION)
    fast, *_ = pps.runs_of(results, "large stride 1", "ga3c")
    of_session(fast, SESSION)  # on the CPU, as A3C
    text = "\n".join(pps.FIGURE.section(made(folder, "pps")))
    assert (
        f"than A3C with every network: **{HOLDS}**" in text
        and f"grows with the network: **{NEEDS_GPU}**" in text
    )
    for run in results.runs:
        of_session(run, SESSION)  # none on a GPU
    text = "\n".join(pps.FIGURE.section(made(folder, "pps")))
    assert f"than A3C with every network: **{HOLDS}**" in text and "grows with the network: **" not in text
    assert "grows with the network is judged at the `gpu` budget" in text
    of_session(pps.runs_of(results, "small", "ga3c")[0], ON_GPU)
    for slow in pps.runs_of(results, "large stride 1", "a3c")[:3]:
        of_session(slow, {**SESSION, "cpu": "another"})
    results = made(folder, "pps")
    assert set(pps.speed_ups(results, "large stride 1", "a3c")) == {4, 5}
    assert f"than A3C with every network: **{FEW_SEEDS}**" in "\n".join(pps.FIGURE.section(results))
    for run in pps.runs_of(results, "large stride 1", "a3c"):
        shutil.rmtree(run.path)
    text = "\n".join(pps.FIGURE.section(made(folder, "pps")))
    assert f"than A3C with every network: **{RUNS_MISSING}**" in text
    assert f"grows with the network: **{RUNS_MISSING}**" in text


def test_speed_ups_that_shrink_do_not_grow(folder):
    for spec in FIGURES["pps"].all_specs("quick"):
        place = list(pps.NETWORKS).index(spec.config.network)
        rate = {"ga3c": 90.0 - 10 * place + spec.seed, "a3c": 100.0, "a2c": 50.0}[spec.system]
        invent(folder.runs, spec, rate=rate, sessions=[ON_GPU if spec.system == "ga3c" else SESSION])
    found = pps.findings(made(folder, "pps"))
    assert found["faster"].verdict == found["grows"].verdict == FAILS
    assert "from one network to the next 0.8" in found["grows"].because


def test_speeds_are_points_with_a_line_over_the_seeds(monkeypatch, tmp_path):
    """A bar on a logarithmic axis has no meaningful length."""
    drawn = []
    monkeypatch.setattr(speed_plots, "save", lambda figure, stem: drawn.append(figure))
    speeds = {"ga3c": [900.0, 1100.0], "a3c": [400.0], "a2c": []}
    speed_plots.speed_points([("small", speeds, [2.5], 4.0)], tmp_path / "pps")
    ratio, axis = drawn[0].axes
    assert axis.get_yscale() == "log" and not axis.patches
    points = {line.get_label(): line for line in axis.get_lines()}
    assert {label: list(line.get_ydata()) for label, line in points.items()} == {
        "GA3C": [1000.0],
        "A3C": [400.0],
    }
    assert [segment[:, 1].tolist() for each in axis.collections for segment in each.get_segments()] == [
        [400.0, 400.0],
        [900.0, 1100.0],
    ]
    ours, papers, _ = ratio.get_lines()
    assert (
        ours.get_color() == papers.get_color() == LOOKS["ga3c"].color
        and papers.get_markerfacecolor() == "none"
    )


def calibrated(*speeds):
    """Calibrations of machines that are so many times as fast as one whose unit is 500 steps/s."""
    return [
        {"gflops": 26.7 * speed, "copy_gb_s": 5.0 * speed, "frames_s": 4000.0 * speed} for speed in speeds
    ]


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


def sweep(tps_of, scatter=0.0, rng=None):
    """The TPS of every run of `tps`, as a setting has it, with a scatter."""
    noise = rng or np.random.default_rng(0)
    return {
        tps.Conditions(each, 1, "an abacus"): tps_of(each) * math.exp(scatter * noise.normal())
        for each in settings()
    }


@functools.cache
def settings():
    return [tps.setting_of(RecordedRun(spec, None, {})) for spec in tps.specs("quick", "pong", 1)]


def verdicts_of(known, planned=96):
    return [finding.verdict for finding in tps.findings(known, planned).values()]


def test_numbers_of_workers_are_compared_by_runs_that_differ_in_nothing_else():
    assert len(sweep(lambda each: 1.0)) == 96
    more_agents = sweep(lambda each: (9 + each.agents / 64) * (2 if each.scheduling == "tuned" else 1))
    found = tps.findings(more_agents, 96)
    assert verdicts_of(more_agents) == [HOLDS, HOLDS, HOLDS]
    assert found["most_agents"].because.startswith(
        "TPS with 64 relative to 32 agents: 1.05 times [1.05, 1.05]"
    )
    assert found["close_together"].because.startswith(
        "TPS of the slowest three numbers of agents relative to the fastest: 0.912 times"
    )
    rng = np.random.default_rng(0)
    slower = {8: 0.9, 16: 1.0, 32: 0.985, 64: 1.0}  # of 16 agents the TPS scatters
    noisy = sweep(
        lambda each: 10 * slower[each.agents] * math.exp((0.1 if each.agents == 16 else 0.001) * rng.normal())
    )
    # 32 are slower, and 16 may be faster.
    assert tps.findings(noisy, 96)["most_agents"].verdict == NO_DIFFERENCE
    speeds = {each.setting: value + each.setting.predictors for each, value in more_agents.items()}
    assert [each.predictors for each in tps.fastest(speeds, 64, "tuned")] == [8, 8, 8]
    assert {(each.agents, each.scheduling) for each in tps.fastest(speeds, 64, "tuned")} == {(64, "tuned")}
    assert verdicts_of(more_agents, planned=97) == [RUNS_MISSING] * 3
    assert verdicts_of({}) == [RUNS_MISSING] * 3
    fewer_agents = sweep(lambda each: 10 - each.agents / 16 + each.predictors)
    assert verdicts_of(fewer_agents) == [FAILS, FAILS, FAILS]
    few = {each: value for each, value in more_agents.items() if each.setting.predictors <= 4}
    assert verdicts_of(few, len(few)) == [HOLDS, NOT_TRIED, HOLDS]
    elsewhere = {
        each._replace(machine=str(each.setting.agents)): value for each, value in more_agents.items()
    }
    nothing = "TPS with 64 relative to 8 agents: nothing to compare yet"
    found = tps.findings(elsewhere, 96)
    assert found["most_agents"] == Finding(FEW_SEEDS, nothing)
    assert found["close_together"].verdict == SEVERAL_MACHINES


def test_a_sweep_seldom_finds_what_is_not_there_and_mostly_what_is():
    """Runs that scatter by 5 %: equal settings, those at the limits, and 8 % more per doubling of agents."""
    rng = np.random.default_rng(1)

    def shares(tps_of):
        """Of 100 sweeps the shares in which each of three findings holds, fails, and finds equal settings."""
        rounds = [verdicts_of(sweep(tps_of, 0.05, rng)) for _ in range(100)]
        words = (HOLDS, FAILS, EQUAL)
        return [[np.mean([each[place] == word for each in rounds]) for word in words] for place in range(3)]

    most, few, close = shares(lambda each: 10.0)
    assert sum(most[:2]) <= 0.05 and most[2] >= 0.75 and few[0] >= 0.6 and close[0] >= 0.85
    most, *_ = shares(lambda each: 1.05 ** math.log2(each.agents))
    assert sum(most[1:]) <= 0.05
    most, *_ = shares(lambda each: 1.05 ** -math.log2(each.agents))
    assert sum(most) - most[1] <= 0.05
    _, few, close = shares(
        lambda each: (1.05 if each.predictors == 8 else 1) * (0.86 if each.agents == 8 else 1)
    )
    assert sum(few) <= 0.05 and sum(close) <= 0.05
    most, *_ = shares(lambda each: 1.08 ** math.log2(each.agents))
    assert most[0] >= 0.85 and not most[1]


def test_shares_of_busy_time_are_judged_on_a_gpu_once_all_runs_are_made(folder):
    rng = np.random.default_rng(0)

    def found(session, seeds, rise=0.1):
        for seed in seeds:
            for place, spec in enumerate(FIGURES["utilization"].specs("quick", "pong", seed)):
                noise = 0.01 * rng.normal()
                busy = {
                    "cpu_utilization": 0.9 - rise * place + noise,
                    "gpu_utilization": 0.2 + rise * place + noise,
                }
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
        assert (
            queues.room_of(RecordedRun.of(spec, folder.runs))
            == {8: 96, 16: 96, 32: 96, 64: 64}[spec.config.num_agents]
        )
    text = "\n".join(queues.FIGURE.section(made(folder, "queues")))
    finding = f"far below its maximum: **{verdict}** - {share}% of"
    assert (
        finding in text
        if verdict
        else "far below its maximum: **" not in text and "at the `gpu` budget" in text
    )
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


def test_runs_that_tell_how_busy_a_gpu_is_are_this_figure_s_own_and_say_where_they_begin(folder):
    specs = FIGURES["utilization"].all_specs("gpu")
    assert len(specs) == 20 and {spec.config.minutes for spec in specs} == {utilization.GPU_MINUTES}
    assert not {spec.id for spec in specs} & {spec.id for spec in FIGURES["pps"].all_specs("gpu")}
    old = invent(folder.runs, specs[0], sessions=[ON_GPU], gpu_utilization=0.2)
    assert {each.protocol.split(", ")[-1] for each in utilization.measures(old)} == {
        "from the run's first row of metrics on"
    }
    new = invent(folder.runs, specs[1], sessions=[ON_GPU], gpu_utilization=0.2, utilization_from=FIRST_UPDATE)
    assert {each.protocol.split(", ")[-1] for each in utilization.measures(new)} == {
        f"from the run's {FIRST_UPDATE} on"
    }


def test_short_runs_on_a_gpu_are_measured_once_their_agents_have_started(folder):
    specs = FIGURES["pps"].all_specs("gpu")
    assert len(specs) == 30 and {spec.system for spec in specs} == {"ga3c", "a3c"}
    for spec in (specs[0], FIGURES["queues"].all_specs("gpu")[0]):
        invent(folder.runs, spec, sessions=[ON_GPU])
    (speed,) = pps.measures(RecordedRun.of(specs[0], folder.runs))
    assert "over the last 10 s, 128 agents" in speed.protocol
    queue, *_ = queues.measures(RecordedRun.of(FIGURES["queues"].all_specs("gpu")[0], folder.runs))
    assert "of the last 9 s" in queue.protocol


@pytest.mark.parametrize(("batch", "verdict"), [(20.0, HOLDS), (5.0, NO_DIFFERENCE), (2.0, FAILS)])
def test_prediction_batches_of_the_fastest_third_are_compared_with_the_others(folder, batch, verdict):
    rng = np.random.default_rng(0)
    for spec in FIGURES["tps"].specs("quick", "pong", 1):
        fast = spec.config.num_agents == 64
        sizes = (batch if fast else 5.0) * math.exp(0.2 * rng.normal())
        invent(folder.runs, spec, rate=100.0 if fast else 50.0, prediction=sizes)
    results = made(folder, "queues")
    assert f"larger prediction batches: **{verdict}**" in "\n".join(queues.FIGURE.section(results))
    assert all(float(ratio) > 0 for _, *ratios in queues.by_predictors(results) for ratio in ratios)


def test_the_rate_of_a_setting_is_that_of_all_its_periods(folder):
    [spec, *_] = FIGURES["adjustment"].all_specs("quick")
    run = invent(folder.runs, spec)
    periods = [(1, 100.0, 1), (2, 300.0, 1), (1, 140.0, 0), (2, 200.0, 1), (3, 900.0, 0)]
    rows = [{"agents": agents, "rate": rate, "accepted": accepted} for agents, rate, accepted in periods]
    write_table(run.path / "adjustment.csv", ADJUSTMENT_COLUMNS, rows)
    results = made(folder, "adjustment")
    values = [results.value(run, metric) for metric in ("final agents", "first rate", "final rate")]
    assert values == [2.0, 120.0, 250.0]


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, EQUAL_WIDE), (1.3, HOLDS)])
def test_games_are_judged_by_runs_with_fixed_numbers(folder, factor, verdict):
    """More predictors lower the TPS of one game by a tenth, and that of the other by as much or by less."""
    rng = np.random.default_rng(0)
    specs = FIGURES["adjustment"].all_specs("quick")
    assert len([spec for spec in specs if spec.config.adjustment == "paper"]) == 2 and len(specs) == 2 + 64
    for spec in specs:
        of_two = 0.9 * (factor if spec.game == "pong" else 1.0)
        tps = 90 * (of_two if spec.config.num_predictors == 2 else 1.0) * math.exp(0.03 * rng.normal())
        run = invent(folder.runs, spec, rate=5 * tps)
        if spec.config.adjustment == "paper":
            write_table(
                run.path / "adjustment.csv", ADJUSTMENT_COLUMNS, [{"agents": 2, "rate": 100.0, "accepted": 1}]
            )
    text = "\n".join(FIGURES["adjustment"].sections(made(folder, "adjustment")))
    assert f"differ between games: **{verdict}**" in text and "| 32/2/2 | " in text
    (folder.runs / specs[-1].id / "run.json").unlink()
    text = "\n".join(FIGURES["adjustment"].sections(made(folder, "adjustment")))
    assert f"differ between games: **{RUNS_MISSING}**" in text


def test_games_need_three_seeds_each():
    every = itertools.product(itertools.product(*fixed_numbers.NUMBERS), (1, 2, 3))
    seeds = {fixed_numbers.WorkersAndSeed(workers, seed): 90.0 + seed * workers[1] for workers, seed in every}
    others = {run: tps + 0.1 * sum(run.workers) * run.seed for run, tps in seeds.items()}
    two = {run: tps for run, tps in seeds.items() if run.seed < 3}
    assert (
        fixed_numbers.different({"pong": seeds}).verdict
        == fixed_numbers.different({}).verdict
        == RUNS_MISSING
    )
    assert fixed_numbers.different({"pong": seeds, "boxing": two}).verdict == FEW_SEEDS
    assert fixed_numbers.different({"pong": seeds, "boxing": others}).verdict == EQUAL_WIDE
