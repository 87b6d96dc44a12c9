"""What several tests of figures start from."""

import pytest
from matplotlib.figure import Figure

from ga3c_tf.reproduce.results.folder import ResultsFolder


@pytest.fixture
def folder(tmp_path):
    folder = ResultsFolder(tmp_path)
    folder.prepare("quick")
    return folder


@pytest.fixture
def svg_only(monkeypatch):
    """Pictures are saved as .svg only, because their .png is not committed and takes as long again."""
    save = Figure.savefig

    def save_svg(figure, file, **options):
        if str(file).endswith(".svg"):
            save(figure, file, **options)

    monkeypatch.setattr(Figure, "savefig", save_svg)
