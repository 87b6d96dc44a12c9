"""Numbers as records in CSV files: the paper's in results/paper, ours in results/measured, in one schema."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ga3c_tf.errors import UserError
from ga3c_tf.files import write_aside

COLUMNS = ("table", "game", "method", "metric", "value", "unit", "protocol", "source", "status")
MEASURED_COLUMNS = (*COLUMNS, "seed", "run_id", "commit", "dirty", "hours", "agent_steps", "hardware")
MEASURED = "measured"
"""Status of a row of ours that has a value; any other status is the reason why there is no value."""
NOT_RUN = "not run"


@dataclass(frozen=True)
class Record:
    """One number, or the reason why there is none.

    Attributes:
        table: table or figure that the number belongs to, such as 'scores'.
        value: the number; None if the paper's cell could not be read, or if our run has no such number.
        status: for the paper's records, how the number was read; for ours, `MEASURED`, `NOT_RUN`, or what
            went wrong.
        seed, run_id: seed and id of the run that gave the number; `ga3c-tf unpack` gives its folder.
            These and the following fields are None in the paper's records.
        commit, dirty: commit of the source that the run used, and whether the source differed from it.
        hours, agent_steps: hours and agent steps of training. If the number was taken earlier, the agent
            steps are those of that time.
        hardware: description of the hardware; throughput is compared only between records with the same
            description.
    """

    table: str
    game: str
    method: str
    metric: str
    value: float | None
    unit: str
    protocol: str
    source: str
    status: str
    seed: int | None = None
    run_id: str | None = None
    commit: str | None = None
    dirty: bool | None = None
    hours: float | None = None
    agent_steps: int | None = None
    hardware: str | None = None


def read_records(file: Path, measured: bool = False) -> list[Record]:
    """Return the records in `file`.

    Args:
        file: CSV file.
        measured: whether the file also has the columns of our own measurements.

    Raises:
        UserError: the file cannot be read, or a line does not fit the schema; the message names file, line
            and fault.
    """
    columns = MEASURED_COLUMNS if measured else COLUMNS
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UserError(f"{file} is not a text file") from None
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    records = []
    try:
        if tuple(next(lines, ())) != columns:
            raise UserError(f"{file}, line 1: the columns must be {','.join(columns)}")
        for cells in lines:
            fault = _fault(cells, measured)
            if fault:
                raise UserError(f"{file}, line {lines.line_num}: {fault}")
            records.append(_record(dict(zip(columns, cells, strict=True))))
    except csv.Error as error:
        raise UserError(f"{file}, line {lines.line_num}: {error}") from None
    return records


def write_records(file: Path, records: Iterable[Record]) -> None:
    """Write our own records to `file`, which is replaced as a whole.

    Raises:
        UserError: a record does not fit the schema, or the file cannot be written; an earlier file is
            unchanged.
    """
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(MEASURED_COLUMNS)
    for number, record in enumerate(records, 2):
        cells = [_text(getattr(record, column)) for column in MEASURED_COLUMNS]
        fault = _fault(cells, measured=True)
        if fault:
            raise UserError(f"{file}, line {number} to be written: {fault}")
        writer.writerow(cells)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_aside(file, stream.getvalue())
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror or error}") from None


def _text(value: str | float | None) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    return str(value)


def _record(row: dict[str, str]) -> Record:
    values: dict = {**row, "value": float(row["value"]) if row["value"] else None}
    for name, kind in (("seed", int), ("agent_steps", int), ("hours", float)):
        if name in row:
            values[name] = kind(row[name]) if row[name] else None
    if "dirty" in row:
        values["dirty"] = {"true": True, "false": False}.get(row["dirty"])
        values["commit"] = row["commit"] or None
        values["hardware"] = row["hardware"] or None
    return Record(**values)


def _fault(cells: list[str], measured: bool) -> str | None:
    """Return what is wrong with the cells of a line, or None."""
    columns = MEASURED_COLUMNS if measured else COLUMNS
    if len(cells) != len(columns):
        return f"{len(cells)} cells where there must be {len(columns)}"
    row = dict(zip(columns, cells, strict=True))
    empty = [
        name for name in ("table", "game", "method", "metric", "unit", "source", "status") if not row[name]
    ]
    if empty:
        return f"{empty[0]} is empty"
    if any("\n" in cell or "\r" in cell or "\0" in cell for cell in cells):
        return "a cell has more than one line"
    if not _is_number(row["value"]):
        return f"value is {row['value']!r}; it must be a finite number or empty"
    if measured:
        return _measured_fault(row)
    return None


def _measured_fault(row: dict[str, str]) -> str | None:
    if not row["run_id"]:
        return "run_id is empty"
    if not row["seed"].isdecimal():
        return f"seed is {row['seed']!r}; it must be a whole number"
    if row["agent_steps"] and not row["agent_steps"].isdecimal():
        return f"agent_steps is {row['agent_steps']!r}; it must be a whole number or empty"
    if not _is_number(row["hours"]) or (row["hours"] and float(row["hours"]) < 0):
        return f"hours is {row['hours']!r}; it must be a number, not negative, or empty"
    if row["dirty"] not in ("true", "false", ""):
        return f"dirty is {row['dirty']!r}; it must be true, false or empty"
    if (row["status"] == MEASURED) != bool(row["value"]):
        return f"the status is {row['status']!r} and the value {row['value']!r}: one of them is wrong"
    missing = [name for name in ("hours", "agent_steps", "hardware") if not row[name]]
    if row["status"] == MEASURED and missing:
        return f"{missing[0]} of a measured row is empty"
    return None


def _is_number(text: str) -> bool:
    try:
        return text == "" or math.isfinite(float(text))
    except ValueError:
        return False
