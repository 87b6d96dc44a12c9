"""The committed results: readable, complete, and pages, docs and cards are what the records say."""

import functools
import hashlib
import importlib.metadata
import json
import re
import runpy
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ga3c_tf.config import Config
from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.figures.throughput import pps, utilization
from ga3c_tf.reproduce.measures.records import NOT_RUN, read_paper
from ga3c_tf.reproduce.pages.report import stale_pages
from ga3c_tf.reproduce.results.folder import NONE, ResultsFolder
from ga3c_tf.reproduce.results.history import named
from ga3c_tf.reproduce.runs import specs
from ga3c_tf.reproduce.runs.archive import archived, archived_ids, read_run
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import NINE_GAMES, RunSpec
from ga3c_tf.trained.publishing.card import without_places
from ga3c_tf.trained.weights import FILE, MOST_BYTES

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ResultsFolder(ROOT / "results")


def git(*words):
    """What a git command prints; nothing where this is no git checkout."""
    return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True).stdout


def as_pinned(package):
    """Whether the version of a package is that of requirements.txt."""
    return f"{package}=={importlib.metadata.version(package)}\n" in (ROOT / "requirements.txt").read_text()


def shapes_and_numbers(file):
    """Return an SVG without its numbers, and these, both without part names, which hang on the last bit."""
    parts = re.split(r"(-?\d+\.\d+)", re.sub(r"\b[a-z][0-9a-f]{10}\b", "", file.read_text()))
    return parts[::2], [float(number) for number in parts[1::2]]


def test_the_page_is_current_and_soon_written(monkeypatch):
    """At most 50 times for each run; it took a minute where each look at a run checked its settings again."""
    for cached in (specs._plan, specs._config_of):
        cached.cache_clear()  # other tests may have filled it
    checked = []
    check = Config.__post_init__
    monkeypatch.setattr(Config, "__post_init__", lambda config: checked.append(1) or check(config))
    assert not stale_pages(RESULTS), "write it anew with: ga3c-tf report"
    assert 100 < len(checked) < 50 * len(archived_ids(RESULTS.runs))


def test_the_papers_records_are_there():
    records = read_paper(RESULTS.path / "paper")
    assert {"scores", "pps", "published"} == {record.table for record in records}
    for game in NINE_GAMES:
        assert sum(record.table == "published" and record.game == game for record in records) == 2
        assert sum(record.table == "scores" and record.game == game for record in records) == 4
    scores = {record.game: record.value for record in records if record.method == "GA3C (1 day, GPU)"}
    assert scores == {
        "amidar": 218,
        "boxing": 92,
        "centipede": 7386,
        "name_this_game": 5643,
        "ms_pacman": 1978,
        "pong": 18,
        "qbert": 14966,
        "seaquest": 1706,
        "up_n_down": 8623,
    }
    speed_ups = [record.value for record in records if record.metric.startswith("speed-up, ")]
    assert speed_ups == [4, 11, 12, 20, 45]
    assert {
        re.split("[;,(]", record.source)[0].strip() for record in records if record.table != "published"
    } == {
        "GA3C paper",
        "authors' slides",
    }
    assert {record.status.partition(";")[0] for record in records} == {"printed"}


def test_no_smoke_run_is_among_the_results():
    assert "smoke" not in RESULTS.budgets()


def test_all_records_belong_to_a_figure():
    assert RESULTS.measured.keys() <= {(name, budget) for name in FIGURES for budget in FIGURES[name].games}


@functools.cache
def run_called(name):
    """The run with this id, read once for all of its records."""
    return RecordedRun.of(RunSpec.from_values(read_run(RESULTS.runs / name)["spec"]), RESULTS.runs)


@pytest.mark.parametrize("part", RESULTS.measured, ids=" ".join)
def test_every_measured_row_has_its_run(part):
    for record in RESULTS.measured[part]:
        if record.status != NOT_RUN:
            run = run_called(record.run_id)
            assert run.spec.id == record.run_id and run.spec.seed == record.seed
        if record.value is not None:
            assert run.finished and run.result["config"]["seed"] == record.seed
            played = {"score": "evaluation", "score of the random policy": "random"}.get(record.metric)
            steps = run.result[played]["agent_steps"] if played else run.agent_steps
            assert (record.agent_steps, record.commit) == (steps, run.commit)
            assert len(run.metrics["time_s"]) and " train " in run.sessions[0]["command"]


@pytest.mark.parametrize("name", FIGURES)
def test_the_records_are_what_the_runs_say(name):
    figure = FIGURES[name]
    for budget in figure.games:
        recorded = RESULTS.records(figure, budget)
        if recorded:
            results = [
                RESULTS.results(figure, budget, changes=changes) for changes in (NONE, *RESULTS.methods())
            ]
            assert [record for each in results for record in figure.records(each.runs)] == recorded


def test_the_records_of_runs_are_committed_as_one_archive_for_each_game():
    for run_id in archived_ids(RESULTS.runs):
        record = archived(RESULTS.runs / run_id)
        assert json.loads(record["run.json"])["sessions"] and record["metrics.csv"]
        assert record.keys() <= {"run.json", "metrics.csv", "curve.csv", "adjustment.csv"}
    listed = git("ls-files", "results/runs")
    if not listed:
        pytest.skip("not a git checkout")
    archives = {file.name for file in RESULTS.runs.glob("*.tar.xz")}
    assert {Path(name).name for name in listed.splitlines()} == archives and len(archives) < 20


def test_every_commit_that_a_run_names_is_there_and_was_clean():
    if git("rev-parse", "--is-shallow-repository") != "false\n":
        pytest.skip("not a whole git history")
    results = [read_run(RESULTS.runs / run_id) for run_id in archived_ids(RESULTS.runs)]
    sessions = [session for result in results for session in result["sessions"]]
    assert not any(session["dirty"] for session in sessions)
    commits = set(git("rev-list", "--all").split())
    assert {session["commit"] for session in sessions} <= commits


def test_every_commit_of_rules_is_there_and_of_that_date():
    if git("rev-parse", "--is-shallow-repository") != "false\n":
        pytest.skip("not a whole git history")
    rules = {(rule["commit"], rule["date"]) for rule in RESULTS.history.rules.values()}
    for commit, date in rules:
        assert git("show", "-s", "--format=%cI", commit).strip() == date


def test_the_history_names_figures_and_claims_that_there_are():
    history = RESULTS.history
    assert {name.split(",")[0] for name in history.rules} == set(FIGURES) - {"ladder"}
    claims = {
        (named(figure.name, budget), claim.key): claim
        for figure in FIGURES.values()
        for budget in figure.games
        if RESULTS.has_records(figure, budget)
        for claim in figure.verdicts(RESULTS.results(figure, budget))
    }
    for change in history.changes:
        claim = claims[change.figure, change.key]
        assert claim.game in ("", change.game)
        assert change.earlier.split(":")[0] != claim.finding.kind
    reviewed = {(name, key): reason for name, keys in history.reviews.items() for key, reason in keys.items()}
    assert {key: claims[key].finding.verdict for key in reviewed} == {
        key: f"observation: {reason}" for key, reason in reviewed.items()
    }


@pytest.mark.skipif(
    not as_pinned("matplotlib"), reason="the pictures were drawn with the matplotlib of requirements.txt"
)
def test_the_pictures_are_what_the_records_show(svg_only, tmp_path):
    for figure in FIGURES.values():
        for budget in figure.games:
            stems = RESULTS.pictures(figure, budget)
            if stems:
                figure.plots(RESULTS.results(figure, budget), tmp_path / f"{figure.name}-{budget}")
            for stem in stems:
                drawn = shapes_and_numbers(tmp_path / f"{stem.name}.svg")
                committed = shapes_and_numbers(RESULTS.path / f"{stem}.svg")
                assert drawn[0] == committed[0], f"draw it anew: {stem}"
                np.testing.assert_allclose(drawn[1], committed[1], atol=0.01)


@pytest.mark.skipif(
    not as_pinned("matplotlib"), reason="the picture was drawn with the matplotlib of requirements.txt"
)
def test_the_ladder_on_pong_is_what_the_data_show(svg_only, tmp_path):
    runpy.run_path(str(ROOT / "docs/pong_ladder.py"))["draw"](tmp_path / "ladder")
    drawn = shapes_and_numbers(tmp_path / "ladder.svg")
    committed = shapes_and_numbers(ROOT / "docs/pong-ladder.svg")
    assert drawn[0] == committed[0]
    np.testing.assert_allclose(drawn[1], committed[1], atol=0.01)


def test_large_files_are_not_committed():
    listed = git("ls-files", "-z", "results")
    if not listed:
        pytest.skip("not a git checkout")
    files = [ROOT / name for name in listed.split("\0") if name]
    of_archives = {"minatar-breakout": 4_000_000, "cartpole": 1_500_000, "minatar-space-invaders": 800_000}
    limits = {FILE: MOST_BYTES} | {f"{name}.tar.xz": most for name, most in of_archives.items()}
    most = {file: limits.get(file.name, 600_000) for file in files if file.exists()}
    assert not [file for file in most if file.stat().st_size > most[file]]
    assert not [file for file in files if "checkpoints" in file.parts or "tfevents" in file.name]


def test_the_differences_are_numbered_without_a_gap():
    text = (RESULTS.path / "DIFFERENCES.md").read_text()
    numbers = re.findall(r"^## (D\d+)\*?: ", text, re.MULTILINE)
    assert numbers == [f"D{number}" for number in range(1, len(numbers) + 1)] and len(numbers) > 10


CARDS = sorted((RESULTS.path / "weights").glob("*/README.md"))
RUN_FOLDER = re.compile(r"from the run folder (\S+)\.$", re.MULTILINE)


def recorded(card):
    """Return the record of the run that the weights come from, by file; {} where there is none."""
    [name] = RUN_FOLDER.findall(card.read_text())
    return archived(RESULTS.path / "runs" / name)


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.parent.name)
def test_the_card_is_about_the_files_beside_it(card):
    text = card.read_text()
    score = json.loads((card.parent / "score.json").read_text())
    assert np.mean(score["scores"]) == pytest.approx(score["mean"])
    assert len(score["scores"]) == score["episodes"]
    assert f"Mean raw score **{score['mean']:.2f}**" in text
    assert hashlib.sha256((card.parent / "weights.npz").read_bytes()).hexdigest() in text
    curve = recorded(card).get("curve.csv") or (card.parent / "curve.csv").read_bytes()
    assert f"at {int(curve.split()[-1].split(b',')[1]):,} agent steps" in text


@pytest.mark.parametrize("card", list(filter(recorded, CARDS)), ids=lambda card: card.parent.name)
def test_the_score_is_that_of_the_recorded_run(card):
    run = recorded(card)
    score = json.loads((card.parent / "score.json").read_text())
    assert score["scores"] == json.loads(run["run.json"])["evaluation"]["scores"]


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.parent.name)
def test_a_card_has_no_paths_of_a_machine_and_shows_its_pictures_first(card):
    text = card.read_text()
    assert re.findall(r"(?<![\w./-])/(?:root|home|work|tmp)\b", text) == []
    assert text.index("![The first seconds") < text.index("![Score against time") < text.index("SHA-256")


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("ga3c-tf publish /root/runs/pong results/weights/pong", "ga3c-tf publish pong results/weights/pong"),
        ("ga3c-tf publish '/root/my runs/pong' out", "ga3c-tf publish pong out"),
        (
            "train ALE/Pong-v5 --run-dir=/tmp/a/b --loss mine:huber",
            "train ALE/Pong-v5 --run-dir=b --loss mine:huber",
        ),
    ],
)
def test_a_command_on_a_card_has_the_names_of_files_only(command, shown):
    assert without_places(command) == shown


def test_the_page_of_all_weights_names_and_shows_each():
    text = (RESULTS.path / "weights" / "README.md").read_text()
    for name in (card.parent.name for card in CARDS):
        assert f"[![{name}]({name}/episode.gif)]({name})" in text and f"[{name}]({name})" in text


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.parent.name)
def test_an_agent_below_the_random_policy_is_said_to_be(card):
    score = json.loads((card.parent / "score.json").read_text())
    below = score["mean"] <= score["random_policy"]
    assert ("**This agent is worse than the random policy.**" in card.read_text()) == below


def test_all_but_pongs_are_on_record():
    assert [card.parent.name for card in CARDS if not recorded(card)] == ["pong", "pong_papers_algorithm"]


STARTED_S = 11.0
"""When all runs are training."""


@pytest.fixture(scope="module")
def text():
    return " ".join((ROOT / "docs" / "performance.md").read_text().split())


def table(name):
    return FIGURES[name].table(RESULTS.results(FIGURES[name], "gpu"))


def speed(run):
    """Return the agent steps per second without the start of the run."""
    rows = run.metrics["time_s"] >= STARTED_S
    steps, times = (run.metrics[name][rows] for name in ("agent_steps", "time_s"))
    return (steps[-1] - steps[0]) / (times[-1] - times[0])


def test_ratios_without_the_start_are_those_of_the_docs(text):
    ratios = []
    for _, part in table("pps").parts("network"):
        ga3c, a3c = (part.select(system=system).runs for system in ("GA3C", "A3C"))
        pairs = zip(ga3c, a3c, strict=True)
        ratios.append(f"{np.mean([speed(run) / speed(other) for run, other in pairs]):.2f}")
    assert (
        f"Counted from {STARTED_S:.0f} s on, the ratios are {', '.join(ratios[:-1])} and {ratios[-1]}."
        in text
    )


def test_some_runs_make_their_first_update_while_they_are_measured(text):
    runs = table("pps").select(system="GA3C").runs
    minutes = pps.LENGTHS["gpu"]["minutes"]
    warm_up_s = pps.WARM_UP_SHARES[minutes] * 60 * minutes
    late = [run for run in runs if run.metrics["updates"][run.metrics["time_s"] >= warm_up_s][0] == 0]
    assert f"In {len(late)} of the {len(runs)} runs of GA3C, the first update" in text


def test_the_shares_of_busy_time_are_those_of_the_docs(text):
    gpu, cpu = (
        100 * table("utilization").series(name, ["network"]) for name in (utilization.GPU, utilization.CPU)
    )
    small, large = gpu.iloc[0], gpu.iloc[-1]
    assert f"{small:.0f} % of the time with the small network and {large:.0f} % with the largest" in text
    assert f"and the cores for {cpu.min():.0f} to {cpu.max():.0f} %" in text
