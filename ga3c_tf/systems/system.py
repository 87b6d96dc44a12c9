"""The contract of a training system: what GA3C, A2C and A3C have to offer so that one loop drives any of them."""

from __future__ import annotations

import abc
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from ga3c_tf.systems.session import Session


@dataclass(frozen=True)
class Counts:
    """What a system has and what waits in it.

    Attributes:
        agents, predictors, trainers: N_A, N_P and N_T.
        requests: states that wait for a prediction.
        gathered: states put into batches so far, those of batches that still grow included.
        workers_to_keep: N_A, N_P and N_T that a resumed run begins with; None for those of the settings.
    """

    agents: int
    predictors: int = 0
    trainers: int = 0
    requests: int = 0
    gathered: int = 0
    workers_to_keep: list[int] | None = None


class System(abc.ABC):
    """Trains the model of a session.

    Args:
        session: what it shares with the loop that drives it. Nothing is started before `start`.
    """

    def __init__(self, session: Session):
        self.session = session

    @abc.abstractmethod
    def start(self) -> None:
        """Start whatever trains."""

    @abc.abstractmethod
    def poll(self, seconds: float) -> None:
        """Let it work for about `seconds`, less if something happened.

        Raises:
            Exception: the first error of a worker.
        """

    def check(self) -> None:  # noqa: B027 - a system without workers has none that fail
        """Raise the first error of a worker, and do nothing else: it is called while the system is paused."""

    @abc.abstractmethod
    def stop(self) -> None:
        """End all workers, within a deadline."""

    @abc.abstractmethod
    def counts(self) -> Counts:
        """Return the numbers of workers and of waiting requests."""

    def kill(self) -> None:  # noqa: B027 - a system without processes has none to end
        """End all processes at once, without a word."""

    def paused(self) -> AbstractContextManager[None]:
        """Return a context in which no update happens and the model is what was trained so far."""
        return nullcontext()

    def finish(self) -> None:  # noqa: B027 - most systems have none due
        """Do the updates that are due on steps already taken; called once, when a budget or a stop ends the run."""

    def before_row(self) -> None:  # noqa: B027 - optional
        """Do what is due once for each row of metrics, before it is written."""
