"""Records: what is written is read, and what is wrong is refused with file, line and fault."""

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.measures.records import (
    BUDGET,
    COLUMNS,
    MEASURED,
    MEASURED_COLUMNS,
    NOT_RUN,
    Record,
    read_measured,
    read_records,
    write_measured,
)

RECORD = Record(
    "scores",
    "pong",
    "GA3C",
    "score",
    -20.5,
    "points",
    '30 episodes, "best", sampled',
    "this package",
    MEASURED,
    seed=1,
    run_id="pong-1",
    commit="abc",
    dirty=False,
    hours=0.2,
    agent_steps=1000,
    hardware="2 cores of x, no GPU used",
)
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1)
RECORDS = st.builds(
    Record,
    *[TEXTS] * 4,
    st.floats(allow_nan=False, allow_infinity=False),
    TEXTS,
    TEXTS,
    TEXTS,
    st.just(MEASURED),
    seed=st.integers(0, 2**40),
    run_id=TEXTS,
    commit=st.none() | TEXTS,
    dirty=st.none() | st.booleans(),
    hours=st.floats(0, 1e6),
    agent_steps=st.integers(0, 2**40),
    hardware=TEXTS,
)


@given(st.lists(RECORDS))
def test_what_is_written_is_read(tmp_path_factory, records):
    file = tmp_path_factory.mktemp("records") / "x.csv.xz"
    measured = {}
    for record in records:
        measured.setdefault((record.table, "quick"), []).append(record)
    write_measured(file, measured)
    assert read_measured(file) == measured
    before = file.read_bytes()
    write_measured(file, dict(reversed(measured.items())))
    assert file.read_bytes() == before


def test_a_run_that_was_not_made_has_no_value_and_says_why(tmp_path):
    bare = dataclasses.replace(RECORD, value=None, status=NOT_RUN, commit=None, dirty=None, hours=None)
    bare = dataclasses.replace(bare, agent_steps=None, hardware=None)
    measured = {("scores", "quick"): [RECORD], ("scores", "tuned"): [bare]}
    write_measured(tmp_path / "x.csv.xz", measured)
    assert read_measured(tmp_path / "x.csv.xz") == measured


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"table": ""}, "table is empty"),
        ({"run_id": None}, "run_id is empty"),
        ({"value": None}, "the status is 'measured' and the value ''"),
        ({"status": "failed: x"}, "the status is 'failed: x' and the value '-20.5'"),
        ({"value": float("nan")}, "value is 'nan'; it must be a finite number or empty"),
        ({"seed": -1}, "seed is '-1'"),
        ({"hours": -0.1}, "hours is '-0.1'"),
        ({"hardware": None}, "hardware of a measured row is empty"),
        ({"status": "failed:\nx", "value": None}, "a cell has more than one line"),
    ],
)
def test_a_bad_record_is_not_written(tmp_path, change, fault):
    with pytest.raises(UserError) as caught:
        records = [RECORD, dataclasses.replace(RECORD, **change)]
        write_measured(tmp_path / "x.csv.xz", {("scores", "quick"): records})
    assert "x.csv.xz, line 3 to be written: " in str(caught.value) and fault in str(caught.value)
    assert not (tmp_path / "x.csv.xz").exists()


def file_with(folder: Path, *lines: str, columns=COLUMNS) -> Path:
    file = folder / "x.csv"
    file.write_text("\n".join([",".join(columns), *lines]) + "\n")
    return file


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("scores,pong,human,score,16,points,p,s", "8 cells where there must be 9"),
        ("scores,pong,human,score,sixteen,points,p,s,printed", "value is 'sixteen'"),
        ("scores,,human,score,16,points,p,s,printed", "game is empty"),
        ("scores,pong,human,score,16,points,p,s,", "status is empty"),
        ('scores,pong,human,score,16,points,"p,s,printed', "unexpected end of data"),
    ],
)
def test_a_bad_line_of_the_papers_is_refused(tmp_path, line, fault):
    good = "scores,pong,human,score,16,points,,s,printed"
    with pytest.raises(UserError) as caught:
        read_records(file_with(tmp_path, good, line))
    assert "x.csv, line 3: " in str(caught.value) and fault in str(caught.value)


@pytest.mark.parametrize(
    ("cells", "fault"),
    [
        ("one,run,,true,0.1,5,h", "seed is 'one'"),
        ("1,,,true,0.1,5,h", "run_id is empty"),
        ("1,run,,maybe,0.1,5,h", "dirty is 'maybe'"),
        ("1,run,,true,0.1,5.5,h", "agent_steps is '5.5'"),
        ("1,run,,true,inf,5,h", "hours is 'inf'"),
    ],
)
def test_a_bad_line_of_ours_is_refused(tmp_path, cells, fault):
    line = f"quick,scores,pong,GA3C,score,16,points,p,s,measured,{cells}"
    with pytest.raises(UserError, match="line 2") as caught:
        read_measured(file_with(tmp_path, line, columns=(BUDGET, *MEASURED_COLUMNS)))
    assert fault in str(caught.value)


def test_other_columns_and_no_file_are_refused(tmp_path):
    with pytest.raises(UserError, match="line 1: the columns must be table,game"):
        read_records(file_with(tmp_path, columns=("a", "b")))
    with pytest.raises(UserError, match="cannot read"):
        read_records(tmp_path / "none.csv")
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="not a text file"):
        read_records(tmp_path / "bytes.csv")
    (tmp_path / "damaged.csv.xz").write_bytes(b"not compressed")
    with pytest.raises(UserError, match="not a compressed text file"):
        read_measured(tmp_path / "damaged.csv.xz")
    assert read_measured(tmp_path / "none.csv.xz") == {}
