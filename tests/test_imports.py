"""What an import loads: help is quick and agent processes are small. `make lint` checks who imports whom."""

import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TENSORFLOW = {"tensorflow", "keras"}


@functools.cache
def packages_loaded_by(module: str) -> frozenset[str]:
    code = f"import sys, {module}; print(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return frozenset(done.stdout.split())


@pytest.mark.parametrize(
    "name", ["workers.agent_process", "trained.environments", "workers.supervisor", "cli.main"]
)
def test_importing_it_does_not_load_tensorflow(name):
    loaded = packages_loaded_by(f"ga3c_tf.{name}")
    assert "ga3c_tf" in loaded
    assert not loaded & TENSORFLOW


def test_the_package_does_not_name_what_reproduces_the_paper():
    """Beside the commands about figures, neither in an import nor a path: `make lint` sees only imports."""
    files = [
        file for file in (ROOT / "ga3c_tf").rglob("*.py") if (ROOT / "ga3c_tf/reproduce") not in file.parents
    ]
    named = re.compile(r"ga3c_tf[./]reproduce|[\"'/]reproduce[\"'/]")
    assert {file.name for file in files if named.search(file.read_text())} == {"figures.py"}


def test_reproducing_on_one_machine_does_not_load_ray():
    assert "ray" not in packages_loaded_by("ga3c_tf.reproduce.command") | packages_loaded_by(
        "ga3c_tf.cli.main"
    )


def test_preparing_a_training_loads_no_experiment_tracker():
    assert not packages_loaded_by("ga3c_tf.runner") & {"wandb", "mlflow"}


def test_a_loaded_package_is_seen():
    assert "click" in packages_loaded_by("click")


@pytest.mark.parametrize("module", ["model.tensorflow", "reproduce.drawing.run_plots"])
def test_a_backend_of_a_notebook_that_is_not_installed_here_does_not_matter(monkeypatch, module):
    """Keras imports matplotlib, which refuses backends that it does not know."""
    monkeypatch.setenv("MPLBACKEND", "backend-of-a-notebook")
    assert "matplotlib" in packages_loaded_by(f"ga3c_tf.{module}")
