"""Environments of an evaluation, each in a process of its own. Never imports TensorFlow."""

from __future__ import annotations

import contextlib
import math
import traceback
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing import connection
from typing import NamedTuple

import numpy as np

from ga3c_tf.config import Config, spelled
from ga3c_tf.config.declaration import ATARI_GAMES
from ga3c_tf.environments.environment import make_limited_environment, modules_used
from ga3c_tf.environments.random_streams import EVALUATION, seed_global_generators
from ga3c_tf.errors import UserError
from ga3c_tf.plugins import one_line
from ga3c_tf.workers.supervisor import AgentSupervisor

POLL_SECONDS = 0.25


def atari_changes(env_id: str, **settings: float | None) -> dict[str, float]:
    """Return the settings of Atari games that are given, by name; None is not given.

    Raises:
        UserError: one is given, and the agent plays something else.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    if given and not env_id.startswith("ALE/"):
        raise UserError(f"{spelled(next(iter(given)))} is for {ATARI_GAMES}; this agent plays {env_id}")
    return given


class EvaluationStep(NamedTuple):
    """What an environment answers to an action, or to None, which begins an episode.

    Attributes:
        state: the next state.
        reward: raw reward of the step; 0 at the beginning of an episode.
        terminated: whether the episode has ended.
        truncated: whether the episode was cut off.
    """

    state: np.ndarray
    reward: float
    terminated: bool
    truncated: bool


class EvaluationProcesses:
    """Environments in processes of their own, identified by number.

    Args:
        config: settings of the agent's run.
        seeds: seed of the first episode of each environment.
        most_steps: number of agent steps after which an episode is ended.
        seed: seed of the evaluation.

    Raises:
        AgentError: the system could not start a process.
    """

    def __init__(self, config: Config, seeds: Sequence[int], most_steps: int, seed: int):
        self._patience = config.agent_timeout
        self._processes = AgentSupervisor([__name__, *modules_used(config)], [config.env_id])
        self._pipes: list[connection.Connection] = []
        try:
            for number, first in enumerate(seeds):
                parent_pipe, child_pipe = connection.Pipe()
                self._pipes.append(parent_pipe)
                self._processes.start(
                    number, run_environment, config, most_steps, seed, number, first, pipe=child_pipe
                )
        except BaseException:
            self.kill()
            raise
        self._sentinels = {number: sentinel for sentinel, number in self._processes.sentinels().items()}

    def play(self, orders: Mapping[int, int | None]) -> dict[int, EvaluationStep]:
        """Let several environments play at the same time.

        Args:
            orders: by environment, its action, or None to begin an episode.

        Raises:
            UserError: a step or reset took longer than the run's `agent_timeout`.
            RuntimeError: an environment raised an error, or its process was killed.
        """
        for number, order in orders.items():
            with contextlib.suppress(OSError):  # its process has ended, and the answer says why
                self._pipes[number].send(order)
        return {number: self._answer(number) for number in orders}

    def close(self, seconds: float) -> int:
        """Close the environments and end their processes.

        Returns:
            The number of processes that were killed after `seconds`, because an environment did not close, or
            because it has left a thread or process.
        """
        for pipe in self._pipes:
            pipe.close()
        return self._processes.join(lambda: None, seconds)

    def kill(self) -> None:
        """End the processes at once, even during a step that hangs."""
        self._processes.kill()
        self.close(0)

    def _answer(self, number: int) -> EvaluationStep:
        """Wait for an environment's answer. A pause of the whole machine counts as one `POLL_SECONDS`."""
        for _ in range(math.ceil(self._patience / POLL_SECONDS)):
            if connection.wait([self._pipes[number], self._sentinels[number]], POLL_SECONDS):
                return self._received(number)
        raise UserError(
            f"an environment was at one step or reset for {self._patience:g} s, "
            "the --agent-timeout of its run (resume RUN --set agent_timeout=SECONDS changes it)"
        )

    def _received(self, number: int) -> EvaluationStep:
        """Return the answer of an environment, or raise the error that it or the end of its process is."""
        pipe = self._pipes[number]
        try:
            # What a process leaves behind may keep its pipe open.
            answer = pipe.recv() if pipe.poll() else None
        except (EOFError, OSError):
            answer = None
        if answer is None:  # no BrokenPipeError, which commands would take for one of their output
            ended = self._processes.error_of(number)
            raise RuntimeError(f"an environment failed, or its process was killed: {ended}")
        if isinstance(answer, Exception):
            raise answer
        return answer


def run_environment(
    config: Config, most_steps: int, seed: int, number: int, first: int, pipe: connection.Connection
) -> None:
    """Play in one environment of an evaluation as the orders on a pipe say, until it is closed. Target of a
    Process.

    Args:
        config: settings of the agent's run.
        most_steps: number of agent steps after which an episode is ended.
        seed: seed of the evaluation, for the global random generators of this process.
        number: number of the environment.
        first: seed of the first episode.
        pipe: pipe that gives an action, or None to begin an episode, and takes an `EvaluationStep` or an
            exception.
    """
    try:
        seed_global_generators(seed, EVALUATION, number)
        with contextlib.closing(make_limited_environment(config, most_steps)) as environment:
            episode_seed: int | None = first
            for order in _orders(pipe):
                if order is None:
                    state, _ = environment.reset(seed=episode_seed)
                    episode_seed = None
                    outcome = EvaluationStep(state, 0.0, False, False)
                else:
                    state, reward, terminated, truncated, _ = environment.step(order)
                    outcome = EvaluationStep(state, float(reward), bool(terminated), bool(truncated))
                pipe.send(outcome)
    except BaseException as error:  # an environment may raise anything, and may end the program
        text = f"an environment failed: {one_line(error)}\n{traceback.format_exc()}".rstrip()
        with contextlib.suppress(OSError):  # nobody may be left to read it
            pipe.send(error if isinstance(error, UserError) else RuntimeError(text))


def _orders(pipe: connection.Connection) -> Iterator[int | None]:
    """Yield what a pipe gives until its other end is closed."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            yield pipe.recv()
