"""MinAtar's games: registration, complete seeding, and rendering without seaborn."""

from __future__ import annotations

import colorsys
import importlib.util
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import gymnasium
import numpy as np

from ga3c_tf.errors import UserError

MINATAR_GAMES = ("Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders")
MINATAR_IDS = [f"MinAtar/{game}-v{version}" for game in MINATAR_GAMES for version in (0, 1)]


def register_minatar() -> None:
    """Add MinAtar's ids to Gymnasium's registry, which its package does only on request.

    Raises:
        UserError: the package minatar is not installed.
    """
    if "MinAtar/Breakout-v1" in gymnasium.registry:
        return
    if importlib.util.find_spec("minatar") is None:
        raise UserError("MinAtar environments need the package minatar: pip install '.[minatar]' in a clone")
    with _without_plotting():
        from minatar.gym import register_envs
    register_envs()


@contextmanager
def _without_plotting() -> Iterator[None]:
    """Replace seaborn and matplotlib by stubs during the block, unless they are imported already.

    Importing seaborn takes 1.4 s and 137 MiB per process. MinAtar uses it only for a palette, which
    `MinAtarEnvironment` makes itself.
    """
    matplotlib: Any = types.ModuleType("matplotlib")
    matplotlib.pyplot = matplotlib.colors = None
    stubs = {"matplotlib": matplotlib, "seaborn": types.ModuleType("seaborn")}
    added = [name for name in stubs if sys.modules.setdefault(name, stubs[name]) is stubs[name]]
    try:
        yield
    finally:
        for name in added:
            del sys.modules[name]


class MinAtarEnvironment(gymnasium.Wrapper):
    """Wraps a MinAtar game to add complete seeding and rendering without seaborn."""

    cell = 16

    def __init__(self, env: gymnasium.Env):
        super().__init__(env)
        self._game = cast(Any, env.unwrapped).game
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 15}
        planes: Any = env.observation_space
        channels = planes.shape[-1]
        colors = [colorsys.hsv_to_rgb(channel / channels, 0.7, 1.0) for channel in range(channels)]
        self._palette = np.array([(0, 0, 0), *colors]) * 255

    @property
    def render_mode(self) -> str:  # type: ignore[override]
        """Render mode, always 'rgb_array': rendering costs nothing until `render` is called."""
        return "rgb_array"

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Start an episode. A seed also clears the last action, which sticky actions could repeat."""
        if seed is not None:
            self._game.last_action = 0
            seed %= 2**32  # NumPy's RandomState, which MinAtar uses, takes seeds below 2**32
        return self.env.reset(seed=seed, options=options)

    def get_action_meanings(self) -> list[str]:
        """Return the letter of each action: n (no-op), l, u, r, d or f (fire)."""
        game = cast(Any, self.env.unwrapped)
        return [game.game.env.action_map[action] for action in game.action_set]

    def render(self) -> np.ndarray:
        """Return a picture with a colored square per cell, the highest plane on top: uint8 (160, 160, 3)."""
        planes = self._game.state()
        top = (planes * np.arange(1, planes.shape[-1] + 1)).max(axis=-1)
        return self._palette[top].astype(np.uint8).repeat(self.cell, axis=0).repeat(self.cell, axis=1)


def make_minatar(env_id: str, render_mode: str | None) -> gymnasium.Env:
    """Make the MinAtar game registered as `env_id`.

    Raises:
        UserError: the game does not offer the render mode.
    """
    if render_mode not in (None, "rgb_array", "human"):
        raise UserError(f"{env_id} has no render mode {render_mode!r}; it offers: rgb_array, human")
    env = MinAtarEnvironment(gymnasium.make(env_id, disable_env_checker=True))
    return gymnasium.wrappers.HumanRendering(env) if render_mode == "human" else env
