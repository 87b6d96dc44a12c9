"""Atari games: the emulator, and how its frames become states.

Importing this module loads neither the emulator nor OpenCV.
"""

from __future__ import annotations

import types
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium import spaces

from ga3c_tf.config import Config
from ga3c_tf.environments.frames import FRAME_SIZE, AreaResize, stretch_and_resize
from ga3c_tf.environments.registered import make_registered
from ga3c_tf.errors import UserError

EMULATOR_HZ = 60


def load_ale() -> types.ModuleType:
    """Import ale_py, which registers its environment ids, without its banner.

    Raises:
        UserError: ale-py is not installed.
    """
    try:
        import ale_py
        import ale_py.roms
    except ImportError:
        raise UserError("Atari games need the package ale-py: pip install ale-py") from None
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    return ale_py


MOST_BEGINNINGS = 10
"""Number of times that a game is begun if it ends during the no-ops of the beginning."""


class AtariEnvironment(gymnasium.Env):
    """An Atari game with states uint8 (84, 84, frame_stack), newest frame last.

    The preprocessing 'standard' is that of Gymnasium's AtariPreprocessing (Machado et al. 2018): the maximum
    over the last two raw frames of a step, resized by OpenCV's area interpolation; after a reset, the first
    frame fills the stack. The emulator is called directly, to avoid what Gymnasium computes for every raw
    frame. A step cut short by the end of the episode shows its last raw frame.

    The preprocessing 'nvlabs' is that of the authors' Environment.py: the last raw frame, stretched and
    resized (`stretch_and_resize`). After a reset, no-op steps follow until the stack holds `frame_stack` real
    frames. As in the authors' code, the rewards of these no-op steps are not counted. The emulator computes
    the gray levels: the weighted sum of RGB that the authors use, rounded to whole levels.

    Attributes:
        game_continues: whether the episode was ended by a lost life (`terminal_on_life_loss`) while the game
            is not over. The next episode then continues the game.
    """

    def __init__(self, config: Config, render_mode: str | None = None):
        """Load the game `config.env_id`, which must be one of `atari_ids`.

        Raises:
            UserError: ale-py is not installed, or the game does not offer the render mode.
        """
        ale_py = load_ale()
        # obs_type 'ram', because every reset of the game fetches an observation that is not used.
        game = make_registered(
            config.env_id,
            render_mode,
            obs_type="ram",
            frameskip=1,
            full_action_space=config.full_action_space,
            repeat_action_probability=config.repeat_action_probability,
        )
        self._game = cast(Any, game.unwrapped)
        self.ale = self._game.ale
        self.spec = self._game.spec
        self.render_mode = render_mode
        self.metadata = {**self._game.metadata, "render_fps": EMULATOR_HZ / config.frame_skip}
        self._actions = list(self._game._action_set)
        self._noop = ale_py.Action.NOOP  # also for games that have none among their own actions
        self._env_id = config.env_id
        self._frame_skip = config.frame_skip
        self._noop_max = config.noop_max
        self._life_loss_ends = config.terminal_on_life_loss
        self._lives = 0
        self.game_continues = False

        self._standard = config.preprocessing == "standard"
        self._pools = self._standard and config.frame_skip > 1
        self._before, self._screen = np.empty((2, *self.ale.getScreenDims()), np.uint8)
        self._stack = np.zeros((FRAME_SIZE, FRAME_SIZE, config.frame_stack), np.uint8)
        self._flat_stack = self._stack.reshape(-1)
        self._process = AreaResize(self._screen.shape) if self._standard else stretch_and_resize

        self.observation_space = spaces.Box(0, 255, self._stack.shape, np.uint8)
        self.action_space = spaces.Discrete(len(self._actions))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Start an episode, in a new game unless `game_continues`.

        A seed always starts a new game, and restarts the emulator and the random numbers of sticky actions
        and no-ops.

        Returns:
            The state, and an info dict with 'lives' and 'episode_frame_number' (in raw frames).

        Raises:
            UserError: the game ends during the no-ops of the beginning again and again.
        """
        if seed is None and self.game_continues:
            return self._stack, self._info()
        self.game_continues = False
        self._game.reset(seed=seed)
        for _ in range(MOST_BEGINNINGS):
            if self._begin():
                return self._stack, self._info()
            self._game.reset()
        raise UserError(
            f"{self._env_id} ends before its first step in {MOST_BEGINNINGS} attempts; lower --frame-skip, "
            "--frame-stack or --noop-max"
        )

    def step(self, action: int):
        """Repeat `action` for frame_skip raw frames, or until the episode ends.

        Returns:
            The state, the raw reward, terminated, truncated (the emulator's limit of raw frames was reached),
            and the info dict described in `reset`.
        """
        reward, life_lost = self._emulate(self._actions[action], self._frame_skip)
        self._push_frame()
        terminated = life_lost or self.ale.game_over(with_truncation=False)
        self.game_continues = life_lost and not self.ale.game_over()
        return self._stack, reward, terminated, self.ale.game_truncated(), self._info()

    def get_action_meanings(self) -> list[str]:
        """Return the emulator's name of each action."""
        return self._game.get_action_meanings()

    def render(self) -> np.ndarray | None:
        """Return the screen, uint8 (height, width, 3), in render mode 'rgb_array'."""
        return self._game.render()

    def _emulate(self, action: Any, frames: int) -> tuple[float, bool]:
        """Play up to `frames` raw frames. Return total reward, and whether a lost life ended the episode."""
        ale = self.ale
        reward = 0.0
        life_lost = False
        self._pooled = False
        for left in range(frames - 1, -1, -1):
            reward += ale.act(action)
            if self._life_loss_ends:
                lives = ale.lives()
                life_lost = lives < self._lives
                self._lives = lives
            if life_lost or ale.game_over():
                break
            if left == 1 and self._pools:
                ale.getScreenGrayscale(self._before)
                self._pooled = True
        return reward, life_lost

    def _begin(self) -> bool:
        """Play the no-ops of a new episode and fill the stack. Return False if the game ended meanwhile."""
        self._lives = self.ale.lives()
        if self._noop_max:
            self._emulate(self._noop, int(self._game.np_random.integers(1, self._noop_max + 1)))
        self._pooled = False
        self._push_frame()
        if self._standard:
            self._stack[...] = self._stack[..., -1:]
        else:
            for _ in range(self._stack.shape[-1] - 1):
                self._emulate(self._noop, self._frame_skip)
                self._push_frame()
        return not self.ale.game_over()

    def _push_frame(self) -> None:
        """Drop the oldest frame of the stack and append the processed screen."""
        screen = self._screen
        self.ale.getScreenGrayscale(screen)
        if self._pooled:
            np.maximum(screen, self._before, out=screen)
        frame = self._process(screen)
        # Shifting all bytes by one moves every channel by one. The byte from the next pixel is overwritten.
        self._flat_stack[:-1] = self._flat_stack[1:]
        self._stack[..., -1] = frame

    def _info(self) -> dict[str, Any]:
        return {"lives": self.ale.lives(), "episode_frame_number": self.ale.getEpisodeFrameNumber()}
