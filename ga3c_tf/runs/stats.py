"""Counters of a run: rates over a window, policy lag, episodes and the rolling score. Thread-safe."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Sequence

import numpy as np

from ga3c_tf.experience.contracts import UpdateRecord
from ga3c_tf.experience.divergence import MOMENTS, UNKNOWN, Divergence, SegmentLag, explained_variance
from ga3c_tf.runs.failures import FailureBudget

MEASURED = (*Divergence._fields, *SegmentLag._fields)
"""Names of the quantities that each update measures besides the policy lag of its batch."""


class Sums:
    """Sums by a non-negative integer key. Memory grows with the largest key, not the number of additions."""

    def __init__(self):
        self.values = np.zeros(0)

    def add(self, numbers: np.ndarray, amounts: np.ndarray | None = None) -> None:
        """Add amounts to the sums of their keys.

        Args:
            numbers: int64 [n], the keys.
            amounts: [n], the amounts; 1 each by default.
        """
        most = int(numbers.max(initial=-1))
        if most >= len(self.values):
            # twice as many as there were, so that growing keys do not copy the sums each time
            self.values = self.padded(max(most + 1, 2 * len(self.values)))
        # takes no longer for large keys, such as those of a replay memory, unlike `bincount`
        np.add.at(self.values, numbers, 1.0 if amounts is None else amounts)

    def padded(self, size: int) -> np.ndarray:
        """Return the sums of the keys 0 to `size` - 1, float64 [size]."""
        return np.concatenate([self.values, np.zeros(size)])[:size]


class Stats:
    """Counts the work of predictors, trainers and agents, in total and since the last call of `window`.

    Policy lag is the number of model updates between choosing an action and training on it, not counting the
    update that trains on it.

    Args:
        metrics: names of the metrics of updates.
        rolling_episodes: number of episodes in the window of the rolling score.
        by_agent: whether lags are also summed by agent, for `lags_of`.
        most_skipped: number of skipped updates within a minute that is tolerated.

    Attributes:
        predictions: total number of states that predictors answered.
        trained_samples: total number of states trained on.
        updates: total number of model updates.
        episodes: total number of finished episodes.
        skips: counts the updates that were skipped because a loss or gradient was not finite.
    """

    def __init__(
        self,
        metrics: Sequence[str],
        rolling_episodes: int,
        by_agent: bool = False,
        most_skipped: int = 0,
    ):
        self.skips = FailureBudget(most_skipped)
        self._metrics = metrics
        self._lock = threading.Lock()
        self._by_agent = by_agent
        self._rolling_episodes = rolling_episodes
        self._recent: deque[float] = deque(maxlen=rolling_episodes)
        self._recent_sum = 0.0
        self.predictions = self.trained_samples = self.updates = self.episodes = 0
        self._clear_window()

    def predicted(self, states: int) -> None:
        """Count one prediction for a batch of so many states."""
        with self._lock:
            self.predictions += states
            self._window_predictions += states
            self._window_prediction_batches += 1

    def updated(self, update: UpdateRecord) -> None:
        """Count one update that was applied."""
        result = update.result
        states = len(update.lags)
        with self._lock:
            self.updates += 1
            self.trained_samples += states
            self._window_updates += 1
            self._states_of_lag.add(update.lags)
            if self._by_agent:
                self._lags_of_agent.add(update.agents, update.lags)
                self._states_of_agent.add(update.agents)
            self._metric_sums += [result.metrics[name] for name in self._metrics]
            if result.divergence is not UNKNOWN:
                self._add_measured(np.array([*result.divergence, *update.within]), states)

    def skipped(self, error: Exception) -> None:
        """Count a skipped update, and raise `error` if there have been too many within a minute."""
        self.skips.add(error)

    def episode(self, score: float) -> None:
        """Count an episode that ended with this raw score."""
        with self._lock:
            self.episodes += 1
            if len(self._recent) == self._rolling_episodes:
                self._recent_sum -= self._recent[0]
            self._recent.append(score)
            self._recent_sum += score
            if self.episodes % self._rolling_episodes == 0:  # remove accumulated rounding errors
                self._recent_sum = math.fsum(self._recent)

    @property
    def rolling_score(self) -> float:
        """Mean raw score of the last episodes; not-a-number before the first episode."""
        with self._lock:
            return self._recent_sum / len(self._recent) if self._recent else float("nan")

    @property
    def settled_score(self) -> float:
        """Rolling score once its window is full; not-a-number before, when a lucky episode may decide it."""
        return self.rolling_score if len(self._recent) == self._rolling_episodes else float("nan")

    def window(self, seconds: float) -> dict[str, float]:
        """Return rates and means over the `seconds` since the last call, and start a new window.

        A mean over nothing is not-a-number.
        """
        with self._lock:
            counts = self._states_of_lag.values
            batches = self._window_prediction_batches
            updates = self._window_updates
            samples = int(counts.sum())
            measured = self._measured_means()
            explained = explained_variance({name: measured.pop(name) for name in MOMENTS})
            metrics = self._metric_sums / samples if samples else np.full(len(self._metrics), np.nan)
            row = {
                "tps": updates / seconds,
                "policy_lag_mean": float(counts @ np.arange(len(counts))) / samples
                if samples
                else float("nan"),
                "policy_lag_p95": _percentile(counts, 95) if samples else float("nan"),
                "policy_lag_max": float(np.flatnonzero(counts)[-1]) if samples else float("nan"),
                "prediction_batch": self._window_predictions / batches if batches else float("nan"),
                "training_batch": samples / updates if updates else float("nan"),
                **dict(zip(self._metrics, metrics.tolist(), strict=True)),
                **measured,
                "explained_variance": explained,
            }
            self._clear_window()
            return row

    def lags_of(self, agents: int) -> tuple[np.ndarray, np.ndarray]:
        """Return sum and number of policy lags per agent since the last `window`, each float64 [agents]."""
        with self._lock:
            return self._lags_of_agent.padded(agents), self._states_of_agent.padded(agents)

    def _add_measured(self, values: np.ndarray, states: int) -> None:
        """Add the measured values of a batch, weighted by its number of states; not-a-number is left out.

        Args:
            values: float64 [len(MEASURED)].
            states: number of states in the batch.
        """
        finite = np.isfinite(values)
        self._measured[finite] += values[finite] * states
        self._states_measured[finite] += states

    def _measured_means(self) -> dict[str, float]:
        """Return the means of the measured values over states; not-a-number where nothing was measured."""
        means = np.full(len(MEASURED), np.nan)
        np.divide(self._measured, self._states_measured, out=means, where=self._states_measured > 0)
        return dict(zip(MEASURED, means.tolist(), strict=True))

    def _clear_window(self) -> None:
        self._window_predictions = self._window_prediction_batches = self._window_updates = 0
        self._states_of_lag = Sums()
        self._lags_of_agent = Sums()
        self._states_of_agent = Sums()
        self._metric_sums = np.zeros(len(self._metrics))
        self._measured = np.zeros(len(MEASURED))
        self._states_measured = np.zeros(len(MEASURED))

    def state(self) -> dict:
        """Return the totals for a checkpoint."""
        with self._lock:
            return {
                "predictions": self.predictions,
                "trained_samples": self.trained_samples,
                "updates": self.updates,
                "episodes": self.episodes,
                "recent_scores": list(self._recent),
            }

    def restore(self, state: dict) -> None:
        """Restore totals that `state` returned."""
        with self._lock:
            self.predictions = state["predictions"]
            self.trained_samples = state["trained_samples"]
            self.updates = state["updates"]
            self.episodes = state["episodes"]
            self._recent.extend(state["recent_scores"])
            self._recent_sum = math.fsum(self._recent)


def _percentile(counts: np.ndarray, percent: float) -> float:
    """Return the value of np.percentile for a histogram in which each number n occurs `counts[n]` times."""
    ends = counts.cumsum()
    place = percent / 100 * (ends[-1] - 1)
    below, above = np.searchsorted(ends, [math.floor(place), math.ceil(place)], side="right")
    return float(below + (above - below) * (place % 1))
