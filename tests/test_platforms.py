"""Systems other than Linux are refused in one line."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

import ga3c_tf
from ga3c_tf import runner

LINE = "on Windows use WSL 2 or Docker (docs/platforms.md)"


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
    assert done.stderr.splitlines()[-1].startswith(first) and done.stderr.rstrip().endswith(LINE)


def test_a_training_elsewhere_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(runner, "sys", SimpleNamespace(platform="darwin"))
    with pytest.raises(ga3c_tf.UserError, match="training needs Linux, and this is darwin; use Docker"):
        ga3c_tf.train("CartPole-v1", steps=10, run_dir=tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()
