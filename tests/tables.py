"""Tables of numbers on the pages of docs/, and the places in a record that these numbers are from.

A comment before a table names the record. Each further line of it is an option, or translates a word of the
table:

    <!-- numbers: FILE#SECTION
    rows: {HEADING} & KEY={HEADING}
    columns: score_at_{}_million_steps
    in: WORD & WORD
    LABEL = WORD & WORD or OTHER WORD
    -->

A record is a CSV, a JSON, or the tables of a section of a page. Each number in it has words: the name of its
column or key and those that lead there, `table 1` in the first table of a section, and each text beside it.
Texts and numbers beside it are also words with the name of their column, as `seed=1`. A cell of the table
must show the numbers at the place that has all words of its row and column. It may round them, and leave out
the last of them. If several places have these words, it must show the numbers of all. An empty cell has no
place.

- `rows` gives the words of a row, with the cells of the columns in braces. The default is the cell of the
  first column.
- `columns` gives the words of a column, with its heading at `{}`. The default is the heading itself. If the
  heading is translated, its translation is used instead, which may contain cells of the row, as in `learning
  rate={best rate}`.
- `in` has words that all places must have.
- `show: median` says that a cell shows the median of the numbers at its places.
- `not in the record` names columns that are not checked.
"""

import csv
import json
import lzma
import re
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import median

A_COMMENT = re.compile(r"<!-- numbers: (.*?)((?:\n.*)*?)\s*-->\n(\|.*)\n\|[-| ]+\n((?:\|.*\n)+)")
A_TABLE = re.compile(r"(\|.*)\n\|[-| ]+\n((?:\|.*\n)+)")
A_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.])")
BRACES = re.compile(r"\{(.*?)\}")
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")


@dataclass(frozen=True)
class Table:
    """A table of a page, what its labels are called in its record, and the record's places."""

    name: str
    rows: list[dict[str, str]]
    options: dict[str, str]
    words: dict[str, str]
    places: list[tuple[frozenset[str], tuple[float, ...]]] = field(repr=False)

    @property
    def row_words(self):
        """Return the words of a row, with cells of the row to be filled in."""
        return self.options.get("rows", f"{{{next(iter(self.rows[0]))}}}")

    @property
    def unchecked(self):
        """Name the columns that the record lacks."""
        names = self.options.get("not in the record")
        return names.split(" & ") if names else []

    @property
    def number_columns(self):
        """Name the columns whose numbers are those of the record."""
        labels = re.findall(BRACES, self.row_words)
        return [heading for heading in self.rows[0] if heading not in [*labels, *self.unchecked]]


def tables_of(page):
    """List the tables of a page that name their record."""
    tables = []
    for name, lines, headings, body in A_COMMENT.findall(page.read_text()):
        lines = plain(lines)
        options = dict(re.findall(r"^(rows|columns|in|show|not in the record): (.*)$", lines, re.MULTILINE))
        words = dict(re.findall(r"^(.*) = (.*)$", lines, re.MULTILINE))
        assert len(options) + len(words) == len(lines.split("\n")) - 1, (
            f"{name}: a line is unclear or repeated"
        )
        tables.append(
            Table(name, rows_of(headings, body), options, words, list(places_of(read(page.parent, name))))
        )
    return tables


def rows_of(headings, body):
    """Return the rows of a table as dictionaries."""
    names = cells_of(headings)
    assert len(set(names)) == len(names), f"two columns have the same heading: {headings}"
    return [dict(zip(names, cells_of(row), strict=True)) for row in body.splitlines()]


def cells_of(row):
    """Split a row of a table."""
    return [cell.strip() for cell in plain(row).strip()[1:-1].split("|")]


def plain(value):
    """Return a value as text, with 1280 for 1,280."""
    return THOUSANDS.sub("", str(value))


def section_of(folder, name):
    """Return the text of `file`, or of the section of any level that `file#section` names."""
    file, _, section = name.partition("#")
    content = (folder / file).read_bytes()
    text = (lzma.decompress(content) if file.endswith(".xz") else content).decode()
    if not section:
        return text
    level, rest = re.search(rf"^(##+) {re.escape(section)}\n((?:.*\n)*)", text, re.MULTILINE).groups()
    return re.split(rf"^#{{2,{len(level)}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def read(folder, name):
    """Return a record as lists and dictionaries."""
    text = section_of(folder, name)
    kind = Path(name.partition("#")[0].removesuffix(".xz")).suffix
    if kind == ".csv":
        return list(csv.DictReader(text.splitlines()))
    if kind == ".json":
        return json.loads(text)
    return {f"table {number}": rows_of(*found) for number, found in enumerate(A_TABLE.findall(text), start=1)}


def places_of(record, words=frozenset()):
    """Yield the words and the numbers of each place in a record."""
    if isinstance(record, list):
        for each in record:
            yield from places_of(each, words)
    elif isinstance(record, dict):
        beside = {key: plain(value) for key, value in record.items() if not isinstance(value, (list, dict))}
        words |= {f"{key}={text}" for key, text in beside.items()}
        words |= {text for text in beside.values() if not A_NUMBER.fullmatch(text)}
        for key, value in record.items():
            yield from places_of(value, words | {key})
    elif numbers := A_NUMBER.findall(plain(record)):
        yield words, tuple(float(number) for number in numbers)


def faults(table):
    """List the cells whose numbers are not those that the record has for their row and column."""
    return [
        f"{table.name}: {list(row.values())}: {row[heading]} under {heading}"
        for row in table.rows
        for heading in table.number_columns
        if not agree(A_NUMBER.findall(row[heading]), numbers_for(table, row, heading))
    ]


def numbers_for(table, row, heading):
    """Return what the record has for a row and a column: the numbers of each different place."""
    column = table.words.get(heading) or table.options.get("columns", "{}").replace("{}", heading)
    labels = [table.words.get(word, word) for word in fill(table.row_words, row).split(" & ")]
    asked = " & ".join([*labels, fill(column, row), table.options.get("in", "")]).split(" & ")
    asked = [set(word.split(" or ")) for word in asked if word]
    found = [numbers for words, numbers in table.places if all(words & any_of for any_of in asked)]
    found = list(dict.fromkeys(found))
    if table.options.get("show") == "median":
        return [(median(number for numbers in found for number in numbers),)] if found else []
    return found


def fill(template, row):
    """Replace each name of a column in braces by the cell of that column."""
    return re.sub(BRACES, lambda name: row[name[1]], template)


def agree(shown, found):
    """Say whether the numbers of a cell are those at the places that were found, or both are missing."""
    numbers = (
        found[0][: len(shown)] if len(found) == 1 else [number for numbers in found for number in numbers]
    )
    return bool(shown) == bool(found) and len(shown) == len(numbers) and all(map(is_rounded, shown, numbers))


def is_rounded(shown, number):
    """Say whether a text shows a number, rounded to as many digits as it has."""
    if "e" in shown:
        return float(shown) == number
    half = 0.5 * 10 ** -len(shown.partition(".")[2])
    return abs(float(shown) - number) <= half * (1 + 1e-9)


def with_rows_swapped(table):
    """Yield the table with each two adjacent rows exchanged, except for labels and unchecked columns."""
    for above, (first, second) in enumerate(pairwise(table.rows)):
        rows = list(table.rows)
        rows[above] = first | {heading: second[heading] for heading in table.number_columns}
        rows[above + 1] = second | {heading: first[heading] for heading in table.number_columns}
        yield replace(table, rows=rows)


def with_columns_swapped(table):
    """Yield the table with each two adjacent columns of numbers exchanged, except for their headings."""
    for left, right in pairwise(table.number_columns):
        yield replace(table, rows=[row | {left: row[right], right: row[left]} for row in table.rows])


def numbers_in(table):
    """List the numbers of a table, cell by cell."""
    return [
        list(map(float, A_NUMBER.findall(row[key]))) for row in table.rows for key in table.number_columns
    ]
