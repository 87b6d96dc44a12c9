"""Export of trained agents for other programs: the network, and a JSON file beside it that describes it."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ga3c_tf.errors import UserError
from ga3c_tf.files import check_writable, json_text, removed, write_aside

if TYPE_CHECKING:  # TensorFlow takes seconds to start, and bad input is rejected without it
    from ga3c_tf.trained.policies import TrainedAgent

SUFFIXES = {"onnx": ".onnx", "savedmodel": "-savedmodel", "keras": ".keras"}
FORMS = {suffix: form for form, suffix in SUFFIXES.items()}
"""Suffix of the exported file by format. A SavedModel, which is a folder, may have another one."""


def default_file(run: Path, form: str) -> Path:
    """Return the default file of an export: in the current folder, with the name of the agent's folder."""
    return Path(run.resolve().name + SUFFIXES[form])


def form_of(file: Path) -> str:
    """Return the format of a file by its suffix, and SavedModel for a folder, whose name has none.

    Raises:
        UserError: no format has this suffix.
    """
    if file.suffix in FORMS:
        return FORMS[file.suffix]
    if file.suffix:
        raise UserError(f"{file}: no format has the suffix {file.suffix}; it must be .onnx, .keras or none")
    return "savedmodel"


def metadata_of(file: Path) -> Path:
    """Return the JSON file that describes an exported network: its file name with .json appended."""
    return file.with_name(file.name + ".json")


def check_export(file: Path, form: str) -> None:
    """Reject an export that cannot be written.

    Raises:
        UserError: the format is unknown; the file has the wrong suffix, exists, could not be loaded or would
            not be in a folder; or a package is missing.
    """
    if form not in SUFFIXES:
        raise UserError(f"format is {form!r}; it must be one of {', '.join(SUFFIXES)}")
    if not file.name:
        raise UserError(f"{str(file)!r} is no file to write to; name one")
    if form == "savedmodel" and file.suffix in FORMS:
        raise UserError(f"{file} would be a folder, and the format of {file.suffix} is {FORMS[file.suffix]}")
    if form != "savedmodel" and file.suffix != SUFFIXES[form]:
        hint = f"; the format of {file.suffix} is {FORMS[file.suffix]}" if file.suffix in FORMS else ""
        raise UserError(f"{file} does not end in {SUFFIXES[form]}, as a file of the format {form} does{hint}")
    _check_folder(file)
    for path in (file, metadata_of(file)):
        if os.path.lexists(path):
            raise UserError(f"{path} exists; name another file to write to, or remove it")
    if form == "savedmodel" and any(character in str(file.absolute()) for character in "[\\"):
        raise UserError(
            f"cannot write {file}: TensorFlow cannot load a SavedModel whose path has [ or \\; "
            "name another --output"
        )
    if form == "onnx":
        check_packages("--format onnx", ["onnx", "tf2onnx"])


def _check_folder(file: Path) -> None:
    if not file.parent.is_dir():
        raise UserError(f"cannot write {file}: {file.parent} is not a folder")
    try:
        check_writable(file.parent)
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror}") from None


def check_packages(wanted_by: str, packages: Sequence[str]) -> None:
    """Check that packages of the extra `export` are installed.

    Args:
        wanted_by: the option that needs the packages, for the message.
        packages: names of the packages.

    Raises:
        UserError: a package is missing.
    """
    if any(importlib.util.find_spec(package) is None for package in packages):
        raise UserError(f"{wanted_by} needs pip install '.[export]' in a clone")


def export_agent(
    agent: TrainedAgent, file: Path, form: str, score: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Write the network of an agent, and its metadata beside it; return the metadata.

    Args:
        agent: the agent to export.
        file: file to write, as `check_export` allows it.
        form: 'onnx', 'savedmodel' or 'keras'.
        score: summary of an evaluation, from `evaluation.summary`; by default that of the agent's folder, if
            it has one.

    Raises:
        UserError: as for `check_export`, or the network cannot be converted or written.
    """
    check_export(file, form)

    from ga3c_tf.trained.exporting.metadata import describe_agent
    from ga3c_tf.trained.exporting.network_files import write_network

    metadata = {"format": form, **describe_agent(agent, score)}
    try:
        write_network(agent.model, agent.config.min_policy, file, form, metadata)
        _write_metadata(metadata_of(file), metadata)
    except BaseException:  # including those that a signal raises
        removed(file)
        raise
    return metadata


def _write_metadata(file: Path, metadata: dict[str, Any]) -> None:
    try:
        write_aside(file, json_text(metadata, indent=2) + "\n")
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror}") from None
