"""Frames of (84, 84) from the gray screens of an Atari game: by area, or as the authors' program makes them.

Importing this module loads neither OpenCV nor Pillow.
"""

from __future__ import annotations

import functools

import numpy as np

FRAME_SIZE = 84
_LUMA = (0.299, 0.587, 0.114)


class AreaResize:
    """OpenCV's area resize to (84, 84), computed again only for the rows that changed since the last screen.

    Few rows of a game change in a step, and resizing a whole screen takes a quarter of the emulator's time.
    On a screen of 210 rows, every two rows of the frame are the average of five rows of the screen and of no
    others. Such bands can be resized alone, to the same bytes, since 2.5 is exact in
    floating point. A screen of another height, whose ratio may be rounded, is one band.
    """

    def __init__(self, shape: tuple[int, int]):
        """Prepare for screens uint8 of this shape, (height, width)."""
        import cv2

        height, self._width = shape
        bands = 42 if height == 210 else 1
        self._resize = functools.partial(cv2.resize, interpolation=cv2.INTER_AREA)
        self._rows = FRAME_SIZE // bands
        self._screen = np.zeros((bands, height // bands * self._width), np.uint8)
        self._frame = np.zeros((FRAME_SIZE, FRAME_SIZE), np.uint8)

    def __call__(self, screen: np.ndarray) -> np.ndarray:
        """Return the frame of a screen, uint8 (84, 84), in the same buffer at every call.

        Args:
            screen: uint8 (height, width), contiguous.
        """
        bands = screen.reshape(self._screen.shape)
        # Whole words, because comparing bytes and reducing the result takes four times as long.
        changed = np.logical_or.reduce(bands.view(np.uint64) != self._screen.view(np.uint64), axis=1)
        if changed.any():
            self._update(bands[changed], changed)
        return self._frame

    def _update(self, bands: np.ndarray, changed: np.ndarray) -> None:
        """Take over the bands that changed, uint8 [changed, bytes of a band]."""
        self._screen[changed] = bands
        size = (FRAME_SIZE, self._rows * len(bands))
        frame = self._resize(bands.reshape(-1, self._width), size)
        self._frame.reshape(len(changed), -1)[changed] = frame.reshape(len(bands), -1)


def stretch_and_resize(frame: np.ndarray) -> np.ndarray:
    """Convert a frame to the input of the authors' network, before its scaling to x / 128 - 1.

    The authors' Environment.py takes 0.299 R + 0.587 G + 0.114 B and scipy.misc.imresize(..., 'bilinear').
    That function stretches the frame's own minimum..maximum to 0..255 (a constant frame becomes black). It
    resizes by Pillow's bilinear filter, whose support grows with the scale. The result for a gray frame of
    whole levels differs from that for RGB by the rounding of each level, at most half a level times 255 /
    (maximum - minimum).

    Args:
        frame: uint8 RGB (height, width, 3) or gray (height, width).

    Returns:
        uint8 (84, 84), read-only.
    """
    from PIL import Image

    height, width = frame.shape[:2]
    if frame.ndim == 3:
        gray = frame @ np.array(_LUMA)
        stretched = _stretch(gray, gray.min(), gray.max()).tobytes()
    else:
        stretched = frame.tobytes().translate(_stretch_table(int(frame.min()), int(frame.max())))
    image = Image.frombuffer("L", (width, height), stretched, "raw", "L", 0, 1)
    return np.asarray(image.resize((FRAME_SIZE, FRAME_SIZE), Image.Resampling.BILINEAR))


def _stretch(gray: np.ndarray, low: float, high: float) -> np.ndarray:
    """Stretch low..high of `gray` to 0..255, rounded half up, as uint8 (scipy's bytescale)."""
    scaled = (gray - low) * (255.0 / ((high - low) or 1.0))
    return (scaled.clip(0, 255) + 0.5).astype(np.uint8)


@functools.lru_cache(maxsize=1024)
def _stretch_table(low: int, high: int) -> bytes:
    """Return the stretched values of the gray levels 0 to 255, as a table for bytes.translate."""
    return _stretch(np.arange(256), low, high).tobytes()
