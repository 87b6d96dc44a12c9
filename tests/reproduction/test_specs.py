"""Specifications of runs: an identity that depends on what they say and on nothing else."""

import dataclasses
import functools
import hashlib
import itertools
import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from ga3c_tf.cli.evaluation import evaluate
from ga3c_tf.cli.training import train
from ga3c_tf.config import Config, check_environment, network_for
from ga3c_tf.config.declaration import Q_LEARNING
from ga3c_tf.config.migrations import MIGRATIONS, Removed, Renamed
from ga3c_tf.config.presets import PRESETS
from ga3c_tf.config.rules import check_effects
from ga3c_tf.environments.environment import describe_environment
from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.command import Plan, reproduce
from ga3c_tf.reproduce.figures.registry import FIGURES, figures_with
from ga3c_tf.reproduce.results.folder import ResultsFolder
from ga3c_tf.reproduce.runs.archive import archived_ids, read_run
from ga3c_tf.reproduce.runs.executor import LocalExecutor, order
from ga3c_tf.reproduce.runs.methods import preset_of
from ga3c_tf.reproduce.runs.specs import BUDGETS, GAMES, NINE_GAMES, RunSpec, run_spec

SETTINGS = st.fixed_dictionaries(
    {"steps": st.integers(1, 10**9)},
    optional={
        "num_agents": st.integers(1, 4096),
        "learning_rate": st.floats(1e-6, 1),
        "min_training_batch": st.integers(0, 1000),
        "network": st.sampled_from(["small", "large-1", "my.module:build"]),
        "clip_rewards": st.booleans(),
    },
)
CHANGES = st.fixed_dictionaries(
    {}, optional={"loss": st.just("my.module:loss"), "network": st.just("mine:wide")}
)
SPECS = st.builds(
    lambda game, seed, settings, episodes, changes: run_spec(
        game, seed, evaluation_episodes=episodes, **settings
    ).changed(changes),
    st.sampled_from([*GAMES, "mine:Pole-v0"]),
    st.integers(0, 2**31),
    SETTINGS,
    st.integers(0, 30),
    CHANGES,
)


@given(SPECS)
def test_a_specification_survives_its_json(spec):
    again = RunSpec.from_values(json.loads(spec.to_json()))
    assert again == spec and again.id == spec.id


@given(SPECS, SPECS)
def test_equal_ids_mean_equal_runs(one, other):
    assert (one.id == other.id) == (one == other)


@given(SPECS)
def test_an_id_is_a_file_name(spec):
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,200}", spec.id) and spec.id.startswith(
        re.split("[_:]", spec.game)[0]
    )


def specs_of(figure):
    """All planned runs of a figure at all budgets, and those of one seed with environments not its own."""
    for budget in figure.games:
        yield from figure.all_specs(budget)
        for game in ("CartPole-v1", "MinAtar/Breakout-v1"):
            if figure.takes_games(budget, [game]):
                yield from figure.all_specs(budget, 1, [game])


@functools.cache
def described(env_id, frame_stack):
    return describe_environment(Config(env_id=env_id, frame_stack=frame_stack))


def check_commands(spec, tmp_path):
    """`train` and `evaluate` take the commands of a run, and something reads each of their options."""
    words = spec.train_command(tmp_path)
    settings = train.make_context("train", words[1:]).params
    given = {setting for setting, value in settings.items() if value is not None}
    config = spec.config
    environment = described(config.env_id, config.frame_stack)
    check_environment(config.env_id, environment.is_screen, given)
    check_effects(config, given & {*dataclasses.asdict(config)} - {"env_id"})
    network_for(config.network, environment.state_shape)
    for scored in spec.evaluate_commands(tmp_path).values():
        options = evaluate.make_context("evaluate", scored[1:]).params
        assert not options["random"] or (options["checkpoint"] == "best" and options["sample"])


@pytest.mark.parametrize("name", FIGURES)
def test_the_commands_of_every_figure_are_accepted(name, tmp_path):
    """A setting without effect, or options that do not go together, would fail a run, in part after hours."""
    for spec in {dataclasses.replace(spec, seed=1): spec for spec in specs_of(FIGURES[name])}:
        check_commands(spec, tmp_path)


def test_the_id_does_not_depend_on_order_or_on_how_a_number_is_written():
    one = run_spec("pong", 1, minutes=12, num_agents=8)
    assert one.id == run_spec("pong", 1, num_agents=8, minutes=12.0).id
    assert one.id != run_spec("pong", 1, num_agents=8, minutes=13).id
    assert one.id != run_spec("pong", 2, num_agents=8, minutes=12).id


def test_an_id_stays_what_it_is():
    """Folders are called by it: a change of it loses every run that was made."""
    assert run_spec("pong", 1, minutes=12, num_agents=8).id == "pong-ga3c-8x2x2-12min-s1-ea762319"


@pytest.mark.parametrize(
    ("arguments", "settings", "words"),
    [
        (("pongg", 1), {"steps": 1}, "unknown game 'pongg'; close: pong"),
        (("pong", 1, "ppo"), {"steps": 1}, "unknown system 'ppo'"),
        (("pong", 1), {}, "needs a budget"),
        (("pong", 1), {"steps": 0}, "steps (--steps) is 0"),
        (("pong", 1), {"agents": 3, "steps": 1}, "unknown setting 'agents'"),
    ],
)
def test_a_bad_specification_is_refused(arguments, settings, words):
    with pytest.raises(UserError) as caught:
        run_spec(*arguments, **settings)
    assert words in str(caught.value)


def test_a_label_is_no_part_of_what_is_run():
    """A figure's name for a run may change without the run being another one."""
    spec = run_spec("pong", 1, minutes=12, num_agents=8)
    named = spec.called("minimum 0", "large")
    assert named == spec and named.id == spec.id and named.to_json() == spec.to_json()
    assert named.label == named.changed({"loss": "mine:huber"}).label == ("minimum 0", "large")
    assert RunSpec.from_values(json.loads(named.to_json())).label == ()


@pytest.mark.parametrize("budget", BUDGETS)
def test_runs_of_one_label_differ_by_no_setting(budget):
    """A figure puts the runs of one game, system and label together."""
    for figure in figures_with(budget):
        found = {}
        for spec in figure.all_specs(budget, seeds=2):
            if spec.label:
                key = (spec.game, spec.system, spec.label)
                found.setdefault(key, set()).add(tuple(sorted(dict(spec.settings).items())))
        assert all(len(settings) == 1 for settings in found.values())


def test_the_command_gives_the_settings(monkeypatch):
    given_settings = {"minutes": 0.75, "num_agents": 8, "clip_rewards": False, "learning_rate": 3e-4}
    spec = run_spec("pong", 3, **given_settings)
    seen = {}
    monkeypatch.setattr(train, "callback", lambda **values: seen.update(values))
    words = spec.train_command(Path("a b"))
    assert words[0] == "train" and CliRunner().invoke(train, words[1:]).exit_code == 0
    assert {name: seen[name] for name in given_settings} == given_settings
    assert (seen["env_id"], seen["seed"], seen["run_dir"]) == ("ALE/Pong-v5", 3, "a b")
    assert "--system" not in words and "a2c" in run_spec("pong", 3, "a2c", steps=1).train_command(Path("x"))


def test_the_final_weights_may_be_what_is_scored():
    best = run_spec("pong", 1, steps=10, evaluation_episodes=3)
    final = run_spec("pong", 1, steps=10, evaluation_episodes=3, checkpoint="latest")
    assert best.id != final.id and RunSpec.from_values(json.loads(final.to_json())) == final
    assert "--checkpoint" not in best.evaluate_commands(Path("x"))["evaluation"]
    words = final.evaluate_commands(Path("x"))["evaluation"]
    assert words[words.index("--checkpoint") + 1] == "latest"


@pytest.mark.parametrize("budget", BUDGETS)
def test_nothing_is_adjusted_but_where_the_figure_is_about_that(budget):
    for figure in figures_with(budget):
        for spec in figure.all_specs(budget):
            words = spec.train_command(Path("x"))
            if spec.system == "ga3c":
                kind = words[words.index("--adjustment") + 1]
                assert kind == "off" or (kind == "paper" and figure.name in ("adjustment", "speed"))
            else:
                assert "--adjustment" not in words


def test_settings_that_only_ga3c_has_are_left_out_for_others():
    common = {"steps": 10, "num_agents": 4, "num_predictors": 1, "num_trainers": 1, "min_training_batch": 0}
    assert dict(run_spec("pong", 1, "a3c", **common).settings) == {"steps": 10, "num_agents": 4}


@pytest.mark.parametrize(
    ("name", "budget"), [(name, budget) for name in FIGURES for budget in FIGURES[name].games]
)
def test_every_figure_has_runs_at_each_of_its_budgets(name, budget):
    specs = FIGURES[name].all_specs(budget)
    assert specs and len({spec.id for spec in specs}) == len(specs)
    assert all(spec.seconds > 0 for spec in specs)
    most = max(spec.seconds for spec in specs)
    usual = {
        "smoke": (0, 120),
        "quick": (30, 3600),
        "gpu": (10, 60),
        "tuned": (300, math.inf),
        "paper": (300, math.inf),
    }
    shortest, longest = usual[budget]
    assert shortest < most < longest
    assert len(FIGURES[name].all_specs(budget, seeds=7)) >= 7


@pytest.mark.parametrize(
    ("name", "changes"),
    [("environments", {"algorithm": "pqn", "loss": "mine:huber"}), ("q-learning", {"loss": "mine:huber"})],
)
def test_a_method_that_has_no_effect_is_refused_before_the_runs(name, changes):
    budget = "tuned" if name == "q-learning" else "quick"
    specs = FIGURES[name].all_specs(budget, 1, ["minatar_breakout"])
    with pytest.raises(UserError, match="--loss has no effect with --algorithm pqn"):
        FIGURES[name].changed(specs, changes)


def test_a_budget_that_a_figure_does_not_have_is_refused():
    with pytest.raises(UserError, match="the figure ladder has no budget quick; it has smoke, tuned"):
        FIGURES["ladder"].all_specs("quick")
    for name, game in (
        ("ladder", "boxing"),
        ("sample-efficiency", "boxing"),
        ("papers-algorithm", "breakout"),
    ):
        with pytest.raises(UserError, match=f"{name} does not go with {game}; it is made for "):
            FIGURES[name].all_specs("tuned", games=[game])
    assert "ladder" not in [figure.name for figure in figures_with("quick")]


def test_the_papers_algorithm_is_run_seed_by_seed_and_the_authors_epsilon_first():
    specs = FIGURES["papers-algorithm"].all_specs("tuned")
    planned = list(itertools.product((1, 2, 3), (0.1, 1e-4), NINE_GAMES))  # 18 runs a seed
    assert [(spec.seed, spec.config.rmsprop_epsilon, spec.game) for spec in specs] == planned
    first = [(spec.seed, spec.config.rmsprop_epsilon) for spec in sorted(specs, key=order)]
    assert first == [(seed, epsilon) for seed, epsilon, _ in planned]


def test_a_method_of_ones_own_goes_with_figures_that_are_not_about_it():
    games = ("pong", "mine:Pole-v0")  # of different networks, each by itself of one
    plain = FIGURES["scores"].all_specs("quick", 1, games)
    specs = FIGURES["scores"].changed(plain, {"network": "mine:wide"})
    assert [(spec.game, spec.config.network) for spec in specs] == [(game, "mine:wide") for game in games]
    assert all(spec.plain in plain for spec in specs)
    assert specs[0].trust == ["--trust-code"] and specs[0].plain.trust == []
    networks = FIGURES["pps"].all_specs("quick")
    with pytest.raises(UserError, match="compares settings of --network"):
        FIGURES["pps"].changed(networks, {"network": "mine:wide"})
    assert FIGURES["pps"].changed(networks, {"loss": "mine:huber"})


@pytest.mark.parametrize("algorithm", Q_LEARNING)
def test_another_algorithm_has_its_preset_and_the_budget_of_the_figure(tmp_path, algorithm):
    figure = FIGURES["environments"]
    for spec in figure.changed(figure.all_specs("tuned", 1), {"algorithm": algorithm}):
        assert spec.system != "a3c" and spec.method.endswith(f" with algorithm {algorithm}")
        preset = PRESETS[preset_of(algorithm, spec.config.env_id)]
        expected = {**preset, "steps": spec.plain.config.steps}
        read = [name for name in expected if spec.config.reads(name)]
        assert {"algorithm", "learning_rate", "steps"} <= {*read}
        for name in read:
            assert getattr(spec.config, name) == expected[name], name
        check_commands(spec, tmp_path)
        assert spec.plain.config.algorithm == "actor-critic" and f"-{algorithm}-" in spec.id
    with pytest.raises(UserError, match="compares settings that the preset of --algorithm gives"):
        FIGURES["tps"].changed(FIGURES["tps"].all_specs("quick"), {"algorithm": algorithm})


@pytest.mark.parametrize("budget", ["quick", "paper"])
@pytest.mark.parametrize("game", ["cartpole", "minatar_breakout", "mine:Pole-v0"])
def test_games_other_than_atari_have_no_network_for_atari(game, budget):
    specs = {figure.name: figure.all_specs(budget, 1, [game]) for figure in figures_with(budget, [game])}
    assert {"tps", "queues", "learning-curves", "scores"} <= specs.keys()
    assert not {"pps", "utilization"} & specs.keys()
    assert {dict(spec.settings).get("network", "auto") for each in specs.values() for spec in each} == {
        "auto"
    }


@pytest.mark.parametrize("name", ["pps", "utilization"])
def test_figures_that_compare_networks_are_about_atari(name):
    with pytest.raises(UserError, match="compare networks for Atari games; they do not go with cartpole"):
        FIGURES[name].all_specs("quick", games=["cartpole"])
    assert FIGURES[name].all_specs("quick", 1, ["breakout"])


# the ids of what is planned and recorded, when settings are renamed or removed

ROOT = Path(__file__).parents[2]
RUNS = ROOT / "results" / "runs"
PLANNED = ROOT / "tests" / "data" / "planned_ids.json"
"""Number and digest of the ids that each figure plans at each budget. Only a new plan changes its entry.

An id has a digest of all settings, so tests of what a figure plans are needed for the order of its runs only.
"""


def planned_ids(figures=FIGURES):
    ids = {}
    for name, figure in figures.items():
        for budget in figure.games:
            added = [spec for game in figure.games[budget] for spec in figure.added_specs(budget, game)]
            text = "\n".join(sorted({spec.id for spec in [*figure.all_specs(budget), *added]}))
            digest = hashlib.sha256(text.encode()).hexdigest()[:16]
            ids[f"{name} {budget}"] = f"{text.count(chr(10)) + 1} runs, {digest}"
    return ids


def recorded_ids(runs=RUNS):
    """The id that each recorded specification has, by the id of its record."""
    return {run_id: RunSpec.from_values(read_run(runs / run_id)["spec"]).id for run_id in archived_ids(runs)}


def test_every_recorded_run_has_the_id_of_its_record():
    ids = recorded_ids()
    assert len(ids) >= 1309 and all(id == name for name, id in ids.items())


def test_the_figures_plan_the_runs_that_they_always_did():
    assert planned_ids() == json.loads(PLANNED.read_text())


def changed_package(folder):
    """A copy of the package in which `log_seconds` is `metrics_seconds` and `checkpoint_minutes` is gone."""
    compiled = shutil.ignore_patterns("__pycache__")
    package = shutil.copytree(ROOT / "ga3c_tf", folder / "ga3c_tf", ignore=compiled)
    for file in package.rglob("*.py"):
        if file.name != "migrations.py":
            file.write_text(re.sub(r"\blog_seconds\b", "metrics_seconds", file.read_text()))
    settings = package / "config" / "declared" / "run.py"
    text, count = re.subn(r"    checkpoint_minutes: float = declare\([^\n]*\)\n", "", settings.read_text())
    assert count == 1
    settings.write_text(text)
    migrations = package / "config" / "migrations.py"
    changes = '[Renamed("log_seconds", "metrics_seconds"), Removed("checkpoint_minutes", 5.0)]'
    migrations.write_text(migrations.read_text() + f"\n\nMIGRATIONS.append({changes})\n")


def test_a_renamed_and_a_removed_setting_change_no_id(tmp_path):
    """Both are given by most figures, and by most of the recorded runs."""
    changed_package(tmp_path)
    code = (
        "import json, sys, pathlib, test_specs\n"
        "from ga3c_tf.config import Config\n"
        "assert Config(metrics_seconds=3.0) and not hasattr(Config, 'checkpoint_minutes')\n"
        f"assert Config.__module__ in sys.modules and {str(tmp_path)!r} in sys.modules['ga3c_tf'].__file__\n"
        f"recorded = test_specs.recorded_ids(pathlib.Path({str(RUNS)!r}))\n"
        "print(json.dumps([test_specs.planned_ids(), recorded]))"
    )
    paths = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(__file__).parent)])}
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, env={**os.environ, **paths}, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    planned, recorded = json.loads(done.stdout)
    assert planned == planned_ids()
    assert recorded == recorded_ids()


def test_a_run_that_only_an_earlier_version_could_make_is_not_made_differently(monkeypatch, tmp_path):
    monkeypatch.setattr("ga3c_tf.config.migrations.MIGRATIONS", [*MIGRATIONS, [Removed("nesterov", False)]])
    as_before, different = (run_spec("pong", 1, minutes=1, nesterov=value) for value in (False, True))
    assert as_before.train_command(Path("x"))[:2] == ["train", "ALE/Pong-v5"]
    assert RunSpec.from_values(json.loads(different.to_json())) == different != as_before
    with pytest.raises(UserError, match=r"^pong-ga3c-.* cannot be made any more: nesterov=True is no longer"):
        different.train_command(Path("x"))
    folder = tmp_path / "runs" / different.id
    folder.mkdir(parents=True)
    result = {"status": "finished", "reason": "", "ended": "", "spec": json.loads(different.to_json())}
    (folder / "run.json").write_text(json.dumps(result))
    figure = FIGURES["pps"]
    monkeypatch.setattr(figure, "specs", lambda budget, game, seed: [different])
    with pytest.raises(UserError, match="cannot be made any more"):
        reproduce(Plan([figure], "quick", ["pong"], 1), tmp_path, True, LocalExecutor(print), print)
    assert read_run(folder) == result


def test_a_users_method_is_recorded_in_the_first_form(monkeypatch, tmp_path):
    monkeypatch.setattr("ga3c_tf.config.migrations.MIGRATIONS", [*MIGRATIONS, [Renamed("objective", "loss")]])
    folder = ResultsFolder(tmp_path)
    folder.add_method({"loss": "mine:huber"}, print)
    assert json.loads((tmp_path / "methods.json").read_text()) == [{"objective": "mine:huber"}]
    assert folder.methods() == [{"loss": "mine:huber"}]
    spec = run_spec("pong", 1, minutes=1, num_agents=4).changed({"loss": "mine:huber"})
    assert spec.config.loss == "mine:huber" and dict(spec.changes) == {"objective": "mine:huber"}
    assert RunSpec.from_values(json.loads(spec.to_json())).id == spec.id
