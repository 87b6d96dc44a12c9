"""Benchmarks of the system's components, each measured alone in a process that works only on request.

An agent step, a queue's round trip and, on a CPU, prediction and update run on one core. Their process is bound to it
if the operating system supports this (Linux), and TensorFlow has one thread there.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing import connection
from typing import Any

import numpy as np

from ga3c_tf.bench.physical import mflop_per_state
from ga3c_tf.config import Config
from ga3c_tf.environments.atari import AtariEnvironment
from ga3c_tf.environments.environment import describe_environment, make_environment
from ga3c_tf.errors import UserError
from ga3c_tf.host.machine import usable_cores
from ga3c_tf.host.onednn import enable_onednn
from ga3c_tf.rollouts.buffers import RolloutBuffers
from ga3c_tf.rollouts.columns import Batch
from ga3c_tf.rollouts.queues import EPISODE, INDEX, IndexQueue, RecordQueue, ServerGone
from ga3c_tf.rollouts.reply_pipes import ReplyPipes
from ga3c_tf.workers.agent import Agent

CLOSE_SECONDS = 5.0
ENVIRONMENT_SHARE = 0.6  # of a host component's time
BARE_SHARE = 0.2
QUEUE_SHARE = 0.2
PREDICTION_SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
TRAINING_SIZES = (5, 25, 45, 85, 128)


class ComponentProcess:
    """A process that measures on request and waits in between.

    Args:
        build: called in the process with `arguments`. It returns a dict of facts, and a function that takes the
            seconds to measure for and returns the measurements.
        arguments: arguments of `build`. They must be picklable, like `build`, the facts and the measurements.

    Attributes:
        facts: dict of facts that `build` returned.

    Raises:
        UserError: `build` raised it.
        RuntimeError: the process failed or ended by itself; the text has its traceback or exit code.
    """

    def __init__(self, build: Callable[..., tuple[dict, Callable[[float], dict]]], *arguments: Any):
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, name=build.__name__, args=(theirs, build, arguments))
        self._process.start()
        theirs.close()
        try:
            self.facts: dict = self._receive()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> ComponentProcess:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def measure(self, seconds: float) -> dict:
        """Measure for about `seconds` and return the measured milliseconds by name."""
        with contextlib.suppress(BrokenPipeError):  # the process has ended; `_receive` says why
            self._pipe.send(seconds)
        return self._receive()

    def close(self) -> None:
        """End the process, even during a measurement."""
        self._pipe.close()
        self._process.terminate()
        self._process.join(CLOSE_SECONDS)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()

    def _receive(self) -> dict:
        try:
            kind, content = self._pipe.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            raise RuntimeError(f"{self._process.name} ended by itself, exit code {self._process.exitcode}") from None
        if kind is UserError:
            raise UserError(content)
        if kind is RuntimeError:
            raise RuntimeError(f"{self._process.name} failed\n{content}")
        return content


def _serve(pipe: connection.Connection, build: Callable, arguments: tuple) -> None:
    """Run the component's process, which measures on request until it is ended. Ctrl-C is left to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit())  # TensorFlow has temporary files to remove
    try:
        facts, measure = build(*arguments)
        pipe.send((dict, facts))
        while True:
            pipe.send((dict, measure(pipe.recv())))
    except (EOFError, BrokenPipeError):
        pass
    except UserError as error:
        pipe.send((UserError, str(error)))
    except Exception:
        pipe.send((RuntimeError, traceback.format_exc()))
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the process is already ending


def host_components(config: Config) -> tuple[dict, Callable[[float], dict]]:
    """Build the benchmark of agents and queues, without a model and on one core.

    It measures:

    - 'environment_ms': one step of an agent without waiting: environment, preprocessing, sampling, and writing states
      and segments.
    - 'bare_environment_ms': the part of that step that no program can avoid: the game or environment itself, whose
      observations are not read.
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


def model_components(config: Config, device: str) -> tuple[dict, Callable[[float], dict]]:
    """Build the benchmark of the model on `device`, which measures 'prediction_ms' and 'update_ms' by batch size.

    On a GPU the times are those that a caller waits, including transfers.

    Returns:
        The facts 'device', 'gpus', 'onednn', 'network' and 'mflop', and the function that measures.
    """
    spec = describe_environment(config)
    if spec.is_screen:
        enable_onednn()

    from ga3c_tf.model.device import configure_device, gpu_names
    from ga3c_tf.model.model import Model
    from ga3c_tf.model.tensorflow import ONEDNN

    placed = configure_device(device, intra_op_threads=1, inter_op_threads=1)
    if "GPU" not in placed:
        bind_to_one_core()
    model = Model(config, spec.state_shape, spec.state_dtype, spec.num_actions, seed=0, device=placed)
    predictions = prediction_sizes(config)
    updates = training_sizes(config)
    states, actions, returns = _random_batch(max(predictions + updates), spec)

    def predict(size: int) -> None:
        model.predict(states[:size])

    def train(size: int) -> None:
        batch = Batch(states=states[:size], actions=actions[:size], returns=returns[:size])  # columns the loss reads
        model.train(batch, 1e-6, config.beta)

    def measure(seconds: float) -> dict:
        each = seconds / (len(predictions) + len(updates))
        return {
            "prediction_ms": {size: ms_per_call(partial(predict, size), each) for size in predictions},
            "update_ms": {size: ms_per_call(partial(train, size), each) for size in updates},
        }

    facts = {
        "device": "gpu" if "GPU" in placed else "cpu",
        "gpus": gpu_names(),
        "onednn": ONEDNN,
        "network": model.network.name,
        "mflop": mflop_per_state(model.network, spec.state_shape, spec.state_dtype),
    }
    return facts, measure


def prediction_sizes(config: Config) -> list[int]:
    """Return the prediction batch sizes to measure: up to 128, and the number of agents if that is larger."""
    return sorted({*PREDICTION_SIZES, max(config.num_agents, max(PREDICTION_SIZES))})


def training_sizes(config: Config) -> list[int]:
    """Return the training batch sizes to measure: fixed ones, and those that these settings produce.

    A trainer merges segments until they exceed the minimum training batch. Full segments give the smallest multiple of
    t_max above it, and no batch is larger than the minimum plus one segment.
    """
    whole = config.t_max * (config.min_training_batch // config.t_max + 1)
    return sorted({*TRAINING_SIZES, config.t_max, whole, config.min_training_batch + config.t_max})


def group_size(config: Config) -> int:
    """Return the number of agents in the fullest agent process."""
    return -(-config.num_agents // config.processes(usable_cores()))


def ms_per_call(call: Callable[[], object], seconds: float) -> float:
    """Return the mean milliseconds per call of `call`, repeated for `seconds` or at least once after a warm-up call."""
    call()
    calls = 0
    start = time.perf_counter()
    while True:
        call()
        calls += 1
        elapsed = time.perf_counter() - start
        if elapsed >= seconds:
            return 1000 * elapsed / calls


def bind_to_one_core() -> None:
    """Bind this thread, and the threads and processes that it starts later, to the last core that it may use."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def _random_batch(size: int, spec) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    shape = (size, *spec.state_shape)
    dtype = np.dtype(spec.state_dtype)
    states = random.integers(0, 256, shape).astype(dtype) if dtype == np.uint8 else random.random(shape, np.float32)
    return states, random.integers(spec.num_actions, size=size).astype(np.int32), random.random(size, np.float32)


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
        spec = describe_environment(config)
        self._memory = RolloutBuffers(config, spec.state_shape, spec.state_dtype, spec.num_actions)
        self._memory.policy[:] = 1 / spec.num_actions
        self._training_queue = IndexQueue()
        self._episodes = RecordQueue(EPISODE)
        self._free_slots = {number: deque(self._memory.slots_of(number)) for number in range(group)}
        self._runs = [
            Agent(
                number,
                config,
                make_environment(config),
                self._memory,
                self._training_queue,
                self._episodes,
                free_slots,
                np.random.SeedSequence(config.seed, spawn_key=(number,)),
            ).run()
            for number, free_slots in self._free_slots.items()
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
        for slot in self._training_queue.get(1000).tolist():
            self._free_slots[slot // self._memory.slots_per_agent].append(slot)
        while len(self._episodes):
            self._episodes.get(1000)


class _RoundTrips:
    """The server's side of a round trip: takes the requests of one agent process and answers them."""

    def __init__(self, config: Config, group: int):
        self._group = group
        self._memory = RolloutBuffers(config.replace(t_max=1), (1,), "uint8", 1)
        self._requests = IndexQueue()
        self._answers = ReplyPipes(self._memory, np.zeros(config.num_agents, int))
        states = [self._memory.state_index(self._memory.slots_of(agent)[0], 0) for agent in range(self._group)]
        reader = self._answers.open(0)
        arguments = (self._requests, reader, states)
        multiprocessing.get_context("spawn").Process(target=_ask, args=arguments, daemon=True).start()
        reader.close()

    def __call__(self) -> None:
        waiting = self._group
        while waiting:
            requests = self._requests.get(waiting)
            self._answers.predicted(self._memory.agents_of(requests))
            waiting -= len(requests)


def _ask(requests: IndexQueue, answers: connection.Connection, states: Sequence[int]) -> None:
    """Run the agents' side of the round trips: request all states at once, repeatedly, until the pipe is closed."""
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
