"""Verdicts: one case of each kind of test, and how often chance alone gives one."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from ga3c_tf.reproduce.figures.lag import corrections, lag_boundary
from ga3c_tf.reproduce.figures.throughput.adjustment import opposite
from ga3c_tf.reproduce.measures.aggregates import probability_of_improvement
from ga3c_tf.reproduce.measures.estimates import Effect, growth, paired, paired_ratio, pooled, welch
from ga3c_tf.reproduce.measures.random_policy import RandomPolicy, has_left_random
from ga3c_tf.reproduce.measures.verdicts import (
    ALIKE,
    FAILS,
    FEW_SEEDS,
    HOLDS,
    INCONCLUSIVE,
    LEVEL,
    NO_DIFFERENCE,
    OBSERVED,
    POCOCK,
    RUNS_MISSING,
    SPEED_CHANGED,
    Claim,
    Guard,
    above,
    all_above,
    between,
    holm,
    judged,
    observed,
    settled,
)

SURE = Effect(0.0, -0.01, 0.01, 0.9, 5, freedom=4)
"""No effect, of which little is unknown."""


def estimate(effect, p=0.01, n=5, **values):
    return Effect(effect, effect - 0.1, effect + 0.1, p, n, freedom=4, **values)


def verdict(test, *guards, others=(), looks=1):
    claims = [Claim("asked", "it is so", test, guards)]
    claims += [Claim(str(p), "another", above(estimate(1.0, p))) for p in others]
    return judged(claims, looks)[0].finding


@pytest.mark.parametrize(
    ("test", "kind", "reason"),
    [
        (above(estimate(1.0)), HOLDS, ""),
        (above(estimate(-1.0)), FAILS, ""),
        (above(estimate(-1.0), below=True), HOLDS, ""),
        (above(estimate(0.5, limit=0.8)), FAILS, ""),
        (above(estimate(1.0, p=0.06)), INCONCLUSIVE, NO_DIFFERENCE),
        (above(estimate(1.0, p=math.nan, n=2)), INCONCLUSIVE, FEW_SEEDS),
        (above(Effect()), INCONCLUSIVE, RUNS_MISSING),
        (above(estimate(0.0, p=0.9), like=SURE), ALIKE, ""),
        (above(estimate(0.0, p=0.9), like=estimate(0.0, p=0.9)), INCONCLUSIVE, NO_DIFFERENCE),
        (all_above([estimate(1.0), estimate(2.0)]), HOLDS, ""),
        (all_above([estimate(1.0), estimate(-2.0)]), FAILS, ""),
        (all_above([estimate(1.0), estimate(2.0, p=0.5)]), INCONCLUSIVE, NO_DIFFERENCE),
        (all_above([estimate(1.0), SURE], 0.05), ALIKE, ""),
        (all_above([]), INCONCLUSIVE, RUNS_MISSING),
        (between(estimate(0.7, limit=0.5)), HOLDS, ""),
        (between(estimate(0.3, limit=0.5)), FAILS, ""),
        (between(estimate(0.55, limit=0.5)), INCONCLUSIVE, NO_DIFFERENCE),
        (between(Effect(0.7, n=2, limit=0.5)), INCONCLUSIVE, FEW_SEEDS),
        (between(Effect(0.7, 0.7, 0.7, n=1, limit=0.5)), INCONCLUSIVE, FEW_SEEDS),
        (settled(FAILS, Effect(note="2 of 5 runs diverged")), FAILS, ""),
    ],
)  # fmt: skip
def test_a_claim_has_the_verdict_of_its_test(test, kind, reason):
    found = verdict(test)
    assert (found.kind, found.reason) == (kind, reason) and found.decided == (not reason)


def test_the_least_favorable_comparison_is_shown():
    assert verdict(all_above([estimate(3.0), estimate(1.0), estimate(2.0)])).estimate.effect == 1.0
    wide = Effect(2.0, 0.1, 3.9, 0.04, 5, freedom=4)
    assert verdict(all_above([estimate(1.0, p=0.2), wide])).estimate == wide  # the least certain one


def test_p_values_of_a_family_are_corrected_by_holms_method():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    unknown = holm([0.01, math.nan])
    assert unknown[0] == 0.02 and math.isnan(unknown[1])  # an unknown p value counts too
    assert verdict(above(estimate(1.0, 0.03))).kind == HOLDS
    undecided = verdict(above(estimate(1.0, 0.03)), others=(0.04,))
    assert undecided.reason == NO_DIFFERENCE
    assert verdict(above(estimate(1.0, 0.03)), others=(0.001,)).kind == HOLDS


def test_a_claim_that_is_not_shown_counts_in_the_family():
    claims = [
        Claim("asked", "", above(estimate(1.0, 0.03))),
        Claim("hidden", "", above(estimate(1.0, 0.04)), shown=False),
    ]
    (claim,) = judged(claims)
    assert claim.finding.reason == NO_DIFFERENCE


def test_planned_looks_share_the_error():
    assert verdict(above(estimate(1.0, 0.028)), looks=2).kind == HOLDS
    assert verdict(above(estimate(1.0, 0.031)), looks=2).kind == INCONCLUSIVE
    assert POCOCK[1] == LEVEL


def test_the_first_reason_that_applies_counts_and_the_numbers_stay():
    applies = [Guard(RUNS_MISSING, False), Guard(SPEED_CHANGED, True), Guard(FEW_SEEDS, True)]
    found = verdict(above(estimate(1.0)), *applies)
    assert (found.kind, found.reason, found.estimate.effect) == (INCONCLUSIVE, SPEED_CHANGED, 1.0)
    only_in_favor = Guard(SPEED_CHANGED, True, (HOLDS,))
    assert verdict(above(estimate(-1.0)), only_in_favor).kind == FAILS
    assert verdict(above(estimate(1.0)), only_in_favor).kind == INCONCLUSIVE


def test_what_a_review_rejects_is_an_observation():
    claims = judged([Claim(key, "", above(estimate(1.0))) for key in ("kept", "rejected")])
    kept, rejected = observed(claims, {"rejected": "chosen after the runs"})
    assert kept.finding.kind == HOLDS
    assert (rejected.finding.kind, rejected.finding.reason) == (OBSERVED, "chosen after the runs")
    undecided = judged([Claim("rejected", "", above(estimate(1.0, 0.5)))])
    assert observed(undecided, {"rejected": "so"})[0].finding.reason == NO_DIFFERENCE


REPETITIONS = 400
MOST_WRONG = 0.05 + 2 * math.sqrt(0.05 * 0.95 / REPETITIONS)
"""The share of wrong families a rule with 5 % stays below, but for two standard errors of this simulation."""


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def kinds(*tests, looks=1):
    claims = [Claim(str(place), "", test) for place, test in enumerate(tests)]
    return [claim.finding.kind if claim.finding.decided else "" for claim in judged(claims, looks)]


def share(decided, repetitions=REPETITIONS):
    return np.mean([decided() for _ in range(repetitions)])


def speed_ups(rng, ratio, rise, seeds=5):
    """Five networks' speed-ups of seeds on one machine, which scatter by 10 %: all above 1, and growing."""
    true = ratio * rise ** np.arange(5)
    ratios = pd.DataFrame(true * np.exp(0.1 * rng.normal(size=(seeds, 5))))
    return kinds(all_above([paired_ratio(ratios[place]) for place in ratios]), above(growth(ratios)))


def test_a_family_of_ratios_and_a_trend(rng):
    assert share(lambda: any(speed_ups(rng, 1.0, 1.0))) < MOST_WRONG
    assert share(lambda: speed_ups(rng, 4.0, 1.2) == [HOLDS, HOLDS], 100) > 0.8
    assert share(lambda: speed_ups(rng, 1.4, 1.0)[0] == HOLDS, 100) > 0.8
    assert share(lambda: speed_ups(rng, 1.4, 1.0, seeds=3)[0] == HOLDS, 100) < 0.2  # three seeds are too few


def scores(rng, ratio):
    """Scores of 11 and 11 seeds that scatter by 10 %, compared by their difference and by their ratio."""
    first, second = np.exp(rng.normal(0, 0.1, (2, 11))) * [[ratio], [1.0]]
    like = welch(np.log(first), np.log(second), ratio=True)
    return kinds(above(welch(first, second), like=like))[0]


def test_groups_that_differ_and_groups_that_are_alike(rng):
    assert share(lambda: scores(rng, 1.0) == HOLDS) < MOST_WRONG / 2
    assert share(lambda: scores(rng, 1.1) == ALIKE) < MOST_WRONG  # at the margin
    assert share(lambda: scores(rng, 1.3) == HOLDS, 100) > 0.8


def test_a_margin_below_a_limit(rng):
    """Four games of 3 seeds, of which the first system may be 10 points worse."""

    def decided(difference):
        games = [rng.normal([[difference], [0.0]], 8.0, (2, 3)) for _ in range(4)]
        return kinds(above(pooled([tuple(game) for game in games], -10.0)))[0]

    assert share(lambda: bool(decided(-10.0))) < MOST_WRONG
    assert share(lambda: decided(10.0) == HOLDS, 100) > 0.8


def test_two_planned_looks(rng):
    """After 3 and after 6 seeds, each at Pocock's level, the claim is decided in 5 % of repetitions."""

    def decided():
        values = pd.Series(rng.normal(size=6))
        return any(any(kinds(above(paired(part)), looks=2)) for part in (values[:3], values))

    assert share(decided, 1000) < 0.05 + 2 * math.sqrt(0.05 * 0.95 / 1000)


def test_two_looks_that_were_not_planned(rng):
    """The first was at 5 %, so the second has doubled p values: 5.3 % instead of 7.7 %."""

    def decided():
        values = pd.Series(rng.normal(size=6))
        return any([*kinds(above(paired(values[:3]))), *kinds(above(paired(values).looked(2)))])

    assert share(decided, 1000) < 0.0634 + 2 * math.sqrt(0.06 * 0.94 / 1000)


def games(rng, first, second):
    """Two games' factors of more workers of three kinds, 16 pairs each, which scatter by 6 %."""
    ratios = [
        [pd.Series(factor * np.exp(0.06 * rng.normal(size=16))) for factor in game]
        for game in (first, second)
    ]
    effects = [(paired_ratio(one), paired_ratio(other)) for one, other in zip(*ratios, strict=True)]
    differences = [paired_ratio(one, other) for one, other in zip(*ratios, strict=True)]
    return kinds(opposite(effects, differences))[0]


def test_effects_of_opposite_signs(rng):
    usual = (1.04, 0.9, 1.02)
    alike = [games(rng, usual, usual) for _ in range(300)]
    assert alike.count(HOLDS) <= 22 and alike.count(ALIKE) > 240  # at most 5 % and two standard errors; 80 %
    assert share(lambda: games(rng, usual, (1.04 * 1.1, 0.9, 1.02)) == ALIKE, 100) <= 0.09  # at the margin
    assert share(lambda: games(rng, usual, (1.0, 0.9, 1.02)) == HOLDS, 100) <= 0.09  # no better in any game
    assert share(lambda: games(rng, usual, (1.04, 1.1, 1.02)) == HOLDS, 50) > 0.8


def test_intervals_of_probabilities_and_of_a_share(rng):
    """Equal corrections at three lags with 5 seeds, and a claim at its limit, judged after 5 and 11 seeds."""

    def decided():
        drawn = {name: rng.normal(size=(3, 5)) for name in corrections.CORRECTIONS}
        tests = [
            between(probability_of_improvement(drawn[one], drawn[other], corrections.CONFIDENCE))
            for one, other in corrections.PAIRS
        ]
        lost = pd.Series(rng.normal(corrections.MOST_LOST, 0.25, 11))
        first, second = (paired(part, limit=corrections.MOST_LOST) for part in (lost[:5], lost))
        return any(kinds(*tests, above(first))) or any(kinds(*tests, above(second.looked(2))))

    assert share(decided, 100) <= 0.09  # 5 % and two standard errors


def gains(rng, tolerated, seeds=10):
    """Gains that fall over the logarithm of the lag, by cells that tolerate some lag, and scatter by 10 %."""
    lags = np.array(lag_boundary.LAGS, float)
    cells = []
    for rate, agents in itertools.product(lag_boundary.RATES, lag_boundary.AGENTS):
        fall = (np.log2(np.maximum(lags, 1)) - 5 - math.log2(tolerated(rate, agents))) / 10
        share = np.where(lags > 0, np.clip(0.5 - fall, 0, 1), 1.0)
        cells.append(4 * share + 0.2 * rng.normal(size=(seeds, len(lags))))
    return np.reshape(cells, (1, len(lag_boundary.RATES), len(lag_boundary.AGENTS), seeds, len(lags)))


def shift_of(rng, factor):
    cells = gains(rng, lambda rate, agents: factor if agents == min(lag_boundary.AGENTS) else 1.0)
    return lag_boundary.contrast(cells, compared=1)


def test_the_shift_between_two_curves_of_tolerance(rng):
    assert shift_of(rng, 4.0).effect == pytest.approx(2.0, abs=0.3)
    assert shift_of(rng, 1.0).effect == pytest.approx(0.0, abs=0.3)
    assert share(lambda: any(kinds(above(shift_of(rng, 2.0)))), 20) < 0.2
    assert share(lambda: kinds(above(shift_of(rng, 4.0)))[0] == HOLDS, 10) > 0.8


def test_seeds_that_play_like_the_random_policy_have_seldom_left_it(rng):
    random = RandomPolicy(0.0, 10.0, 1000)
    assert share(lambda: has_left_random(rng.normal(0, 1, 3), 100, random)) < 0.01
    assert has_left_random([5.0, 9.0, 30.0], 100, random)
