"""A training run: train, resume, and read what it has recorded."""

from __future__ import annotations

import gc
import secrets
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from ga3c_tf.api.interrupts import stopped_by_signals
from ga3c_tf.api.keywords import RunChanges, TrainSettings
from ga3c_tf.callbacks import Callback
from ga3c_tf.config import MOST_EPISODE_STEPS, Config
from ga3c_tf.config.presets import BUDGETS, USUAL_PRESET
from ga3c_tf.console import say, warn
from ga3c_tf.errors import UserError
from ga3c_tf.host.process_state import global_generators_kept
from ga3c_tf.host.scheduling import scheduling_restored
from ga3c_tf.plugins import objects_called
from ga3c_tf.plugins.arguments import SETTING_OF, by_config_name, split_functions
from ga3c_tf.runner import new_training, resumed_training
from ga3c_tf.runs.csv_rows import EPISODE_COLUMNS, metric_columns, read_columns
from ga3c_tf.runs.folder import RunFolder, read_config
from ga3c_tf.trained.agent import Agent, Scores, load_agent

if TYPE_CHECKING:
    import gymnasium

    from ga3c_tf.systems.training import Training


class Run:
    """A training run in its run folder, as `train` and `resume` return it.

    `Run(path)` opens an existing run folder.

    Args:
        path: the run folder.
        summary: summary of a training session, as described below.
        trust_code: whether to import custom code that the run's settings name.
        functions: the functions `env`, `network` and `loss` by name, if the run was trained with functions by
            another program.

    Attributes:
        path: the run folder.
        config: the run's settings.
        summary: summary of the training session that returned this object: why it ended (key 'ended'),
            counters, rates, rolling score and checkpoint. It is empty if the run folder was only opened.

    Raises:
        UserError: `path` is not a run folder, or its settings are damaged.
    """

    def __init__(
        self,
        path: str | Path,
        summary: dict[str, Any] | None = None,
        trust_code: bool = False,
        functions: dict[str, Callable[..., Any]] | None = None,
    ):
        self.path = Path(path)
        self._trust_code = trust_code
        self._functions = functions or {}
        self.summary = summary or {}
        self.config = read_config(self.path)

    def __repr__(self) -> str:
        text = f"<Run {self.path}: {self.config.env_id}, {self.config.system}"
        if not self.summary:
            return f"{text}>"
        score = self.summary["rolling_score"]  # None in a summary that was read from JSON
        rolling = "-" if score is None else f"{score:.1f}"
        return f"{text}, {self.summary['agent_steps']:,} agent steps, rolling score {rolling}>"

    def agent(self, checkpoint: str | int = "best", **options: Any) -> Agent:
        """Load the agent of a checkpoint.

        Args:
            checkpoint: 'best' (highest rolling score), 'latest', or the agent steps of a checkpoint.
            options: other keyword arguments of `load_agent`, except `trust_code`.
        """
        given = {**self._functions, **options}
        return load_agent(self.path, checkpoint=checkpoint, trust_code=self._trust_code, **given)

    def evaluate(
        self,
        episodes: int = 30,
        checkpoint: str | int = "best",
        seed: int = 0,
        max_episode_steps: int = MOST_EPISODE_STEPS,
        **options: Any,
    ) -> Scores:
        """Play whole episodes with the agent of a checkpoint and return their raw scores.

        Args:
            episodes: number of episodes.
            checkpoint: 'best' (highest rolling score), 'latest', or the agent steps of a checkpoint.
            seed: seed of the environments and of the sampled actions; the same seed gives the same scores.
            max_episode_steps: number of agent steps after which an episode is ended.
            options: as for `agent`, such as `greedy=True`.
        """
        return self.agent(checkpoint, seed=seed, **options).evaluate(episodes, seed, max_episode_steps)

    def resume(self, **changes: Any) -> Run:
        """Continue the training from the newest checkpoint and return the run.

        Args:
            changes: keyword arguments of `ga3c_tf.resume`, except `trust_code`.
        """
        return resume(self.path, trust_code=self._trust_code, **{**self._functions, **changes})

    def metrics(self) -> dict[str, np.ndarray]:
        """Return the columns of metrics.csv by name, those of callbacks too, each float64 [rows].

        An empty cell is not-a-number.
        """
        return dict(read_columns(self.path / "metrics.csv", metric_columns(self.path)))

    def episodes(self) -> dict[str, np.ndarray]:
        """Return the columns of episodes.csv by name, each float64 [episodes], like 'score' and 'length'."""
        return dict(read_columns(self.path / "episodes.csv", EPISODE_COLUMNS))


@global_generators_kept()
def train(
    env: str | gymnasium.Env | Callable[..., Any],
    *,
    preset: str = USUAL_PRESET,
    progress: bool = True,
    callbacks: Callback | Sequence[Callback] | None = None,
    **settings: Unpack[TrainSettings],
) -> Run:
    """Train an agent until its budget is reached, and return the run.

    Without a budget (`steps`, `minutes`, `episodes`, or the preset's) or a `target_score`, training continues
    until Ctrl-C.
    Ctrl-C ends any training with a checkpoint; `run.summary['ended']` is 'interrupted' then. SIGTERM and
    SIGHUP end the program after it.

    Args:
        env: Gymnasium id such as 'CartPole-v1' or 'ALE/Pong-v5', an environment, of which each agent gets a
            copy as it was made, or a function with a keyword argument `render_mode` that makes one.
        preset: name of the preset to start from, such as 'tuned' (Atari), 'tuned-small' or 'tuned-vector';
            `settings` override its values.
        progress: whether to print a line at the start and every few seconds.
        callbacks: one or several objects of `ga3c_tf.callbacks` or your own, called during the training; None
            is none.
        settings: any setting of `ga3c-tf train`, by its name in `Config`, such as `minutes=2`, `seed=1` or
            `num_agents=8`. None is the same as leaving a setting out. Without `seed`, a random seed is drawn.
            `network` may be a `keras.Model`, whose weights are the initial ones, or a function (state_shape,
            state_dtype, num_actions) that returns one; `loss` may be a function (batch, config) that returns
            (policy loss, value loss, entropy). Rewards are clipped to [-1, 1] unless `clip_rewards=False`.
            Remote agents need the command line, because they need its option `--ray`.

    Returns:
        The run, with its folder, settings and summary.

    Raises:
        UserError: a setting is invalid; the message says what would be right.
        Diverged: the training diverged; the last checkpoint is kept.
        RuntimeError: too many agent processes failed, or the last checkpoint could not be written.
        Exception: an error of a callback, after a checkpoint.
    """
    if env is None:
        raise UserError("train needs an environment, such as 'CartPole-v1'")
    given = by_config_name(
        {"env": env, **{name: value for name, value in settings.items() if value is not None}}
    )
    config = Config.from_preset(preset, {"seed": secrets.randbelow(2**31), **given})
    _free_ended_trainings()
    training, folder = new_training(
        config, _command("train"), warn, given=given, callbacks=_several(callbacks)
    )
    return _run(training, folder, progress, trust_code=True)


@global_generators_kept()
def resume(
    path: str | Path,
    *,
    progress: bool = True,
    trust_code: bool = False,
    callbacks: Callback | Sequence[Callback] | None = None,
    **changes: Unpack[RunChanges],
) -> Run:
    """Continue the training of a run folder from its newest checkpoint.

    Args:
        path: the run folder.
        progress: as for `train`.
        trust_code: whether to import custom code that the run's settings name.
        callbacks: as for `train`; those of earlier sessions are not recorded.
        changes: settings to change, such as `learning_rate` or a new budget (`steps`, `minutes` or
            `episodes`). A budget is a total that includes earlier sessions; a budget of None is ignored. If
            `env`, `network` or `loss` were functions of another program, pass them again. Settings that hold
            for a whole run (`ga3c_tf.config.FIXED`), such as the environment or the network, are rejected.

    Returns:
        The run, with its folder, settings and the summary of this session.

    Raises:
        UserError: `path` is not a run folder, the run is in use or has reached its budget or target score, or
            a change is invalid.
        Diverged: as for `train`.
        RuntimeError: as for `train`.
        Exception: as for `train`.
    """
    config = read_config(path)
    given = {name: value for name, value in changes.items() if value is not None or name not in BUDGETS}
    functions, left = split_functions(config, given)
    _free_ended_trainings()
    with objects_called(
        {getattr(config, SETTING_OF[name]): function for name, function in functions.items()}
    ):
        training, folder = resumed_training(
            Path(path),
            by_config_name(left),
            _command("resume"),
            warn,
            trust_code,
            callbacks=_several(callbacks),
        )
        return _run(training, folder, progress, trust_code, functions)


def _run(
    training: Training,
    folder: RunFolder,
    progress: bool,
    trust_code: bool,
    functions: dict[str, Callable[..., Any]] | None = None,
) -> Run:
    from ga3c_tf.status import PlainStatus, beginning

    report = PlainStatus().show if progress else lambda row: None
    with closing(folder), scheduling_restored(), stopped_by_signals(training):
        if progress:
            say(beginning(folder.config, folder.path))
        summary = training.run(report)
    return Run(folder.path, summary, trust_code, functions)


def _several(callbacks: Callback | Sequence[Callback] | None) -> Sequence[Callback]:
    if callbacks is None:
        return []
    return callbacks if isinstance(callbacks, Sequence) else [callbacks]


def _command(function: str) -> list[str]:
    return ["python", Path(sys.argv[0]).name or "-", f"(ga3c_tf.{function})"]


def _free_ended_trainings() -> None:
    """Free the pipes and the memory of trainings that have ended in this process.

    The objects of a training refer to each other, so Python frees them only when its garbage collector runs.
    A script that trains many times would run out of file descriptors before that.
    """
    gc.collect()
