"""Holds the training intensity of a replay memory: how many states are trained on for each agent step."""

from __future__ import annotations


class TrainingIntensity:
    """Decides whether the next thing is to train on a batch or to take in more steps.

    Each side only ever waits for the other's next piece: a batch is due as soon as enough steps were taken
    in, and steps are taken in as soon as no batch is due. What steps allow and is not trained on yet is kept,
    so the intensity is exact in the long run.

    Args:
        intensity: states that are trained on for each agent step (the term of Stooke & Abbeel,
            arXiv 1803.02811).
        start: number of steps that are taken in before the first batch. They allow no training.

    Attributes:
        start: the same.
        collected: number of steps taken in.
        trained: number of states in the batches so far.
    """

    def __init__(self, intensity: float, start: int):
        self._intensity = intensity
        self.start = start
        self.collected = self.trained = 0

    def is_due(self, states: int) -> bool:
        """Return whether a batch of so many states may be trained on now."""
        return self.trained + states <= self._intensity * (self.collected - self.start)
