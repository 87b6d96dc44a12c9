"""AreaResize gives the bytes of OpenCV's area resize of the whole screen, whatever the screen before was."""

import ale_py
import cv2
import numpy as np
import pytest

from ga3c_tf.environments.frames import AreaResize


def whole(screen):
    return cv2.resize(screen, (84, 84), interpolation=cv2.INTER_AREA)


def with_other_rows(screen, rng):
    """The screen with other pixels in 0 to 8 rows; any row may change, also the first and the last."""
    other = screen.copy()
    for row in rng.integers(-1, len(screen), rng.integers(9)):
        other[row, rng.integers(160, size=3)] = rng.integers(256, size=3)
    return other


@pytest.mark.parametrize("height", [210, 214, 230, 250])
def test_random_screens(height):
    rng = np.random.default_rng(height)
    resize = AreaResize((height, 160))
    screen = np.zeros((height, 160), np.uint8)
    for step in range(300):
        if step % 50 == 25:
            screen = rng.integers(256, size=screen.shape, dtype=np.uint8)
        screen = with_other_rows(screen, rng)
        assert np.array_equal(resize(screen), whole(screen)), step


@pytest.mark.parametrize("game", ["pong", "space_invaders", "beam_rider", "qbert", "carnival", "air_raid"])
def test_screens_of_games_with_resets(game):
    ale = ale_py.ALEInterface()
    ale.setInt("random_seed", 1)
    ale.loadROM(ale_py.roms.get_rom_path(game))
    actions = ale.getMinimalActionSet()
    rng = np.random.default_rng(0)
    resize = AreaResize(ale.getScreenDims())
    for step in range(300):
        ale.act(actions[rng.integers(len(actions))])
        if step % 100 == 99:
            ale.reset_game()
        screen = ale.getScreenGrayscale()
        assert np.array_equal(resize(screen), whole(screen)), step
