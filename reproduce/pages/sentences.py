"""A finding as a sentence, made from its verdict and the words of its claim in figures.toml."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS
from ga3c_tf.reproduce.measures.text import counted, number
from ga3c_tf.reproduce.measures.verdicts import OBSERVED, Claim

POINTS = "scored {effect:+} points {interval} compared with"
TIMES = "scored {effect} times as much {interval} as"
SCALES: Mapping[str, Callable[[float], str]] = {
    "": number,
    "+": lambda value: f"{'+' if value > 0 else ''}{number(value)}",
    "%": lambda value: f"{number(100 * value)} %",
    "2^": lambda value: f"{np.exp2(value):.2g}",
    ".2": lambda value: f"{value:.2g}",
}
"""How a number is written, by what follows the colon in its braces: '{effect:2^}'."""


class Number(float):
    """A number that is written on one of `SCALES`."""

    def __format__(self, scale: str) -> str:
        return SCALES[scale](float(self))

    def __str__(self) -> str:
        return format(self)


class Interval(tuple):
    """An interval that is written on one of `SCALES`: '[2.1, 6.7]', or nothing if it is empty."""

    def __format__(self, scale: str) -> str:
        write = SCALES[scale.replace("+", "")]
        return f"[{', '.join(write(end) for end in self)}]" if self else ""

    def __str__(self) -> str:
        return format(self)


def sentence(claim: Claim) -> str:
    """Return what the runs of a figure found, such as 'A quarter of the batch tolerated 3.8 times the lag
    [2.1, 6.7]; predicted 4, tested against 2: **undecided**, not significant (p = 0.13, 10 seeds).'
    """
    return f"{measured(claim)}: {outcome(claim)}."


def measured(claim: Claim) -> str:
    """Return the effect and its interval in the words of the claim, or the claim without runs."""
    text = _found(claim) if claim.finding.estimate.n else claim.text
    return f"{text[:1].upper()}{text[1:]}"


def _found(claim: Claim) -> str:
    estimate = claim.finding.estimate
    effect, low, high, limit = estimate.shown
    certain = estimate.n >= LEAST_SEEDS and low <= high
    numbers = {"effect": Number(effect), "interval": Interval((low, high) if certain else ())}
    words: dict[str, Any] = {
        **numbers,
        "scored": (TIMES if estimate.ratio else POINTS).format(**numbers),
        "limit": Number(limit),
        "claim": claim.text,
        "what": estimate.what,
        "note": estimate.note,
    }
    text = claim.found.format(**{**words, **claim.words})
    return " ".join(text.split()).replace(" ;", ";").replace(" ,", ",")


def outcome(claim: Claim) -> str:
    """Return the verdict, its reason, p value and number of seeds: '**supported** (p = 0.02, 3 seeds)'."""
    finding = claim.finding
    reason = f", {finding.reason}" if finding.reason else ""
    no_p = np.isnan(finding.p) or finding.kind == OBSERVED  # its test counts no more
    p = "" if no_p else f"p = {finding.p:.2g}, "
    return f"**{finding.word}**{reason}" + (f" ({p}{_counted(claim)})" if finding.estimate.n else "")


def cells(claim: Claim) -> list[str]:
    """Return a row of the table of numbers: claim, effect and interval, limit, p, n and verdict."""
    estimate = claim.finding.estimate
    if not estimate.n:
        return [claim.stated, estimate.note or "-", "-", "-", "-", claim.finding.word]
    effect, low, high, limit = estimate.shown
    numbers = f"{number(effect)} {Interval((low, high) if low <= high else ()):}".strip()
    p = "-" if np.isnan(claim.finding.p) else f"{claim.finding.p:.2g}"
    return [claim.stated, numbers, number(limit), p, _counted(claim), claim.finding.word]


def _counted(claim: Claim) -> str:
    """Return what the finding is about, such as '1 seed' or '24 pairs'."""
    estimate = claim.finding.estimate
    return counted(estimate.n, estimate.of)
