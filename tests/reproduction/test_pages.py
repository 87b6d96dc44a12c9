"""The pages of a results folder: sentences made from verdicts, and what a page of the user's own shows."""

import math
import re
from pathlib import Path

import pytest
from invented_runs import invent, made

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.measures.estimates import Effect
from ga3c_tf.reproduce.measures.verdicts import HOLDS, INCONCLUSIVE, NO_DIFFERENCE, Above, Claim, Verdict
from ga3c_tf.reproduce.pages import overview
from ga3c_tf.reproduce.pages.findings import ATARI, SMALL, SPEED, chapters, counts
from ga3c_tf.reproduce.pages.report import said, stale_pages, write_pages
from ga3c_tf.reproduce.pages.sentences import PLAIN, cells, phrase, sentence
from ga3c_tf.reproduce.results.folder import ResultsFolder

ROOT = Path(__file__).parents[2]
PUBLISHED = ResultsFolder(ROOT / "results")


def claim(key, kind=INCONCLUSIVE, reason="", **estimate):
    numbers = Effect(**estimate)
    return Claim(key, "more is better", Above(numbers), finding=Verdict(kind, reason, numbers, p=0.01))


SHIFT = {"effect": 2.0, "low": 1.0, "high": 3.0, "n": 5, "limit": 1.0}
TWICE = {"effect": math.log(2), "low": 0.0, "high": math.log(4), "n": 3, "ratio": True}
SHARE = {"effect": 0.25, "low": 0.2, "high": 0.3, "n": 6, "limit": 0.5, "of": "setting"}


@pytest.mark.parametrize(
    ("figure", "judged", "text"),
    [
        (
            "lag-boundary",
            claim("rate", INCONCLUSIVE, NO_DIFFERENCE, **SHIFT),
            "A quarter of the learning rate tolerated 4 times the lag [2, 8]; predicted 4, tested against 2: "
            "**undecided**, no significant difference (5 seeds).",
        ),
        (
            "utilization",
            claim("gpu-rises", HOLDS, **TWICE),
            "From one network to the next larger one, the use of the GPU rose 2 times [1, 4]: **supported** "
            "(3 seeds).",
        ),
        (
            "utilization",
            claim("gpu-rises", effect=0.0, n=1, ratio=True),
            "rose 1 times: **undecided** (1 seed).",
        ),
        (
            "utilization",
            claim("gpu-rises", reason="runs missing"),
            "More is better: **undecided**, runs missing.",
        ),
        (
            "queues",
            claim("short-queue", HOLDS, **SHARE),
            "The training queue was 25 % full on average [20 %, 30 %]; tested against 50 %: "
            "**supported** (6 settings).",
        ),
        (
            "a figure of the user's",
            claim("any", HOLDS, effect=0.5, low=0.25, high=0.75, n=4, of="pair"),
            "More is better: 0.5 [0.25, 0.75]: **supported** (4 pairs).",
        ),
    ],
)
def test_a_sentence_has_the_effect_its_interval_and_the_verdict(figure, judged, text):
    assert sentence(figure, judged).endswith(text)


def test_numbers_stand_in_cells_with_their_limit():
    numbers = ["2 [1, 4]", "1", "0.01", "3 seeds", "supported"]
    assert cells(claim("faster", HOLDS, **TWICE)) == ["more is better", *numbers]
    assert cells(claim("faster")) == ["more is better", "-", "-", "-", "-", "undecided"]


@pytest.fixture(scope="module")
def published():
    """The chapters of the published results."""
    return chapters(PUBLISHED)


def test_every_published_finding_has_a_phrase_of_its_own(published):
    for chapter in published:
        for judged in chapter.claims:
            assert phrase(chapter.figure.name, judged.key) != PLAIN, (chapter.title, judged.key)
            assert "nan" not in sentence(chapter.figure.name, judged)


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
    assert "artpole: GA3C reached the score" in page.read_text() and "pps" not in page.read_text()
    rules = (folder.path / "RULES.md").read_text()
    assert "Pairs of runs" in rules and "`environments`" not in rules and "Table 3" not in rules
    texts = [file.read_text() for file in folder.path.rglob("*.md")]
    assert not [text for text in texts if "docs/" in text or "HISTORY" in text or re.search(r"\(D\d", text)]
    assert stale_pages(folder) == []
    page.unlink()
    assert stale_pages(folder) == [page]


def test_reproduce_says_what_it_found(folder):
    cartpole(folder, 3)
    [line] = said(folder, [FIGURES["wall-clock"], FIGURES["pps"]], "quick")
    assert re.fullmatch(
        r"wall-clock: Cartpole: GA3C reached the score [\d.]+ times as fast as A3C \[.*\] \(.*\): supported "
        r"\(3 seeds\)\.",
        line,
    )
    assert said(folder, [FIGURES["pps"]], "quick") == []


def test_a_finding_that_the_runs_do_not_decide_says_why(folder):
    cartpole(folder, 1)
    [line] = said(folder, [FIGURES["wall-clock"]], "quick")
    assert line.endswith(": undecided, fewer than 3 seeds (1 seed).") or "runs missing" in line


def test_findings_are_counted_by_what_they_are_about(folder):
    cartpole(folder, 3)
    for spec in FIGURES["pps"].all_specs("quick"):
        invent(folder.runs, spec, rate=(200.0 if spec.system == "ga3c" else 100.0) + spec.seed)
    made(folder, "pps")
    numbers = counts(chapters(folder))
    assert numbers[True, SPEED] == {HOLDS: 1} and numbers[False, SMALL] == {HOLDS: 1}
    assert not numbers[True, SMALL] and not numbers[True, ATARI]


def test_the_results_page_refuses_a_sentence_about_another_verdict(published):
    finding = overview.finder(published)
    assert 1 < finding("pps", "quick", "faster", HOLDS)["effect"] < 2
    for key, kind in (("faster", INCONCLUSIVE), ("slower", HOLDS)):
        with pytest.raises(UserError, match=f"'{key}' of pps at quick is .*, not {kind}: write its sentence"):
            finding("pps", "quick", key, kind)


def words(page):
    return len(re.sub(r"[|]|---", "", page.read_text()).split())


def test_the_published_pages_are_short():
    assert words(PUBLISHED.path / "README.md") <= 1000
    assert words(PUBLISHED.path / "HISTORY.md") <= 600
    assert words(PUBLISHED.path / "RULES.md") <= 900
