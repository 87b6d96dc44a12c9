"""Aggregates of runs under several conditions: what they are, and how often chance counts as improvement."""

import math

import numpy as np
import pytest
from scipy.stats import trim_mean

from ga3c_tf.reproduce.figures.lag.corrections import (
    ADDED_SEEDS,
    CLAIM_CONFIDENCE,
    CONFIDENCE,
    CORRECTIONS,
    MOST_LOST,
    PAIRS,
    SECOND_CONFIDENCE,
    SEEDS,
    judged_share,
)
from ga3c_tf.reproduce.measures.aggregates import (
    interquartile_mean,
    probability_of_improvement,
    stratified_interquartile_mean,
)
from ga3c_tf.reproduce.measures.verdicts import NO_DIFFERENCE
from ga3c_tf.trained.intervals import student_interval


def test_the_interquartile_mean_is_that_of_the_middle_half():
    assert interquartile_mean([1, 2, 3, 100]) == 2.5
    rng = np.random.default_rng(0)
    values = rng.normal(size=40)
    assert interquartile_mean(values) == pytest.approx(trim_mean(values, 0.25))
    mean, low, high = stratified_interquartile_mean([values[:20], values[20:]])
    assert (
        mean == pytest.approx((trim_mean(values[:20], 0.25) + trim_mean(values[20:], 0.25)) / 2)
        and low < mean < high
    )
    assert stratified_interquartile_mean([[10] * 5, [0] * 5])[0] == 5  # a condition that fails counts


@pytest.mark.parametrize("values", [[], [math.nan], [1.0, math.nan, 2.0, 3.0]])
def test_what_has_no_values_or_not_a_number_has_no_aggregate(values):
    """The interquartile mean of nothing was 0, and not-a-number counted as a loss."""
    assert math.isnan(interquartile_mean(values))
    assert np.isnan(stratified_interquartile_mean([[1.0, 2.0], values])).all()
    assert np.isnan(probability_of_improvement([[1.0, 2.0], values], [[1.0], [0.0]])).all()
    assert np.isnan(probability_of_improvement([[1.0], [0.0]], [[1.0, 2.0], values])).all()


def test_rliable_leaves_out_whole_values():
    """Its mean is that of `scipy.stats.trim_mean`, as the docstring says."""
    values = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    assert trim_mean(values, 0.25) == pytest.approx((2 + 4 + 8) / 3)
    assert interquartile_mean(values) == pytest.approx((0.75 * 2 + 4 + 0.75 * 8) / 2.5)


def test_the_probability_of_improvement_counts_pairs_of_runs():
    assert probability_of_improvement([[2, 2], [1, 1]], [[1, 1], [1, 1]])[0] == 0.75  # ties count half
    assert probability_of_improvement([[3, 4, 5]], [[1, 2, 0]]) == (1.0, 1.0, 1.0)


def test_one_of_the_seven_findings_of_corrections_is_seldom_wrong():
    """Equal corrections at three lags with 5 seeds, and a claim at its limit, judged after 5 and 11 seeds."""
    rng = np.random.default_rng(0)
    figures = 300
    wrong = 0
    for _ in range(figures):
        scores = {name: rng.normal(size=(3, 5)) for name in CORRECTIONS}
        intervals = [
            probability_of_improvement(scores[ours], scores[others], CONFIDENCE) for ours, others in PAIRS
        ]
        shares = rng.normal(MOST_LOST, 0.25, SEEDS + len(ADDED_SEEDS)).tolist()
        low, high = student_interval(shares[:SEEDS], CLAIM_CONFIDENCE)
        claim = (
            not low <= MOST_LOST <= high or judged_share(shares, SECOND_CONFIDENCE).verdict != NO_DIFFERENCE
        )
        wrong += claim or not all(low <= 0.5 <= high for _, low, high in intervals)
    assert wrong / figures <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / figures)


def test_a_larger_score_is_a_probable_improvement():
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(200):
        ours, others = rng.normal(size=(2, 3, 5))
        found += probability_of_improvement(ours + 2, others, CONFIDENCE)[1] > 0.5
    assert found / 200 > 0.85
