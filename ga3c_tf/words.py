"""Numbers in messages."""

from __future__ import annotations


def counted(number: float, noun: str) -> str:
    """Return a number with its noun, such as '1 episode', '1,000 episodes' or '1.5 minutes'."""
    text = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{text} {noun}" if number == 1 else f"{text} {noun}s"
