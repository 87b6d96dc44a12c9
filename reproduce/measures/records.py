"""Numbers as records in CSV files: the paper's in results/paper, ours in measured.csv.xz, in one schema."""

from __future__ import annotations

import csv
import io
import lzma
import re
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
NUMBER = r"\d+(\.\d+)?(e[+-]?\d+)?"
CELLS = {
    "value": (f"(-?{NUMBER})?", "a finite number or empty"),
    "seed": (r"\d+", "a whole number"),
    "agent_steps": (r"\d*", "a whole number or empty"),
    "hours": (f"({NUMBER})?", "a number, not negative, or empty"),
    "dirty": ("(true|false)?", "true, false or empty"),
}
"""Pattern of the cells of a column, and the pattern in words."""
KINDS: dict[str, Callable[[str], Any]] = {
    "value": float,
    "seed": int,
    "agent_steps": int,
    "hours": float,
    "dirty": "true".__eq__,
}
"""What a cell that is not empty is read as; other cells are texts."""


@read_once
def read_records(file: Path) -> list[Record]:
    """Return the paper's records in a CSV file.

    Raises:
        UserError: the file cannot be read, or a line does not fit the schema; the message names file, line
            and fault.
    """
    return [Record(*map(_value, COLUMNS, cells)) for cells in _rows(file, COLUMNS)]


@read_once
def read_measured(file: Path) -> Measured:
    """Return our own records in a compressed CSV file; {} if it does not exist.

    Raises:
        UserError: as for `read_records`.
    """
    parts: dict[Part, list[Record]] = {}
    if file.exists():
        for budget, *cells in _rows(file, (BUDGET, *MEASURED_COLUMNS)):
            record = Record(*map(_value, MEASURED_COLUMNS, cells))
            parts.setdefault((record.table, budget), []).append(record)
    return parts


def _rows(file: Path, columns: Sequence[str]) -> Iterator[list[str]]:
    """Yield the lines of a CSV file after the first, which has the names of these columns."""
    try:
        content = file.read_bytes()
        text = (lzma.decompress(content) if file.suffix == ".xz" else content).decode()
    except (UnicodeDecodeError, lzma.LZMAError):
        raise UserError(f"{file} is not a {'compressed ' * (file.suffix == '.xz')}text file") from None
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        if tuple(next(lines, ())) != tuple(columns):
            raise UserError(f"{file}, line 1: the columns must be {','.join(columns)}")
        for cells in lines:
            _check(cells, columns, f"{file}, line {lines.line_num}")
            yield cells
    except csv.Error as error:
        raise UserError(f"{file}, line {lines.line_num}: {error}") from None


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
    rows = [(budget, record) for (_, budget), records in sorted(measured.items()) for record in records]
    for line, (budget, record) in enumerate(rows, 2):
        cells = [budget, *map(_text, vars(record).values())]
        _check(cells, columns, f"{file}, line {line} to be written")
        writer.writerow(cells)
    try:
        with atomic_write(file, "wb") as compressed:
            compressed.write(lzma.compress(stream.getvalue().encode()))
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror or error}") from None


def _text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(column: str, cell: str) -> Any:
    if cell:
        return KINDS.get(column, str)(cell)
    return "" if column in COLUMNS and column != "value" else None


def _check(cells: Sequence[str], columns: Sequence[str], place: str) -> None:
    """Refuse a line that does not fit the schema.

    Raises:
        UserError: the message begins with the place of the line.
    """
    fault = _fault(cells, columns)
    if fault:
        raise UserError(f"{place}: {fault}")


def _fault(cells: Sequence[str], columns: Sequence[str]) -> str | None:
    if len(cells) != len(columns):
        return f"{len(cells)} cells where there must be {len(columns)}"
    if any("\n" in cell or "\r" in cell or "\0" in cell for cell in cells):
        return "a cell has more than one line"
    row = dict(zip(columns, cells, strict=True))
    for name in REQUIRED:
        if row.get(name) == "":
            return f"{name} is empty"
    for name, (pattern, words) in CELLS.items():
        if name in row and not re.fullmatch(pattern, row[name]):
            return f"{name} is {row[name]!r}; it must be {words}"
    return _unmeasured(row) if "run_id" in row else None


def _unmeasured(row: dict[str, str]) -> str | None:
    """Return how the status of a row of ours contradicts its cells, or None."""
    if (row["status"] == MEASURED) != bool(row["value"]):
        return f"the status is {row['status']!r} and the value {row['value']!r}: one of them is wrong"
    missing = [name for name in ("hours", "agent_steps", "hardware") if not row[name]]
    return f"{missing[0]} of a measured row is empty" if row["value"] and missing else None
