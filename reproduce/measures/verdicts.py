"""Verdicts as data, and the rules that give them; pages/templates/rules.md states the rules for readers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS, NOTHING, Effect, equality

HOLDS = "supported"
FAILS = "not supported"
ALIKE = "no difference"
"""Kind of a verdict that two groups differ by less than a margin."""
INCONCLUSIVE = "undecided"
OBSERVED = "observation"
"""Kind of a verdict that a review has taken back: its numbers stand, and its rule does not decide."""
LEVEL = 0.05
POCOCK = {1: LEVEL, 2: 0.0294, 3: 0.0221}
"""Level of each look at growing data, by the planned number of looks: 5 % together (Pocock 1977)."""
MARGIN = 0.05
"""Relative difference of speeds up to which they count as equal. The value is a choice."""
WIDE_MARGIN = 0.1
"""The same for scores, and how the effects of more workers differ between games. The value is a choice."""
FEW_SEEDS = f"fewer than {LEAST_SEEDS} seeds"
NO_DIFFERENCE = "no significant difference"
RUNS_MISSING = "runs missing"
SEVERAL_MACHINES = "several machines"
NEEDS_GPU = "needs a GPU"
FEW_AGENTS = "A3C has fewer agents than cores"
BUSY_MACHINE = "other processes used the machine"
SPEED_CHANGED = "calibrations differ"
FEW_PERIODS = "too short for the search"
NOT_TRIED = "not tried"
TOO_SHORT = "too short to learn"


@dataclass(frozen=True)
class Verdict:
    """What the runs say about a claim."""

    kind: str  # `HOLDS`, `FAILS`, `ALIKE`, `INCONCLUSIVE` or `OBSERVED`
    reason: str = ""  # why nothing is decided; empty if something is
    estimate: Effect = NOTHING  # the numbers that decide
    # p value of the estimate, corrected for all claims of the family; not-a-number if an interval decides
    p: float = math.nan
    # significance level that Holm's method leaves for a repetition of an undecided test
    level: float = math.nan
    margin: float = 0.0  # relative difference that counts as none, of the kind `ALIKE`
    second: tuple[Effect, float] | None = None  # a further estimate with its p value, if two decide together

    @property
    def decided(self) -> bool:
        """Whether the runs decide the claim."""
        return self.kind in (HOLDS, FAILS, ALIKE)

    @property
    def word(self) -> str:
        """The verdict in words, without its reason."""
        return f"{ALIKE} larger than {self.margin:.0%}" if self.kind == ALIKE else self.kind

    @property
    def verdict(self) -> str:
        """The verdict in words, with its reason."""
        return f"{self.word}: {self.reason}" if self.reason else self.word


class Test(Protocol):
    """A test of a claim. The p values of all tests of a family are corrected together."""

    @property
    def p_values(self) -> Sequence[float]:
        """The p values; not-a-number for one that is unknown, which counts too."""

    def judged(self, corrected: Sequence[float], level: float) -> Verdict:
        """Return the verdict by the corrected p values.

        `level` is the significance level that is left for the tests that are not significant.
        """


class Above(NamedTuple):
    """Whether an effect is above its limit; or below it, if that is what the claim says."""

    estimate: Effect  # the effect
    below: bool = False  # whether the claim is that it is below
    # the same effect as a ratio, if a difference smaller than `margin` is a verdict too
    like: Effect | None = None
    margin: float = WIDE_MARGIN  # relative difference that counts as none

    @property
    def p_values(self) -> list[float]:
        if self.like is None:
            return [self.estimate.p]
        return [self.estimate.p, equality(self.like, math.log(1 + self.margin))]

    def judged(self, corrected: Sequence[float], level: float) -> Verdict:
        estimate = self.estimate
        if estimate.n >= LEAST_SEEDS and corrected[0] < LEVEL:
            return Verdict(_side(estimate, self.below), "", estimate, corrected[0])
        if self.like and corrected[1] < LEVEL:
            return Verdict(ALIKE, "", self.like, corrected[1], margin=self.margin)
        return Verdict(INCONCLUSIVE, _reason(estimate), estimate, corrected[0], level)


class AllAbove(NamedTuple):
    """Whether all effects are above their limits. The least favorable one decides."""

    estimates: Sequence[Effect]  # the effects
    margin: float = 0.0  # relative difference that counts as none, if that is a verdict too; 0 if it is not

    @property
    def _tests(self) -> list[Above]:
        alike = [estimate if self.margin else None for estimate in self.estimates]
        pairs = zip(self.estimates, alike, strict=True)
        return [Above(estimate, like=like, margin=self.margin) for estimate, like in pairs]

    @property
    def p_values(self) -> list[float]:
        return [p for test in self._tests for p in test.p_values]

    def judged(self, corrected: Sequence[float], level: float) -> Verdict:
        of_each = 2 if self.margin else 1
        verdicts = [
            test.judged(corrected[of_each * place :], level) for place, test in enumerate(self._tests)
        ]
        order = (FAILS, FEW_SEEDS, RUNS_MISSING, ALIKE, NO_DIFFERENCE, HOLDS)
        return min(
            verdicts,
            key=lambda verdict: (order.index(verdict.reason or verdict.kind), verdict.estimate.effect),
            default=Verdict(INCONCLUSIVE, RUNS_MISSING),
        )


class Between(NamedTuple):
    """Whether an interval, whose confidence the figure has chosen, is above a limit; or below it."""

    estimate: Effect  # the effect and its interval
    below: bool = False  # whether the claim is that it is below
    # whether the claim takes a part of the error of the family, which the tests of p values share
    counts: bool = False

    @property
    def p_values(self) -> list[float]:
        return [math.nan] if self.counts else []

    def judged(self, corrected: Sequence[float], level: float) -> Verdict:
        estimate = self.estimate
        if estimate.low > estimate.limit or estimate.high < estimate.limit:
            return Verdict(_side(estimate, self.below), "", estimate)
        unknown = math.isnan(estimate.low)
        return Verdict(INCONCLUSIVE, _reason(estimate) if unknown else NO_DIFFERENCE, estimate)


class Settled(NamedTuple):
    """A verdict without a test, such as on runs that failed."""

    kind: str  # the verdict
    estimate: Effect  # its numbers
    counts: bool = True  # whether the p value of the estimate counts in the family

    @property
    def p_values(self) -> list[float]:
        return [self.estimate.p] if self.counts else []

    def judged(self, corrected: Sequence[float], level: float) -> Verdict:
        return Verdict(self.kind, "", self.estimate)


class Guard(NamedTuple):
    """A reason to decide nothing, whether it applies, and the verdicts that it takes back (empty for all)."""

    reason: str
    applies: bool
    kinds: tuple[str, ...] = ()

    def stops(self, verdict: Verdict) -> bool:
        """Return whether it takes back this verdict."""
        return self.applies and (not self.kinds or verdict.kind in self.kinds)


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
    level = POCOCK[looks] / max(1, sum(not p < LEVEL for p in corrected))
    decided = []
    place = 0
    for claim in claims:
        end = place + len(claim.test.p_values)
        decided.append(claim.as_found(claim.test.judged(corrected[place:end], level)))
        place = end
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
