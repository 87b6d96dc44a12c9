"""What `pip install` puts on a machine, without the checkout beside it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def installed(tmp_path):
    """The package as installed from a copy of the checkout, which is gone then."""
    copy, target = tmp_path / "checkout", tmp_path / "site"
    for name in ("ga3c_tf", "reproduce", "results/paper", "results/weights"):
        shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.py", "README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, copy)
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target"]
    done = subprocess.run([*words, target, copy], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shutil.rmtree(copy)
    return target


def test_an_installed_package_has_the_papers_records(installed, tmp_path):
    program = (
        "from ga3c_tf.reproduce.results.folder import ResultsFolder; from pathlib import Path; "
        "folder = ResultsFolder(Path('out')); folder.prepare('quick'); print(len(folder.paper()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(installed)},
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0 and int(done.stdout) > 50, done.stderr
    assert "reproduce" not in {path.name for path in installed.iterdir()}  # only ga3c_tf, whose part it is
    names = {file.name for file in (ROOT / "results" / "paper").iterdir()}
    assert {file.name for file in (tmp_path / "out" / "paper").iterdir()} == names
