"""The top of the results page: for each figure what is claimed, and our answer."""

import pytest
from invented_runs import invent, made, played

from ga3c_tf.reproduce.figures.learning import scores, wall_clock
from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.measures.planning import OpenTest
from ga3c_tf.reproduce.measures.text import duration, number
from ga3c_tf.reproduce.measures.verdicts import FEW_SEEDS, NO_DIFFERENCE, RUNS_MISSING, TOO_SHORT, Finding
from ga3c_tf.reproduce.pages.report import page, write_pages
from ga3c_tf.reproduce.pages.summary import _needed, summarize


def rows(summary):
    """The rows of a summary by the first word of their first cell."""
    return {row[0].strip("[").split("]")[0].split(",")[0]: row for row in summary.figures}


def test_every_figure_has_a_claim_of_one_line_and_a_row(folder):
    found = rows(summarize(folder))
    assert list(found) == list(FIGURES)
    for name, figure in FIGURES.items():
        assert 20 < len(figure.headline) < 110 and "|" not in figure.headline
        assert found[name][2:] == [figure.headline, "not run", "-"]


def test_an_answer_says_in_words_what_is_decided(folder):
    for seed in (1, 2, 3):
        for spec in wall_clock.specs("quick", "cartpole", seed):
            sooner = 8 if spec.config.system == "ga3c" else 1
            invent(folder.runs, spec, scores=(20.0, *[200.0 + seed] * sooner))
    made(folder, "wall-clock", ("cartpole",))
    summary = summarize(folder)
    answer, hours = rows(summary)["wall-clock"][3:]
    assert answer == "1 supported"
    assert float(hours) >= 0
    [decided] = summary.decided
    assert "times [" in decided.because and "(3 seeds)" in decided.because
    assert summary.undecided == []


def test_claims_that_are_not_the_papers_are_counted_apart(folder):
    made(folder, "policy-lag")
    [spec, *_] = FIGURES["policy-lag"].all_specs("quick")
    invent(folder.runs, spec)
    made(folder, "policy-lag")
    summary = summarize(folder)
    assert summary.verdicts.total() == 5 and summary.own_verdicts.total() == 6
    assert "a minimum batch lowers the policy lag in states (not a claim of the paper): **undecided" in page(
        folder
    )


@pytest.mark.parametrize(("used", "seeds"), [(0, 10), (6, 20), (5, 17)])
def test_needed_seeds_are_a_multiple_of_those_that_the_finding_used(folder, used, seeds):
    """It needs 3.2 times the three planned seeds, or those used. A seed takes its four settings' hours."""
    for spec in FIGURES["speed"].all_specs("quick"):
        invent(folder.runs, spec, scores=(0.0, 5.0))
    results = made(folder, "speed")
    hours = sum(run.hours for run in results.runs if run.spec.seed == 1)
    finding = Finding(NO_DIFFERENCE, "", OpenTest(1.0, 0.6, 4, 0.05, used))
    assert _needed(results, finding) == f"about {seeds} new seeds ({duration(3600 * hours * seeds)})"


def test_the_hours_are_of_distinct_runs_and_what_is_left_has_its_time(folder):
    ours, theirs, *others = FIGURES["wall-clock"].all_specs("quick")
    invent(folder.runs, ours)
    invent(folder.runs, theirs)
    made(folder, "wall-clock")
    summary = summarize(folder)
    assert set(summary.hours) == {ours.id, theirs.id}
    planned = duration(sum(spec.seconds for spec in others))
    assert summary.left == [f"16 runs of `wall-clock` (planned for {planned})"]
    text = page(folder)
    assert (
        f"The 2 finished runs trained for {number(sum(summary.hours.values()))} hours. Not run: 16 runs"
        in text
    )


def test_the_verdicts_of_the_history_include_the_games_of_table_3(folder):
    """Boxing reaches the paper's score and Qbert does not; `wall-clock` is undecided."""
    (folder.path / "DIFFERENCES.md").write_text("# Differences")
    for game, score in (("boxing", 90.0), ("qbert", 7500.0)):
        [spec] = FIGURES["scores"].specs("quick", game, 1)
        invent(folder.runs, spec, evaluation=played(score), random=played(0.0))
    made(folder, "scores")
    invent(folder.runs, *wall_clock.specs("quick", "cartpole", 1)[:1])
    made(folder, "wall-clock", ("cartpole",))
    write_pages(folder, print)
    assert "| now | 0 | 0 | 0 | 1 | 1 | 1 | 3 | 33 % |" in (folder.path / "HISTORY.md").read_text()


def test_a_rule_that_claims_share_stands_after_the_last_of_them(folder):
    made(folder, "environments", ("cartpole",), seeds=1)
    lines = FIGURES["environments"].section(made(folder, "environments", ("cartpole",), seeds=1))
    assert [line[:5] for line in lines[:4]] == ["- GA3", "- GA3", "  (it", ""]


@pytest.mark.parametrize(
    ("finding", "needed"),
    [
        (Finding(RUNS_MISSING, ""), "at least 3 seeds (5 min more)"),
        (Finding(FEW_SEEDS, ""), "at least 3 seeds (5 min more)"),
        (Finding(NO_DIFFERENCE, "", OpenTest(0.0, 0.5, 4, 0.05)), "more than 300 new seeds"),
        (Finding(NO_DIFFERENCE, ""), "not estimated"),
        (Finding(TOO_SHORT, ""), "-"),
    ],
)
def test_of_an_undecided_finding_the_runs_are_said_that_would_decide_it(folder, finding, needed):
    """Of the three seeds of a game one is made; other games of the figure do not count."""
    for spec in wall_clock.specs("quick", "cartpole", 1):
        invent(folder.runs, spec, scores=(20.0, 200.0))
    results = made(folder, "wall-clock").of_game("cartpole")
    assert _needed(results, finding) == needed


def test_new_seeds_take_the_time_of_those_that_were_made(folder):
    for seed in (1, 2, 3):
        for spec in wall_clock.specs("quick", "cartpole", seed):
            invent(folder.runs, spec, scores=(20.0, 200.0))
    results = made(folder, "wall-clock").of_game("cartpole")
    assert [run.hours * 3600 for run in results.runs] == [60.0] * 6
    finding = Finding(NO_DIFFERENCE, "", OpenTest(1.0, 0.5, 4, 0.05))
    assert _needed(results, finding) == "about 8 new seeds (16 min)"
    assert _needed(results, Finding(FEW_SEEDS, "")) == "not estimated"  # seeds are not what it lacks


def test_an_answer_says_why_nothing_is_decided(folder):
    for spec in wall_clock.specs("quick", "cartpole", 1):
        invent(folder.runs, spec, scores=(20.0, 200.0))
    made(folder, "wall-clock", ("cartpole",), seeds=1)
    summary = summarize(folder)
    assert rows(summary)["wall-clock"][3] == "1 undecided (fewer than 3 seeds)"
    [undecided] = summary.undecided
    assert undecided[:3] == (
        "wall-clock",
        "cartpole: GA3C reaches a score of 150 sooner than A3C (not a claim of the paper)",
        "fewer than 3 seeds",
    )
    assert undecided.needed.startswith("at least 3 seeds (")


def test_the_page_of_a_user_is_about_what_was_run(folder):
    for spec in wall_clock.specs("quick", "cartpole", 1):
        invent(folder.runs, spec, scores=(20.0, 200.0))
    made(folder, "wall-clock", ("cartpole",), seeds=1)
    text = page(folder)
    assert "| [wall-clock](#wall-clock) |" in text and "not run |" not in text
    assert "HISTORY.md" not in text and "DIFFERENCES.md" not in text and "(D18)" not in text
    write_pages(folder, print)
    assert [file.name for file in folder.path.glob("*.md")] == ["README.md"]
    (folder.path / "DIFFERENCES.md").write_text("# Differences")
    text = page(folder)
    assert (
        "not run |" in text
        and "[HISTORY.md](HISTORY.md)" in text
        and "[DIFFERENCES.md](DIFFERENCES.md)" in text
    )
    write_pages(folder, print)
    assert "38 verdicts" in (folder.path / "HISTORY.md").read_text()


@pytest.mark.parametrize(
    ("mean", "answer"),
    [
        (
            18.5,
            "1 of 1 games reach a normalized score of 95 % (pong, one seed each); range 101 %",
        ),
        (-1.0, "0 of 1 games reach a normalized score of 95 %; range 50 %"),
    ],
)
def test_the_answer_of_the_scores_is_how_far_they_are(folder, mean, answer):
    [spec] = scores.specs("quick", "pong", 1)
    invent(folder.runs, spec, evaluation=played(mean), random=played(-20.0))
    made(folder, "scores", ("pong",), seeds=1)
    assert rows(summarize(folder))["scores"][3] == answer
