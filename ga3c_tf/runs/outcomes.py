"""What a training ends with: the field "ended" of what `train --json` and `resume --json` print."""

from __future__ import annotations

STEPS = "steps"
MINUTES = "minutes"
EPISODES = "episodes"
INTERRUPTED = "interrupted"
"""A signal, or the caller, asked it to end; what it did is saved."""
DIVERGED = "diverged"
"""Losses or weights were not finite; the last checkpoint remains."""
NOT_SAVED = "not saved"
"""What it did cannot be written; what was saved before remains."""
BUDGET_REACHED = "budget reached before"
"""There was nothing left to do when it was resumed."""
BAD_INPUT = "bad input"
FAILED = "failed"
"""A fault of the program, with a traceback."""
