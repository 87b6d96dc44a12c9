"""Callbacks: a program's own code that a training calls at its rows, episodes, checkpoints and end."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ga3c_tf.errors import UserError, did_you_mean
from ga3c_tf.runs.csv_rows import METRIC_COLUMNS, is_own

if TYPE_CHECKING:
    from ga3c_tf.systems.training import Training

Row = dict[str, float]


class Callback:
    """Base class of callbacks; override the methods that you need.

    They are called in the thread that trains, those with metrics first, else in the order of the list. Agents
    go on meanwhile, except in `training.at_rest()`. An error in one ends the run with a checkpoint, and
    `train` raises it.

    Attributes:
        metrics: names of the metrics that it logs, each with a slash, such as 'evaluation/score'.
        training: the training, from `begin` on. Its `path`, `config` and `agent_steps` say where it stands,
            `log` logs a metric, and `stop` ends it.
    """

    metrics: tuple[str, ...] = ()
    training: Training

    def begin(self, training: Training) -> None:
        """Take the training over, before its first step; an override must call this method."""
        self.training = training

    def wants_row(self) -> bool:
        """Return whether a row of metrics.csv is to be written now, between the regular ones."""
        return False

    def on_row(self, row: Row) -> None:
        """Be called with each row of metrics.csv, before it is written.

        Args:
            row: the columns of docs/metrics.md, `episodes`, `rolling_score`, `progress`, and the metrics of
                callbacks; not-a-number where there is no value.
        """

    def on_episode(self, episode: Row) -> None:
        """Be called with each row of episodes.csv, soon after the episode has ended."""

    def on_checkpoint(self, path: Path) -> None:
        """Be called with the folder of each checkpoint that was written."""

    def on_end(self, summary: dict[str, Any]) -> None:
        """Be called with the summary, when all is saved; not after an error."""


class Callbacks:
    """The callbacks of one training, and what they have logged since the last row.

    Attributes:
        metrics: names of the metrics that they log.

    Raises:
        UserError: one of them is no `Callback`, a metric has no slash in its name, or two log the same one.
    """

    def __init__(self, callbacks: Sequence[Callback]):
        for callback in callbacks:
            _check(callback)
        # Those that log come first, so that the others see what they have logged.
        self._callbacks = sorted(callbacks, key=lambda callback: not callback.metrics)
        self.metrics = tuple(name for callback in callbacks for name in dict.fromkeys(callback.metrics))
        if again := [name for name, count in Counter(self.metrics).items() if count > 1]:
            raise UserError(f"two callbacks log the metric {again[0]!r}; give one of them")
        self._wants_episodes = any(
            type(callback).on_episode is not Callback.on_episode for callback in callbacks
        )
        self._episodes: list[Row] = []
        self._checkpoints: list[Path] = []
        self._logged: Row = {}

    def begin(self, training: Training) -> None:
        """Hand the training to all callbacks."""
        for callback in self._callbacks:
            callback.begin(training)

    def log(self, values: Mapping[str, float]) -> None:
        """Add values to the row that is being made, or to the next one.

        Raises:
            UserError: no callback names such a metric.
        """
        for name, value in values.items():
            if name not in self.metrics:
                hint = did_you_mean(name, [*self.metrics])
                raise UserError(f"no callback names {name!r} among its metrics{hint}")
            self._logged[name] = float(value)

    def want_row(self) -> bool:
        """Return whether a callback wants a row now."""
        return any(callback.wants_row() for callback in self._callbacks)

    @property
    def has_logged(self) -> bool:
        """Whether there are values that no row has."""
        return bool(self._logged)

    def metrics_of(self, row: Mapping[str, Any]) -> Row:
        """Show a row to all callbacks; return the values of their metrics in it, not-a-number for none.

        What a callback logs meanwhile, the ones after it see.
        """
        given = {name: math.nan if value is None else value for name, value in row.items()}
        shown = {**dict.fromkeys((*METRIC_COLUMNS, *self.metrics), math.nan), **given, **self._logged}
        for callback in self._callbacks:
            callback.on_row(shown)
            shown |= self._logged
        self._logged = {}
        return {name: shown[name] for name in self.metrics}

    def episode_ended(self, episode: Row) -> None:
        """Note an episode; `tell` tells the callbacks of it."""
        if self._wants_episodes:
            self._episodes.append(episode)

    def checkpoint_written(self, path: Path) -> None:
        """Note a checkpoint; `tell` tells the callbacks of it."""
        self._checkpoints.append(path)

    def tell(self) -> None:
        """Tell the callbacks of the episodes and checkpoints since the last call; may raise their errors."""
        episodes, self._episodes = self._episodes, []
        checkpoints, self._checkpoints = self._checkpoints, []
        for callback in self._callbacks:
            for episode in episodes:
                callback.on_episode(episode)
            for path in checkpoints:
                callback.on_checkpoint(path)

    def end(self, summary: dict[str, Any]) -> None:
        """Tell the callbacks that the training has ended."""
        self.tell()
        for callback in self._callbacks:
            callback.on_end(summary)


def _check(callback: Any) -> None:
    """Refuse what is no callback, and names of metrics that are not those of own ones.

    Raises:
        UserError: the message says what would be right.
    """
    name = type(callback).__name__
    if not isinstance(callback, Callback):
        raise UserError(f"a callback is of the type {name}; it must be a ga3c_tf.callbacks.Callback")
    for metric in callback.metrics:
        if not is_own(metric):
            raise UserError(
                f"{name} names the metric {metric!r}; it must be like 'group/name', of letters and digits"
            )
