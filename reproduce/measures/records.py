"""Numbers as records in CSV files: the paper's in results/paper, ours in measured.csv.xz, in one schema."""

from __future__ import annotations

import csv
import io
import lzma
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ga3c_tf.errors import UserError
from ga3c_tf.files import atomic_write, read_once

MEASURED = "measured"
"""Status of a row of ours that has a value; any other status is the reason why there is no value."""
NOT_RUN = "not run"


@dataclass(frozen=True)
class Record:
    """One number, or the reason why there is none."""

    table: str  # table or figure that the number belongs to, such as 'scores'
    game: str
    method: str
    metric: str
    # the number; None if the paper's cell could not be read, or if our run has no such number
    value: float | None
    unit: str
    protocol: str
    source: str
    # for the paper's records, how the number was read; for ours, `MEASURED`, `NOT_RUN`, or what went
    # wrong
    status: str
    # seed, run_id: seed and id of the run that gave the number; `ga3c-tf unpack` gives its folder. These
    # and the following fields are None in the paper's records
    seed: int | None = None
    run_id: str | None = None
    # commit, dirty: commit of the source that the run used, and whether the source differed from it
    commit: str | None = None
    dirty: bool | None = None
    # hours, agent_steps: hours and agent steps of training. If the number was taken earlier, the agent
    # steps are those of that time
    hours: float | None = None
    agent_steps: int | None = None
    # description of the hardware; throughput is compared only between records with the same description
    hardware: str | None = None


MEASURED_COLUMNS = tuple(field.name for field in fields(Record))
COLUMNS = MEASURED_COLUMNS[:9]
BUDGET = "budget"
"""The column of our own records that is none of the paper's or of a run: the budget of the figure."""
Part = tuple[str, str]
"""Name of a figure, and a budget."""
Measured = Mapping[Part, Sequence[Record]]
"""Our own records."""
REQUIRED = ("budget", "table", "game", "method", "metric", "unit", "source", "status", "run_id")


def _finite(cell: str) -> float:
    number = float(cell)
    if not math.isfinite(number):
        raise ValueError(cell)
    return number


KINDS: dict[str, Callable[[str], Any]] = {
    "value": _finite,
    "seed": int,
    "agent_steps": int,
    "hours": _finite,
    "dirty": {"true": True, "false": False}.__getitem__,
}
"""What a cell that is not empty is read as; other cells are texts."""


@read_once
def read_records(file: Path) -> list[Record]:
    """Return the paper's records in a CSV file.

    Raises:
        UserError: the file cannot be read, or a line does not fit the schema; the message names file, line
            and fault.
    """
    return [Record(*values) for values in _rows(file, COLUMNS)]


def read_paper(folder: Path) -> list[Record]:
    """Return the paper's records from all CSV files in `folder`."""
    return [record for file in sorted(folder.glob("*.csv")) for record in read_records(file)]


@read_once
def read_measured(file: Path) -> Measured:
    """Return our own records in a compressed CSV file; {} if it does not exist.

    Raises:
        UserError: as for `read_records`.
    """
    parts: dict[Part, list[Record]] = {}
    if file.exists():
        for budget, *values in _rows(file, (BUDGET, *MEASURED_COLUMNS)):
            record = Record(*values)
            parts.setdefault((record.table, budget), []).append(record)
    return parts


def _rows(file: Path, columns: Sequence[str]) -> Iterator[list[Any]]:
    """Return the values of the lines of a CSV file after the first, which has the names of these columns."""
    try:
        content = file.read_bytes()
        text = (lzma.decompress(content) if file.suffix == ".xz" else content).decode()
    except (UnicodeDecodeError, lzma.LZMAError):
        raise UserError(f"{file} is not a {'compressed ' * (file.suffix == '.xz')}text file") from None
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    return _parsed(text, columns, str(file))


def _parsed(text: str, columns: Sequence[str], name: str) -> Iterator[list[Any]]:
    """Yield the values of the lines of a text with these columns, which is called so in errors."""
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        if tuple(next(lines, ())) != tuple(columns):
            raise UserError(f"{name}, line 1: the columns must be {','.join(columns)}")
        for cells in lines:
            place = f"{name}, line {lines.line_num}"
            if len(cells) != len(columns):
                raise UserError(f"{place}: {len(cells)} cells where there must be {len(columns)}")
            yield [_value(column, cell, place) for column, cell in zip(columns, cells, strict=True)]
    except csv.Error as error:
        raise UserError(f"{name}, line {lines.line_num}: {error}") from None


def _value(column: str, cell: str, place: str) -> Any:
    if not cell:
        if column in REQUIRED:
            raise UserError(f"{place}: {column} is empty")
        return "" if column in COLUMNS and column != "value" else None
    try:
        return KINDS.get(column, str)(cell)
    except (ValueError, KeyError):
        raise UserError(f"{place}: {column} is {cell!r}") from None


def write_measured(file: Path, measured: Measured) -> None:
    """Write our own records to `file`, which is replaced as a whole. Equal records always give equal bytes.

    Raises:
        UserError: a record does not fit the schema, or the file cannot be written; an earlier file is
            unchanged.
    """
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    columns = (BUDGET, *MEASURED_COLUMNS)
    writer.writerow(columns)
    for (_, budget), records in sorted(measured.items()):
        writer.writerows([budget, *map(_text, vars(record).values())] for record in records)
    for _ in _parsed(stream.getvalue(), columns, f"{file} to be written"):
        pass  # refuses what could not be read again
    try:
        with atomic_write(file, "wb") as compressed:
            compressed.write(lzma.compress(stream.getvalue().encode()))
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror or error}") from None


def _text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
