"""The results folder: its records, failed runs, and methods of the user's own."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented_runs import SESSION, failed, invent, labelled, made, played
from tiny_runs import quiet

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.drawing import score_plots
from ga3c_tf.reproduce.figures.registry import FIGURES
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
from ga3c_tf.reproduce.measures.verdicts import (
    FAILS,
    FEW_SEEDS,
    HOLDS,
    NO_DIFFERENCE,
    RUNS_MISSING,
    SEVERAL_MACHINES,
)
from ga3c_tf.reproduce.pages.findings import chapters
from ga3c_tf.reproduce.pages.report import write_pages
from ga3c_tf.reproduce.results import comparison
from ga3c_tf.reproduce.results.folder import METHODS, ResultsFolder
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.runs import outcomes


def page(folder, figure):
    """The page of a figure."""
    write_pages(folder, print)
    return (folder.path / "pages" / f"{figure}.md").read_text()


def test_what_failed_and_what_was_not_run_stays_on_the_page(folder):
    [spec, *_] = FIGURES["adjustment"].all_specs("quick")
    failed(folder, spec, "train: no | power")
    made(folder, "adjustment")
    text = page(folder, "adjustment")
    assert "failed: train: no \\| power" in text and "not run" in text


def test_the_summary_names_the_game_of_a_finding_where_there_are_several(folder):
    for game in ("minatar_breakout", "cartpole"):
        for seed in (1, 2, 3, 4, 5):
            for spec in FIGURES["batch-size"].specs("quick", game, seed):
                invent(folder.runs, spec, scores=(0.0, 10.0 + seed))
    made(folder, "batch-size", ("minatar_breakout", "cartpole"))
    [chapter] = chapters(folder)
    assert len(chapter.claims) == 8
    assert {claim.text.split(":")[0] for claim in chapter.claims} == {"MinAtar Breakout", "CartPole"}


def test_a_method_of_the_users_own_stands_beside_the_papers(folder, svg_only):
    """Better in one setting, level in the others; what was run by it alone is its own section's."""
    huber = {"loss": "mine:huber"}
    for seed in (1, 2, 3):
        for label, spec in labelled(FIGURES["speed"].specs, "quick", "minatar_breakout", seed).items():
            invent(folder.runs, spec, scores=(0.0, 10.0 + seed))
            invent(
                folder.runs,
                spec.changed(huber),
                scores=(0.0, (30.0 if label == "1/1/1" else 9.0) + 1.5 * seed),
            )
    folder.add_method(huber, print)
    folder.add_method(huber, print)
    assert folder.methods() == [huber]
    made(folder, "speed", seeds=3)
    folder.draw(FIGURES["speed"], "quick", print)
    methods = {record.method for record in folder.records(FIGURES["speed"], "quick")}
    assert methods == {"GA3C", "GA3C with loss mine:huber"}
    paper, own = (folder.results(FIGURES["speed"], "quick", changes=changes) for changes in ({}, huber))
    assert len(paper.runs) == len(own.runs) == 12
    lines = comparison.section(FIGURES["speed"], paper, own)
    [better] = [line for line in lines if "1x1x1" in line and "paper" not in line]
    assert f"| {HOLDS} |" in better and 15 < float(better.split(" | ")[3]) < 20
    assert sum(f"| undecided: {NO_DIFFERENCE} |" in line for line in lines) == 3
    text = page(folder, "speed")
    plain, huber_part = text.split("## speed, quick budget, loss mine:huber\n")
    assert "`ga3c-tf reproduce --figure speed --budget quick --loss mine:huber`" in huber_part
    pictures = folder.pictures(FIGURES["speed"], "quick", huber)
    assert [picture.as_posix() for picture in pictures] == [
        "figures/mine.huber/speed-quick-comparison",
        "figures/mine.huber/speed-quick-minatar-breakout",
    ]
    assert all(
        f"(../{picture}.svg)" in huber_part and f"(../{picture}.svg)" not in plain for picture in pictures
    )


def test_another_algorithm_stands_beside_the_papers_without_a3c(folder, svg_only):
    figure = FIGURES["environments"]
    pqn = {"algorithm": "pqn"}
    for seed in (1, 2, 3):
        for spec in figure.specs("quick", "minatar_breakout", seed):
            invent(folder.runs, spec, scores=(0.0, 10.0 + seed))
        for spec in figure.changed(figure.all_specs("quick", 1, ["minatar_breakout"], seed), pqn):
            invent(folder.runs, spec, scores=(0.0, 30.0 + seed))
    folder.add_method(pqn, print)
    made(folder, "environments", ["minatar_breakout"], seeds=3)
    folder.draw(figure, "quick", print)
    methods = {record.method for record in folder.records(figure, "quick")}
    assert methods == {"GA3C", "A3C", "A2C", "GA3C with algorithm pqn", "A2C with algorithm pqn"}
    [_, of_pqn] = page(folder, "environments").split("## environments, quick budget, algorithm pqn\n")
    assert "--games minatar_breakout --algorithm pqn`" in of_pqn
    assert sum(f"| {HOLDS} |" in line for line in of_pqn.splitlines() if "| minatar-" in line) == 2
    assert "(../figures/pqn/environments-quick-comparison.svg)" in of_pqn


def test_a_method_of_which_seeds_diverged_is_not_compared_by_the_others(folder):
    """Such a seed has no speed, which is no score of the random policy."""
    huber = {"loss": "mine:huber"}
    for seed in range(1, 6):
        for spec in FIGURES["wall-clock"].specs("quick", "cartpole", seed):
            invent(folder.runs, spec, scores=(0.0, 480.0 + seed))
            if seed < 4:
                invent(folder.runs, spec.changed(huber), scores=(480.0, 490.0 + seed))
            else:
                failed(folder, spec.changed(huber), "train: the training diverged", outcomes.DIVERGED)
    folder.add_method(huber, print)
    made(folder, "wall-clock", ["cartpole"], seeds=5)
    paper, own = (folder.results(FIGURES["wall-clock"], "quick", changes=changes) for changes in ({}, huber))
    lines = comparison.section(FIGURES["wall-clock"], paper, own)
    rows = [line for line in lines if line.startswith("| cartpole-ga3c")]
    assert rows and all(f"| undecided: {RUNS_MISSING} |" in row for row in rows), rows


def test_methods_are_not_compared_over_equal_time_on_several_machines(folder):
    huber = {"loss": "mine:huber"}
    for seed in (1, 2, 3):
        for spec in FIGURES["speed"].specs("quick", "minatar_breakout", seed):
            invent(folder.runs, spec, scores=(0.0, 10.0 + seed))
            invent(
                folder.runs,
                spec.changed(huber),
                scores=(0.0, 30.0 + seed),
                sessions=[{**SESSION, "cpu": "faster"}],
            )
    folder.add_method(huber, print)
    made(folder, "speed", seeds=3)
    paper, own = (folder.results(FIGURES["speed"], "quick", changes=changes) for changes in ({}, huber))
    rows = [line for line in comparison.section(FIGURES["speed"], paper, own) if line.startswith("| minatar")]
    assert len(rows) == 4 and all(f"| undecided: {SEVERAL_MACHINES} |" in row for row in rows)


def test_a_method_of_the_users_own_is_not_compared_with_added_seeds(folder):
    huber = {"loss": "mine:huber"}
    for seed in (1, 2, 3):
        for spec in FIGURES["speed"].specs("quick", "minatar_breakout", seed):
            invent(folder.runs, spec, scores=(0.0, 10.0 + seed))
            invent(folder.runs, spec.changed(huber), scores=(0.0, 30.0 + 1.5 * seed))
    folder.add_method(huber, print)

    def compared():
        made(folder, "speed")
        paper, own = (folder.results(FIGURES["speed"], "quick", changes=changes) for changes in ({}, huber))
        return len(paper.runs), comparison.section(FIGURES["speed"], paper, own)

    runs, before = compared()
    added = FIGURES["speed"].added_specs("quick", "minatar_breakout")
    for spec in added:
        invent(folder.runs, spec, scores=(0.0, 1000.0))
    folder.update(FIGURES["speed"], "quick", added, print)
    assert runs == 12 and compared() == (18, before)


def test_pairs_between_which_the_machine_changed_its_speed_are_left_out(folder):
    huber = {"loss": "mine:huber"}
    calibrations = [{"gflops": 30.0, "copy_gb_s": 5.0, "frames_s": 3000.0}]
    for seed in (1, 2, 3):
        for spec in FIGURES["speed"].specs("quick", "minatar_breakout", seed):
            invent(folder.runs, spec, scores=(0.0, 10.0 + seed), calibrations=calibrations)
            invent(
                folder.runs, spec.changed(huber), scores=(0.0, 30.5 + 1.1 * seed), calibrations=calibrations
            )
    folder.add_method(huber, print)
    made(folder, "speed", seeds=3)
    paper, own = (folder.results(FIGURES["speed"], "quick", changes=changes) for changes in ({}, huber))
    rows = [line for line in comparison.section(FIGURES["speed"], paper, own) if line.startswith("| minatar")]
    assert len(rows) == 4 and all(f"| {HOLDS} |" in row for row in rows)
    changed = folder.runs / own.runs[0].spec.id / "run.json"
    changed.write_text(changed.read_text().replace("30.0", "60.0").replace("T10:", "T12:"))
    paper, own = (folder.results(FIGURES["speed"], "quick", changes=changes) for changes in ({}, huber))
    rows = [line for line in comparison.section(FIGURES["speed"], paper, own) if line.startswith("| minatar")]
    assert sum(f"| undecided: {FEW_SEEDS} |" in row for row in rows) == 1


def test_settings_that_differ_in_what_their_ids_do_not_say_have_names_of_their_own():
    for name in ("tps", "corrections", "lag-boundary", "speed"):
        specs = {replace(spec, seed=0) for spec in FIGURES[name].all_specs("quick", 1)}
        names = comparison._names(specs)
        assert len(set(names.values())) == len(specs)
        assert name != "tps" or {each.split(", ")[1] for each in names.values()} == {
            "scheduling plain",
            "scheduling tuned",
        }


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [
        ((0.2, 0.22, 0.21), HOLDS),
        ((0.2, 0.22, None), f"undecided: {NO_DIFFERENCE}"),
        ((None, None, None), FAILS),
    ],
)
def test_a_method_that_does_not_reach_the_score_is_slower_than_the_papers(
    folder, monkeypatch, shares, verdict
):
    """GA3C reaches the score of 150 after about 0.5 of the minute, the method after these shares, or not."""
    huber = {"loss": "mine:huber"}
    for seed, share in enumerate(shares, 1):
        for spec in FIGURES["wall-clock"].specs("quick", "cartpole", seed):
            invent(folder.runs, spec, scores=(0.0, 290.0 + seed))
            invent(folder.runs, spec.changed(huber), scores=(0.0, 150.0 / share if share else 100.0 + seed))
    folder.add_method(huber, print)
    made(folder, "wall-clock", ("cartpole",), seeds=3)
    paper, own = (folder.results(FIGURES["wall-clock"], "quick", changes=changes) for changes in ({}, huber))
    rows = [
        line
        for line in comparison.section(FIGURES["wall-clock"], paper, own)
        if line.startswith("| cartpole")
    ]
    assert len(rows) == 2 and all(f"| {verdict} |" in row and row.count("(3 seeds)") == 2 for row in rows)
    panels = []
    monkeypatch.setattr(score_plots, "score_curves", lambda drawn, stem: panels.extend(drawn))
    comparison.plot(FIGURES["wall-clock"], paper, own, folder.path / "comparison")
    assert [panel.goal for panel in panels] == [150.0, 150.0]


def test_a_method_is_not_judged_before_all_its_runs_have_ended(folder):
    """What belongs to it is known from the figure, not from the folders that are there."""
    huber = {"loss": "mine:huber"}
    for spec in FIGURES["speed"].specs("quick", "minatar_breakout", 1):
        invent(folder.runs, spec.changed(huber))
    folder.add_method(huber, print)
    made(folder, "speed")
    paper, own = (folder.results(FIGURES["speed"], "quick", changes=changes) for changes in ({}, huber))
    assert len(own.runs) == 12 and sum(run.ended for run in own.runs) == 4
    rows = [line for line in comparison.section(FIGURES["speed"], paper, own) if line.startswith("| minatar")]
    assert len(rows) == 4 and all(f"| undecided: {RUNS_MISSING} |" in row for row in rows)
    assert not folder.results(FIGURES["pps"], "quick", changes=huber).runs


def test_all_seeds_of_a_setting_are_compared_with_a_method_of_the_users_own(folder):
    """The first seed also plays at random, which is another run and the same setting."""
    huber = {"loss": "mine:huber"}
    for seed in (1, 2, 3):
        [spec] = FIGURES["scores"].specs("quick", "pong", seed)
        for each, score in ((spec, 5.0), (spec.changed(huber), 15.0 + seed)):
            training = {"time_s": 60.0, "agent_steps": 4000}
            invent(folder.runs, each, training=training, evaluation=played(score + seed))
    folder.add_method(huber, print)
    made(folder, "scores", ("pong",), seeds=3)
    paper, own = (folder.results(FIGURES["scores"], "quick", changes=changes) for changes in ({}, huber))
    [row] = [line for line in comparison.section(FIGURES["scores"], paper, own) if "(3 seeds)" in line]
    assert row.count("(3 seeds)") == 2 and f"| {HOLDS} |" in row


def test_a_method_of_the_users_own_is_compared_where_a_figure_has_added_seeds(folder):
    huber = {"loss": "mine:huber"}
    figure = FIGURES["policy-lag"]
    for seed in (1, 2, 3):
        for spec in figure.specs("quick", "cartpole", seed):
            for number, each in enumerate((spec, spec.changed(huber))):
                invent(folder.runs, each, scores=(0.0, 3.0 + 0.1 * seed + number))
    folder.add_method(huber, print)
    made(folder, "policy-lag", ("cartpole",), seeds=3)
    paper, own = (folder.results(figure, "quick", changes=changes) for changes in ({}, huber))
    rows = [line for line in comparison.section(figure, paper, own) if line.startswith("| cartpole")]
    assert rows and all(row.count("(3 seeds)") == 2 for row in rows)


def test_each_range_of_seeds_has_its_command(folder):
    figure = FIGURES["wall-clock"]
    for first in (1, 101):
        folder.update(figure, "quick", figure.all_specs("quick", 3, ["cartpole"], first), print)
    whole = "ga3c-tf reproduce --figure wall-clock --budget quick --games cartpole"
    expected = f"{whole}` and `{whole} --first-seed 101"
    assert folder.results(figure, "quick").command == expected


def test_games_with_other_seeds_have_commands_of_their_own(folder):
    figure = FIGURES["q-learning"]
    games = figure.games["tuned"]
    folder.update(figure, "tuned", figure.all_specs("tuned"), print)
    command = "ga3c-tf reproduce --figure q-learning --budget tuned"
    assert folder.results(figure, "tuned").command == command
    folder.measured_file.unlink()
    for count, of_count in ((4, games[:2]), (1, games[2:])):
        folder.update(figure, "tuned", figure.all_specs("tuned", count, of_count), print)
    parts = (f"{command} --games {','.join(of)} --seeds {n}" for n, of in ((4, games[:2]), (1, games[2:])))
    assert folder.results(figure, "tuned").command == "` and `".join(parts)


def test_a_damaged_list_of_methods_is_refused_by_name(folder):
    for text in ("{", '{"loss": 3}', '[{"los": "mine:huber"}]', "[3]"):
        (folder.path / "methods.json").write_text(text)
        with pytest.raises(UserError, match=r"methods\.json is damaged"):
            folder.methods()


def test_recorded_games_that_a_figure_no_longer_takes_are_left_out(folder):
    """Earlier versions ran `pps` in games for which its networks are not, and recorded the failures."""
    figure = FIGURES["pps"]
    [spec, *_] = figure.specs("quick", "pong", 1)
    failed(folder, spec, "no such thing")
    [record] = figure.records([RecordedRun.of(spec, folder.runs)])
    both = [record, replace(record, game="cartpole")]
    write_measured(folder.measured_file, {(figure.name, "quick"): both})
    assert {run.spec.game for run in folder.results(figure, "quick").runs} == {"pong"}


def test_a_folder_that_cannot_be_written_after_the_runs_is_refused_before_them(tmp_path):
    (tmp_path / "figures").touch()
    with pytest.raises(UserError, match=r"cannot write .*/figures: Not a directory"):
        ResultsFolder(tmp_path).prepare("quick")
    assert [path.name for path in tmp_path.iterdir()] == ["figures"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_refused_before_the_runs(tmp_path):
    (tmp_path / "figures").mkdir(mode=0o500)
    with pytest.raises(UserError, match=r"cannot write .*/figures: Permission denied"):
        ResultsFolder(tmp_path).prepare("quick")


@pytest.mark.parametrize(
    "file", ["measured.csv.xz.new", "figures/tps-quick-pong.svg", "figures/tps-quick-pong.png"]
)
def test_records_and_pictures_that_do_not_fit_on_the_disk_are_named(folder, file):
    figure = FIGURES["tps"]
    invent(folder.runs, figure.specs("quick", "pong", 1)[0])
    (folder.path / file).parent.mkdir(exist_ok=True)
    (folder.path / file).symlink_to("/dev/full")
    with pytest.raises(UserError) as error:
        folder.update(figure, "quick", figure.all_specs("quick"), quiet)
        folder.draw(figure, "quick", quiet)
    assert (
        str(error.value) == f"cannot write {folder.path / file.removesuffix('.new')}: No space left on device"
    )


def test_a_list_of_methods_that_does_not_fit_on_the_disk_is_named(folder):
    (folder.path / f"{METHODS}.new").symlink_to("/dev/full")
    with pytest.raises(UserError, match=r"cannot write .*methods\.json: No space left on device"):
        folder.add_method({"loss": "mine:huber"}, quiet)


# what is written is read, and what is wrong is refused with file, line and fault


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
    bare = replace(RECORD, value=None, status=NOT_RUN, commit=None, dirty=None, hours=None)
    bare = replace(bare, agent_steps=None, hardware=None)
    measured = {("scores", "quick"): [RECORD], ("scores", "tuned"): [bare]}
    write_measured(tmp_path / "x.csv.xz", measured)
    assert read_measured(tmp_path / "x.csv.xz") == measured


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"table": ""}, "table is empty"),
        ({"run_id": None}, "run_id is empty"),
        ({"value": float("nan")}, "value is 'nan'"),
        ({"seed": "first"}, "seed is 'first'"),
    ],
)
def test_a_bad_record_is_not_written(tmp_path, change, fault):
    records = [RECORD, replace(RECORD, **change)]
    with pytest.raises(UserError, match=r"x\.csv\.xz to be written, line 3: ") as caught:
        write_measured(tmp_path / "x.csv.xz", {("scores", "quick"): records})
    assert fault in str(caught.value) and not (tmp_path / "x.csv.xz").exists()


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
