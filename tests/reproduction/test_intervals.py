"""Intervals of means."""

import math

import numpy as np
import pytest

from ga3c_tf.reproduce.measures.intervals import mean_interval
from ga3c_tf.runs.stats import bootstrap_interval


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
