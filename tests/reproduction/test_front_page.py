"""What the README beside a results folder shows of it."""

import json
import re
import shutil
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.measures.text import TEMPLATES, lines_of
from ga3c_tf.reproduce.pages import front_page
from ga3c_tf.reproduce.pages.report import stale_pages, write_pages
from ga3c_tf.reproduce.results import pretrained
from ga3c_tf.reproduce.results.folder import ResultsFolder

ROOT = Path(__file__).resolve().parents[2]
BEGIN = "<!-- generated from results/ by ga3c-tf report; do not edit -->"


@pytest.fixture
def checkout(tmp_path):
    """A README with the marks, and a results folder in which nothing has been run."""
    (tmp_path / "README.md").write_text(f"before\n{BEGIN}\nold\n{front_page.END}\nafter\n")
    shutil.copytree(ROOT / "results" / "paper", tmp_path / "results" / "paper")
    return tmp_path


def published(checkout, mean, name="pong"):
    folder = checkout / "results" / "weights" / name
    folder.mkdir(parents=True)
    score = {
        "env_id": "ALE/Pong-v5",
        "agent_steps": 11_000_000,
        "mean": mean,
        "interval_95": [18.0, 20.0],
        "episodes": 30,
        "training": {"seed": 1, "minutes": 92.5, "machine": "an abacus"},
    }
    (folder / "score.json").write_text(json.dumps(score))
    (folder / "README.md").write_text("A card.")
    (folder / "curve.svg").write_text("<svg/>")
    (folder / "episode.gif").write_bytes(b"GIF89a")


def test_only_what_is_between_the_marks_is_written(checkout):
    folder = ResultsFolder(checkout / "results")
    write_pages(folder, print)
    text = (checkout / "README.md").read_text()
    assert text.startswith(f"before\n{BEGIN}\n\nThe runs support 0 claims of the paper")
    assert text.endswith(f"\n{front_page.END}\nafter\n")
    assert "\nold\n" not in text and "(results/README.md)" in text
    assert stale_pages(folder) == [] and "Trained agents" not in text
    write_pages(folder, print)
    assert (checkout / "README.md").read_text() == text


def test_published_weights_stand_beside_the_papers_score(checkout):
    folder = ResultsFolder(checkout / "results")
    write_pages(folder, print)
    published(checkout, 19.25)
    assert stale_pages(folder) == [checkout / "results" / "README.md", checkout / "README.md"]
    write_pages(folder, print)
    row = "| [pong](results/weights/pong) | - | 19.2 | 18 |"
    text = (checkout / "README.md").read_text()
    assert row in text and "| game | random policy | our agent | GA3C (paper) |" in text
    row = "| 19.2 [18, 20] | - | 11 | 92.5 | - | 18 |"
    assert f"| [pong](weights/pong) {row}" in (folder.path / "README.md").read_text()


def test_of_several_evaluations_the_one_with_most_episodes_is_shown(checkout):
    published(checkout, 19.25)
    weights = checkout / "results" / "weights"
    head = "weights,seed,episodes,mean,low,high\n"
    (weights / "again.csv").write_text(
        head + "pong,1,100,17.9,17.5,18.3\npong,2,30,18.5,18,19\nother,1,9,1,0,2\n"
    )
    paper = ResultsFolder(checkout / "results").paper()
    lines = pretrained.rows(weights, paper, "w", {"pong": 18.0})
    others = "19.2 (30 episodes), 18.5 (30 episodes)"
    numbers = f"17.9 [17.5, 18.3], **below the random policy** | {others} | 11 | 92.5 | 18 | 18"
    assert lines[2:] == [f"| [pong](w/pong) | {numbers} |"]
    brief = pretrained.brief_rows(weights, paper, "w", {"pong": 18.0})
    assert brief[2:] == ["| [pong](w/pong) | 18 | 17.9, **below the random policy** | 18 |"]
    assert "| mean score of 100 episodes [95 % interval] | other evaluations |" in lines[0]
    published(checkout, 19.25, "pong_30")
    lines = pretrained.rows(weights, paper, "w", {})
    assert [line.split(" | ")[2] for line in lines] == ["episodes", "---", "100", "30"]
    (weights / "again.csv").write_text("weights\npong\n")
    with pytest.raises(UserError, match=r"again\.csv is damaged"):
        pretrained.rows(weights, paper, "w", {})


@pytest.mark.parametrize(("interval", "shown"), [([17.0, 20.0], " [17, 20]"), (None, "")])
def test_weights_that_were_played_here_are_in_the_summary_of_the_users_page(checkout, interval, shown):
    played = checkout / "mine" / "weights" / "pong"
    played.mkdir(parents=True)
    shutil.copytree(ROOT / "results" / "paper", checkout / "mine" / "paper")
    score = {"env_id": "ALE/Pong-v5", "agent_steps": 18, "mean": 18.6, "interval_95": interval, "episodes": 5}
    (played / "score.json").write_text(json.dumps(score))  # as `evaluate --output` writes it, without a card
    summary, _, _ = (
        write_pages(ResultsFolder(checkout / "mine"), print).read_text().partition("## Limitations")
    )
    assert f"| pong | 18.6{shown} | - | 1.8e-05 | - | - | 18 |" in summary


def test_another_results_folder_leaves_the_readme_alone(checkout):
    (checkout / "results").rename(checkout / "mine")
    before = (checkout / "README.md").read_bytes()
    write_pages(ResultsFolder(checkout / "mine"), print)
    assert (checkout / "README.md").read_bytes() == before and stale_pages(
        ResultsFolder(checkout / "mine")
    ) == []


@pytest.mark.parametrize(
    "text", [f"{BEGIN}\n", f"{front_page.END}\n{BEGIN}\n", f"{BEGIN}\n{BEGIN}\n{front_page.END}\n"]
)
def test_marks_that_are_not_a_pair_are_refused(checkout, text):
    (checkout / "README.md").write_text(text)
    with pytest.raises(UserError, match="needs the line"):
        write_pages(ResultsFolder(checkout / "results"), print)
    assert (checkout / "README.md").read_text() == text and not (checkout / "results" / "README.md").exists()


def test_a_page_that_cannot_be_written_is_one_line(checkout):
    (checkout / "results" / "README.md").mkdir()
    with pytest.raises(UserError, match=r"cannot write .*results/README\.md: Is a directory"):
        write_pages(ResultsFolder(checkout / "results"), print)


def test_a_damaged_score_is_named(checkout):
    published(checkout, 19.25)
    (checkout / "results" / "weights" / "pong" / "score.json").write_text("{}")
    with pytest.raises(UserError, match=r"score\.json is damaged"):
        write_pages(ResultsFolder(checkout / "results"), print)


def test_every_picture_of_the_readme_is_there():
    text = (ROOT / "README.md").read_text()
    assert text.count("<!-- generated from results/") == 1
    for line in text.splitlines():
        for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", line):
            assert (ROOT / picture).is_file(), line


def test_every_template_is_the_text_of_something():
    """A template that nothing fills in would be text that nobody sees."""
    code = "".join(file.read_text() for file in (ROOT / "reproduce").rglob("*.py"))
    named = {*re.findall(r'"([\w-]+\.\w+)"', code), *(f"{name}.md" for name in FIGURES)}
    assert {file.name for file in TEMPLATES.iterdir()} <= named


def test_lines_of_a_template_have_no_gaps_and_nothing_is_left_unfilled():
    lines = lines_of("comparison.md", metric="score", unit="points", method="loss mine:huber", rows=[])
    assert lines[:2] == ["Score (points) of the same runs by both methods:", ""] and lines[3].startswith(
        "| --- |"
    )
    with pytest.raises(UndefinedError, match="'unit' is undefined"):
        lines_of("comparison.md", metric="score", method="loss mine:huber", rows=[])
