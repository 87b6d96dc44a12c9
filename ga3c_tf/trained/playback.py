"""Shows a trained agent at play, in a video file or in a window."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from ga3c_tf.config import MOST_EPISODE_STEPS
from ga3c_tf.environments.environment import make_limited_environment
from ga3c_tf.environments.random_streams import EVALUATION, global_generators_seeded
from ga3c_tf.errors import UserError
from ga3c_tf.host.process_state import WorkingFolder
from ga3c_tf.plugins import users_errors
from ga3c_tf.trained.policies import TrainedAgent
from ga3c_tf.trained.video import VideoFile, check_display, check_video

USUAL_RATE = 30
"""Frames per second of environments that do not say it."""
NO_DISPLAY = {"SDL_VIDEODRIVER": "dummy"}
"""Environment variables by which pygame draws without a display."""
WINDOW = {
    "SDL_VIDEODRIVER": "x11,wayland",
    "SDL_RENDER_DRIVER": "software",
    "SDL_FRAMEBUFFER_ACCELERATION": "0",
}
"""Environment variables by which pygame and the emulator draw in a window, on Linux.

Without the first, they would draw into memory where a display does not answer. Without the others, they would
draw by OpenGL, whose software version crashes in a process that has loaded TensorFlow: both contain LLVM.
"""


Report = Callable[[list[float]], None]


def record(
    agent: TrainedAgent,
    episodes: int,
    seed: int,
    file: Path,
    most_steps: int = MOST_EPISODE_STEPS,
    report: Report = lambda scores: None,
) -> list[float]:
    """Write a video of whole episodes at the game's own speed; return their raw scores.

    Args:
        agent: the agent that plays.
        episodes: number of episodes.
        seed: seed of the environment.
        file: file to write, .mp4 (H.264) or .gif.
        most_steps: number of agent steps after which an episode is ended.
        report: called with the scores before the environment is closed, which may hang.

    Raises:
        UserError: as for `check_video`, or the environment draws no pictures.
        VideoNotWritten: the file cannot be written.
    """
    check_video(file)
    absolute = file.absolute()
    with (
        _variables(NO_DISPLAY),
        global_generators_seeded(seed, EVALUATION, 0),
        WorkingFolder(),
        contextlib.closing(make_limited_environment(agent.config, most_steps, "rgb_array")) as game,
    ):
        video = VideoFile(absolute, game.metadata.get("render_fps") or USUAL_RATE)
        try:
            scores = _play(agent, game, episodes, seed, lambda: video.append(_picture(game)))
            video.finish()
            report(scores)
        finally:
            video.discard()
    return scores


def play_window(
    agent: TrainedAgent,
    episodes: int,
    seed: int,
    most_steps: int = MOST_EPISODE_STEPS,
    report: Report = lambda scores: None,
) -> list[float]:
    """Play whole episodes in a window; return their raw scores.

    Args:
        agent: the agent that plays.
        episodes: number of episodes.
        seed: seed of the environment.
        most_steps: number of agent steps after which an episode is ended.
        report: called with the scores before the environment is closed, which may hang.

    Raises:
        UserError: as for `check_display`, the environment has no window, or none can be opened.
    """
    check_display()
    with (
        _variables(WINDOW if sys.platform == "linux" else {}),
        global_generators_seeded(seed, EVALUATION, 0),
        WorkingFolder(),
        contextlib.closing(make_limited_environment(agent.config, most_steps, "human")) as game,
    ):
        with users_errors("no window can be opened"):
            game.reset(seed=seed)
        scores = _play(agent, game, episodes, seed, lambda: None)
        report(scores)
    return scores


@contextlib.contextmanager
def _variables(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables during the block, except those that the user has set."""
    added = {name: value for name, value in values.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def _picture(environment: gymnasium.Env) -> np.ndarray:
    """Return the picture of the environment, uint8 [height, width] or [height, width, 3 or 4].

    Raises:
        UserError: it draws none, or something else.
    """
    with users_errors("this environment draws no pictures"):
        drawn: Any = environment.render()
        picture = np.asarray(drawn)
    if drawn is None:
        raise UserError("this environment draws no pictures")
    if picture.ndim == 3 and picture.shape[2] == 1:
        picture = picture[..., 0]
    of_a_picture = picture.size and (picture.ndim == 2 or (picture.ndim == 3 and picture.shape[2] in (3, 4)))
    if not of_a_picture or picture.dtype.kind not in "ui" or picture.min() < 0 or picture.max() > 255:
        raise UserError(
            f"this environment draws {picture.dtype} of shape {picture.shape}; "
            "a picture is uint8 [height, width, 3]"
        )
    return picture.astype(np.uint8, copy=False)


def _play(
    agent: TrainedAgent, environment: gymnasium.Env, episodes: int, seed: int, on_state: Callable[[], None]
) -> list[float]:
    """Play whole episodes, call `on_state` at each state, and return the raw scores."""
    scores = []
    for episode in range(episodes):
        state, _ = environment.reset(seed=seed if episode == 0 else None)
        agent.begin()
        score = 0.0
        done = False
        on_state()
        while not done:
            state, reward, terminated, truncated, _ = environment.step(int(agent.act(state[None])[0]))
            score = score + float(reward)
            done = bool(terminated or truncated)
            on_state()
        scores.append(score)
    return scores
