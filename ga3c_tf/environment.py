"""Environments whose observations are the states the network sees.

Atari frames become uint8 (84, 84, frame_stack) with the newest frame last; other small images stay uint8; everything
else becomes a float32 vector. Rewards stay raw, actions are 0..n-1, and reaching a time limit is reported as truncated.

A state is valid until the next `step` or `reset` of its environment, which may write the next one over it: copy it to
keep it. Importing this module loads neither OpenCV nor the emulator, so a CartPole agent stays small.
"""

from __future__ import annotations

import colorsys
import difflib
import functools
import importlib.util
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium import spaces

from ga3c_tf.config import Config, UserError
from ga3c_tf.user_code import import_users_module, one_line

FRAME_SIZE = 84
EMULATOR_HZ = 60
SMALLEST_SCREEN = 36  # pixels: an image at least this high and wide is a screen, a smaller one a grid of cells
_LUMA = (0.299, 0.587, 0.114)
_MINATAR_GAMES = ("Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders")
_MINATAR_IDS = [f"MinAtar/{game}-v{version}" for game in _MINATAR_GAMES for version in (0, 1)]
_LEGACY_ATARI = re.compile(r"([A-Za-z0-9]+?)(Deterministic|NoFrameskip)?(?:-v([045]))?")


@dataclass(frozen=True)
class EnvironmentSpec:
    """What the network and the shared memory must know of an environment.

    Attributes:
        state_shape: shape of one state, without a batch axis.
        state_dtype: 'uint8' (images) or 'float32' (vectors).
        num_actions: actions are 0..num_actions-1.
    """

    state_shape: tuple[int, ...]
    state_dtype: str
    num_actions: int


def make_environment(config: Config, render_mode: str | None = None) -> gymnasium.Env:
    """The environment `config` names, giving states.

    Args:
        config: the settings; those marked 'Atari' are used for ALE ids only.
        render_mode: None, 'rgb_array' (`render()` gives uint8 (height, width, 3)) or 'human' (a window).

    Returns:
        An environment with Gymnasium's interface; `reset(seed=s)` starts the same episode whenever s is the same.

    Raises:
        UserError: unknown id, missing package, actions that are not Discrete, or a render mode that is not offered.
    """
    env_id, _ = resolve_env_id(config.env_id)
    if env_id.startswith("ALE/"):
        return AtariEnvironment(config.replace(env_id=env_id), render_mode)
    env = _make_registered(env_id.rpartition(":")[2], render_mode)
    try:
        return StateEnvironment(env, env_id)
    except UserError:
        env.close()
        raise


def describe_environment(config: Config) -> EnvironmentSpec:
    """State shape, dtype and number of actions of the environment `config` names; makes one and closes it.

    Raises:
        UserError: as `make_environment`.
    """
    env = make_environment(config)
    states: Any = env.observation_space
    actions: Any = env.action_space
    try:
        return EnvironmentSpec(tuple(states.shape), states.dtype.name, int(actions.n))
    finally:
        env.close()


# ---------------------------------------------------------------------------------------------------------------- ids


def resolve_env_id(env_id: str) -> tuple[str, str | None]:
    """Today's id for `env_id`, and one line to show the user where it differs.

    `PongDeterministic-v0`, `PongNoFrameskip-v4`, `Pong-v4`, `Pong` and the like mean ALE/Pong-v5 with other settings
    of frame skip and sticky actions, which here come from the Config alone. `module:Name-v0` imports `module` first.

    Returns:
        The id and None, or the id of today and what the old one meant.

    Raises:
        UserError: unknown id (close ones are named), or its package is not installed.
    """
    module, colon, name = env_id.rpartition(":")
    if colon:
        import_users_module(module, env_id)
        resolved, note = resolve_env_id(name)
        return (resolved if resolved.startswith("ALE/") else f"{module}:{resolved}"), note
    if env_id.startswith("MinAtar/"):
        _register_minatar()
    if _is_registered_outside_ale(env_id):
        return env_id, None
    games = {known.removeprefix("ALE/").removesuffix("-v5"): known for known in atari_ids()}
    if env_id in games.values():
        return env_id, None
    legacy = _LEGACY_ATARI.fullmatch(env_id)
    if legacy and legacy[1] in games:
        return games[legacy[1]], _legacy_note(env_id, games[legacy[1]], legacy[2], legacy[3])
    raise UserError(f"unknown environment {env_id!r}{_close_ids(env_id)}")


def atari_ids() -> list[str]:
    """The Atari ids that can be played here, `ALE/<game>-v5`, sorted.

    Raises:
        UserError: ale-py is not installed.
    """
    roms = set(_load_ale().roms.get_all_rom_ids())
    return sorted(
        env_id
        for env_id, spec in gymnasium.registry.items()
        if env_id.startswith("ALE/") and spec.version == 5 and spec.kwargs.get("game") in roms
    )


def _is_registered_outside_ale(env_id: str) -> bool:
    spec = gymnasium.registry.get(env_id)
    return spec is not None and not str(spec.entry_point).startswith("ale_py")


def _legacy_note(env_id: str, today: str, kind: str | None, version: str | None) -> str:
    """What a legacy Atari id meant, from Gym's registration of it (SpaceInvaders' skip of 3 is Gym's own exception)."""
    if version in (None, "5"):
        return f"{env_id} is called {today} today; --frame-skip and --repeat-action-probability set how it is played"
    fixed = "3" if today == "ALE/SpaceInvaders-v5" else "4"
    skip = {"Deterministic": fixed, "NoFrameskip": "1", None: "drawn from 2 to 4"}[kind]
    sticky = "0.25" if version == "0" else "0"
    return (
        f"{env_id} is called {today} today; it meant frame skip {skip} and repeat action probability {sticky}, "
        "which --frame-skip and --repeat-action-probability now set"
    )


def _close_ids(env_id: str) -> str:
    """A hint such as '; close: ALE/Pong-v5': compared without namespace, version and case, then ordered with them."""

    def bare(name: str) -> str:
        return re.sub(r"-v\d+$", "", name.rpartition("/")[2]).casefold()

    known: dict[str, list[str]] = {}
    registered = [name for name in gymnasium.registry if _is_registered_outside_ale(name)]
    for name in sorted({*registered, *atari_ids(), *_MINATAR_IDS}, reverse=True):
        known.setdefault(bare(name), []).append(name)
    close = difflib.get_close_matches(bare(env_id), known, n=3, cutoff=0.6)
    names = sorted(
        (name for key in close for name in known[key]),
        reverse=True,
        key=lambda name: difflib.SequenceMatcher(None, name, env_id).ratio(),
    )
    return f"; close: {', '.join(names[:3])}" if names else "; ALE/Pong-v5 and CartPole-v1 are two that exist"


def _load_ale() -> types.ModuleType:
    """ale_py, which registers its ids on import, with its banner silenced."""
    try:
        import ale_py
        import ale_py.roms
    except ImportError:
        raise UserError("Atari games need the package ale-py: pip install ale-py") from None
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    return ale_py


def _register_minatar() -> None:
    """Adds MinAtar's ids to Gymnasium's registry, which its package does only on request."""
    if "MinAtar/Breakout-v1" in gymnasium.registry:
        return
    if importlib.util.find_spec("minatar") is None:
        raise UserError("MinAtar environments need the package minatar: pip install ga3c_tf[minatar]")
    with _without_plotting():
        from minatar.gym import register_envs
    register_envs()


@contextmanager
def _without_plotting() -> Iterator[None]:
    """Spares MinAtar's import of seaborn: 1.4 s and 137 MiB per process for a palette that `MinAtarEnvironment` has."""
    matplotlib: Any = types.ModuleType("matplotlib")
    matplotlib.pyplot = matplotlib.colors = None
    stubs = {"matplotlib": matplotlib, "seaborn": types.ModuleType("seaborn")}
    added = [name for name in stubs if sys.modules.setdefault(name, stubs[name]) is stubs[name]]
    try:
        yield
    finally:
        for name in added:
            del sys.modules[name]


# -------------------------------------------------------------------------------------------------------------- Atari


class AtariEnvironment(gymnasium.Env):
    """An Atari game giving uint8 (84, 84, frame_stack) states, newest frame last.

    'standard' is Gymnasium's AtariPreprocessing (Machado et al. 2018): maximum over the last two raw frames of a step,
    OpenCV area resize, the first frame repeated to fill the stack. It calls the emulator itself, which spares what
    Gymnasium computes for every raw frame. A step cut short by the end of the episode shows its last raw frame.

    'nvlabs' is the authors' Environment.py: the last raw frame, stretched and resized (`stretch_and_resize`), and no-op
    steps after a reset until `frame_stack` real frames exist. Rewards of these no-ops count for nothing, as theirs.
    Gray levels are the emulator's own: the authors' weighted sum of RGB, rounded to whole levels.
    """

    def __init__(self, config: Config, render_mode: str | None = None):
        """Loads the game `config.env_id`, an id of `atari_ids`.

        Raises:
            UserError: a render mode that is not offered.
        """
        _load_ale()
        # obs_type 'ram' because a reset of the game fetches an observation that nobody looks at.
        game = _make_registered(
            config.env_id,
            render_mode,
            obs_type="ram",
            frameskip=1,
            full_action_space=config.full_action_space,
            repeat_action_probability=config.repeat_action_probability,
        )
        self._game = cast(Any, game.unwrapped)
        self.ale = self._game.ale
        self.spec, self.render_mode = self._game.spec, render_mode
        self.metadata = {**self._game.metadata, "render_fps": max(1, EMULATOR_HZ // config.frame_skip)}
        self._actions = list(self._game._action_set)
        self._noop = self._actions[self._game.get_action_meanings().index("NOOP")]
        self._frame_skip, self._noop_max = config.frame_skip, config.noop_max
        self._life_loss_ends = config.terminal_on_life_loss
        self._lives = 0

        self._standard = config.preprocessing == "standard"
        self._pools = self._standard and config.frame_skip > 1
        self._before, self._screen = np.empty((2, *self.ale.getScreenDims()), np.uint8)
        self._stack = np.zeros((FRAME_SIZE, FRAME_SIZE, config.frame_stack), np.uint8)
        self._flat_stack = self._stack.reshape(-1)
        self._process = _area_resize() if self._standard else stretch_and_resize

        self.observation_space = spaces.Box(0, 255, self._stack.shape, np.uint8)
        self.action_space = spaces.Discrete(len(self._actions))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Starts an episode; a seed restarts emulator, sticky actions and no-ops alike.

        Returns:
            The state, and an info dict with 'lives' and 'episode_frame_number' (raw frames).
        """
        self._game.reset(seed=seed)
        while not self._begin():
            self._game.reset()
        return self._stack, self._info()

    def step(self, action: int):
        """Repeats `action` for frame_skip raw frames, or until the episode ends.

        Returns:
            State, raw reward, terminated, truncated (the game's own limit of raw frames), info as in `reset`.
        """
        reward, life_lost = self._emulate(self._actions[action], self._frame_skip)
        self._push_frame()
        terminated = life_lost or self.ale.game_over(with_truncation=False)
        return self._stack, reward, terminated, self.ale.game_truncated(), self._info()

    def render(self) -> np.ndarray | None:
        """The screen, uint8 (height, width, 3), for render mode 'rgb_array'."""
        return self._game.render()

    def _emulate(self, action: Any, frames: int) -> tuple[float, bool]:
        """Plays `frames` raw frames; gives their reward and whether a lost life ended the episode."""
        ale, reward, life_lost, self._pooled = self.ale, 0.0, False, False
        for left in range(frames - 1, -1, -1):
            reward += ale.act(action)
            if self._life_loss_ends:
                lives = ale.lives()
                life_lost, self._lives = lives < self._lives, lives
            if life_lost or ale.game_over():
                break
            if left == 1 and self._pools:
                ale.getScreenGrayscale(self._before)
                self._pooled = True
        return reward, life_lost

    def _begin(self) -> bool:
        """Plays the no-ops of a new episode and fills the stack; False if the game ended meanwhile."""
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
        """Moves the stack back by one frame and puts the processed screen last."""
        screen = self._screen
        self.ale.getScreenGrayscale(screen)
        if self._pooled:
            np.maximum(screen, self._before, out=screen)
        frame = self._process(screen)
        # One byte to the left moves every channel by one; what crosses into the next pixel is overwritten.
        self._flat_stack[:-1] = self._flat_stack[1:]
        self._stack[..., -1] = frame

    def _info(self) -> dict[str, Any]:
        return {"lives": self.ale.lives(), "episode_frame_number": self.ale.getEpisodeFrameNumber()}


def stretch_and_resize(frame: np.ndarray) -> np.ndarray:
    """One frame as the authors' network saw it, before x / 128 - 1.

    Their Environment.py takes 0.299 R + 0.587 G + 0.114 B and scipy.misc.imresize(..., 'bilinear'), which stretches
    the frame's own minimum..maximum to 0..255 (a constant frame becomes black) and resizes by Pillow's bilinear
    filter, whose support grows with the scale. A gray frame of whole levels differs from the RGB one by the rounding of
    each level, at most half a level times 255 / (maximum - minimum).

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
    """`gray` with low..high stretched to 0..255 and rounded half up, uint8 (scipy's bytescale)."""
    scaled = (gray - low) * (255.0 / ((high - low) or 1.0))
    return (scaled.clip(0, 255) + 0.5).astype(np.uint8)


@functools.lru_cache(maxsize=1024)
def _stretch_table(low: int, high: int) -> bytes:
    """The 256 stretched values of whole gray levels, for bytes.translate."""
    return _stretch(np.arange(256), low, high).tobytes()


def _area_resize() -> Callable[[np.ndarray], np.ndarray]:
    """OpenCV's area resize of gray uint8 (height, width) to uint8 (84, 84), always into one buffer."""
    import cv2

    size = (FRAME_SIZE, FRAME_SIZE)
    return functools.partial(cv2.resize, dsize=size, dst=np.empty(size, np.uint8), interpolation=cv2.INTER_AREA)


# ------------------------------------------------------------------------------------------------ other environments


class StateEnvironment(gymnasium.Wrapper):
    """Any other environment, its observations as states and its actions from 0."""

    def __init__(self, env: gymnasium.Env, env_id: str):
        """Wraps `env`, called `env_id` in messages.

        Raises:
            UserError: actions that are not Discrete, or observations that cannot become a vector.
        """
        super().__init__(env)
        if not isinstance(env.action_space, spaces.Discrete):
            raise UserError(
                f"{env_id} has actions {_one_line(env.action_space)}; this needs Discrete actions (one of "
                "n), as LunarLander-v3 or CartPole-v1 have"
            )
        self._first_action = int(env.action_space.start)
        self.action_space = spaces.Discrete(int(env.action_space.n))
        self.observation_space, self._to_state = _state_reader(env.observation_space, env_id)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Starts an episode; gives the state and the environment's info."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._to_state(observation), info

    def step(self, action: int):
        """One step; gives state, raw reward, terminated, truncated and the environment's info."""
        observation, reward, terminated, truncated, info = self.env.step(int(action) + self._first_action)
        return self._to_state(observation), float(reward), bool(terminated), bool(truncated), info

    def render(self):
        """The environment's own picture.

        Raises:
            UserError: a package for drawing is missing.
        """
        try:
            return self.env.render()
        except gymnasium.error.DependencyNotInstalled as error:
            raise UserError(f"cannot draw: {_one_line(error)}") from None


class MinAtarEnvironment(gymnasium.Wrapper):
    """Adds to MinAtar a whole seeding and a picture without seaborn."""

    cell = 16

    def __init__(self, env: gymnasium.Env):
        super().__init__(env)
        self._game = cast(Any, env.unwrapped).game
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 15}
        planes: Any = env.observation_space
        channels = planes.shape[-1]
        colours = [colorsys.hsv_to_rgb(channel / channels, 0.7, 1.0) for channel in range(channels)]
        self._palette = np.array([(0, 0, 0), *colours]) * 255

    @property
    def render_mode(self) -> str:  # type: ignore[override]
        """Always 'rgb_array': drawing costs nothing before it is asked for."""
        return "rgb_array"

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Starts an episode; a seed also forgets the last action, which MinAtar's sticky actions would repeat."""
        if seed is not None:
            self._game.last_action = 0
            seed %= 2**32  # the largest seed of its RandomState
        return self.env.reset(seed=seed, options=options)

    def render(self) -> np.ndarray:
        """One coloured square per cell, the highest plane on top: uint8 (160, 160, 3)."""
        planes = self._game.state()
        top = (planes * np.arange(1, planes.shape[-1] + 1)).max(axis=-1)
        return self._palette[top].astype(np.uint8).repeat(self.cell, axis=0).repeat(self.cell, axis=1)


def _make_registered(env_id: str, render_mode: str | None, **kwargs: Any) -> gymnasium.Env:
    """The registered environment, without checkers and without the warnings of its making."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if env_id.startswith("MinAtar/"):
                return _make_minatar(env_id, render_mode)
            if render_mode is not None:  # an environment without pictures need not know the word
                kwargs["render_mode"] = render_mode
            env = gymnasium.make(env_id, disable_env_checker=True, **kwargs)
    except Exception as error:  # whatever the maker of an environment raises
        raise UserError(f"{env_id} cannot be made: {one_line(error)}") from error
    if render_mode is not None and render_mode not in env.metadata.get("render_modes", ()):
        offered = ", ".join(env.metadata.get("render_modes", ())) or "none"
        env.close()
        raise UserError(f"{env_id} has no render mode {render_mode!r}; it offers: {offered}")
    return env


def _make_minatar(env_id: str, render_mode: str | None) -> gymnasium.Env:
    if render_mode not in (None, "rgb_array", "human"):
        raise UserError(f"{env_id} has no render mode {render_mode!r}; it offers: rgb_array, human")
    env = MinAtarEnvironment(gymnasium.make(env_id, disable_env_checker=True))
    return gymnasium.wrappers.HumanRendering(env) if render_mode == "human" else env


def _state_reader(space: spaces.Space, env_id: str) -> tuple[spaces.Box, Callable[[Any], np.ndarray]]:
    """The space of states for observations of `space`, and the function from the one to the other.

    Screens (uint8 of rank 3, or of rank 2 as one channel) and planes of 0 and 1 stay uint8. Other bytes become float32
    shares of their highest value, as images or vectors; other Boxes and, one-hot where they are discrete, all spaces
    that Gymnasium can flatten become float32 vectors.

    Raises:
        UserError: observations of varying size, or of none.
    """
    if not space.is_np_flattenable or spaces.flatdim(space) == 0:
        raise UserError(f"{env_id} has observations {_one_line(space)}; this needs ones of a fixed size, such as Box")
    vector = spaces.Box(-np.inf, np.inf, (spaces.flatdim(space),), np.float32)
    if not isinstance(space, spaces.Box):
        return vector, lambda value: np.asarray(spaces.flatten(space, value), np.float32)
    if space.dtype not in (np.uint8, np.bool_):
        return vector, lambda values: np.asarray(values, np.float32).reshape(-1)
    highest = float(space.high.max())
    shape = {2: (*space.shape, 1), 3: space.shape}.get(len(space.shape), (space.high.size,))
    if len(shape) == 3 and (highest <= 1 or min(shape[:2]) >= SMALLEST_SCREEN):
        return spaces.Box(0, int(highest), shape, np.uint8), lambda image: image.view(np.uint8).reshape(shape)
    scale = np.float32(1 / max(1.0, highest))
    return spaces.Box(0, 1, shape, np.float32), lambda values: values.reshape(shape) * scale


def _one_line(text: Any) -> str:
    return " ".join(str(text).split())


def modules_used(config: Config) -> list[str]:
    """Modules that an environment of `config` will import: loaded once, agent processes share them."""
    if not config.env_id.startswith("ALE/"):
        return []
    return ["ale_py", "cv2" if config.preprocessing == "standard" else "PIL.Image"]
