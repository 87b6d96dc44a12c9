"""The sessions of a run in its meta.json, and the machine and commit of one in words."""

from __future__ import annotations

import json
from pathlib import Path


def read_sessions(path: Path) -> list[dict]:
    """Return the sessions in meta.json; an empty list if it is missing or damaged."""
    try:
        sessions = [dict(session) for session in json.loads((path / "meta.json").read_text())["sessions"]]
        return (
            sessions
            if all(isinstance(session.get("config_digests", []), list) for session in sessions)
            else []
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []


def commit_of(session: dict) -> str:
    """Format a session's commit in meta.json: its first 12 digits and ', changed' for uncommitted changes."""
    return f"{str(session.get('commit') or 'unknown')[:12]}{', changed' if session.get('dirty') else ''}"


def machine_of(session: dict) -> str:
    """Return the machine of a session in meta.json, in words."""
    gpus = ", ".join(session["gpus"]) if "GPU" in session["device"].upper() else "no GPU used"
    return f"{cores_of(session)}, {gpus}"


def cores_of(session: dict) -> str:
    """Return the number of cores and the processor of a session, in words."""
    return f"{session['cores']} core{'' if session['cores'] == 1 else 's'} of {session['cpu']}"
