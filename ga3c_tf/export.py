"""Trained agents as files for other programs: the network, and beside it a JSON file that explains it."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ga3c_tf.errors import UserError
from ga3c_tf.files import write_aside

if TYPE_CHECKING:  # TensorFlow takes seconds to start, and bad input is refused without it
    from ga3c_tf.evaluation import TrainedAgent

SUFFIXES = {"onnx": ".onnx", "savedmodel": "-savedmodel", "keras": ".keras"}
"""How the name of a file ends, by format; only that of a SavedModel, which is a folder, may end otherwise."""


def default_file(run: Path, form: str) -> Path:
    """Return where an agent is exported to by default: in the current folder, called as its own folder."""
    return Path(run.resolve().name + SUFFIXES[form])


def metadata_of(file: Path) -> Path:
    """Return the JSON file that explains an exported network: its name with .json behind it."""
    return file.with_name(file.name + ".json")


def check_export(file: Path, form: str) -> None:
    """Refuse what cannot be written.

    Raises:
        UserError: an unknown format, a file of another kind, one that is there already, or a missing package.
    """
    if form not in SUFFIXES:
        raise UserError(f"format is {form!r}; it must be one of {', '.join(SUFFIXES)}")
    if not file.name:
        raise UserError(f"{str(file)!r} is no file to write to; name one")
    if form != "savedmodel" and file.suffix != SUFFIXES[form]:
        raise UserError(f"{file} does not end in {SUFFIXES[form]}, as a file of the format {form} does")
    for each in (file, metadata_of(file)):
        if os.path.lexists(each):
            raise UserError(f"{each} exists; name another file to write to, or remove it")
    if form == "onnx":
        check_packages("--format onnx", ["onnx", "tf2onnx"])


def check_packages(wanted_by: str, packages: Sequence[str]) -> None:
    """Refuse, with a UserError, to go on without packages of the extra `export`."""
    if any(importlib.util.find_spec(package) is None for package in packages):
        raise UserError(f"{wanted_by} needs pip install '.[export]' in a clone")


def export_agent(agent: TrainedAgent, file: Path, form: str, score: dict[str, Any] | None = None) -> dict[str, Any]:
    """Write the network of an agent, and its metadata beside it; return the metadata.

    Args:
        agent: whose.
        file: as `check_export` allows it.
        form: 'onnx', 'savedmodel' or 'keras'.
        score: what `evaluation.summary` says of the agent, where its folder does not say it.

    Raises:
        UserError: as `check_export`, or the network cannot be converted or written.
    """
    check_export(file, form)

    from ga3c_tf.metadata import describe_agent
    from ga3c_tf.model.export import write_network

    metadata = {"format": form, **describe_agent(agent, score)}
    try:
        write_network(agent.model, agent.config.min_policy, file, form, metadata)
        _write_metadata(metadata_of(file), metadata)
    except BaseException:  # a signal, too
        _remove(file)
        raise
    return metadata


def _write_metadata(file: Path, metadata: dict[str, Any]) -> None:
    try:
        write_aside(file, json.dumps(metadata, indent=2) + "\n")
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror}") from None


def _remove(file: Path) -> None:
    """Remove what has been written of an export, so that it can be tried again."""
    with contextlib.suppress(OSError):
        shutil.rmtree(file) if file.is_dir() else file.unlink(missing_ok=True)
