"""A training system that is added as docs/architecture.md says has its runs and its lines in the figures."""

import dataclasses

import pytest
from invented_runs import invent, made

from ga3c_tf.config import Config
from ga3c_tf.config.declaration import SYSTEM_CLASSES
from ga3c_tf.reproduce.drawing import canvas, score_plots
from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.pages.report import write_pages
from ga3c_tf.reproduce.runs import specs
from ga3c_tf.runner import new_training
from ga3c_tf.runs.folder import read_config
from ga3c_tf.systems.serial import SerialGA3C


@pytest.fixture(params=[True, False], ids=["its own look", "no look"])
def invented_system(request, monkeypatch):
    """The system 'dqn', in the places the page names: declarations, the figures' systems and their looks."""
    for setting in dataclasses.fields(Config):
        rule = setting.metadata
        systems = (*rule["systems"], *(["dqn"] if "a2c" in rule["systems"] else []))
        choices = (*rule["choices"], "dqn") if setting.name == "system" else rule["choices"]
        monkeypatch.setattr(setting, "metadata", {**rule, "systems": systems, "choices": choices})
    monkeypatch.setitem(specs.SYSTEMS, "dqn", "DQN")
    if request.param:
        monkeypatch.setitem(canvas.LOOKS, "dqn", canvas.Look("#123456", "v", ":"))
    return request.param


def test_it_trains_by_its_name(invented_system, tmp_path, monkeypatch):
    monkeypatch.setitem(SYSTEM_CLASSES, "dqn", "ga3c_tf.systems.serial:SerialGA3C")
    config = Config(
        env_id="CartPole-v1", system="dqn", seed=1, steps=200, num_agents=2, run_dir=str(tmp_path / "run")
    )
    training, folder = new_training(config, ["train"], print)
    assert type(training.system) is SerialGA3C and training.run()["agent_steps"] >= 200
    folder.close()
    assert read_config(tmp_path / "run").system == "dqn"


@pytest.mark.parametrize("budget", ["quick", "tuned", "paper"])
def test_the_figure_of_all_systems_has_its_runs(invented_system, budget):
    runs = FIGURES["environments"].all_specs(budget)
    own = [spec for spec in runs if spec.system == "dqn"]
    assert len(own) == sum(spec.system == "a2c" for spec in runs) > 0
    assert {spec.config.num_agents for spec in own} == {
        spec.config.num_agents for spec in runs if spec.system == "a2c"
    }


def test_its_curve_is_drawn_and_the_page_has_its_column(invented_system, folder, monkeypatch):
    for spec in FIGURES["environments"].specs("quick", "cartpole", 1):
        invent(folder.runs, spec, scores=(0.0, 100.0))
    for spec in FIGURES["pps"].specs("quick", "pong", 1):
        invent(folder.runs, spec, rate=100.0)
    results = made(folder, "environments", ("cartpole",), 1)
    made(folder, "pps", ("pong",), 1)
    drawn = []
    monkeypatch.setattr(score_plots, "save", lambda figure, stem: drawn.append(figure))
    FIGURES["environments"].plots(results, folder.path / "all")
    lines = {line.get_label(): line for line in drawn[0].axes[0].lines}
    assert {"GA3C", "A3C", "A2C", "DQN"} <= set(lines)
    assert len({lines[name].get_color() for name in ("GA3C", "A3C", "A2C", "DQN")}) == 4
    if invented_system:
        assert (lines["DQN"].get_color(), lines["DQN"].get_linestyle()) == ("#123456", ":")
    FIGURES["pps"].plots(folder.results(FIGURES["pps"], "quick"), folder.path / "speed")
    assert "DQN" in write_pages(folder, print).read_text()
