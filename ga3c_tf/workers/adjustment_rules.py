"""Rules of dynamic adjustment (section 4.3): each proposes numbers of workers and judges them by the measured
speed.

The objective is the number of trained samples per second. Updates per second (TPS) are equivalent only if all
updates have the same number of samples. Where a minimum training batch merges segments, fewer and larger
updates can train on more samples.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# The simulations in tests/workers/test_adjustment.py show the effect of these numbers.
CUT = 0.2  # share of the windows left out at each end, because a checkpoint disturbs one or two windows
DRIFT = 0.015  # standard deviation between periods of one setting, as a share of the rate (Pong, 2 cores)
# Number of standard errors of the difference that a gain must exceed in the first period of a trial.
NOISES = 1.5
CONFIRMED = 1.0  # number of standard errors that the gain must exceed in the second period of a trial
CLEAR = 2.0  # a gain larger than this many times the required gain needs no second period
FRESH_PERIODS = 4  # periods of trials before the accepted setting is measured again
WINDOWS = 10  # into which a period is divided: enough to estimate a standard error and to leave some out
REST_PERIODS = 6  # periods without a trial after every neighbor of the accepted setting has failed


class WorkerCounts(NamedTuple):
    """Numbers of agents (N_A), predictors (N_P) and trainers (N_T)."""

    agents: int
    predictors: int
    trainers: int


class Window(NamedTuple):
    """One part of a period: the number of samples trained on, and the duration in seconds."""

    samples: int
    seconds: float


class Reading(NamedTuple):
    """Measurement of one period: the rate and its standard error, in samples per second."""

    rate: float
    noise: float


class Decision(NamedTuple):
    """Decision on the setting just measured: whether it is now the accepted one, and the reason in a line."""

    accepted: bool
    why: str


class Move(NamedTuple):
    """Change of one number of a setting: the index of the number, and the direction, up (1) or down (-1)."""

    number: int
    direction: int


MOVES = tuple(itertools.starmap(Move, itertools.product(range(3), (1, -1))))


def read(windows: Sequence[Window]) -> Reading:
    """Return the trimmed mean of the windows' rates and its standard error (Tukey, McLaughlin 1963).

    Args:
        windows: at least one window, all of about equal length. With a single one the standard error is
            not-a-number.
    """
    rates = np.sort([window.samples / window.seconds for window in windows])
    cut = int(CUT * len(rates))
    trimmed = rates[cut : len(rates) - cut]
    if len(trimmed) < 2:
        return Reading(float(trimmed.mean()), math.nan)
    deviation = np.clip(rates, trimmed[0], trimmed[-1]).std(ddof=1)
    return Reading(float(trimmed.mean()), float(deviation * math.sqrt(len(rates)) / len(trimmed)))


def noise_between(one: Reading, other: Reading) -> float:
    """Return the standard error of the difference between the rates of two periods, in samples per second.

    It includes the drift of the rate from period to period.
    """
    return math.hypot(one.noise, other.noise, DRIFT * one.rate, DRIFT * other.rate)


class Search(ABC):
    """Base class of the rules: proposes a setting for each period, and accepts or rejects it once it was
    measured.

    Args:
        start: first setting, within the limits; it is accepted until another setting is.
        limits: largest numbers of agents, predictors and trainers; the smallest number of each is 1.
        random: generator of the proposals. The same seed and the same measurements give the same proposals.

    Attributes:
        accepted: best setting so far, according to the rule.
    """

    def __init__(self, start: WorkerCounts, limits: WorkerCounts, random: np.random.Generator):
        self.accepted = start
        self._limits = limits
        self._random = random

    @abstractmethod
    def propose(self) -> WorkerCounts:
        """Return the setting for the next period: one to try, or the accepted one to measure it again."""

    @abstractmethod
    def observe(self, windows: Sequence[Window]) -> Decision:
        """Judge the setting proposed last, given the measured windows of its period."""

    def _within(self, numbers: Sequence[int]) -> WorkerCounts:
        return WorkerCounts(
            *(min(max(1, number), limit) for number, limit in zip(numbers, self._limits, strict=True))
        )


class PaperSearch(Search):
    """The paper's rule: change one of the three numbers by +-1 each period, and keep the change if the rate
    rises.

    This implementation adds a test of whether the rate has risen. A trial is compared with a measurement of
    the accepted setting, which is repeated after `FRESH_PERIODS`. The gain must exceed the noise of both
    measurements. A small gain may be luck, so a second period has to confirm it. Later trials are then
    compared with the second period, not with the lucky first one.

    Each of the six neighbors is tried once, in random order. When all have failed, the accepted setting is
    only measured for `REST_PERIODS`. Then all are tried again, because a later phase of the game may need
    another setting.
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
        """Put all neighbors of the accepted setting back on the list of trials, the previous setting last."""
        self._shuffle()
        back = Move(move.number, -move.direction)
        self._untried.remove(back)
        self._untried.insert(0, back)

    def _failed(self, move: Move, step: int) -> None:
        """Do not try a failed move again until another one is accepted or the next rest ends."""

    def _resume(self) -> None:
        self._shuffle()


class FastSearch(PaperSearch):
    """The paper's rule with larger steps: moves begin with doubling and halving, and shrink to +-1 as they
    fail.

    Each direction of each number has its own step. An accepted move is repeated at once with twice the step,
    its reverse gets half the step, and the other moves begin again with doubling and halving. A failed move
    is tried again with half the step, after all the others. After a rest all steps are 1, unless the rate of
    the accepted setting has clearly changed since the steps were last enlarged.
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
    """The authors' rule with its peculiarities, for comparison (ThreadDynamicAdjustment.py of NVlabs/GA3C).

    All three numbers change at once, each by a random -1, 0 or 1. A setting is kept if its count is not
    smaller than that of the setting tried before it, even if that one was rejected. After a bad period nearly
    any setting is therefore kept. The count is the number of updates in a whole period, not a rate, so
    `DynamicAdjustment` needs `Stats.updates` as `samples`, and no warm-up.

    Two properties are not reproduced: the authors' first count covers 10 s although a period has 20 s, and
    their numbers have no upper limits.
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
        # Of a whole period, of which windows with an evaluation are left out.
        count = round(sum(window.samples for window in windows) * WINDOWS / len(windows))
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
        """Return a random setting that differs from the accepted one, or None if the limits allow no other.

        The distribution is the same as if changes were drawn again until the setting differs.
        """
        walks = [
            self._within([number + change for number, change in zip(self.accepted, changes, strict=True)])
            for changes in itertools.product((-1, 0, 1), repeat=3)
        ]
        changed = [setting for setting in walks if setting != self.accepted]
        return changed[self._random.integers(len(changed))] if changed else None


SEARCHES: dict[str, type[Search]] = {"paper": PaperSearch, "fast": FastSearch, "nvlabs": NvlabsSearch}
