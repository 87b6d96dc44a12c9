"""What an import loads, and where it is refused. `make lint` checks who imports whom."""

import functools
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import ga3c_tf
from ga3c_tf import runner

ROOT = Path(__file__).resolve().parents[1]
TENSORFLOW = {"tensorflow", "keras"}
WINDOWS = "on Windows use WSL 2 or Docker (docs/platforms.md)"


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


def test_reproducing_on_one_machine_does_not_load_ray_or_matplotlib_before_a_picture_is_drawn():
    loaded = packages_loaded_by("ga3c_tf.reproduce.command") | packages_loaded_by("ga3c_tf.cli.main")
    assert not loaded & {"ray", "matplotlib"}


def test_preparing_a_training_loads_no_experiment_tracker():
    assert not packages_loaded_by("ga3c_tf.runner") & {"wandb", "mlflow"}


def test_a_loaded_package_is_seen():
    assert "click" in packages_loaded_by("click")


@pytest.mark.parametrize(
    "module", ["model.tensorflow", "reproduce.drawing.canvas as canvas; canvas.pyplot()"]
)
def test_a_backend_of_a_notebook_that_is_not_installed_here_does_not_matter(monkeypatch, module):
    """Keras imports matplotlib, which refuses backends that it does not know."""
    monkeypatch.setenv("MPLBACKEND", "backend-of-a-notebook")
    assert "matplotlib" in packages_loaded_by(f"ga3c_tf.{module}")


# systems other than Linux


@pytest.mark.parametrize(
    ("module", "first"),
    [
        ("ga3c_tf.cli.main", "ga3c-tf: this package runs on Linux"),
        ("ga3c_tf.api", "ImportError: ga3c_tf runs"),
    ],
)
def test_windows_is_refused_before_what_it_lacks_is_imported(module, first):
    program = f"import sys; sys.platform = 'win32'; sys.modules['fcntl'] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(first) and done.stderr.rstrip().endswith(WINDOWS)


def test_a_training_elsewhere_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(runner, "sys", SimpleNamespace(platform="darwin"))
    with pytest.raises(ga3c_tf.UserError, match="training needs Linux, and this is darwin; use Docker"):
        ga3c_tf.train("CartPole-v1", steps=10, run_dir=tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()
