"""Benchmark of agents and queues, which run on the CPU without a model."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from multiprocessing import connection
from typing import Any

import numpy as np

from ga3c_tf.bench.component_process import bind_to_one_core, ms_per_call
from ga3c_tf.config import Config
from ga3c_tf.environments.atari import AtariEnvironment
from ga3c_tf.environments.environment import describe_environment, make_environment
from ga3c_tf.experience.buffers import RolloutBuffers
from ga3c_tf.experience.contracts import Prediction
from ga3c_tf.experience.queues import EPISODE, INDEX, IndexQueue, RecordQueue, ServerGone
from ga3c_tf.experience.reply_pipes import ReplyPipes
from ga3c_tf.experience.segments import FreeSlots
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.host.machine import usable_cores
from ga3c_tf.workers.agent import TrainingAgent

ENVIRONMENT_SHARE = 0.6
BARE_SHARE = 0.2
QUEUE_SHARE = 0.2
"""Shares of the time to measure for."""


def host_components(config: Config) -> tuple[dict, Callable[[float], dict]]:
    """Build the benchmark of agents and queues, without a model and on one core.

    It measures:

    - 'environment_ms': one step of an agent without waiting: environment, preprocessing, sampling, and
      writing states and segments.
    - 'bare_environment_ms': the part of that step that no program can avoid: the game or environment itself,
      whose observations are not read.
    - 'queue_ms': one round trip of the requests of one process (`group` of them) to the server and back.

    Returns:
        The fact 'group', and the function that measures.
    """
    group = group_size(config)  # depends on the number of usable cores, so before binding to one of them
    bind_to_one_core()
    agents = _Agents(config, group)
    bare = _bare_step(config)
    round_trips = _RoundTrips(config, group)

    def measure(seconds: float) -> dict:
        return {
            "environment_ms": agents.ms_per_step(ENVIRONMENT_SHARE * seconds),
            "bare_environment_ms": ms_per_call(bare, BARE_SHARE * seconds),
            "queue_ms": ms_per_call(round_trips, QUEUE_SHARE * seconds),
        }

    return {"group": group}, measure


def group_size(config: Config) -> int:
    """Return the number of agents in the fullest agent process."""
    return -(-config.num_agents // config.processes(usable_cores()))


def _bare_step(config: Config) -> Callable[[], None]:
    """Return a function that takes one random step of the bare environment.

    For Atari this is the emulator without reading its screen.
    """
    made: Any = make_environment(config)
    made.reset(seed=config.seed)
    random = np.random.default_rng(config.seed)
    if isinstance(made, AtariEnvironment):
        emulator = made.ale
        emulator_actions = emulator.getMinimalActionSet()

        def step_emulator() -> None:
            action = emulator_actions[random.integers(len(emulator_actions))]
            for _ in range(config.frame_skip):
                emulator.act(action)
            if emulator.game_over():
                emulator.reset_game()

        return step_emulator

    unwrapped = made.unwrapped  # used unless a wrapper has changed the actions
    env = unwrapped if unwrapped.action_space == made.env.action_space else made.env
    actions = np.arange(env.action_space.n) + env.action_space.start

    def step() -> None:
        _, _, terminated, truncated, _ = env.step(actions[random.integers(len(actions))])
        if terminated or truncated:
            env.reset()

    return step


class _Agents:
    """The agents of one process, which get a uniform policy at once and whose segments are thrown away."""

    def __init__(self, config: Config, group: int):
        self._memory = RolloutBuffers(config, describe_environment(config))
        self._memory.policy[:] = 1 / self._memory.spec.num_actions
        self._training_queue = IndexQueue()
        self._episodes = RecordQueue(EPISODE)
        self._slots = FreeSlots(self._memory)
        self._runs = [
            TrainingAgent(
                number,
                config,
                make_environment(config),
                self._memory,
                self._training_queue,
                self._episodes,
                self._slots.of_agent[number],
                np.random.SeedSequence(config.seed, spawn_key=(number,)),
            ).run()
            for number in range(group)
        ]

    def ms_per_step(self, seconds: float) -> float:
        """Return the mean milliseconds of an agent step, measured for about `seconds`."""
        self._step_all()
        before = self._steps()
        start = time.perf_counter()
        while time.perf_counter() - start < seconds or self._steps() == before:
            self._step_all()
        return 1000 * (time.perf_counter() - start) / (self._steps() - before)

    def _steps(self) -> int:
        return int(self._memory.steps.sum())

    def _step_all(self) -> None:
        for run in self._runs:
            while next(run) is None:  # the agent waits for a segment slot
                self._take_segments()

    def _take_segments(self) -> None:
        for slot in self._training_queue.get(1000)["index"].tolist():
            self._slots.released(slot)
        while len(self._episodes):
            self._episodes.get(1000)


class _RoundTrips:
    """The server's side of a round trip: takes the requests of one agent process and answers them."""

    def __init__(self, config: Config, group: int):
        self._group = group
        self._memory = RolloutBuffers(config.replace(t_max=1), EnvironmentSpec((1,), "uint8", 1))
        self._requests = IndexQueue()
        self._answers = ReplyPipes(self._memory, np.zeros(config.num_agents, int))
        states = [
            self._memory.state_index(self._memory.slots_of(agent)[0], 0) for agent in range(self._group)
        ]
        reader = self._answers.open(0)
        arguments = (self._requests, reader, states)
        multiprocessing.get_context("spawn").Process(target=_ask, args=arguments, daemon=True).start()
        reader.close()

    def __call__(self) -> None:
        waiting = self._group
        while waiting:
            requests = self._requests.get(waiting)
            rows = len(requests)
            prediction = Prediction(np.ones((rows, 1), np.float32), np.zeros(rows, np.float32), 0)
            self._answers.answer(requests, prediction)
            waiting -= len(requests)


def _ask(requests: IndexQueue, answers: connection.Connection, states: Sequence[int]) -> None:
    """Run the agents' side of round trips: request all states at once, repeatedly, until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        while True:
            requests.put(states)
            waiting = len(states)
            while waiting:
                answered = len(os.read(answers.fileno(), 4096))
                if not answered:
                    return
                waiting -= answered // INDEX.itemsize
    except ServerGone:
        pass
