"""Keras's global settings, which a program or keras.json in the user's home may have changed."""

import contextlib

import keras

CHANGED = {
    "image_data_format": "channels_first",
    "floatx": "float16",
    "dtype_policy": "mixed_float16",
    "epsilon": 0.1,
}
"""Settings, each with a value that is not Keras's own."""


def values():
    return [getattr(keras.config, name)() for name in CHANGED]


@contextlib.contextmanager
def changed(name):
    """Within it this setting has the value in `CHANGED`."""
    setter = getattr(keras.config, f"set_{name}")
    before = getattr(keras.config, name)()
    setter(CHANGED[name])
    try:
        yield
    finally:
        setter(before)
