"""Reasons why a training ended: values of the field "ended" that `train --json` and `resume --json` print."""

from __future__ import annotations

STEPS = "steps"
MINUTES = "minutes"
EPISODES = "episodes"
TARGET_SCORE = "target_score"
INTERRUPTED = "interrupted"
"""A signal, or the caller, asked the training to end; its progress is saved."""
DIVERGED = "diverged"
"""Losses or weights were not finite; the last checkpoint remains."""
NOT_SAVED = "not saved"
"""The training's progress could not be saved; earlier checkpoints remain."""
BUDGET_REACHED = "budget reached before"
"""The run had already reached its budget or target score when it was to be resumed."""
BAD_INPUT = "bad input"
FAILED = "failed"
"""An internal error, with a traceback."""
