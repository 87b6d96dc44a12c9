"""Curves of run folders: the lines in each panel, and the means that they show."""

import numpy as np
import pytest
from invented_runs import write_table
from matplotlib import pyplot as plt

from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.drawing import run_plots
from ga3c_tf.reproduce.drawing.run_plots import DISTANCES, LAG, SHARES
from ga3c_tf.runs.csv_rows import EPISODE_COLUMNS, METRIC_COLUMNS


def invented_run(folder, factor):
    """A run of three minutes and six episodes whose rates and scores grow with `factor`."""
    folder.mkdir()
    (folder / "config.json").write_text(Config(env_id="CartPole-v1", rolling_episodes=2).to_json())
    metrics = [
        {"time_s": 60 * minute, "pps": factor * minute, "tps": 10 * factor * minute} for minute in (1, 2, 3)
    ]
    write_table(folder / "metrics.csv", METRIC_COLUMNS, metrics)
    episodes = [
        {"time_s": 30 * number, "agent_steps": 10**6 * number, "episode": number, "score": factor * number}
        for number in range(1, 7)
    ]
    write_table(folder / "episodes.csv", EPISODE_COLUMNS, episodes)
    return folder


@pytest.fixture
def runs(tmp_path):
    return [invented_run(tmp_path / name, factor) for name, factor in (("first", 1), ("second", 5))]


@pytest.fixture
def panels(monkeypatch):
    """A function that draws runs and returns the axes."""

    def draw(runs):
        figures = []
        monkeypatch.setattr(run_plots, "_save", lambda figure, file: figures.append(figure))
        run_plots.plot_runs(runs, runs[0] / "curves.png")
        [figure] = figures
        return figure.axes

    return draw


def points(line):
    return [column.tolist() for column in line.get_data()]


@pytest.mark.parametrize("count", [1, 2])
def test_every_run_has_its_lines_in_every_panel(runs, panels, count):
    """The scores also have dots."""
    axes = panels(runs[:count])
    assert [len(axis.lines) for axis in axes] == [count * lines for lines in (2, 2, 1, 1, 4, 2, 5, 4, 1)]
    assert [len({line.get_color() for line in axis.lines}) for axis in axes] == [count] * 9


def test_the_lines_are_the_rolling_scores_and_the_rates_of_each_run(runs, panels):
    by_time, by_steps, pps, tps, *_ = panels(runs)
    minutes, means = [0.5, 1, 1.5, 2, 2.5, 3], np.array([1, 1.5, 2.5, 3.5, 4.5, 5.5])
    for number, factor in enumerate((1, 5)):
        dots, line = by_time.lines[2 * number : 2 * number + 2]
        assert points(dots) == [minutes, [factor * score for score in (1, 2, 3, 4, 5, 6)]]
        assert points(line) == [minutes, (factor * means).tolist()]
        assert points(by_steps.lines[2 * number + 1]) == [[1, 2, 3, 4, 5, 6], (factor * means).tolist()]
        assert points(pps.lines[number]) == [[1, 2, 3], [factor, 2 * factor, 3 * factor]]
        assert points(tps.lines[number]) == [[1, 2, 3], [10 * factor, 20 * factor, 30 * factor]]


@pytest.mark.filterwarnings("error")
def test_a_run_without_an_update_has_legends_where_there_is_something_to_tell(runs, panels):
    measured = [*LAG, *DISTANCES, *SHARES]
    write_table(runs[0] / "metrics.csv", METRIC_COLUMNS, [{"time_s": 60, **dict.fromkeys(measured, "")}])
    assert [axis.get_legend() is not None for axis in panels(runs[:1])[4:8]] == [False, True, False, False]


def entries(axis):
    return [text.get_text() for text in axis.get_legend().get_texts()]


def test_two_runs_are_told_apart_by_their_names(runs, panels):
    assert entries(panels(runs)[0]) == ["first", "second"]


def test_the_queue_has_an_axis_of_its_own(runs, panels):
    """Segments beside states: 1 segment would be a line at the ground beside a batch of 1,030."""
    *_, queue = axes = panels(runs[:1])
    assert axes[5].get_ylabel() == "mean batch (states)" and queue.get_ylabel() == "training queue (segments)"
    assert entries(axes[5])[-1] == "training queue (segments, right)"


@pytest.mark.filterwarnings("error")
def test_a_line_that_only_a_later_run_has_is_in_the_legend(runs, panels):
    measured = [*LAG, *DISTANCES, *SHARES]
    write_table(runs[0] / "metrics.csv", METRIC_COLUMNS, [{"time_s": 60, **dict.fromkeys(measured, "")}])
    axes = panels(runs)
    assert [len(entries(axes[place])) for place in (4, 6, 7)] == [len(LAG), len(DISTANCES), len(SHARES)]
    assert [len(set(entries(axes[place]))) for place in (4, 6, 7)] == [len(LAG), len(DISTANCES), len(SHARES)]


def test_a_run_without_an_episode_is_named_as_such(runs, panels):
    write_table(runs[1] / "episodes.csv", EPISODE_COLUMNS, [])
    assert entries(panels(runs)[0]) == ["first", "second (no episode yet)"]


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.filterwarnings("error")
def test_names_are_shown_as_they_are(tmp_path, count):
    """Also those beginning with _, which matplotlib leaves out, or that would be formulas, or with TeX on."""
    runs = [invented_run(tmp_path / name, 1) for name in ("_$x^$_", "$100 %")][:count]
    with plt.rc_context({"text.usetex": True, "svg.fonttype": "none"}):
        run_plots.plot_runs(runs, tmp_path / "curves.svg")
    text = (tmp_path / "curves.svg").read_text()
    assert all(run.name in text for run in runs)


def test_runs_that_differ_in_the_seed_alone_are_a_line_of_their_mean(tmp_path, monkeypatch):
    runs = []
    for name, factor, settings in (
        ("slow-1", 1, {"seed": 1}),
        ("slow-2", 3, {"seed": 2}),
        ("fast-1", 5, {"gamma": 0.9}),
    ):
        runs.append(invented_run(tmp_path / name, factor))
        config = Config(env_id="CartPole-v1", rolling_episodes=2, run_dir=str(runs[-1]), **settings)
        (runs[-1] / "config.json").write_text(config.to_json())
    drawn, legend = {}, []

    def look(figure, file):
        time, steps = figure.axes
        drawn.update({line.get_label(): line.get_ydata() for line in time.lines})
        assert steps.lines[0].get_xdata()[-1] == 6.0
        legend.extend(text.get_text() for text in time.get_legend().get_texts())

    monkeypatch.setattr(run_plots, "_save", look)
    run_plots.plot_over_seeds(runs, tmp_path / "curves.png")
    slow, fast = f"{runs[0]} and 1 more", str(runs[2])
    assert list(drawn) == [slow, fast] == legend
    # the last two of six episodes: means of 5.5 and 16.5 over two seeds
    assert (drawn[slow][-1], drawn[fast][-1]) == (11.0, 27.5)


def test_a_mean_over_seeds_needs_curves(tmp_path):
    run = invented_run(tmp_path / "_$odd{$", 1)
    run_plots.plot_over_seeds([run], tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 1000
    (run / "episodes.csv").write_text("")
    with pytest.raises(UserError, match="has fewer than two episodes yet; leave it out"):
        run_plots.plot_over_seeds([run], tmp_path / "curves.png")


def test_a_long_line_shows_the_means_of_neighboring_points():
    """At most 500 are drawn: of 1,001 points, 333 means of three and one of the last two."""
    figure, axis = plt.subplots()
    x = np.arange(1001.0)
    run_plots._line(axis, x, 2 * x)
    [line] = axis.lines
    plt.close(figure)
    expected = [*range(1, 999, 3), 999.5]
    assert points(line) == [expected, [2 * mean for mean in expected]]
