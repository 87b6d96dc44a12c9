"""What `python -m build` makes, and what that puts on a machine without the checkout beside it."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def run(*words, **settings):
    """Run a command to its end; return what it printed."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def copied_into_the_image():
    """The paths that the Dockerfile copies for the build."""
    lines = [line.split() for line in (ROOT / "Dockerfile").read_text().splitlines()]
    return [name for line in lines if line[:1] == ["COPY"] for name in line[1:-1]]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with the source distribution, and the wheel that was built from it, of what the Dockerfile
    copies.

    As in an archive that pip has unpacked, the link is a file.
    """
    copy = tmp_path_factory.mktemp("build") / "checkout"
    for name in copied_into_the_image():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name, copy / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy(ROOT / name, copy)
    link = copy / "ga3c_tf" / "reproduce"
    target = link.readlink()
    link.unlink()
    link.write_text(str(target))
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", copy.parent / "dist", copy)
    shutil.rmtree(copy)
    return copy.parent / "dist"


@pytest.fixture(scope="module")
def fresh(built, tmp_path_factory):
    """The programs of a new virtual environment that has the wheel and borrows dependencies from this one."""
    place = tmp_path_factory.mktemp("fresh") / "venv"
    run(sys.executable, "-m", "venv", place)
    [site] = place.glob("lib/python*/site-packages")
    run(place / "bin" / "pip", "install", "--quiet", "--no-deps", *built.glob("*.whl"))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return place / "bin"


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """An empty working folder, and no way to the checkout."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return tmp_path


def test_only_the_package_is_installed(built):
    [wheel] = built.glob("*.whl")
    top = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {name for name in top if not name.endswith(".dist-info")} == {"ga3c_tf"}
    assert wheel.stat().st_size < 30 * 10**6


def test_the_source_distribution_has_no_tests_and_no_runs(built):
    [source] = built.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        folders = {"/".join(name.split("/")[1:3]) for name in archive.getnames()}
    assert "results/paper" in folders and "ga3c_tf/api" in folders
    assert not {"results/runs", "tests/test_package.py"} & folders


def test_the_installed_package_has_the_papers_records(fresh, outside):
    program = (
        "import ga3c_tf; from ga3c_tf.reproduce.results.folder import ResultsFolder; "
        "from pathlib import Path; folder = ResultsFolder(Path('out')); folder.prepare('quick'); "
        "print(ga3c_tf.__file__, len(folder.paper()))"
    )
    place, count = run(fresh / "python", "-c", program).split()
    assert Path(place).is_relative_to(fresh.parent) and int(count) > 50
    names = {file.name for file in (ROOT / "results" / "paper").iterdir()}
    assert {file.name for file in (outside / "out" / "paper").iterdir()} == names


def test_the_image_installs_an_extra_that_exists_and_starts_the_command(fresh, outside):
    image = (ROOT / "Dockerfile").read_text()
    extras = "import importlib.metadata as m; print(*m.metadata('ga3c-tf').get_all('Provides-Extra'))"
    offered = set(run(fresh / "python", "-c", extras).split())
    named = {name for names in re.findall(r"EXTRAS=([\w,]+)", image) for name in names.split(",")}
    assert named == {"minatar", "gpu"} <= offered
    assert re.search(r'^ENTRYPOINT \["(.+)"\]$', image, re.MULTILINE)[1] in {
        file.name for file in fresh.iterdir()
    }
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert {line[1:] for line in ignored if line.startswith("!")} == set(copied_into_the_image())


def test_every_dependency_has_its_exact_version(fresh, outside):
    """requirements.txt names the package's and MinAtar's, tests/requirements.txt the other extras'."""
    program = "import importlib.metadata as m; print(*m.requires('ga3c-tf'), sep='\\n')"
    required = run(fresh / "python", "-c", program).splitlines()
    named = {name: set() for name in ("requirements.txt", "tests/requirements.txt")}
    for file, names in named.items():
        names |= {canonical(line) for line in (ROOT / file).read_text().splitlines() if "==" in line}
    for line in required:
        extra = re.search(r'extra == "(\w+)"', line)
        if extra and extra[1] == "gpu":
            continue
        own = not extra or extra[1] == "minatar"
        assert canonical(line) in named["requirements.txt" if own else "tests/requirements.txt"], line


def canonical(requirement):
    """The name of a required package, as the index has it."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()


def test_weights_that_the_wheel_does_not_have_are_fetched(fresh, outside):
    program = "from ga3c_tf.trained.pretrained import published_folder; print(published_folder('boxing'))"
    settings = os.environ | {"XDG_CACHE_HOME": str(outside), "GA3C_TF_WEIGHTS": ""}
    command = [fresh / "ga3c-tf", "evaluate", "--pretrained", "boxing"]
    refused = subprocess.run(command, capture_output=True, text=True, env=settings)
    assert refused.returncode == 2 and "set GA3C_TF_WEIGHTS to the folder" in refused.stderr
    settings["GA3C_TF_WEIGHTS"] = str(ROOT / "results" / "weights")
    folder = Path(run(fresh / "python", "-c", program, env=settings).strip())
    assert folder.is_relative_to(outside)
    assert (folder / "weights.npz").read_bytes() == (ROOT / "results/weights/boxing/weights.npz").read_bytes()


@pytest.mark.slow
def test_the_commands_of_the_installed_package(fresh, outside):
    """A training, its evaluation, the published weights, and a table of the paper."""
    command = fresh / "ga3c-tf"
    run(command, "train", "CartPole-v1", "--steps", "2000", "--run-dir", "cartpole")
    assert "mean" in run(command, "evaluate", "cartpole", "--episodes", "5")
    run(command, "play", "--pretrained", "pong", "--video", "pong.gif", "--max-episode-steps", "20")
    assert os.path.getsize("pong.gif") > 1000
    run(command, "reproduce", "--figure", "scores", "--budget", "smoke")
    assert "pong" in (outside / "runs" / "smoke" / "README.md").read_text()
