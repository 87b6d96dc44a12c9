"""How the observations of an environment become the states that the network takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from ga3c_tf.config import SMALLEST_SCREEN
from ga3c_tf.errors import UserError

Reader = Callable[[Any], np.ndarray]
"""Converts an observation to a state; it raises an error for one that is outside the observation space."""
SMALLEST_IMAGE = 3
"""Minimum height and width of an image: those of the smallest convolution."""
LARGEST = float(np.finfo(np.float32).max)
"""Bound of elements that have none: states are finite."""


def state_reader(space: spaces.Space, env_id: str) -> tuple[spaces.Box, Reader]:
    """Return the space of states for observations of `space`, and a function that converts observations to
    states.

    - Screens (bytes or bools of rank 3, or of rank 2 as one channel) become uint8, spread over 0 to 255, with
      channels last. The frames of a stack of screens (rank 4) become channels.
    - Smaller images (rank 2 or 3) with values of 0 and 1 become uint8 images.
    - Other bytes are divided by the highest value of their space, and become float32 images or vectors.
    - Other Boxes become float32 vectors.
    - All other spaces that Gymnasium can flatten become float32 vectors, one-hot where they are discrete. The
      parts of a Dict or a Tuple are converted one by one, and bytes in them are divided too.

    Raises:
        UserError: observations vary in size, or have no elements.
    """
    if not _is_flattenable(space) or spaces.flatdim(space) == 0:
        raise UserError(
            f"{env_id} has observations {on_one_line(space)}; this needs ones of a fixed size, such as Box"
        )
    return _byte_reader(space) if _has_bytes(space) else _vector_reader(space)


def _has_bytes(space: spaces.Space) -> bool:
    return isinstance(space, spaces.Box) and space.dtype in (np.uint8, np.bool_)


def _is_flattenable(space: spaces.Space) -> bool:
    """Return whether Gymnasium can flatten observations of `space`; it raises an error for unknown spaces."""
    try:
        return space.is_np_flattenable
    except NotImplementedError:
        return False


def _vector_reader(space: spaces.Space) -> tuple[spaces.Box, Reader]:
    """Return the same as `state_reader`, with vectors as states."""
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        return _joined_reader(space)
    if isinstance(space, spaces.Box) and _has_bytes(space):
        return _scaled_reader(space, (space.high.size,))
    flat: Any = spaces.flatten_space(space)
    low, high = (end.clip(-LARGEST, LARGEST).astype(np.float32) for end in (flat.low, flat.high))
    states = spaces.Box(low, high, flat.shape, np.float32)
    if isinstance(space, spaces.Box):
        return states, lambda values: _finite_vector(_array(values, space))
    return states, lambda value: _finite_vector(spaces.flatten(space, _inside(value, space)))


def _joined_reader(space: spaces.Dict | spaces.Tuple) -> tuple[spaces.Box, Reader]:
    """Return the same as `_vector_reader` for a space of parts, whose vectors are joined in its order."""
    by_key: Any = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
    parts = [(key, *_vector_reader(part)) for key, part in by_key]
    low, high = (np.concatenate([getattr(box, end) for _, box, _ in parts]) for end in ("low", "high"))

    def read(values: Any) -> np.ndarray:
        return np.concatenate([read_part(values[key]) for key, _, read_part in parts])

    return spaces.Box(low, high, low.shape, np.float32), read


def _array(values: Any, space: spaces.Box) -> np.ndarray:
    """Return an observation as an array.

    Raises:
        ValueError: it has another shape than its space, which would be spread, or fractions where the space
            has none.
    """
    given = np.asarray(values)
    if given.shape != space.shape or (given.dtype.kind == "f" and space.dtype.kind in "iub"):
        raise ValueError(
            f"the environment gave an observation of shape {given.shape} and type {given.dtype}; its "
            f"observation_space says {space.shape} and {space.dtype}"
        )
    return given


def _inside(value: Any, space: spaces.Space) -> Any:
    """Return an observation.

    Raises:
        ValueError: it is outside its space, and would become the one-hot vector of another one.
    """
    inside = 0 <= value - space.start < space.n if isinstance(space, spaces.Discrete) else value in space
    if not inside:
        raise ValueError(
            f"the environment gave the observation {on_one_line(value)}; its observation_space is {space}"
        )
    return value


def _finite_vector(values: Any) -> np.ndarray:
    """Return an observation as float32 [elements].

    Raises:
        ValueError: an element is not finite. Otherwise every update with this state would be skipped.
    """
    vector = np.asarray(values, np.float32).reshape(-1)
    if np.count_nonzero(np.isfinite(vector)) < len(vector):  # half the time of `isfinite(vector).all()`
        raise ValueError("the environment gave an observation with an element that is not finite")
    return vector


def _byte_reader(space: Any) -> tuple[spaces.Box, Reader]:
    """Return the same as `state_reader` for a Box of bytes or bools."""
    shape = space.shape
    if len(shape) == 4 and min(shape[1:3]) >= SMALLEST_SCREEN:  # a stack of frames with channels
        frames, height, width, channels = shape
        return _screen_reader(
            space, (height, width, frames * channels), lambda images: np.moveaxis(images, 0, 2)
        )
    if len(shape) == 4 and shape[1] < SMALLEST_SCREEN <= min(shape[2:]):  # the same with channels first
        frames, channels, height, width = shape
        return _screen_reader(
            space, (height, width, frames * channels), lambda images: images.transpose(2, 3, 0, 1)
        )
    # Channels first, as Gymnasium stacks frames.
    if len(shape) == 3 and shape[0] < SMALLEST_SCREEN <= min(shape[1:]):
        return _screen_reader(space, (*shape[1:], shape[0]), lambda image: np.moveaxis(image, 0, -1))
    if len(shape) not in (2, 3) or min(shape[:2]) < SMALLEST_IMAGE:
        return _scaled_reader(space, (space.high.size,))
    shape = (*shape, 1) if len(shape) == 2 else shape
    if min(shape[:2]) >= SMALLEST_SCREEN:
        return _screen_reader(space, shape, lambda image: image)
    if space.high.max() > 1:
        return _scaled_reader(space, shape)
    read = _bytes_of(space)
    return spaces.Box(0, 1, shape, np.uint8), lambda image: read(image).view(np.uint8).reshape(shape)


def _bytes_of(space: spaces.Box) -> Reader:
    """Return a function that returns an observation as an array of the space's dtype.

    It raises a ValueError for a number that the space does not have. Otherwise it would become another one:
    256 would become 0, and so would a number that is multiplied to spread a screen over 0 to 255.
    """
    shape = space.shape
    dtype = space.dtype
    highest = space.high.max()
    may_be_higher = dtype == np.uint8 and highest < 255

    def read(values: Any) -> np.ndarray:
        given = np.asarray(values)
        if given.dtype == dtype and given.shape == shape:
            converted = given
        else:
            given = _array(values, space)
            converted = given.astype(dtype)
        if (converted is not given and (converted != given).any()) or (
            may_be_higher and converted.max() > highest
        ):
            raise ValueError(
                f"the environment gave an observation with values from {given.min()} to {given.max()}; its "
                f"observation_space is {space}"
            )
        return converted

    return read


def _scaled_reader(space: spaces.Box, shape: tuple[int, ...]) -> tuple[spaces.Box, Reader]:
    """Return the same as `state_reader`, with states of this shape and bytes divided by the highest value."""
    scale = np.float32(1 / max(1.0, float(space.high.max())))
    read = _bytes_of(space)
    return spaces.Box(0, 1, shape, np.float32), lambda values: read(values).reshape(shape) * scale


def _screen_reader(
    space: spaces.Box, shape: tuple[int, ...], move: Callable[[np.ndarray], np.ndarray]
) -> tuple[spaces.Box, Reader]:
    """Return the same as `state_reader` for screens that are [height, width, channels] after `move`.

    The network takes gray levels of 0 to 255. Screens with a lower highest value are spread over this range.
    """
    states = spaces.Box(0, 255, shape, np.uint8)
    times = np.uint8(255 // max(1, int(space.high.max())))
    read = _bytes_of(space)
    if times == 1:
        return states, lambda values: move(read(values)).reshape(shape)
    return states, lambda values: move(read(values).view(np.uint8)).reshape(shape) * times


def on_one_line(text: Any) -> str:
    """Return the text of an object without line breaks."""
    return " ".join(str(text).split())
