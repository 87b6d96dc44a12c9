"""Counters of a run: rates over a window, the policy lag, episodes and the rolling score. Safe under threads."""

from __future__ import annotations

import threading
from collections import deque

import numpy as np

BOOTSTRAP_ENTRIES = 1_000_000
"""Of the resamples that are held in memory at once."""
NO_AGENTS = np.empty(0, np.int64)


class Stats:
    """What predictors, trainers and agents have done, in all and since the last `window`.

    Policy lag is measured in model updates: those made between choosing an action and training on it, that training
    not counted.

    Attributes:
        predictions: states answered in all.
        trained_samples: states trained on in all.
        updates: model updates in all.
        episodes: episodes ended in all.
    """

    def __init__(self, rolling_episodes: int):
        self._lock = threading.Lock()
        self._recent: deque[float] = deque(maxlen=rolling_episodes)
        self.predictions = self.trained_samples = self.updates = self.episodes = 0
        self._clear_window()

    def predicted(self, states: int) -> None:
        """A predictor answered one batch of `states` requests."""
        with self._lock:
            self.predictions += states
            self._window_predictions += states
            self._window_prediction_batches += 1

    def trained(
        self,
        lags: np.ndarray,
        policy_loss: float,
        value_loss: float,
        entropy: float,
        agents: np.ndarray = NO_AGENTS,
    ) -> None:
        """A trainer made one update.

        Args:
            lags: int64 [batch], the policy lag of each state.
            policy_loss, value_loss: sums over the batch.
            entropy: mean over the batch, in nats.
            agents: int64 [batch], whose states they are, for `lags_of`.
        """
        with self._lock:
            self.updates += 1
            self.trained_samples += len(lags)
            self._lags.append(lags)
            self._agents.append(agents)
            self._losses += policy_loss, value_loss, entropy * len(lags)

    def episode(self, score: float) -> None:
        """An episode ended with this raw score."""
        with self._lock:
            self.episodes += 1
            self._recent.append(score)

    @property
    def rolling_score(self) -> float:
        """Mean raw score of the last episodes; not-a-number before the first."""
        with self._lock:
            return float(np.mean(self._recent)) if self._recent else float("nan")

    @property
    def settled_score(self) -> float:
        """The rolling score once it is over all the episodes it should be; not-a-number before, or it could be luck."""
        return self.rolling_score if len(self._recent) == self._recent.maxlen else float("nan")

    def window(self, seconds: float) -> dict[str, float]:
        """Rates and means over the `seconds` since the last call; not-a-number where nothing happened."""
        with self._lock:
            lags = np.concatenate(self._lags) if self._lags else np.empty(0)
            batches, updates, samples = self._window_prediction_batches, len(self._lags), len(lags)
            policy_loss, value_loss, entropy = self._losses / samples if samples else [float("nan")] * 3
            row = {
                "tps": updates / seconds,
                "policy_lag_mean": float(lags.mean()) if samples else float("nan"),
                "policy_lag_p95": float(np.percentile(lags, 95)) if samples else float("nan"),
                "policy_lag_max": float(lags.max()) if samples else float("nan"),
                "prediction_batch": self._window_predictions / batches if batches else float("nan"),
                "training_batch": samples / updates if updates else float("nan"),
                "policy_loss": float(policy_loss),
                "value_loss": float(value_loss),
                "entropy": float(entropy),
            }
            self._clear_window()
            return row

    def lags_of(self, agents: int) -> tuple[np.ndarray, np.ndarray]:
        """Sum of the policy lags of each agent's states since the last `window`, and their number; float64 [agents]."""
        with self._lock:
            whose = np.concatenate([NO_AGENTS, *self._agents])
            lags = np.concatenate([NO_AGENTS, *self._lags])
        return np.bincount(whose, lags, agents), np.bincount(whose, minlength=agents).astype(float)

    def _clear_window(self) -> None:
        self._window_predictions = self._window_prediction_batches = 0
        self._lags: list[np.ndarray] = []
        self._agents: list[np.ndarray] = []
        self._losses = np.zeros(3)

    def state(self) -> dict:
        """The totals, to be stored in a checkpoint."""
        with self._lock:
            return {
                "predictions": self.predictions,
                "trained_samples": self.trained_samples,
                "updates": self.updates,
                "episodes": self.episodes,
                "recent_scores": list(self._recent),
            }

    def restore(self, state: dict) -> None:
        """Continues from totals that `state` gave."""
        with self._lock:
            self.predictions, self.trained_samples = state["predictions"], state["trained_samples"]
            self.updates, self.episodes = state["updates"], state["episodes"]
            self._recent.extend(state["recent_scores"])


def bootstrap_interval(scores, confidence: float = 0.95, resamples: int = 10_000) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean of `scores` [n], always the same for the same scores."""
    scores = np.asarray(scores, np.float64)
    rng = np.random.default_rng(0)
    at_once = max(1, BOOTSTRAP_ENTRIES // len(scores))
    sizes = [(min(at_once, resamples - start), len(scores)) for start in range(0, resamples, at_once)]
    means = np.concatenate([scores[rng.integers(len(scores), size=size)].mean(axis=1) for size in sizes])
    low, high = np.percentile(means, [50 * (1 - confidence), 50 * (1 + confidence)])
    return float(low), float(high)
