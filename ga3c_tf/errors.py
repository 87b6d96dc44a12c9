"""Errors that the user can correct."""

import difflib


class UserError(ValueError):
    """An error that the user can correct. Its message is one line: what is wrong, and what would be right."""


class BudgetReached(UserError):
    """Raised when a run to be resumed has already reached its budget or target score."""


class DeviceStopped(RuntimeError):
    """One of several devices did not answer in time. The message is one line."""


class Diverged(FloatingPointError):
    """Raised when the training has diverged: too many updates were skipped, or a weight is not finite.

    An environment may raise FloatingPointError for its own reasons, which is an error like any other.
    """


def did_you_mean(name: str, candidates: list[str]) -> str:
    """Return a hint with similar names, such as '; close: a, b', or an empty string if there are none."""
    close = difflib.get_close_matches(name, candidates, n=3, cutoff=0.5)
    return f"; close: {', '.join(close)}" if close else ""
