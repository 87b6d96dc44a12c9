"""The number of runs that would decide a finding: how often so many do."""

import math

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from ga3c_tf.reproduce.measures.effects import paired_effect, paired_ratio, welch_effect
from ga3c_tf.reproduce.measures.judging import judged, judged_together, open_level
from ga3c_tf.reproduce.measures.planning import MOST, OpenTest
from ga3c_tf.reproduce.measures.verdicts import HOLDS, NO_DIFFERENCE, Finding


@pytest.mark.parametrize(("effect", "findings"), [(1.0, 1), (1.0, 4), (0.5, 1)])
def test_so_many_seeds_decide_in_four_of_five_repetitions(effect, findings):
    seeds = 5
    times = OpenTest(effect, 1 / math.sqrt(seeds), seeds - 1, 0.05 / findings).times_the_runs()
    more = round(seeds * times)
    rng = np.random.default_rng(1)
    samples = rng.normal(effect, 1.0, size=(4000, more))
    found = ttest_1samp(samples, 0.0, axis=1).pvalue < 0.05 / findings
    assert 0.76 < found.mean() < 0.86


def test_a_smaller_effect_and_more_findings_take_more_runs():
    usual = OpenTest(1.0, 0.5, 4, 0.05)
    assert usual._replace(distance=-1.0).times_the_runs() == usual.times_the_runs() > 1
    assert usual._replace(distance=0.5).times_the_runs() > usual.times_the_runs()
    assert usual._replace(level=0.05 / 7).times_the_runs() > usual.times_the_runs()


def test_nothing_is_estimated_for_an_effect_that_is_too_small_or_does_not_vary():
    usual = OpenTest(0.4, 1.0, 4, 0.05)
    assert 1 < usual.times_the_runs() < MOST
    assert (
        usual._replace(distance=0.0).times_the_runs()
        == usual._replace(distance=0.01).times_the_runs()
        == math.inf
    )
    same = judged({"same": paired_effect(dict.fromkeys(range(5), 1.0), dict.fromkeys(range(5), 0.0))})["same"]
    assert same == Finding(NO_DIFFERENCE, same.because)  # six equal seeds decide it, by their signs


def test_a_finding_without_a_significant_difference_says_how_many_runs_decide_it():
    effects = {
        "clear": welch_effect([2.0, 2.1, 1.9], [1.0, 1.1, 0.9]),
        "unclear": welch_effect([2.0, 3.1, 0.9], [1.0, 1.9, 0.2]),
    }
    found = judged(effects)
    assert found["clear"].verdict == HOLDS and found["clear"].test is None
    assert found["unclear"].verdict == NO_DIFFERENCE and 1 < found["unclear"].test.times_the_runs() < 10
    assert found["unclear"].test.level == 0.05  # Holm's method leaves it, since the other finding is decided


def test_what_must_be_so_everywhere_waits_for_the_comparison_that_is_decided_last():
    ones = dict.fromkeys(range(3), 1.0)
    ratios = dict(enumerate((0.8, 1.0, 1.3)))
    near, far, below = (
        paired_ratio({seed: mean * ratio for seed, ratio in ratios.items()}, ones) for mean in (1.1, 1.2, 0.9)
    )
    chances = {"a": 0.5, "b": 0.5}
    assert judged_together({"a": far, "b": near}, chances, 0.025).test.distance == near.mean
    assert judged_together({"a": near, "b": below}, chances, 0.025).test.distance == below.mean
    assert judged_together({"a": near, "b": near}, dict.fromkeys("ab", 0.01), 0.05).test is None


def test_the_level_is_what_the_decided_findings_leave():
    assert open_level([0.01, 0.2, math.nan]) == 0.025
    assert open_level([0.01, 0.02]) == 0.05
