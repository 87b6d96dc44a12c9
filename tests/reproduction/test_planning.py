"""The number of runs that would decide a finding: how often so many do."""

import math

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from ga3c_tf.reproduce.measures.effects import judged, paired_effect, welch_effect
from ga3c_tf.reproduce.measures.planning import MOST, times_the_runs
from ga3c_tf.reproduce.measures.verdicts import HOLDS, NO_DIFFERENCE


@pytest.mark.parametrize(("effect", "findings"), [(1.0, 1), (1.0, 4), (0.5, 1)])
def test_so_many_seeds_decide_in_four_of_five_repetitions(effect, findings):
    seeds = 5
    times = times_the_runs(effect, 1 / math.sqrt(seeds), seeds - 1, findings)
    more = round(seeds * times)
    rng = np.random.default_rng(1)
    samples = rng.normal(effect, 1.0, size=(4000, more))
    found = ttest_1samp(samples, 0.0, axis=1).pvalue < 0.05 / findings
    assert 0.76 < found.mean() < 0.86


def test_a_smaller_effect_and_more_findings_take_more_runs():
    assert times_the_runs(-1.0, 0.5, 4, 1) == times_the_runs(1.0, 0.5, 4, 1)
    assert times_the_runs(0.5, 0.5, 4, 1) > times_the_runs(1.0, 0.5, 4, 1) > 1
    assert times_the_runs(1.0, 0.5, 4, 7) > times_the_runs(1.0, 0.5, 4, 1)


def test_nothing_is_estimated_of_an_effect_that_is_too_small_or_does_not_vary():
    assert times_the_runs(0.0, 0.5, 4, 1) == times_the_runs(0.01, 1.0, 4, 1) == math.inf
    assert times_the_runs(1.0, 0.0, 4, 1) == times_the_runs(1.0, 0.5, math.nan, 1) == math.inf
    assert times_the_runs(0.3, 1.0, 4, 1) < MOST


def test_a_finding_without_a_significant_difference_says_how_many_runs_decide_it():
    effects = {
        "clear": welch_effect([2.0, 2.1, 1.9], [1.0, 1.1, 0.9]),
        "unclear": welch_effect([2.0, 3.1, 0.9], [1.0, 1.9, 0.2]),
    }
    found = judged(effects)
    assert found["clear"].verdict == HOLDS and found["clear"].times_the_runs is None
    assert found["unclear"].verdict == NO_DIFFERENCE and 1 < found["unclear"].times_the_runs < 10
    same = judged({"same": paired_effect(dict.fromkeys(range(3), 1.0), dict.fromkeys(range(3), 0.0))})["same"]
    assert same.verdict == NO_DIFFERENCE and same.times_the_runs == math.inf
