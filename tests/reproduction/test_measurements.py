"""The tidy table of a figure: its parts, its pairs of runs, and the runs that may not be compared."""

import pytest
from invented_runs import drawn

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.figures import registry
from ga3c_tf.reproduce.figures.measurements import Measurements, speed_changed
from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.figures.tables import Table, mean_of, time_of
from ga3c_tf.reproduce.measures.verdicts import (
    FEW_SEEDS,
    HOLDS,
    INCONCLUSIVE,
    NO_DIFFERENCE,
    RUNS_MISSING,
    SEVERAL_MACHINES,
    Verdict,
)
from ga3c_tf.reproduce.runs.comparable import measured_alike
from ga3c_tf.reproduce.runs.specs import run_spec

SLOW, FAST = ({"gflops": speed, "copy_gb_s": 1.0, "frames_s": speed} for speed in (50.0, 100.0))


def specs(seeds=4):
    return [
        run_spec("pong", seed, system, minutes=1, num_agents=4).called(system)
        for seed in range(1, seeds + 1)
        for system in ("ga3c", "a3c")
    ]


def label(spec):
    return {"label": spec.label[0]}


def table(number=lambda spec: {"pps": 10.0 * spec.seed}, **facts):
    return Measurements.of(drawn(specs(), number, **facts), label)


def test_values_are_selected_by_dimensions():
    pps = table()
    assert pps.numbers("pps") == [10, 10, 20, 20, 30, 30, 40, 40]
    assert pps.select(system="A3C", seed=(1, 2)).numbers("pps") == [10, 20]
    assert pps.series("pps").to_dict() == {1: 10, 2: 20, 3: 30, 4: 40}
    assert pps.series("pps", least=3).empty and pps.lists("pps", "system")["A3C"] == [10, 20, 30, 40]
    assert [name for name, part in pps.parts("system") if part.runs] == ["GA3C", "A3C"]
    assert [key for key, _ in pps.select(seed=1).parts("seed", "label")] == [(1, "ga3c"), (1, "a3c")]


def pairs_of(change):
    """The pairs of both systems, of runs that `change` has altered."""
    results = drawn(specs(), lambda spec: {"pps": 10.0 * spec.seed})
    for run in results.runs:
        change(run)
    return Measurements.of(results, label).pairs("pps", {"system": "GA3C"}, {"system": "A3C"})


def calibrated(run, fast_seeds):
    """A3C's run of these seeds came an hour later, on a machine that had become faster."""
    later = run.spec.system == "a3c" and run.spec.seed in fast_seeds
    run.calibrations = [Calibrated(**(FAST if later else SLOW))]
    run.started_s = 3600.0 * later


class Calibrated:
    def __init__(self, **speeds):
        vars(self).update(speeds)


def test_pairs_whose_calibrations_differ_are_left_out():
    pairs = pairs_of(lambda run: calibrated(run, (1,)))
    assert list(pairs.first.index) == list(pairs.second.index) == [2, 3, 4] and not pairs.changed


def test_with_too_few_pairs_left_nothing_is_decided_and_all_are_shown():
    pairs = pairs_of(lambda run: calibrated(run, (1, 2)))
    assert list(pairs.first.index) == [1, 2, 3, 4] and pairs.changed
    guard = speed_changed(pairs)
    assert guard.stops(Verdict(HOLDS)) and guard.stops(Verdict(INCONCLUSIVE, FEW_SEEDS))
    assert not guard.stops(Verdict(INCONCLUSIVE, NO_DIFFERENCE))


def test_runs_that_begin_within_a_minute_are_alike_and_those_of_two_machines_are_not():
    pairs = pairs_of(lambda run: vars(run).update(calibrations=[], machine=f"machine {run.spec.system}"))
    assert pairs.changed
    runs = table().runs[:2]
    for run, speed in zip(runs, (SLOW, FAST), strict=True):
        run.calibrations = [Calibrated(**speed)]
    assert measured_alike(runs)  # at the same time: the calibrations measured each other
    runs[1].started_s = 61.0
    assert not measured_alike(runs)


def test_runs_that_have_not_ended_and_seeds_of_several_machines_are_reasons():
    assert not table().missing.applies and not table().several_machines.applies
    assert table(ended=False).missing == (RUNS_MISSING, True, ())
    moved = table()
    moved.runs[0].machine = "another"
    assert moved.several_machines == (SEVERAL_MACHINES, True, ())


def test_a_run_that_diverged_scores_as_the_random_policy():
    """In all metrics of the others that are scores."""
    results = drawn(specs(1), lambda spec: {"last": 3.0, "best": 5.0} if spec.system == "ga3c" else {})
    vars(results.runs[1]).update(finished=False, diverged=True, random_score=-20.0)
    scores = Measurements.of(results, label)
    assert scores.numbers("last") == [3.0, -20.0] and scores.numbers("best") == [5.0, -20.0]


def test_runs_that_are_not_recorded_yet_are_missing():
    """Another command has made them, and will record them."""
    assert table(lambda spec: {"pps": 1.0} if spec.seed < 4 else {}).missing.applies


def test_a_table_has_a_row_for_each_part_of_which_a_run_has_begun():
    shown = Table(("game", "system"), {"PPS": mean_of("pps")}, where={"seed": (1, 2, 3)})
    assert shown.header == ["game", "system", "PPS", "not finished", "seeds"]
    assert shown.rows(table())[0] == ["Pong", "GA3C", "20 [-4.84, 44.8]", "", "3"]
    assert shown.rows(table(result={})) == []


def test_a_table_counts_seeds_and_has_no_mean_of_the_times_of_the_fastest_runs():
    whole = table(lambda spec: {"s": 2.0})
    shown = Table(("game",), {"PPS": mean_of("s", system="GA3C"), "time": time_of("s")})
    assert shown.rows(whole) == [["Pong", "2 [2, 2]", "2 [2, 2]", "", "4"]]  # of 8 runs
    some = table(lambda spec: {"s": 2.0} if spec.seed > 1 else {})
    assert shown.rows(some) == [["Pong", "2 [2, 2] (3 seeds)", "-", "", "4"]]


@pytest.mark.parametrize("name", FIGURES)
def test_dimensions_and_seed_tell_all_planned_runs_of_a_figure_apart(name):
    figure = FIGURES[name]
    for budget in figure.games:
        results = drawn(figure.all_specs(budget), lambda spec: {})
        facts = [tuple(row.facts.items()) for row in figure.table(results).rows]
        assert len(set(facts)) == len(facts), budget


@pytest.mark.parametrize("words", [{}, {**registry.all_words(), "new": {}}])
def test_figures_and_words_that_do_not_belong_together_are_refused_by_the_name_of_the_file(
    monkeypatch, words
):
    monkeypatch.setattr(registry, "all_words", lambda: words)
    with pytest.raises(UserError, match=r"figures\.toml .* is in one of them only"):
        registry._figures()
