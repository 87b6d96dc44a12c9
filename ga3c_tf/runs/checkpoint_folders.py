"""The names of the folders of a run's checkpoints. Reading their content needs TensorFlow, this does not."""

from __future__ import annotations

from pathlib import Path

FOLDER = "checkpoints"
"""Folder in a run folder with a folder for each checkpoint, named by its agent steps in 12 digits."""
REPLACED = "replaced-"
"""Prefix of the folder of a checkpoint that is being replaced by another one of the same agent steps."""


def checkpoint_name(agent_steps: int) -> str:
    """Return the name of the folder of a checkpoint."""
    return f"{agent_steps:012d}"


def steps_of(name: str) -> int | None:
    """Return the agent steps of the checkpoint in a folder; None if the name is not that of a complete one.

    A kill between two renames leaves the checkpoint that was to be replaced, as 'replaced-<agent steps>'.
    """
    digits = name.removeprefix(REPLACED)
    return int(digits) if digits.isdecimal() else None


def checkpoint_folders(run: Path) -> dict[int, Path]:
    """Return the folders of a run's complete checkpoints by their agent steps, in ascending order.

    Args:
        run: the run folder.
    """
    folders: dict[int, Path] = {}
    # Digits sort before `REPLACED`: a checkpoint takes precedence over the one that it has replaced.
    for path in sorted((run / FOLDER).glob("*")):
        steps = steps_of(path.name)
        if steps is not None and path.is_dir():
            folders.setdefault(steps, path)
    return dict(sorted(folders.items()))
