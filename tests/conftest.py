"""What tests of several packages start from."""

import pytest
from commands import ga3c_tf
from hypothesis import settings

# Hypothesis draws the same examples in every run, and has no deadline, which a busy machine would miss.
settings.register_profile("tests", derandomize=True, deadline=None)
settings.load_profile("tests")


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="session")
def smoke_run(tmp_path_factory):
    """A short CartPole run with seed 4: its folder, and the lines that the training printed.

    Tests copy the folder before they change it.
    """
    folder = tmp_path_factory.mktemp("runs") / "cartpole"
    done = ga3c_tf("train", "CartPole-v1", "--preset", "smoke", "--run-dir", folder, "--seed", 4, "--json")
    assert done.returncode == 0, done.stderr
    before = contents(folder)
    yield folder, done.stdout.splitlines()
    assert contents(folder) == before, "a test has changed the run that other tests start from"
