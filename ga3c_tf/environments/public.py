"""Environments for a user's program, which keep the whole contract of Gymnasium."""

from __future__ import annotations

import re
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from ga3c_tf.config import ATARI, Config
from ga3c_tf.config.migrations import SCHEMA, migrated, schema_version
from ga3c_tf.environments.environment import make_environment

ATTRIBUTES = ("ale", "get_action_meanings")
"""What programs expect of an environment beyond Gymnasium's interface; not every environment has it."""


class PublicEnvironment(gymnasium.Env):
    """The environment that agents play in, for a user's program and Gymnasium's wrappers.

    Agents copy each state into shared memory at once, so their environment may overwrite it. Here every state
    is an array of its own, a seed also seeds `np_random`, and `gymnasium.make(env.spec)` makes the same
    environment.

    Args:
        config: settings of the environment, as for `make_environment`, which says what errors there are.
        render_mode: None, 'rgb_array' or 'human'.

    Attributes:
        env: the environment that agents play in.
    """

    def __init__(self, config: Config, render_mode: str | None = None):
        self.env = make_environment(config, render_mode)
        self.observation_space = self.env.observation_space
        self.action_space = self.env.action_space
        self.metadata = {"render_modes": [], **self.env.metadata}
        self.render_mode = self.env.render_mode
        self.spec = _spec(config, render_mode, self.env.unwrapped.spec)
        for name in filter(self.env.has_wrapper_attr, ATTRIBUTES):
            setattr(self, name, self.env.get_wrapper_attr(name))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Start an episode. Return the state and info."""
        super().reset(seed=seed)
        if seed is not None:  # another stream than that which the environment inside begins with this seed
            self._np_random = self.np_random.spawn(1)[0]
        state, info = self.env.reset(seed=seed, options=options)
        return state.copy(), _as_dict(info)

    def step(self, action: int):
        """Take one step. Return the state, raw reward, terminated, truncated and info."""
        state, reward, terminated, truncated, info = self.env.step(action)
        return state.copy(), reward, terminated, truncated, _as_dict(info)

    def render(self):
        """Return what the environment inside draws."""
        return self.env.render()

    def close(self) -> None:
        """Close the environment inside."""
        self.env.close()


def make_public(settings: dict[str, Any], render_mode: str | None = None) -> PublicEnvironment:
    """Make the environment of recorded `settings`. Gymnasium calls this with what is in a spec."""
    return PublicEnvironment(Config.from_values(migrated(settings).settings), render_mode)


def _spec(config: Config, render_mode: str | None, inner: EnvSpec | None) -> EnvSpec:
    """Return a spec by which `gymnasium.make` remakes the environment, with what `inner` says of the game."""
    names = ("env_id", *ATARI) if config.env_id.startswith("ALE/") else ("env_id",)
    settings = {name: getattr(config, name) for name in names}
    name = re.sub(r"[^\w:.-]", "", config.env_id.rpartition("/")[2])
    return EnvSpec(
        f"ga3c_tf/{name}",
        entry_point=f"{__name__}:{make_public.__name__}",
        reward_threshold=inner.reward_threshold if inner else None,
        nondeterministic=inner.nondeterministic if inner else False,
        kwargs={"settings": {SCHEMA: schema_version(), **settings}, "render_mode": render_mode},
    )


def _as_dict(info: Any) -> dict[str, Any]:
    """Return the info of a step, or an empty one instead of what Gymnasium does not allow."""
    return info if isinstance(info, dict) else {}
