"""The examples run: the notebook from its first cell to its last, and the search twice."""

import runpy
from pathlib import Path

import nbformat
import optuna
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NOTEBOOK = EXAMPLES / "quickstart.ipynb"


@pytest.fixture
def notebook():
    return nbformat.read(NOTEBOOK, as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_it_begins_with_the_installation_and_has_the_outputs_of_one_run(notebook):
    cells = code_cells(notebook)
    assert "%pip install" in cells[0].source
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    kinds = [output.output_type for cell in cells for output in cell.outputs]
    assert kinds.count("display_data") == 2 and "error" not in kinds
    assert NOTEBOOK.stat().st_size < 100_000  # the video is left out


def test_it_runs_and_shows_plots_scores_and_a_video(notebook, tmp_path, monkeypatch):
    """With smaller budgets, in a kernel of its own."""
    smaller = {"minutes=0.33": "steps=3000, log_seconds=0.5", "episodes=10": "episodes=2"}
    for cell in code_cells(notebook):
        for budget, small in smaller.items():
            cell.source = cell.source.replace(budget, small)
    monkeypatch.setenv("PYTHONPATH", str(NOTEBOOK.parents[1]))
    NotebookClient(notebook, timeout=None, resources={"metadata": {"path": tmp_path}}).execute()
    shown = [output for cell in code_cells(notebook) for output in cell.outputs]
    assert sum("image/png" in output.get("data", {}) for output in shown) == 2
    assert sum("<video" in output.get("data", {}).get("text/html", "") for output in shown) == 1
    printed = "".join(output.text for output in shown if output.output_type == "stream")
    assert "CartPole-v1 " in printed and "MinAtar/Breakout-v1 " in printed
    assert len(list((tmp_path / "runs").iterdir())) == 3


@pytest.mark.slow  # half a minute
def test_six_trials_are_searched_and_a_second_call_continues_them(tmp_path, capsys):
    main = runpy.run_path(str(EXAMPLES / "optuna_search.py"))["main"]
    small = ["--steps", "20000", "--episodes", "2", "--folder", str(tmp_path)]
    study = main(["--trials", "6", *small])
    states = [trial.state for trial in study.trials]
    assert states.count(optuna.trial.TrialState.COMPLETE) + states.count(optuna.trial.TrialState.PRUNED) == 6
    assert all(trial.intermediate_values for trial in study.trials)
    assert {folder.name for folder in tmp_path.glob("trial-*")} == {f"trial-{number}" for number in range(6)}
    assert len(main(["--trials", "1", *small]).trials) == 7
    assert "7 trials, " in capsys.readouterr().out
