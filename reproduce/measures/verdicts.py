"""Verdicts as data, and the rules that give them; pages/templates/rules.md states the rules for readers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS, NOTHING, Effect, equality

HOLDS = "supported"
FAILS = "not supported"
ALIKE = "no difference"
"""Kind of a verdict that two groups differ by less than a margin."""
INCONCLUSIVE = "undecided"
OBSERVED = "observation"
"""Kind of a verdict that a review has taken back: its numbers stand, and its rule does not decide."""
DECIDED = (HOLDS, FAILS, ALIKE)
LEVEL = 0.05
POCOCK = {1: LEVEL, 2: 0.0294}
"""Level of each look at growing data, by the planned number of looks: 5 % together (Pocock 1977)."""
MARGIN = 0.05
"""Relative difference of speeds up to which they count as equal. The value is a choice."""
WIDE_MARGIN = 0.1
"""The same for scores, and how the effects of more workers differ between games. The value is a choice."""
FEW_SEEDS = f"fewer than {LEAST_SEEDS} seeds"
NO_DIFFERENCE = "not significant"
RUNS_MISSING = "runs missing"
SEVERAL_MACHINES = "several machines"
NEEDS_GPU = "needs a GPU"
FEW_AGENTS = "A3C has fewer agents than cores"
BUSY_MACHINE = "other processes used the machine"
SPEED_CHANGED = "the machine's speed changed"
FEW_PERIODS = "too short for the search"
NOT_TRIED = "not tried"
TOO_SHORT = "too short to learn"
SCORED_NOTHING = "a run scored nothing"
UNPLANNED_LOOK = "not a planned number of seeds"
PLAIN = "{claim}: {effect} {interval}"
"""What the runs found of a claim without words of its own."""
FAVOR = (FAILS, FEW_SEEDS, RUNS_MISSING, ALIKE, NO_DIFFERENCE, HOLDS)
"""Reasons and kinds of verdicts, the least favorable one first."""


@dataclass(frozen=True)
class Verdict:
    """What the runs say about a claim."""

    kind: str  # `HOLDS`, `FAILS`, `ALIKE`, `INCONCLUSIVE` or `OBSERVED`
    reason: str = ""  # why nothing is decided; empty if something is
    estimate: Effect = NOTHING  # the numbers that decide
    # p value of the estimate, corrected for all claims of the family; not-a-number if an interval decides
    p: float = math.nan
    margin: float = 0.0  # relative difference that counts as none, of the kind `ALIKE`

    @property
    def decided(self) -> bool:
        """Whether the runs decide the claim."""
        return self.kind in DECIDED

    @property
    def word(self) -> str:
        """The verdict in words, without its reason."""
        return f"{ALIKE} larger than {self.margin:.0%}" if self.kind == ALIKE else self.kind

    @property
    def verdict(self) -> str:
        """The verdict in words, with its reason."""
        return f"{self.word}: {self.reason}" if self.reason else self.word


class Test(NamedTuple):
    """A test of a claim. The p values of all tests of a family are corrected together."""

    p_values: Sequence[float]  # not-a-number for one that is unknown, which counts too
    judged: Callable[[Sequence[float]], Verdict]  # returns the verdict by the corrected p values


def above(
    estimate: Effect, below: bool = False, like: Effect | None = None, margin: float = WIDE_MARGIN
) -> Test:
    """Test whether an effect is above its limit.

    Args:
        estimate: the effect.
        below: whether the claim is that it is below its limit.
        like: the same effect as a ratio, if a difference smaller than `margin` is a verdict too.
        margin: relative difference that counts as none.
    """

    def decided(corrected: Sequence[float]) -> Verdict:
        if estimate.n >= LEAST_SEEDS and corrected[0] < LEVEL:
            return Verdict(_side(estimate, below), "", estimate, corrected[0])
        if like and corrected[1] < LEVEL:
            return Verdict(ALIKE, "", like, corrected[1], margin=margin)
        return Verdict(INCONCLUSIVE, _reason(estimate), estimate, corrected[0])

    return Test([estimate.p, *([equality(like, math.log(1 + margin))] if like else [])], decided)


def differs(estimate: Effect) -> Test:
    """Test whether an effect differs from its limit, on either side."""
    return above(estimate, below=estimate.effect < estimate.limit)


def between(estimate: Effect) -> Test:
    """Test whether an interval, whose confidence the figure has chosen, is above a limit; its error counts as
    one of the family's p values.
    """

    def decided(corrected: Sequence[float]) -> Verdict:
        outside = estimate.low > estimate.limit or estimate.high < estimate.limit
        if estimate.n >= LEAST_SEEDS and outside:
            return Verdict(_side(estimate, False), "", estimate)
        return Verdict(INCONCLUSIVE, _reason(estimate), estimate)

    return Test([math.nan], decided)


def settled(kind: str, estimate: Effect) -> Test:
    """Give a verdict without a test, such as on runs that failed."""
    return Test([], lambda corrected: Verdict(kind, "", estimate))


def all_of(tests: Sequence[Test], below: bool = False) -> Test:
    """Test whether all of these tests, of effects above or `below` a limit, hold. The worst decides: of
    equal verdicts, that whose interval is lowest (`below`: highest).
    """

    def order(verdict: Verdict) -> tuple[int, float]:
        estimate = verdict.estimate
        return FAVOR.index(verdict.reason or verdict.kind), -estimate.high if below else estimate.low

    def decided(corrected: Sequence[float]) -> Verdict:
        nothing = Verdict(INCONCLUSIVE, RUNS_MISSING)
        return min(_all_judged(tests, corrected), key=order, default=nothing)

    return Test([p for test in tests for p in test.p_values], decided)


def all_above(estimates: Sequence[Effect], margin: float = 0.0) -> Test:
    """Test whether all effects are above their limits; a difference below `margin` is a verdict too."""
    likes = [estimate if margin else None for estimate in estimates]
    pairs = zip(estimates, likes, strict=True)
    return all_of([above(estimate, like=like, margin=margin) for estimate, like in pairs])


def _all_judged(tests: Sequence[Test], corrected: Sequence[float]) -> list[Verdict]:
    """Return the verdict of each test by its share of the corrected p values."""
    values = iter(corrected)
    return [test.judged([next(values) for _ in test.p_values]) for test in tests]


class Guard(NamedTuple):
    """A reason to decide nothing, whether it applies, and what it takes the place of: kinds of verdicts and
    other reasons, or everything if there are none.
    """

    reason: str
    applies: bool
    kinds: tuple[str, ...] = ()

    def stops(self, verdict: Verdict) -> bool:
        """Return whether it takes back this verdict."""
        return self.applies and (not self.kinds or verdict.kind in self.kinds or verdict.reason in self.kinds)


@dataclass(frozen=True)
class Claim:
    """A claim that the runs of a figure are to decide, and the verdict."""

    key: str  # name of the claim, unique in its figure and game
    text: str  # the claim, as the pages state it
    test: Test  # its test
    guards: Sequence[Guard] = ()  # reasons to decide nothing; the first that applies counts
    rule: str = ""  # how the claim is judged, in a few words; empty if the text says enough
    is_question: bool = False  # whether the claim is a question of our own in a figure of the paper
    game: str = ""  # the only game that the claim is about; empty if it is about all games of the figure
    shown: bool = True  # whether it is among the claims of the figure, or only counts in the family
    found: str = PLAIN  # what the runs found, with words in braces, see figures.toml
    words: Mapping[str, Any] = field(default_factory=dict)  # further words in braces
    # the verdict, from `judged`
    finding: Verdict = field(default=Verdict(INCONCLUSIVE, RUNS_MISSING), compare=False)

    @property
    def stated(self) -> str:
        """The text, with a note if the claim is not the paper's."""
        return f"{self.text} (not a claim of the paper)" if self.is_question else self.text

    def as_found(self, verdict: Verdict) -> Claim:
        """Return the claim with a verdict, unless a guard takes it back."""
        reasons = [guard.reason for guard in self.guards if guard.stops(verdict)]
        if reasons:
            verdict = replace(verdict, kind=INCONCLUSIVE, reason=reasons[0])
        return replace(self, finding=verdict)


def judged(claims: Sequence[Claim], looks: int = 1) -> list[Claim]:
    """Return the shown claims of one family with their verdicts, whose p values are corrected by Holm's
    method.

    Args:
        claims: the claims.
        looks: planned number of looks at the family, as more seeds come in.
    """
    scale = LEVEL / POCOCK[looks]
    corrected = [min(scale * p, 1.0) for p in holm([p for claim in claims for p in claim.test.p_values])]
    verdicts = _all_judged([claim.test for claim in claims], corrected)
    decided = [claim.as_found(verdict) for claim, verdict in zip(claims, verdicts, strict=True)]
    return [claim for claim in decided if claim.shown]


def observed(claims: Sequence[Claim], reasons: Mapping[str, str]) -> list[Claim]:
    """Return the claims, of which those with a reason by their key are observations: a review has rejected
    their tests.
    """
    return [
        replace(claim, finding=replace(claim.finding, kind=OBSERVED, reason=reasons[claim.key]))
        if claim.key in reasons and claim.finding.decided
        else claim
        for claim in claims
    ]


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p values for multiple comparisons by Holm's method; not-a-number stays not-a-number.

    Unknown p values count too, so that a verdict does not change because other runs are added.
    """
    measured = [place for place, p in enumerate(p_values) if not math.isnan(p)]
    corrected = [math.nan] * len(p_values)
    largest = 0.0
    for rank, place in enumerate(sorted(measured, key=p_values.__getitem__)):
        largest = max(largest, min(1.0, p_values[place] * (len(p_values) - rank)))
        corrected[place] = largest
    return corrected


def _side(estimate: Effect, below: bool) -> str:
    """Return the verdict on an effect that is on one side of its limit for sure."""
    return HOLDS if (estimate.effect > estimate.limit) != below else FAILS


def _reason(estimate: Effect) -> str:
    if not estimate.n:
        return RUNS_MISSING
    return FEW_SEEDS if estimate.n < LEAST_SEEDS else NO_DIFFERENCE
