"""Callbacks for `ga3c_tf.train(..., callbacks=[...])`: evaluation, early stop, and Optuna's pruning.

```python
from ga3c_tf.callbacks import EarlyStop, Evaluate

callbacks = [Evaluate(every=50_000), EarlyStop("evaluation/score", patience=5)]
ga3c_tf.train("CartPole-v1", preset="tuned-vector", callbacks=callbacks)
```
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from ga3c_tf.console import warn
from ga3c_tf.errors import UserError, did_you_mean
from ga3c_tf.runs.folder import as_published
from ga3c_tf.systems.callbacks import Callback, Row
from ga3c_tf.trained.weights import BEST, SCORE, packed_weights, save_weights

if TYPE_CHECKING:
    from ga3c_tf.systems.training import Training

__all__ = ["BEST", "Callback", "EarlyStop", "Evaluate", "OptunaPruning"]

SCORE_METRIC = "evaluation/score"


class Evaluate(Callback):
    """Evaluates the agent every so many agent steps, and keeps the weights with the highest mean score.

    It plays whole episodes with sampled actions and raw scores, as `Agent.evaluate` does, and adds a row to
    metrics.csv. Training rests meanwhile, and its clock stands (with A3C, both go on). The mean
    is the metric `evaluation/score`. The best weights are in the folder `best_evaluated` of the run.

    Args:
        every: agent steps between two evaluations.
        episodes: number of episodes of each.
        seed: seed of the environments and of the sampled actions, the same for all evaluations.

    Attributes:
        best: highest mean score so far, that of earlier sessions included; -infinity before the first.

    Raises:
        UserError: `every` or `episodes` is less than 1.
    """

    metrics = (SCORE_METRIC,)

    def __init__(self, every: int, episodes: int = 10, seed: int = 0):
        if min(every, episodes) < 1:
            raise UserError(f"Evaluate(every={every}, episodes={episodes}): both must be at least 1")
        self.best = -math.inf
        self._every = every
        self._episodes = episodes
        self._seed = seed

    def begin(self, training: Training) -> None:
        super().begin(training)
        self._evaluated = training.agent_steps // self._every
        self.best = -math.inf
        file = training.path / BEST / SCORE
        if file.exists():
            try:
                self.best = float(json.loads(file.read_text())["mean"])
            except (OSError, ValueError, KeyError, TypeError):
                warn(f"{file} is damaged; the next evaluation counts as the best one")

    def wants_row(self) -> bool:
        return self.training.agent_steps // self._every != self._evaluated

    def on_row(self, row: Row) -> None:
        if self.training.session.stopping or not self.wants_row():
            return
        self._evaluated = self.training.agent_steps // self._every
        with self.training.at_rest():
            self.training.session.model.align()
            score = self._score()
            if score and score["mean"] > self.best:
                self._save(score)
        if score:
            self.training.log({SCORE_METRIC: score["mean"]})

    def on_end(self, summary: dict[str, Any]) -> None:
        """Add the best evaluation so far to the summary: its mean score, and the folder of its weights."""
        if self.best > -math.inf:
            summary.update(best_score=self.best, best_evaluated=str(self.training.path / BEST))

    def _score(self) -> dict[str, Any] | None:
        """Return the summary of an evaluation; None if it failed, or if the training was asked to end."""
        from ga3c_tf.trained.evaluation import evaluate, summary  # these load TensorFlow
        from ga3c_tf.trained.policies import ModelAgent

        training = self.training
        model = training.session.model
        agent = ModelAgent(
            training.config, model, False, self._seed, training.agent_steps, "current", self._check
        )
        try:
            return summary(agent, evaluate(agent, self._episodes, self._seed), False, self._seed)
        except _Ending:
            return None
        except _TrainingFailed as failed:
            raise failed.error from None
        except (RuntimeError, UserError) as error:  # an environment failed or hung
            [why, *_] = str(error).split("\n")
            training.session.tell("not evaluated", f"{why}; the training goes on")
            return None

    def _check(self) -> None:
        if self.training.session.stopping:
            raise _Ending
        try:
            self.training.system.keep_up()
        except Exception as error:
            raise _TrainingFailed(error) from error

    def _save(self, score: dict[str, Any]) -> None:
        training = self.training
        score["training"] = {"seed": training.config.seed, "minutes": round(training.session.time_s / 60, 1)}
        config = as_published(training.config)
        content = packed_weights(training.session.model, is_limited=False)
        try:
            save_weights(training.path / BEST, content, config.to_json(), score)
        except UserError as error:
            training.session.tell("not saved", f"{error}; the training goes on")
        else:
            self.best = score["mean"]


class EarlyStop(Callback):
    """Ends the training when a metric has not risen for some time.

    A rolling score counts once it is the mean of `rolling_episodes` episodes. In short trainings, take
    'evaluation/score'.

    Args:
        metric: name of a metric in the row, such as 'rolling_score' or 'evaluation/score'.
        patience: number of rows with a value of the metric that may follow each other without a new maximum.
            Rows come every `log_seconds`, 5 s by default, and at evaluations.
        min_delta: how much above the maximum a value must be to count as a new one.

    Raises:
        UserError: from the first row on, if there is no such metric.
    """

    def __init__(self, metric: str = "rolling_score", patience: int = 20, min_delta: float = 0.0):
        self._metric = metric
        self._patience = patience
        self._min_delta = min_delta

    def begin(self, training: Training) -> None:
        super().begin(training)
        self._highest = -math.inf
        self._waited = 0

    def on_row(self, row: Row) -> None:
        value = _value(row, self._metric, self.training)
        if math.isnan(value):
            return
        self._waited += 1
        if value > self._highest + self._min_delta:
            self._highest = value
            self._waited = 0
        if self._waited >= self._patience:
            self.training.stop()

    def on_end(self, summary: dict[str, Any]) -> None:
        if self._highest == -math.inf:
            warn(_never(self, self._metric))


class OptunaPruning(Callback):
    """Reports a metric to a trial of Optuna, and ends the training if the trial is to be pruned.

    `train` then raises `optuna.TrialPruned`, which `study.optimize` expects. The run has a checkpoint. A
    rolling score is reported once it is the mean of `rolling_episodes` episodes.

    Args:
        trial: the `optuna.Trial`.
        metric: name of a metric in the row.
        every: agent steps between two reports, so that trials are compared after equal numbers of steps.

    Raises:
        UserError: `every` is less than 1.
    """

    def __init__(self, trial: Any, metric: str = "rolling_score", every: int = 10_000):
        if every < 1:
            raise UserError(f"OptunaPruning(every={every}): it must be at least 1")
        self._trial = trial
        self._metric = metric
        self._every = every

    def begin(self, training: Training) -> None:
        super().begin(training)
        self._reported = 0
        self._has_value = False

    def wants_row(self) -> bool:
        return self.training.agent_steps // self._every != self._reported

    def on_row(self, row: Row) -> None:
        number = int(row["agent_steps"]) // self._every
        value = _value(row, self._metric, self.training)
        if number == self._reported:
            return
        self._reported = number
        if math.isnan(value):
            return
        self._has_value = True
        self._trial.report(value, number * self._every)
        if self._trial.should_prune():
            import optuna

            raise optuna.TrialPruned(
                f"{self._metric} was {value:g} after {number * self._every:,} agent steps"
            )

    def on_end(self, summary: dict[str, Any]) -> None:
        if not self._has_value:
            warn(_never(self, self._metric))


class _Ending(Exception):
    """The training was asked to end during an evaluation."""


class _TrainingFailed(Exception):
    """A worker of the training failed during an evaluation, which is no fault of the evaluation."""

    def __init__(self, error: Exception):
        super().__init__(str(error))
        self.error = error


def _never(callback: Callback, metric: str) -> str:
    reason = " (a mean of too few episodes)" if metric == "rolling_score" else ""
    return f"{type(callback).__name__} did nothing: there was no value of {metric}{reason}"


def _value(row: Row, metric: str, training: Training) -> float:
    """Return a metric of a row; not-a-number for a rolling score of too few episodes, which luck may decide.

    Raises:
        UserError: the row has no such metric.
    """
    if metric not in row:
        raise UserError(f"there is no metric {metric!r} in a row{did_you_mean(metric, [*row])}")
    if metric == "rolling_score" and row["episodes"] < training.config.rolling_episodes:
        return math.nan
    return row[metric]
