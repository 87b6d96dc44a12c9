"""Estimates: effects and intervals, what is read off a learning curve, and leaving the random policy."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata, trim_mean, ttest_ind, ttest_rel

from ga3c_tf.reproduce.measures.aggregates import (
    interquartile_mean,
    probability_of_improvement,
)
from ga3c_tf.reproduce.measures.curves import (
    first_reaching,
    mean_score,
    score_at_end,
    score_at_start,
    score_by,
)
from ga3c_tf.reproduce.measures.estimates import (
    Effect,
    equality,
    growth,
    jackknife,
    jackknifed,
    paired,
    paired_ratio,
    pooled,
    signed_rank,
    welch,
)
from ga3c_tf.reproduce.measures.random_policy import (
    RANDOM_POLICY,
    RandomPolicy,
    has_left_random,
    random_policy_of,
)

RNG = np.random.default_rng(0)
FIRST, SECOND = (pd.Series(values) for values in RNG.normal(10, 1, (2, 8)))


def test_pairs_are_compared_by_students_test_of_their_differences():
    estimate, expected = paired(FIRST, SECOND), ttest_rel(FIRST, SECOND)
    interval = expected.confidence_interval()
    assert estimate.p == pytest.approx(expected.pvalue) and estimate.n == 8
    assert (estimate.low, estimate.high) == pytest.approx((interval.low, interval.high))
    assert paired(FIRST, SECOND[SECOND.index < 4]).n == 4  # a key in one group only makes no pair
    ratio = paired_ratio(FIRST, SECOND, 0.9)
    assert ratio.shown[0] == pytest.approx(np.exp(np.log(FIRST / SECOND).mean())) and ratio.shown[3] == 0.9


def test_few_and_equal_differences():
    assert paired(FIRST[:0]).n == 0 and math.isnan(paired(FIRST[:2]).p)
    equal = paired(pd.Series([1.0, 1.0, 1.0, 1.0]))
    assert equal.p == 0.125 and math.isnan(equal.freedom)  # the sign test; Student's t would be too sure
    assert paired(pd.Series([1.0, 1.0, 1.0]), limit=1.0).p == 1.0


def test_groups_are_compared_by_welchs_test():
    estimate, expected = welch(FIRST, SECOND[:5]), ttest_ind(FIRST, SECOND[:5], equal_var=False)
    interval = expected.confidence_interval()
    assert (estimate.p, estimate.n) == (pytest.approx(expected.pvalue), 5)
    assert (estimate.low, estimate.high) == pytest.approx((interval.low, interval.high))
    assert welch(FIRST, []).n == 0 and math.isnan(welch(FIRST[:2], SECOND).p)


def test_conditions_count_alike_and_their_variances_add_up():
    twice = pooled([(FIRST, SECOND), (FIRST, SECOND)])
    once = welch(FIRST, SECOND)
    assert twice.effect == pytest.approx(once.effect)
    assert twice.error == pytest.approx(once.error / math.sqrt(2))


def test_groups_that_do_not_vary_are_permuted():
    assert welch([1.0] * 3, [0.0] * 3).p == 2 / 20
    assert welch([1.0] * 3, [1.0] * 3).p == 1.0
    same = [[1.0] * 3, [0.0] * 3]
    assert pooled([same, same]).p == 2 / 400 and pooled([same, same[::-1]]).p == 1.0


def test_equality_takes_two_one_sided_tests():
    estimate = paired(FIRST, SECOND)
    at_margin = equality(estimate, abs(estimate.effect))
    assert at_margin == pytest.approx(0.5) and equality(estimate, abs(estimate.effect) + 9) < 0.001
    assert math.isnan(equality(Effect(), 1.0))


def test_growth_is_the_slope_of_the_logarithms_of_each_seed():
    places = np.arange(4)
    groups = pd.DataFrame({place: 2.0**place * FIRST for place in places})
    assert growth(groups).shown[0] == pytest.approx(2) and growth(groups).n == 8
    assert growth(groups[[0]]).n == 0
    groups.loc[0, 2] = np.nan
    assert growth(groups).n == 7  # a seed without all groups is left out


def test_the_signed_rank_test_counts_all_flips_of_signs():
    differences = [3.0, -1.0, 2.0, 2.0, 5.0]
    ranks = rankdata(np.abs(differences))
    sums = [np.dot(signs, ranks) for signs in itertools.product((-1, 1), repeat=5)]
    share = np.mean(np.abs(sums) >= abs(np.dot(np.sign(differences), ranks)))
    assert signed_rank(differences).p == pytest.approx(share)
    assert signed_rank([0.0, 0.0]).p == 1.0


def test_the_jackknife_has_the_scatter_of_a_denominator_that_all_seeds_share():
    """As the formula for the error of a ratio of means (Cochran 1977), which pairs would leave out."""
    rng = np.random.default_rng(0)
    gains = rng.normal((5.0, 10.0), (0.1, 1.0), (200, 2))
    values = jackknife(gains, lambda seeds: seeds[:, 0].mean() / seeds[:, 1].mean())
    ratio = gains[:, 0].mean() / gains[:, 1].mean()
    residuals = gains[:, 0] - ratio * gains[:, 1]
    error = residuals.std(ddof=1) / gains[:, 1].mean() / math.sqrt(200)
    assert values.mean() == pytest.approx(ratio, rel=1e-3)
    assert values.std() / math.sqrt(200) == pytest.approx(error, rel=0.01)
    middle, low, high = jackknifed(gains, lambda seeds: seeds[:, 0].mean() / seeds[:, 1].mean())
    assert middle == ratio and high - low == pytest.approx(2 * 1.972 * error, rel=0.01)
    assert jackknife(gains[:1], np.mean).tolist() == [gains[0].mean()]
    assert np.isnan(jackknifed(gains[:1], np.mean)).tolist() == [False, True, True]
    assert jackknife(gains[:0], np.mean).empty and np.isnan(jackknifed(gains[:0], np.mean)).all()


def test_looks_multiply_the_p_value():
    assert paired(FIRST, SECOND).looked(2).p == pytest.approx(2 * paired(FIRST, SECOND).p)
    assert Effect(p=0.7).looked(2).p == 1.0


def test_the_interquartile_mean_is_exact():
    values = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    assert interquartile_mean(values) == pytest.approx((0.75 * 2 + 4 + 0.75 * 8) / 2.5)
    assert interquartile_mean(FIRST) == pytest.approx(trim_mean(FIRST, 0.25))


@pytest.mark.parametrize("values", [[], [math.nan], [1.0, math.nan, 2.0, 3.0]])
def test_without_values_or_with_not_a_number_there_is_no_aggregate(values):
    assert math.isnan(interquartile_mean(values))
    assert probability_of_improvement([[1.0, 2.0], values], [[1.0], [0.0]]).n == 0


def test_the_probability_of_improvement_counts_pairs_of_runs():
    assert probability_of_improvement([[2, 2], [1, 1]], [[1, 1], [1, 1]]).effect == 0.75  # ties count half
    whole = probability_of_improvement([[3, 4, 5]], [[1, 2, 0]])
    assert (whole.effect, whole.low, whole.high, whole.n) == (1.0, 1.0, 1.0, 3)


def curve(scores, steps=None, episodes=None):
    count = len(scores)
    steps = np.arange(1, count + 1) * 100.0 if steps is None else np.array(steps, float)
    return {
        "time_s": steps / 10,
        "agent_steps": steps,
        "episodes": np.full(count, 100.0) if episodes is None else np.array(episodes, float),
        "rolling_score": np.array(scores, float),
    }


def test_where_a_score_is_first_reached():
    rising = curve([0, 3, 1, 5])
    assert first_reaching(rising, 2, "agent_steps", 100) == 200
    assert first_reaching(rising, 4, "time_s", 100) == 40
    assert math.isnan(first_reaching(rising, 6, "agent_steps", 100))
    assert math.isnan(first_reaching(curve([]), 0, "agent_steps", 100))


def test_a_score_of_a_few_lucky_episodes_does_not_count():
    assert first_reaching(curve([9, 1, 5], episodes=[3, 60, 100]), 4, "agent_steps", 100) == 300


def test_the_score_by_a_number_of_steps_or_seconds():
    assert score_by(curve([0, 3, 1, 5]), 250, "agent_steps") == 1
    assert score_by(curve([0, 3, 1, 5]), 40, "time_s") == 5
    assert math.isnan(score_by(curve([0, 3]), 201, "agent_steps"))
    assert math.isnan(score_by(curve([]), 0, "agent_steps"))


def test_the_mean_score_is_the_area_however_the_points_are_spread():
    assert mean_score(curve([0, 10, 10], steps=[0, 100, 400])) == pytest.approx((500 + 3000) / 400)
    assert mean_score(curve([7])) == 7
    assert math.isnan(mean_score(curve([])))


def test_the_mean_score_of_a_part_of_a_run():
    rising = curve([0, 3, 1, 5])
    assert mean_score(rising, low=200, high=300) == 2
    assert mean_score(rising, "time_s", high=20) == 1.5
    assert math.isnan(mean_score(rising, low=1000))


def test_the_scores_at_the_start_and_at_the_end():
    long = curve(range(20), episodes=range(50, 250, 10))
    assert score_at_start(long, 100) == 5 and score_at_end(long) == 18
    assert math.isnan(score_at_start(long, 1000)) and math.isnan(score_at_end(curve([])))


POLICY = RandomPolicy(0.5, 1.0, 1000)


def test_the_random_policy_has_mean_and_deviation_of_its_episodes():
    assert random_policy_of([1.0, 2.0, 3.0]) == RandomPolicy(2.0, 1.0, 3)
    assert random_policy_of([1.0]) == RandomPolicy(1.0, 0.0, 1)


def test_every_seed_must_be_above_the_limit():
    """Of 100 episodes it is 0.5 + 1.645 * sqrt(1 / 100 + 1 / 1000) = 0.673."""
    assert has_left_random([0.68, 0.7, 0.9], 100, POLICY)
    assert not has_left_random([0.66, 5.0, 9.0], 100, POLICY)
    assert not has_left_random([0.68, 0.7, 0.9], 20, POLICY)  # the mean of fewer episodes is less sure


def test_seeds_that_learned_different_amounts_have_left_it():
    """A t interval of these three scores would begin below 0: MinAtar Seaquest, tuned."""
    assert has_left_random([69.3, 96.7, 17.1], 100, RANDOM_POLICY["minatar_seaquest"])


def test_fewer_than_three_seeds_or_an_unknown_policy_close_nothing():
    assert has_left_random([0.1, 0.2], 100, POLICY)
    assert has_left_random([0.1, 0.2, 0.1], 100, None)


@pytest.mark.parametrize("episodes", [30, 100, 1000])
def test_runs_that_play_at_random_seldom_seem_to_have_left_it(episodes):
    """Scores as skewed as MinAtar's: most episodes score nothing."""
    rng = np.random.default_rng(0)

    def mean(count):
        return rng.geometric(0.7, count).mean() - 1

    wrong = [
        has_left_random(
            [mean(100) for _ in range(3)], 100, random_policy_of(rng.geometric(0.7, episodes) - 1.0)
        )
        for _ in range(600)
    ]
    assert np.mean(wrong) < 0.05
