"""Rules of dynamic adjustment (section 4.3): each proposes numbers of workers, and judges them by what was measured.

What is to be maximized are trained samples per second. Updates per second (TPS) measure the same only where every
update has the same number of samples: where a minimum training batch merges segments, fewer and larger updates can
train more.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# The simulations of tests/workers/test_adjustment.py show what these numbers do.
CUT = 0.2  # share of the windows left out at either end: a checkpoint disturbs a window or two
DRIFT = 0.015  # share of the rate by which two periods of one setting differ, 1 standard deviation (Pong, 2 cores)
NOISES = 1.5  # standard errors of the difference that a gain must exceed, at first
CONFIRMED = 1.0  # standard errors that it must exceed in the second period of a trial
CLEAR = 2.0  # times NOISES: a gain so large needs no second period
FRESH_PERIODS = 4  # periods of trials before the accepted setting is measured again
REST_PERIODS = 6  # periods without a trial, once every neighbor of the accepted setting has failed


class WorkerCounts(NamedTuple):
    """How many agents (N_A), predictors (N_P) and trainers (N_T) there are."""

    agents: int
    predictors: int
    trainers: int


class Window(NamedTuple):
    """One part of a period: how many samples were trained on in how many seconds."""

    samples: int
    seconds: float


class Reading(NamedTuple):
    """What the windows of a period say: the rate and its standard error, in samples per second."""

    rate: float
    noise: float


class Decision(NamedTuple):
    """Whether the setting just measured is now the accepted one, and why, in one line."""

    accepted: bool
    why: str


class Move(NamedTuple):
    """A change of one number of a setting (an index into it), up (1) or down (-1)."""

    number: int
    direction: int


MOVES = tuple(itertools.starmap(Move, itertools.product(range(3), (1, -1))))


def read(windows: Sequence[Window]) -> Reading:
    """Return the trimmed mean of the windows' rates, with its standard error (Tukey, McLaughlin 1963).

    Args:
        windows: at least one, of about equal length; of a single one the standard error is not-a-number.
    """
    rates = np.sort([window.samples / window.seconds for window in windows])
    cut = int(CUT * len(rates))
    kept = rates[cut : len(rates) - cut]
    if len(kept) < 2:
        return Reading(float(kept.mean()), math.nan)
    deviation = np.clip(rates, kept[0], kept[-1]).std(ddof=1)
    return Reading(float(kept.mean()), float(deviation * math.sqrt(len(rates)) / len(kept)))


def noise_between(one: Reading, other: Reading) -> float:
    """Return the standard error of the difference of two periods' rates, in samples per second, with their drift."""
    return math.hypot(one.noise, other.noise, DRIFT * one.rate, DRIFT * other.rate)


class Search(ABC):
    """A rule: proposes a setting for each period, is told what was measured under it, and keeps it or does not.

    Args:
        start: the first setting; accepted until another is.
        limits: the most agents, predictors and trainers; there is always at least one of each.
        random: draws the proposals. The same seed and the same measurements give the same proposals.

    Attributes:
        accepted: the best setting so far, by the rule.

    Raises:
        ValueError: the start is beyond the limits.
    """

    def __init__(self, start: WorkerCounts, limits: WorkerCounts, random: np.random.Generator):
        if not all(1 <= number <= limit for number, limit in zip(start, limits, strict=True)):
            raise ValueError(f"the start {tuple(start)} is not between (1, 1, 1) and the limits {tuple(limits)}")
        self.accepted = start
        self._limits = limits
        self._random = random

    @abstractmethod
    def propose(self) -> WorkerCounts:
        """Return the setting of the next period: one to try, or the accepted one where that is to be measured again."""

    @abstractmethod
    def observe(self, windows: Sequence[Window]) -> Decision:
        """Judge the setting last proposed by the windows of its period."""

    def _within(self, numbers: Sequence[int]) -> WorkerCounts:
        return WorkerCounts(*(min(max(1, number), limit) for number, limit in zip(numbers, self._limits, strict=True)))


class PaperSearch(Search):
    """The paper's rule: one of the three numbers by +-1 each period, kept if the rate rises.

    Ours is what it takes to know that the rate rose. A trial is compared with a measurement of the accepted setting
    itself, made anew after `FRESH_PERIODS`, and must be better by more than the noise of both. A gain that is so by
    little was perhaps luck: a second period has to confirm it, and later trials are compared with that one, not with
    the lucky one. Each of the six neighbors is tried once, in random order. When all have failed, the accepted setting
    is only measured for `REST_PERIODS`, and then all are tried again: a later phase of the game may ask for another.
    """

    def __init__(self, start: WorkerCounts, limits: WorkerCounts, random: np.random.Generator):
        super().__init__(start, limits, random)
        self._base: Reading | None = None
        self._base_age = self._rest = 0
        self._trial: Move | None = None
        self._confirming = False
        self._untried: list[Move] = []
        self._shuffle()

    def propose(self) -> WorkerCounts:
        if self._trial is None and self._base and not self._rest and self._base_age < FRESH_PERIODS:
            self._trial = self._next_move()
            if self._trial is None:
                self._rest = REST_PERIODS
        return self.accepted if self._trial is None else self._target(self._trial)

    def observe(self, windows: Sequence[Window]) -> Decision:
        reading = read(windows)
        if self._base is None:
            self._base = reading
            return Decision(True, "first setting")
        if self._trial is None:
            return self._refresh(reading, self._base)
        return self._judge(self._trial, reading, self._base)

    def _refresh(self, reading: Reading, base: Reading) -> Decision:
        self._base = reading
        self._base_age = 0
        why = f"measured again: {reading.rate - base.rate:+.1f}/s"
        if self._rest:
            self._rest -= 1
            why += f"; all neighbors failed, {self._rest} more periods of rest"
            if not self._rest:
                self._resume()
        return Decision(True, why)

    def _judge(self, move: Move, reading: Reading, base: Reading) -> Decision:
        gain = reading.rate - base.rate
        noise = noise_between(reading, base)
        needed = (CONFIRMED if self._confirming else NOISES) * noise
        why = f"{self._words(move)}: {gain:+.1f}/s, needed {needed:.1f}/s: "
        self._base_age += 1
        if not self._confirming and needed < gain <= CLEAR * needed:
            self._confirming = True
            return Decision(False, why + "perhaps luck, measured again")
        self._trial = None
        self._confirming = False
        step = abs(self._target(move)[move.number] - self.accepted[move.number])
        if gain > needed:
            self.accepted = self._target(move)
            self._base = reading
            self._base_age = 0
            self._kept(move, step)
            return Decision(True, why + "kept")
        self._failed(move, step)
        return Decision(False, why + "rejected")

    def _next_move(self) -> Move | None:
        while self._untried:
            move = self._untried.pop()
            if self._target(move) != self.accepted:
                return move
        return None

    def _target(self, move: Move) -> WorkerCounts:
        numbers = list(self.accepted)
        numbers[move.number] += move.direction * self._step(move)
        return self._within(numbers)

    def _words(self, move: Move) -> str:
        before = self.accepted[move.number]
        after = self._target(move)[move.number]
        return f"{WorkerCounts._fields[move.number]} {before} to {after}"

    def _shuffle(self) -> None:
        self._untried = [MOVES[number] for number in self._random.permutation(len(MOVES))]

    def _step(self, move: Move) -> int:
        return 1

    def _kept(self, move: Move, step: int) -> None:
        """Every neighbor is new but the one behind, which comes last."""
        self._shuffle()
        back = Move(move.number, -move.direction)
        self._untried.remove(back)
        self._untried.insert(0, back)

    def _failed(self, move: Move, step: int) -> None:
        """Rule a move out until the next rest."""

    def _resume(self) -> None:
        self._shuffle()


class FastSearch(PaperSearch):
    """The paper's rule with larger first moves, doubling and halving, that shrink to +-1 as they fail.

    Each direction of each number has a step of its own. A kept move is repeated at once with twice the step, and the
    other moves begin again with doubling and halving. A failed one is tried again with half the step, after all the
    others. After a rest all steps are 1, unless the rate of the accepted setting is not what it was when they were
    last large.
    """

    def __init__(self, start: WorkerCounts, limits: WorkerCounts, random: np.random.Generator):
        super().__init__(start, limits, random)
        self._enlarge_steps()

    def _enlarge_steps(self) -> None:
        self._steps = dict.fromkeys(MOVES, max(self._limits))
        self._base_when_large = self._base

    def _step(self, move: Move) -> int:
        number = self.accepted[move.number]
        return min(self._steps[move], number if move.direction > 0 else max(1, number // 2))

    def _kept(self, move: Move, step: int) -> None:
        super()._kept(move, step)
        self._untried.remove(move)
        self._untried.append(move)
        self._enlarge_steps()
        self._steps |= {move: 2 * step, Move(move.number, -move.direction): max(1, step // 2)}

    def _failed(self, move: Move, step: int) -> None:
        if step > 1:
            self._steps[move] = step // 2
            self._untried.insert(0, move)

    def _resume(self) -> None:
        super()._resume()
        self._steps = dict.fromkeys(MOVES, 1)
        before = self._base_when_large
        now = self._base
        if before and now and abs(now.rate - before.rate) > CLEAR * NOISES * noise_between(now, before):
            self._enlarge_steps()


class NvlabsSearch(Search):
    """The authors' rule, with its traits (ThreadDynamicAdjustment.py of NVlabs/GA3C), for comparison.

    All three numbers move at once, each by a random -1, 0 or 1. A setting is kept if its count is no smaller than that
    of the setting tried before it, even where that one was rejected: after a bad period nearly anything is kept. What
    counts are updates over a whole period, not rates: give the thread `Stats.updates` and no warm-up. Not
    reproduced: their first count is of 10 s where a period has 20 s; and there were no limits above.
    """

    def __init__(self, start: WorkerCounts, limits: WorkerCounts, random: np.random.Generator):
        super().__init__(start, limits, random)
        self._tried: WorkerCounts | None = None
        self._last_count: int | None = None

    def propose(self) -> WorkerCounts:
        if self._last_count is not None and self._tried is None:
            self._tried = self._random_walk()
        return self._tried or self.accepted

    def observe(self, windows: Sequence[Window]) -> Decision:
        count = sum(window.samples for window in windows)
        last = self._last_count
        tried = self._tried
        self._tried = None
        self._last_count = count
        if tried is None or last is None:
            return Decision(True, f"count {count}, nothing to compare with")
        if count < last:
            return Decision(False, f"count {count} below the last tried {last}: rejected")
        self.accepted = tried
        return Decision(True, f"count {count} not below the last tried {last}: kept")

    def _random_walk(self) -> WorkerCounts | None:
        """One of the changed settings, as likely as if unchanged ones were drawn again; None where there is none."""
        walks = [
            self._within([number + change for number, change in zip(self.accepted, changes, strict=True)])
            for changes in itertools.product((-1, 0, 1), repeat=3)
        ]
        changed = [setting for setting in walks if setting != self.accepted]
        return changed[self._random.integers(len(changed))] if changed else None


SEARCHES: dict[str, type[Search]] = {"paper": PaperSearch, "fast": FastSearch, "nvlabs": NvlabsSearch}
