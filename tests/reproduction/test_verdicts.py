"""The verdict of each kind of claim, and what takes it back."""

import math

import pytest

from ga3c_tf.reproduce.measures.estimates import Effect
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
    Above,
    AllAbove,
    Between,
    Claim,
    Guard,
    Settled,
    holm,
    judged,
    observed,
)

SURE = Effect(0.0, -0.01, 0.01, 0.9, 5, freedom=4)
"""No effect, of which little is unknown."""


def estimate(effect, p=0.01, n=5, **values):
    return Effect(effect, effect - 0.1, effect + 0.1, p, n, freedom=4, **values)


def verdict(test, *guards, others=(), looks=1):
    claims = [Claim("asked", "it is so", test, guards)]
    claims += [Claim(str(p), "another", Above(estimate(1.0, p))) for p in others]
    return judged(claims, looks)[0].finding


@pytest.mark.parametrize(
    ("test", "kind", "reason"),
    [
        (Above(estimate(1.0)), HOLDS, ""),
        (Above(estimate(-1.0)), FAILS, ""),
        (Above(estimate(-1.0), below=True), HOLDS, ""),
        (Above(estimate(0.5, limit=0.8)), FAILS, ""),
        (Above(estimate(1.0, p=0.06)), INCONCLUSIVE, NO_DIFFERENCE),
        (Above(estimate(1.0, p=math.nan, n=2)), INCONCLUSIVE, FEW_SEEDS),
        (Above(Effect()), INCONCLUSIVE, RUNS_MISSING),
        (Above(estimate(0.0, p=0.9), like=SURE), ALIKE, ""),
        (Above(estimate(0.0, p=0.9), like=estimate(0.0, p=0.9)), INCONCLUSIVE, NO_DIFFERENCE),
        (AllAbove([estimate(1.0), estimate(2.0)]), HOLDS, ""),
        (AllAbove([estimate(1.0), estimate(-2.0)]), FAILS, ""),
        (AllAbove([estimate(1.0), estimate(2.0, p=0.5)]), INCONCLUSIVE, NO_DIFFERENCE),
        (AllAbove([estimate(1.0), SURE], 0.05), ALIKE, ""),
        (AllAbove([]), INCONCLUSIVE, RUNS_MISSING),
        (Between(estimate(0.7, limit=0.5)), HOLDS, ""),
        (Between(estimate(0.7, limit=0.5), below=True), FAILS, ""),
        (Between(estimate(0.55, limit=0.5)), INCONCLUSIVE, NO_DIFFERENCE),
        (Between(Effect(0.7, n=2, limit=0.5)), INCONCLUSIVE, FEW_SEEDS),
        (Settled(FAILS, Effect(note="2 of 5 runs diverged")), FAILS, ""),
    ],
)  # fmt: skip
def test_a_claim_has_the_verdict_of_its_test(test, kind, reason):
    found = verdict(test)
    assert (found.kind, found.reason) == (kind, reason) and found.decided == (not reason)


def test_the_least_favorable_comparison_is_shown():
    assert verdict(AllAbove([estimate(3.0), estimate(1.0), estimate(2.0)])).estimate.effect == 1.0


def test_p_values_of_a_family_are_corrected_by_holms_method():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    unknown = holm([0.01, math.nan])
    assert unknown[0] == 0.02 and math.isnan(unknown[1])  # an unknown p value counts too
    assert verdict(Above(estimate(1.0, 0.03))).kind == HOLDS
    undecided = verdict(Above(estimate(1.0, 0.03)), others=(0.04,))
    assert undecided.reason == NO_DIFFERENCE and undecided.level == LEVEL / 2
    assert verdict(Above(estimate(1.0, 0.03)), others=(0.001,)).kind == HOLDS


def test_a_claim_that_is_not_shown_counts_in_the_family():
    claims = [
        Claim("asked", "", Above(estimate(1.0, 0.03))),
        Claim("hidden", "", Above(estimate(1.0, 0.04)), shown=False),
    ]
    (claim,) = judged(claims)
    assert claim.finding.reason == NO_DIFFERENCE


def test_planned_looks_share_the_error():
    assert verdict(Above(estimate(1.0, 0.028)), looks=2).kind == HOLDS
    assert verdict(Above(estimate(1.0, 0.031)), looks=2).kind == INCONCLUSIVE
    assert POCOCK[1] == LEVEL


def test_the_first_reason_that_applies_counts_and_the_numbers_stay():
    applies = [Guard(RUNS_MISSING, False), Guard(SPEED_CHANGED, True), Guard(FEW_SEEDS, True)]
    found = verdict(Above(estimate(1.0)), *applies)
    assert (found.kind, found.reason, found.estimate.effect) == (INCONCLUSIVE, SPEED_CHANGED, 1.0)
    only_in_favor = Guard(SPEED_CHANGED, True, (HOLDS,))
    assert verdict(Above(estimate(-1.0)), only_in_favor).kind == FAILS
    assert verdict(Above(estimate(1.0)), only_in_favor).kind == INCONCLUSIVE


def test_what_a_review_rejects_is_an_observation():
    claims = judged([Claim(key, "", Above(estimate(1.0))) for key in ("kept", "rejected")])
    kept, rejected = observed(claims, {"rejected": "chosen after the runs"})
    assert kept.finding.kind == HOLDS
    assert (rejected.finding.kind, rejected.finding.reason) == (OBSERVED, "chosen after the runs")
    undecided = judged([Claim("rejected", "", Above(estimate(1.0, 0.5)))])
    assert observed(undecided, {"rejected": "so"})[0].finding.reason == NO_DIFFERENCE
