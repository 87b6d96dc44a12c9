"""Errors that the user can put right."""

import difflib


class UserError(ValueError):
    """Something the user can put right. Its text is one line: what was wrong, and what would be right."""


class BudgetReached(UserError):
    """A run that is to be resumed has used its budget."""


def did_you_mean(name: str, known: list[str]) -> str:
    """Return a hint such as '; close: a, b', or an empty text."""
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    return f"; close: {', '.join(close)}" if close else ""
