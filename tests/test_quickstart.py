"""examples/quickstart.ipynb: it runs from its first cell to its last, and has the outputs of such a run."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).resolve().parents[1] / "examples" / "quickstart.ipynb"


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
