"""The contract of a training system: the methods through which one loop drives GA3C, A2C or A3C."""

from __future__ import annotations

import abc
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import ClassVar

from ga3c_tf.config import Config
from ga3c_tf.host.machine import usable_cores
from ga3c_tf.systems.session import Session


@dataclass(frozen=True)
class Counts:
    """Numbers of workers and of waiting requests in a system.

    Attributes:
        agents: number of agents, remote ones included.
        predictors, trainers: N_P and N_T.
        requests: number of states that wait for a prediction.
        gathered: number of states put into batches so far, including batches that still grow.
        workers_to_keep: N_A, N_P and N_T with which a resumed run starts; None for those of the settings.
    """

    agents: int
    predictors: int = 0
    trainers: int = 0
    requests: int = 0
    gathered: int = 0
    workers_to_keep: list[int] | None = None


class System(abc.ABC):
    """Base class of the training systems: trains the model of a session. No worker is started before `start`.

    Args:
        session: objects that the system shares with the loop that drives it.

    Attributes:
        is_deterministic: whether a seed determines every weight, for which TensorFlow must compute in a fixed
            order.
        device: the device that the system needs; None for that of the settings.
        rests_while_paused: whether nothing is trained in `paused`, so that its time need not count.
    """

    is_deterministic: ClassVar[bool] = False
    device: ClassVar[str | None] = None
    rests_while_paused: ClassVar[bool] = True

    def __init__(self, session: Session):
        self.session = session

    @classmethod
    def num_processes(cls, config: Config) -> int:
        """Return the number of processes at the start, for which this process needs open files."""
        return config.processes(usable_cores()) + len(config.remote_actors)

    @abc.abstractmethod
    def start(self) -> None:
        """Start the workers."""

    @abc.abstractmethod
    def poll(self, seconds: float) -> None:
        """Let the system work for about `seconds`, or less if something happens.

        Raises:
            Exception: the first error of a worker.
        """

    def check(self) -> None:
        """Raise the first error of a worker, and do nothing else: also called while the system is paused."""
        self.session.errors.check()

    @abc.abstractmethod
    def stop(self) -> None:
        """End all workers, within a deadline."""

    @abc.abstractmethod
    def counts(self) -> Counts:
        """Return the numbers of workers and of waiting requests."""

    def kill(self) -> None:  # noqa: B027 - a system without processes has none to end
        """Kill all processes, without waiting for them."""

    def keep_up(self) -> None:
        """Do what cannot wait in a long pause; called often meanwhile.

        Raises:
            Exception: the first error of a worker.
        """
        self.check()
        self.session.collect_episodes()  # an agent would wait for room in a full pipe

    def paused(self) -> AbstractContextManager[None]:
        """Return a context for saving the model: it has the updates so far, and none changes it meanwhile."""
        return nullcontext()

    def finish(self) -> None:  # noqa: B027 - most systems have none due
        """Do the updates that are due for steps already taken; called once, when the run ends."""

    def before_row(self) -> None:  # noqa: B027 - optional
        """Do what is due once per row of metrics; called before each row is written."""
