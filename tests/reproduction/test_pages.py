"""The pages of a results folder: sentences made from verdicts, a page of the user's own, the README."""

import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from invented_runs import invent, made
from jinja2 import UndefinedError

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.measures.estimates import Effect
from ga3c_tf.reproduce.measures.verdicts import (
    HOLDS,
    INCONCLUSIVE,
    NO_DIFFERENCE,
    PLAIN,
    Claim,
    Verdict,
    above,
)
from ga3c_tf.reproduce.pages import TEMPLATES, lines_of, overview
from ga3c_tf.reproduce.pages.findings import chapters, papers_claims
from ga3c_tf.reproduce.pages.report import said, stale_pages, write_pages
from ga3c_tf.reproduce.pages.sentences import Number, cells, sentence
from ga3c_tf.reproduce.results import pretrained
from ga3c_tf.reproduce.results.folder import ResultsFolder

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ResultsFolder(ROOT / "results")


def claim(figure, key, kind=INCONCLUSIVE, reason="", p=math.nan, **estimate):
    """A claim of a published figure, or one without words, with the verdict."""
    numbers = Effect(**estimate)
    judged = Claim(key, "more is better", above(numbers))
    if figure:
        judged = replace(FIGURES[figure].claim(key, judged.test, [], rate=4e-3), text=judged.text)
    return replace(judged, finding=Verdict(kind, reason, numbers, p))


SHIFT = {"effect": 2.0, "low": 1.0, "high": 3.0, "n": 5, "limit": 1.0}
TWICE = {"effect": math.log(2), "low": 0.0, "high": math.log(4), "n": 3, "ratio": True}
SHARE = {"effect": 0.25, "low": 0.2, "high": 0.3, "n": 6, "limit": 0.5, "of": "setting"}


@pytest.mark.parametrize(
    ("judged", "text"),
    [
        (
            claim("lag-boundary", "rate", INCONCLUSIVE, NO_DIFFERENCE, 0.13, **SHIFT),
            "A quarter of the learning rate tolerated 4 times the lag [2, 8]; predicted 4, tested against 2: "
            "**undecided**, not significant (p = 0.13, 5 seeds).",
        ),
        (
            claim("utilization", "gpu-rises", HOLDS, **TWICE),
            "From one network to the next larger one, the use of the GPU rose 2 times [1, 4]: **supported** "
            "(3 seeds).",
        ),
        (
            claim("utilization", "gpu-rises", effect=0.0, n=1, ratio=True),
            "rose 1 times: **undecided** (1 seed).",
        ),
        (
            claim("utilization", "gpu-rises", reason="runs missing"),
            "More is better: **undecided**, runs missing.",
        ),
        (
            claim("queues", "short-queue", HOLDS, **SHARE),
            "The training queue was 25 % full on average [20 %, 30 %]; tested against 50 %: "
            "**supported** (6 settings).",
        ),
        (
            claim("", "any", HOLDS, effect=0.5, low=0.25, high=0.75, n=4, of="pair"),
            "More is better: 0.5 [0.25, 0.75]: **supported** (4 pairs).",
        ),
        (
            claim("policy-lag", "better-steps-large", HOLDS, effect=3.0, low=2.0, high=4.0, n=3),
            "a minimum of 20 to 40 scored +3 points [2, 4] compared with none (learning rate 0.004): "
            "**supported** (3 seeds).",
        ),
        (
            claim("policy-lag", "better-steps-large", "no difference", **TWICE),
            "a minimum of 20 to 40 scored 2 times as much [1, 4] as none (learning rate 0.004): "
            "**no difference larger than 0%** (3 seeds).",
        ),
    ],
)
def test_a_sentence_has_the_effect_its_interval_and_the_verdict(judged, text):
    assert sentence(judged).endswith(text)


def test_numbers_stand_in_cells_with_their_limit():
    numbers = ["2 [1, 4]", "1", "0.01", "3 seeds", "supported"]
    assert cells(claim("", "faster", HOLDS, p=0.01, **TWICE)) == ["more is better", *numbers]
    assert cells(claim("", "faster")) == ["more is better", "-", "-", "-", "-", "undecided"]


@pytest.fixture(scope="module")
def published():
    """The chapters of the published results."""
    return chapters(PUBLISHED)


def test_every_published_finding_has_words_of_its_own(published):
    for chapter in published:
        for judged in chapter.claims:
            assert judged.found != PLAIN, (chapter.title, judged.key)
            assert "nan" not in sentence(judged)


def cartpole(folder, seeds):
    """GA3C reaches the score in a quarter of A3C's time, more or less."""
    shares = {"ga3c": (0.2, 0.22, 0.21), "a3c": (0.8, 0.81, 0.85)}
    for seed in range(1, seeds + 1):
        for spec in FIGURES["wall-clock"].specs("quick", "cartpole", seed):
            invent(folder.runs, spec, scores=(0.0, 150 / shares[spec.system][seed - 1]))
    made(folder, "wall-clock", ("cartpole",))


def test_a_page_of_the_users_has_only_what_was_run(folder):
    cartpole(folder, 3)
    page = write_pages(folder, print)
    assert sorted(file.relative_to(folder.path).as_posix() for file in folder.path.rglob("*.md")) == [
        "README.md",
        "RULES.md",
        "pages/wall-clock.md",
    ]
    assert "CartPole: GA3C reached the score" in page.read_text() and "pps" not in page.read_text()
    rules = (folder.path / "RULES.md").read_text()
    assert "Pairs of runs" in rules and "`environments`" not in rules and "Table 3" not in rules
    texts = [file.read_text() for file in folder.path.rglob("*.md")]
    assert not [text for text in texts if "docs/" in text or "HISTORY" in text or re.search(r"\(D\d", text)]
    assert "<details>" not in (folder.path / "pages/wall-clock.md").read_text()  # it would be empty
    assert stale_pages(folder) == []
    page.unlink()
    assert stale_pages(folder) == [page]


def test_reproduce_says_what_it_found(folder):
    cartpole(folder, 3)
    [line] = said(folder, [FIGURES["wall-clock"], FIGURES["pps"]], "quick")
    assert re.fullmatch(
        r"wall-clock: CartPole: GA3C reached the score [\d.]+ times as fast as A3C \[.*\] \(.*\): supported "
        r"\(p = [\d.]+, 3 seeds\)\.",
        line,
    )
    assert said(folder, [FIGURES["pps"]], "quick") == []


def test_a_finding_that_the_runs_do_not_decide_says_why(folder):
    cartpole(folder, 1)
    [line] = said(folder, [FIGURES["wall-clock"]], "quick")
    assert line.endswith(": undecided, fewer than 3 seeds (1 seed).") or "runs missing" in line


def test_the_claims_of_the_paper_are_told_from_our_own_questions(folder):
    cartpole(folder, 3)
    for spec in FIGURES["pps"].all_specs("quick"):
        invent(folder.runs, spec, rate=(200.0 if spec.system == "ga3c" else 100.0) + spec.seed)
    made(folder, "pps")
    claims = {chapter.figure.name: papers_claims(chapter) for chapter in chapters(folder)}
    assert [claim.key for claim in claims.pop("pps")] == ["faster"]
    assert claims == {"wall-clock": []}


def test_a_game_that_is_not_in_the_paper_has_no_curve(folder):
    figure = FIGURES["scores"]
    asked = figure.all_specs("quick", 1, ["cartpole"])
    for spec in asked:
        invent(folder.runs, spec)
    folder.update(figure, "quick", asked, print)
    folder.draw(figure, "quick", print)
    assert [picture.name for picture in folder.pictures(figure, "quick", {})] == ["scores-quick"]


def test_the_results_page_refuses_a_sentence_about_another_verdict(published):
    finding = overview.finder(published)
    assert 1 < finding("pps", "quick", "faster", INCONCLUSIVE)["effect"] < 2
    for key, kind in (("faster", HOLDS), ("slower", HOLDS)):
        with pytest.raises(UserError, match=f"'{key}' of pps at quick is .*, not {kind}: write its sentence"):
            finding("pps", "quick", key, kind)


def test_the_page_is_that_of_a_folder_of_the_users_own_where_runs_were_added(tmp_path):
    folder = ResultsFolder(shutil.copytree(PUBLISHED.path, tmp_path / "results"))
    figure = FIGURES["learning-curves"]
    folder.update(figure, "quick", figure.all_specs("quick", 7), print)  # which have not been made
    with pytest.raises(UserError, match="write its sentence"):
        stale_pages(folder)
    said = []
    page = write_pages(folder, said.append).read_text()
    assert "'pong' of learning-curves at quick is undecided" in said[0] and "What our runs say" not in page


def words(page):
    return len(re.sub(r"[|]|---", "", page.read_text()).split())


def test_numbers_in_the_words_of_figures_can_be_written():
    """Only a claim that is decided has its words written, which may be after hours."""
    text = (ROOT / "reproduce" / "figures" / "figures.toml").read_text()
    formats = re.findall(r"\{effect(?::([^}]*))?\}", text)
    assert len(formats) > 20
    for form in formats:
        assert format(Number(1.5), form)


def test_the_published_pages_are_short():
    assert words(PUBLISHED.path / "README.md") <= 1000
    assert words(PUBLISHED.path / "HISTORY.md") <= 600
    assert words(PUBLISHED.path / "RULES.md") <= 900


@pytest.mark.parametrize(
    ("page", "cells", "said"),
    [
        ("pps", ["| 0.683 [", "| 3.88 ["], "0.68 to 3.9 times as many"),
        ("learning-curves", ["| -20.3 | -16.9 [", "| -20.3 | -19.7 ["], "at -16.9 and -19.7"),
        ("published-weights", ["| pong_papers_algorithm | [17.9]("], "Pong to 17.9"),
    ],
)  # fmt: skip
def test_numbers_that_the_summary_has_in_words_are_those_of_the_pages(page, cells, said):
    text = (PUBLISHED.path / "pages" / f"{page}.md").read_text()
    summary = " ".join((PUBLISHED.path / "README.md").read_text().split())
    assert all(cell in text for cell in cells) and said in summary


# the table of published weights


@pytest.fixture
def checkout(tmp_path):
    """A results folder in which nothing has been run."""
    shutil.copytree(ROOT / "results" / "paper", tmp_path / "results" / "paper")
    return tmp_path


def publish(checkout, mean, name="pong"):
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


def test_published_weights_stand_beside_the_papers_score(checkout):
    folder = ResultsFolder(checkout / "results")
    write_pages(folder, print)
    publish(checkout, 19.25)
    assert stale_pages(folder) == [checkout / "results" / "README.md"]
    write_pages(folder, print)
    row = "| pong | [19.2 (30 episodes)](weights/pong) [18, 20] | - | - | 11 | 92.5 | -20.3 | 18 |"
    assert row in (folder.path / "README.md").read_text() and stale_pages(folder) == []


def test_of_several_evaluations_the_one_with_most_episodes_is_shown(checkout):
    publish(checkout, 19.25)
    weights = checkout / "results" / "weights"
    rows = (
        "pong,1,100,-20.9,-21,-20.8,0.25",
        "pong,2,30,18.5,18,19,0.25",
        "other,1,9,1,0,2,0.25",
        "pong,1,100,19,18,20,0",
    )
    (weights / "again.csv").write_text(
        "\n".join(("weights,seed,episodes,mean,low,high,repeat_action_probability", *rows))
    )
    folder = ResultsFolder(checkout / "results")
    lines = pretrained.rows(folder, "w")
    others = "19.2 (30 episodes), 18.5 (30 episodes)"
    first = "[-20.9](w/pong) [-21, -20.8], **below the random policy**"
    assert lines[2:] == [f"| pong | {first} | {others} | 19 [18, 20] | 11 | 92.5 | -20.3 | 18 |"]
    assert (
        "| mean score of 100 episodes [95 % interval] | other evaluations | without sticky actions"
        in lines[0]
    )
    (weights / "again.csv").write_text("weights\npong\n")
    with pytest.raises(UserError, match=r"again\.csv is damaged"):
        pretrained.rows(folder, "w")


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
    assert f"| pong | 18.6 (5 episodes){shown} | - | - | 1.8e-05 | - | -20.3 | 18 |" in summary


def test_a_page_that_cannot_be_written_is_one_line(checkout):
    (checkout / "results" / "README.md").mkdir()
    with pytest.raises(UserError, match=r"cannot write .*results/README\.md: Is a directory"):
        write_pages(ResultsFolder(checkout / "results"), print)


def test_a_damaged_score_is_named(checkout):
    publish(checkout, 19.25)
    (checkout / "results" / "weights" / "pong" / "score.json").write_text("{}")
    with pytest.raises(UserError, match=r"score\.json is damaged"):
        write_pages(ResultsFolder(checkout / "results"), print)


def test_every_picture_of_the_readme_is_there():
    text = (ROOT / "README.md").read_text()
    for line in text.splitlines():
        for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", line):
            assert (ROOT / picture).is_file(), line


def test_every_template_is_the_text_of_something():
    """A template that nothing fills in would be text that nobody sees."""
    code = "".join(file.read_text() for file in (ROOT / "reproduce").rglob("*.py"))
    assert {file.name for file in TEMPLATES.iterdir()} <= {*re.findall(r'"([\w-]+\.\w+)"', code)}
    about = re.findall(r'if figure == "([\w-]+)"', (TEMPLATES / "figures.md").read_text())
    assert set(about) <= set(FIGURES) and len(about) == len(set(about))


def test_lines_of_a_template_have_no_gaps_and_nothing_is_left_unfilled():
    lines = lines_of("published-weights.md", weights=["| a |", "| --- |"])
    assert lines[0] == "# Published weights" and lines[-3:] == ["", "| a |", "| --- |"]
    with pytest.raises(UndefinedError, match="'weights' is undefined"):
        lines_of("published-weights.md")
