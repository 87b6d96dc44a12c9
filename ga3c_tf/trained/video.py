"""Video files, which are complete or not there, and what they and windows need."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Any, cast

import numpy as np

from ga3c_tf.errors import UserError

SUFFIXES = (".mp4", ".gif")


class VideoNotWritten(UserError):
    """The file of a video cannot be written."""


MOST_GIF_FRAMES = 4_000
"""About 500 MiB of Atari's screens."""


def check_video(file: Path) -> None:
    """Check that a file is a video that can be written.

    Raises:
        UserError: it is neither .mp4 nor .gif, or its folder does not exist.
    """
    if file.suffix.lower() not in SUFFIXES:
        raise UserError(f"{file} is no video file: name a .mp4 or a .gif")
    if not file.absolute().parent.is_dir():
        raise UserError(f"cannot write {file}: {file.parent} is not a folder")


def check_display() -> None:
    """Check that a window can be shown.

    Raises:
        UserError: there is no display.
    """
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        raise UserError(
            "--window needs a display, and neither DISPLAY nor WAYLAND_DISPLAY is set; --video needs none"
        )


class VideoFile:
    """A video that replaces an earlier file once it is complete.

    Args:
        file: file to write, .mp4 (H.264) or .gif.
        rate: frames per second.

    Raises:
        VideoNotWritten: the file cannot be written.
    """

    def __init__(self, file: Path, rate: float):
        import imageio.v2 as imageio

        self._file = file
        self._aside = file.with_name(f".{file.stem}.new{file.suffix}")
        self._frames = 0
        self._shape: tuple[int, ...] | None = None
        gif = file.suffix.lower() == ".gif"
        # The delays of a GIF are hundredths of a second, and browsers show a single one as ten.
        delay = 10 * max(2, round(100 / rate))
        options = {"loop": 0, "duration": delay} if gif else {"macro_block_size": 2, "fps": rate}
        try:
            self._aside.touch()  # tells the reason, which the encoder does not
            self._writer: Any = imageio.get_writer(str(self._aside), **cast(Any, options))
        except OSError as error:
            self._remove()
            raise self._failed(error) from None

    def append(self, picture: np.ndarray) -> None:
        """Add a frame, uint8 [height, width, 3].

        Raises:
            UserError: it has another size than the first frame, or is one too many for a GIF.
            VideoNotWritten: it cannot be written.
        """
        if self._shape not in (None, picture.shape):
            raise UserError(
                f"the pictures of a video have one size, and this environment draws {self._shape} and "
                f"{picture.shape}"
            )
        self._shape = picture.shape
        if self._aside.suffix.lower() == ".gif" and self._frames == MOST_GIF_FRAMES:
            raise UserError(
                f"{self._file} would have more than {MOST_GIF_FRAMES:,} frames, all of which a GIF keeps in "
                "memory; name an .mp4"
            )
        try:
            self._writer.append_data(picture)
        except OSError as error:
            raise self._failed(error) from None
        self._frames += 1

    def finish(self) -> None:
        """Complete the video, and put it in the place of an earlier one."""
        try:
            self._writer.close()
            if self._aside.suffix.lower() == ".mp4":
                self._check_frames()
            self._aside.replace(self._file)
        except OSError as error:
            raise self._failed(error) from None

    def discard(self) -> None:
        """Remove what was written, if the video is not complete."""
        with contextlib.suppress(OSError):
            self._writer.close()
        self._remove()

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            self._aside.unlink()

    def _check_frames(self) -> None:
        """Check that all frames are in the file: the encoder does not tell that it has failed at the end."""
        import imageio_ffmpeg

        try:
            frames, _ = imageio_ffmpeg.count_frames_and_secs(self._aside)
        except RuntimeError:
            frames = 0
        if frames < self._frames:
            raise OSError(f"the encoder wrote {frames} of {self._frames} frames; is the disk full?")

    def _failed(self, error: OSError) -> VideoNotWritten:
        reason = error.strerror or str(error).partition("\n")[0]  # what follows is the encoder's command
        return VideoNotWritten(f"cannot write {self._file}: {reason}")
