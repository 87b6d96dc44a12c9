"""README.md, CONTRIBUTING.md and docs/: their code runs, and what they name exists."""

import os
import re
import runpy
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from commands import python
from tables import (
    faults,
    numbers_in,
    plain,
    section_of,
    tables_of,
    with_columns_swapped,
    with_rows_swapped,
)

import ga3c_tf
from ga3c_tf.config import FIXED, Config, spelled
from ga3c_tf.config.declaration import GROUPS
from ga3c_tf.config.elsewhere import ELSEWHERE
from ga3c_tf.config.presets import PRESETS
from ga3c_tf.config.rules import unread
from ga3c_tf.runs.csv_rows import (
    ADJUSTMENT_COLUMNS,
    EPISODE_COLUMNS,
    EVENT_COLUMNS,
    METRIC_COLUMNS,
    NODE_COLUMNS,
)

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
OBSERVATIONS = ROOT / "results" / "OBSERVATIONS.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", OBSERVATIONS, *sorted((ROOT / "docs").glob("*.md"))]
COLUMNS = {
    "metrics.csv": METRIC_COLUMNS,
    "episodes.csv": EPISODE_COLUMNS,
    "events.csv": EVENT_COLUMNS,
    "adjustment.csv": ADJUSTMENT_COLUMNS,
    "nodes.csv": NODE_COLUMNS,
}
A_FILE = re.compile(r"(?<![\w./<>-])(?:ga3c_tf|reproduce|tests|docs|results)/[\w./-]*[\w/]")
A_MODULE = re.compile(r"(?<![\w./-])(?:[\w-]+/)*[\w-]+\.py\b")
A_TEST = re.compile(r"`(test_\w+)(\.\.\.)?`")
USERS = {"mine.py"}
"""Files of the reader's own, that a page tells how to write."""

by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


def without_code_blocks(text):
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


def test_the_readme_is_short():
    assert len(README.read_text().split()) <= 1200


def test_the_python_of_the_readme_runs(tmp_path):
    [program] = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    for budget, smaller in (
        ("minutes=2", "steps=2000"),
        ("minutes=3", "steps=4000"),
        ("episodes=20", "episodes=2"),
    ):
        assert program.count(budget) == 1
        program = program.replace(budget, smaller)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    done = python(program, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] in ("0", "1")
    [run] = (tmp_path / "runs").iterdir()
    assert max(int(folder.name) for folder in (run / "checkpoints").iterdir()) >= 4000


@by_page
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code_blocks(page.read_text())):
        file, _, anchor = target.partition("#")
        if re.match(r"https?:", target):
            continue
        assert not file or (page.parent / file).exists(), f"{page.name}: {target}"
        if anchor:
            linked = page.parent / file if file else page
            titles = re.findall(r"^#+ (.*)$", linked.read_text(), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}, (
                target
            )


@by_page
def test_numbers_of_a_table_are_where_the_record_has_them(page):
    """A comment before a table names the record, and what its rows and columns are called there."""
    tables = tables_of(page)
    assert len(tables) == page.read_text().count("<!-- numbers")
    for table in tables:
        assert not faults(table)


@by_page
def test_swapped_rows_or_columns_of_a_table_are_found(page):
    for table in tables_of(page):
        for swapped in (*with_rows_swapped(table), *with_columns_swapped(table)):
            assert numbers_in(swapped) == numbers_in(table) or faults(swapped), swapped.rows


def test_no_number_of_a_table_is_unchecked_except_for_some_columns():
    tables = [table for page in PAGES for table in tables_of(page)]
    assert len(tables) >= 16
    settings = ["rate", "agents", "segment, batch", "optimizer", "clip range", "entropy weight", "pixels"]
    assert [table.unchecked for table in tables if table.unchecked] == [settings, ["14430c6, on / off"]]


def test_a_wrong_number_is_found():
    [table] = [table for table in tables_of(OBSERVATIONS) if "cost in percent" in table.rows[0]]
    first = table.rows[0]
    assert first["cost in percent"] == "0.25"
    for wrong in ("0.26", "-0.25", "0.25 or 0.53", ""):
        rows = [first | {"cost in percent": wrong}, *table.rows[1:]]
        assert len(faults(replace(table, rows=rows))) == 1


@by_page
def test_findings_of_a_table_are_those_of_the_results_page(page):
    """A comment before a table of findings names the page that a line with the cells of each row is from."""
    text = page.read_text()
    tables = re.findall(r"<!-- findings: (\S+) -->\n\|.*\n\|[-|]+\n((?:\|.*\n)+)", text)
    assert len(tables) == text.count("<!-- findings:")
    for file, body in tables:
        lines = plain(section_of(page.parent, file)).splitlines()
        for row in body.splitlines():
            *cells, verdict = [cell.strip() for cell in plain(row).strip("|").split("|")]
            assert any(all(cell in line for cell in (*cells, f"**{verdict}")) for line in lines), (
                f"{row} is not in {file}"
            )


@by_page
def test_every_file_that_is_named_exists(page):
    text = re.sub(r"https?://\S+", "", page.read_text())
    for name in {*A_FILE.findall(text), *A_MODULE.findall(text)} - USERS:
        assert (ROOT / name).exists() or (page.parent / name).exists(), f"{page.name}: {name}"


@by_page
def test_every_module_that_is_named_exists(page):
    for part in re.findall(r"(?<![\w.-])ga3c_tf\.(\w+)", page.read_text()):
        place = ROOT / "ga3c_tf" / part
        assert part in ga3c_tf.__all__ or place.is_dir() or place.with_suffix(".py").exists(), (
            f"{page.name}: {part}"
        )


@by_page
def test_every_test_that_is_named_exists(page):
    functions = set()
    for file in (ROOT / "tests").rglob("test_*.py"):
        functions |= set(re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE))
    for name, rest in A_TEST.findall(page.read_text()):
        found = name in functions or (rest and any(each.startswith(name) for each in functions))
        assert found, f"{page.name}: {name}{rest}"


def test_every_page_is_reachable_from_the_readme():
    reached, waiting = set(), [README]
    while waiting:
        page = waiting.pop()
        if page in reached or page not in {*PAGES}:
            continue
        reached.add(page)
        links = re.findall(r"\]\(([^)\s#]+\.md)", without_code_blocks(page.read_text()))
        waiting += [(page.parent / link).resolve() for link in links]
    assert reached == set(PAGES)


@pytest.mark.parametrize("file", COLUMNS)
def test_every_column_is_described(file):
    [section] = re.findall(
        rf"^## {re.escape(file)}\n(.*?)(?=^## |\Z)", (ROOT / "docs" / "metrics.md").read_text(), re.M | re.S
    )
    described = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert [name for name in described if name in COLUMNS[file]] == list(COLUMNS[file])


def test_the_names_that_other_programs_use_are_those_that_the_command_line_translates():
    text = (ROOT / "docs" / "stable-baselines3.md").read_text()
    head = " | ".join(["| here", *next(iter(ELSEWHERE.values()))])
    [body] = re.findall(rf"^{re.escape(head)} \|\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    rows = [
        [re.findall(r"`([^`]+)`", cell) for cell in line.strip("|\n").split("|")]
        for line in body.splitlines()
    ]
    options = [spelled(setting) if setting != "env_id" else setting for setting in ELSEWHERE]
    assert [option for [option], *_ in rows] == options
    assert [[tuple(names) for names in others] for _, *others in rows] == [
        [*row.values()] for row in ELSEWHERE.values()
    ]


def test_the_reference_of_settings_has_the_values_that_a_training_starts_with():
    text = runpy.run_path(str(ROOT / "docs" / "site_hooks.py"))["_settings"]()
    assert "| `adjustment` | `--adjustment` | `fast` (`Config`: `off`) |" in text
    assert "| `t_max` | `--t-max` | `5` |" in text
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == [group.capitalize() for group in GROUPS]
    rows = {row.split("`")[1]: row for row in text.splitlines() if row.startswith("| `")}
    assert "Only with `--algorithm actor-critic` and `--correction clipped-is`." in rows["importance_clip"]
    assert "Only with `--system ga3c` and `--adjustment fast or paper or nvlabs`." in rows["max_agents"]
    fixed = {name for name, row in rows.items() if "Fixed for a run: " in row}
    assert fixed == set(FIXED) and rows.keys() == Config.__dataclass_fields__.keys()


NO_VALUE = "-"


def value_in(config, name):
    """The value of a setting as the table of presets has it; a dash where not set or nothing reads it."""
    value = getattr(config, name)
    if value is None or unread(config, name):
        return NO_VALUE
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else value


@pytest.mark.parametrize(("page", "is_q_learning"), [("usage.md", False), ("q-learning.md", True)])
def test_the_table_of_presets_has_their_values(page, is_q_learning):
    """If it fails, it shows the rows as they should be."""
    presets = [
        name
        for name, values in PRESETS.items()
        if name != "smoke" and ("algorithm" in values) == is_q_learning
    ]
    configs = [Config.from_preset(name, {}) for name in presets]
    changed = [
        name for name in Config.__dataclass_fields__ if any(name in PRESETS[preset] for preset in presets)
    ]
    expected = [
        f"| `{spelled(name)}` | {' | '.join(value_in(config, name) for config in configs)} |"
        for name in changed
    ]
    head = f"| option | {' | '.join(f'`{name}`' for name in presets)} |"
    rows = (ROOT / "docs" / page).read_text().split(head)[1].split("\n\n")[0].splitlines()[2:]
    if not is_q_learning:  # its last column is that of other programs
        rows = [row[: row.rindex("|", 0, -1) + 1].rstrip() for row in rows]
    assert rows == expected


def test_the_table_beside_stable_baselines3_is_that_of_its_curves():
    command = [sys.executable, "examples/compare_sb3.py", "--table", "docs/data/vectors.csv"]
    table = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert table in (ROOT / "docs" / "stable-baselines3.md").read_text()


@pytest.mark.parametrize(
    "words",
    [
        "compare_sb3_speed.py --table docs/data/sb3-speed.json",
        "compare_sb3.py --scores docs/data/sb3-scores.csv",
    ],
)
def test_the_tables_of_both_programs_with_the_same_settings_are_those_of_the_records(words):
    command = [sys.executable, *f"examples/{words}".split()]
    table = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert table in (ROOT / "docs" / "stable-baselines3.md").read_text()


def test_the_readme_and_the_page_about_clusters_say_the_same():
    for page in (README, ROOT / "docs" / "scaling.md"):
        text = " ".join(page.read_text().split())
        assert re.search(r"(are experimental)[^.]*(never tried over)", text), page.name


def test_the_citation_names_the_version():
    assert f"\nversion: {ga3c_tf.__version__}\n" in (ROOT / "CITATION.cff").read_text()
