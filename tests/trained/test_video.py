"""Video files: whole, or not there and an earlier one kept."""

import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from ga3c_tf.errors import UserError
from ga3c_tf.trained import video
from ga3c_tf.trained.video import VideoFile, VideoNotWritten

PICTURE = np.zeros((84, 84, 3), np.uint8)
NOISE = (
    "import numpy as np, pathlib\n"
    "from ga3c_tf.trained.video import VideoFile\n"
    "video = VideoFile(pathlib.Path('game.mp4'), 30)\n"
    "for _ in range(20):\n"
    "    video.append(np.random.default_rng(0).integers(0, 255, (84, 84, 3), dtype=np.uint8))\n"
    "video.finish()\n"
)


@pytest.mark.parametrize("name", ["game.mp4", "game.gif"])
def test_a_video_that_is_not_finished_leaves_the_earlier_one(tmp_path, name):
    (tmp_path / name).write_text("mine")
    video = VideoFile(tmp_path / name, 30)
    video.append(PICTURE)
    video.discard()
    assert [path.name for path in tmp_path.iterdir()] == [name] and (tmp_path / name).read_text() == "mine"


@pytest.mark.parametrize("name", ["game.mp4", "game.gif"])
def test_a_finished_video_replaces_the_earlier_one(tmp_path, name):
    (tmp_path / name).write_text("mine")
    video = VideoFile(tmp_path / name, 30)
    for _ in range(5):
        video.append(PICTURE)
    video.finish()
    video.discard()
    assert [path.name for path in tmp_path.iterdir()] == [name] and (tmp_path / name).stat().st_size > 100


def test_a_gif_has_a_limit_because_it_is_kept_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(video, "MOST_GIF_FRAMES", 2)
    for name in ("game.mp4", "game.gif"):
        game = VideoFile(tmp_path / name, 30)
        game.append(PICTURE)
        game.append(PICTURE)
        if name == "game.mp4":
            game.append(PICTURE)
        else:
            with pytest.raises(UserError, match=r"game.gif would have more than 2 frames, .* name an .mp4"):
                game.append(PICTURE)
        game.discard()


@pytest.mark.parametrize(("rate", "milliseconds"), [(15, 70), (30, 30), (60, 20), (500, 20)])
def test_the_frames_of_a_gif_last_hundredths_of_a_second(tmp_path, rate, milliseconds):
    game = VideoFile(tmp_path / "game.gif", rate)
    game.append(PICTURE)
    game.append(255 - PICTURE)
    game.finish()
    with Image.open(tmp_path / "game.gif") as picture:
        assert picture.info["duration"] == milliseconds


def test_a_video_that_the_encoder_cannot_write_is_an_error(tmp_path):
    """The limit of a file's size stands for a full disk; the encoder itself does not say that it failed."""
    limited = ["bash", "-c", 'ulimit -f 1; exec "$@"', "bash", sys.executable, "-c", NOISE]
    done = subprocess.run(limited, cwd=tmp_path, capture_output=True, text=True)
    assert "VideoNotWritten: cannot write game.mp4: " in done.stderr
    assert not (tmp_path / "game.mp4").exists()


def test_a_folder_that_is_missing_is_told(tmp_path):
    with pytest.raises(VideoNotWritten, match=r"none/game.mp4: No such file or directory"):
        VideoFile(tmp_path / "none" / "game.mp4", 30)
