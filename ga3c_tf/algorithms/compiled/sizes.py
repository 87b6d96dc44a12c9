"""Sizes for which programs are compiled. Smaller batches are padded: each size compiles for seconds."""

from __future__ import annotations

from ga3c_tf.algorithms.compiled.batch_upload import UpdateSize
from ga3c_tf.config import Config

SMALLEST_PREDICTION = 8
UPDATES_PER_CALL = 8
"""Largest number of batches on which one call makes updates."""


def padded(size: int, smallest: int, factor: int = 2) -> int:
    """Return the smallest of `smallest`, `smallest * factor`, `smallest * factor^2`, ... with room for
    `size`.
    """
    room = smallest
    while room < size:
        room *= factor
    return room


def prediction_size(states: int) -> int:
    """Return the size of the program that predicts for so many states: 8, 32, 128, ..."""
    return padded(states, SMALLEST_PREDICTION, 4)


class UpdateSizes:
    """The sizes of the updates of a run.

    Args:
        config: settings of the run.
        needs_segments: whether minibatches are of whole segments, which makes their sizes uneven.

    Attributes:
        has_minibatches: whether updates are on minibatches.
        updates_per_call: number of updates that one call should have at most.
    """

    def __init__(self, config: Config, needs_segments: bool = False):
        self.has_minibatches = config.has_minibatches
        sampled = config.reads("replay_batch")
        smallest = config.replay_batch if sampled else config.states_per_update
        # A2C's rounds and the samples of a replay memory have one size.
        longest_part = 1 if sampled or config.system == "a2c" else config.t_max
        batches = range(smallest, smallest + longest_part)  # which the settings produce
        self._steps = max(batches)
        self._rows = max(-(-states // config.minibatches_of(states)) for states in batches)
        if self.has_minibatches and needs_segments:
            self._rows = min(self._rows + config.t_max, self._steps)
        self._most_states = config.most_agents + config.remote_agents  # of one prediction
        if config.reads("max_prediction_batch"):
            self._most_states = min(self._most_states, config.max_prediction_batch)
        # Only GA3C has several batches waiting at once, and samples are drawn for one update.
        several = config.system == "ga3c" and not sampled
        self._calls = [1, 2, 4, UPDATES_PER_CALL] if several else [1]
        self.updates_per_call = self._calls[-1]
        if self.has_minibatches:
            self.updates_per_call = config.epochs * max(map(config.minibatches_of, batches))

    def of(self, steps: int, updates: int, rows: int) -> UpdateSize:
        """Return the size of the program for so many updates, on so many steps in all and at most in one."""
        rows = padded(rows, self._rows)
        if self.has_minibatches:
            updates = padded(updates, self.updates_per_call)
            return UpdateSize(padded(steps, self._steps), updates, rows)
        updates = padded(updates, 1)
        return UpdateSize(updates * rows, updates, rows)

    def usual_predictions(self) -> list[int]:
        """Return the sizes that predictions have."""
        sizes = [SMALLEST_PREDICTION]
        while sizes[-1] < self._most_states:
            sizes.append(prediction_size(sizes[-1] + 1))
        return sizes

    def usual(self) -> list[UpdateSize]:
        """Return the sizes that most updates have."""
        if self.has_minibatches:
            return [self.of(self._steps, self.updates_per_call, self._rows)]
        return [self.of(updates * self._rows, updates, self._rows) for updates in self._calls]
