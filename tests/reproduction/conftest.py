"""What several tests of figures start from."""

import pytest

from ga3c_tf.reproduce.results.folder import ResultsFolder


@pytest.fixture
def folder(tmp_path):
    folder = ResultsFolder(tmp_path)
    folder.prepare("quick")
    return folder
