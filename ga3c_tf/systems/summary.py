"""What a training returns when it has ended: why, its counters, and the rates of this session."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ga3c_tf.systems.session import Session


class Totals(NamedTuple):
    """A session's counters at one moment.

    Attributes:
        seconds: seconds of training in this session alone.
    """

    agent_steps: int
    updates: int
    trained_samples: int
    seconds: float

    @classmethod
    def of(cls, session: Session) -> Totals:
        """Return the counters of now."""
        stats = session.stats
        return cls(session.agent_steps, stats.updates, stats.trained_samples, session.seconds)


def summary(
    session: Session, folder: Path, ended: str, before: Totals, at_end: Totals, checkpoint: Path | None
) -> dict[str, Any]:
    """Return the summary of a session that has ended.

    Args:
        session: the session, with its workers ended.
        folder: run folder.
        ended: why, a constant of `runs.outcomes`.
        before: totals when the session began.
        at_end: totals when the workers were told to end; rates are those up to then.
        checkpoint: folder of the last checkpoint, or None.
    """
    stats = session.stats
    return {
        "run": str(folder),
        "ended": ended,
        "agent_steps": session.agent_steps,
        "updates": stats.updates,
        "episodes": stats.episodes,
        "time_s": round(session.time_s, 3),
        "pps": round((at_end.agent_steps - before.agent_steps) / at_end.seconds, 1),
        "tps": round((at_end.updates - before.updates) / at_end.seconds, 1),
        "rolling_score": stats.rolling_score,
        "rolling_episodes": session.config.rolling_episodes,
        "sent_steps": int(session.memory.sent.sum()),
        "trained_steps": stats.trained_samples - before.trained_samples,
        "dropped_steps": session.lag_limit.dropped_steps,
        "replaced_processes": session.lost.count,
        "skipped_updates": stats.skips.count,
        "checkpoint": str(checkpoint),
        "seed": session.config.seed,
    }
