"""The number of runs that would decide a finding: how often so many do."""

import math

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from ga3c_tf.reproduce.measures.effects import judged, paired_effect, welch_effect
from ga3c_tf.reproduce.measures.planning import MOST, OpenTest
from ga3c_tf.reproduce.measures.verdicts import HOLDS, NO_DIFFERENCE


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


def test_nothing_is_estimated_of_an_effect_that_is_too_small_or_does_not_vary():
    usual = OpenTest(1.0, 1.0, 4, 0.05)
    for changed in ({"distance": 0.0}, {"distance": 0.01}, {"error": 0.0}, {"freedom": math.nan}):
        assert usual._replace(**changed).times_the_runs() == math.inf
    assert usual._replace(distance=0.4).times_the_runs() < MOST


def test_a_finding_without_a_significant_difference_says_how_many_runs_decide_it():
    effects = {
        "clear": welch_effect([2.0, 2.1, 1.9], [1.0, 1.1, 0.9]),
        "unclear": welch_effect([2.0, 3.1, 0.9], [1.0, 1.9, 0.2]),
    }
    found = judged(effects)
    assert found["clear"].verdict == HOLDS and found["clear"].test is None
    assert found["unclear"].verdict == NO_DIFFERENCE and 1 < found["unclear"].test.times_the_runs() < 10
    same = judged({"same": paired_effect(dict.fromkeys(range(3), 1.0), dict.fromkeys(range(3), 0.0))})["same"]
    assert same.verdict == NO_DIFFERENCE and same.test.times_the_runs() == math.inf
