"""Intervals of means."""

import math

import numpy as np
import pytest

from ga3c_tf.trained.intervals import bootstrap_interval, mean_interval


def test_of_few_values_it_is_students_t():
    """The quantile for two degrees of freedom is 4.303."""
    assert mean_interval([1.0, 2.0, 3.0]) == pytest.approx(
        (2 - 4.303 / math.sqrt(3), 2 + 4.303 / math.sqrt(3)), rel=1e-3
    )


def test_of_many_values_it_is_the_bootstrap():
    values = list(range(10))
    assert mean_interval(values) == bootstrap_interval(values)
    assert mean_interval(values[:9]) != bootstrap_interval(values[:9])


def test_of_one_value_there_is_none():
    assert all(math.isnan(end) for end in mean_interval([1.0]))


@pytest.mark.parametrize("count", [2, 3, 5, 9])
def test_it_holds_the_mean_about_as_often_as_it_says(count):
    rng = np.random.default_rng(0)
    ends = [mean_interval(rng.normal(size=count)) for _ in range(2000)]
    assert np.mean([low <= 0 <= high for low, high in ends]) == pytest.approx(0.95, abs=0.015)


def test_the_bootstrap_interval_is_near_the_normal_one_and_repeats():
    scores = np.random.default_rng(5).normal(10, 2, size=400)
    low, high = bootstrap_interval(scores)
    assert (low, high) == bootstrap_interval(scores)
    assert low == pytest.approx(scores.mean() - 1.96 * 0.1, abs=0.03)
    assert high == pytest.approx(scores.mean() + 1.96 * 0.1, abs=0.03)
    assert bootstrap_interval([3.0, 3.0]) == (3.0, 3.0)


def test_the_bootstrap_interval_is_the_same_however_many_resamples_are_held_at_once(monkeypatch):
    scores = np.random.default_rng(5).normal(size=7)
    expected = bootstrap_interval(scores)
    for entries in (1, 50, 10**9):
        monkeypatch.setattr("ga3c_tf.trained.intervals.BOOTSTRAP_ENTRIES", entries)
        assert bootstrap_interval(scores) == expected
