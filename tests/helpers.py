"""What several tests use: an environment that counts, and a model that checks what it is handed."""

import multiprocessing
import os
import pickle
import random
import struct
import subprocess
import threading
import time

import gymnasium
import numpy as np
from gymnasium import spaces

import ga3c_tf
from ga3c_tf.experience.contracts import NO_CARRY, Prediction, UpdateRecord, UpdateResult
from ga3c_tf.experience.divergence import NO_SEGMENTS, UNKNOWN
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.remote.actor import RemoteAgents
from ga3c_tf.remote.bridge import Bridge
from ga3c_tf.systems.a3c.shared_weights import rmsprop_step
from ga3c_tf.workers.agent_process import errors_told
from ga3c_tf.workers.supervisor import DIVERGED

NUM_ACTIONS = 3
CODE = struct.Struct("<qqq")
SHAPE = (36, 36, 1)
SPEC = EnvironmentSpec(SHAPE, "uint8", NUM_ACTIONS)


def encode(identity: int, episode: int, step: int) -> np.ndarray:
    """The state that says which environment, episode and step it is, uint8 [36, 36, 1]."""
    state = np.zeros(SHAPE, np.uint8)
    state.reshape(-1)[: CODE.size] = np.frombuffer(CODE.pack(identity, episode, step), np.uint8)
    return state


def decode(state: np.ndarray) -> tuple[int, int, int]:
    """Environment, episode and step of a state."""
    return CODE.unpack_from(np.ascontiguousarray(state))


def episode_length(identity: int, episode: int) -> int:
    """Steps of an episode: 1 to 17, so that segments of every length occur."""
    return 1 + (identity * 31 + episode * 7) % 17


def is_truncated(identity: int, episode: int) -> bool:
    """Whether an episode ends by a time limit."""
    return (identity + episode) % 3 == 0


def reward_at(identity: int, episode: int, step: int) -> float:
    """Raw reward of the step that leaves state number `step`: beyond [-1, 1] at times."""
    return float((identity + 5 * episode + 3 * step) % 7 - 3) / 2


def action_at(identity: int, episode: int, step: int) -> int:
    """The action that the checking model always chooses in this state."""
    return (identity + episode + 2 * step) % NUM_ACTIONS


def value_at(identity: int, episode: int, step: int) -> float:
    """The value that the checking model gives this state."""
    return ((identity % 1000) + 10 * episode + step) / 1000


class CountingEnvironment(gymnasium.Env):
    """Its frame is the step number, with episode and seed: whatever is lost, repeated or mixed shows."""

    observation_space = spaces.Box(0, 255, SHAPE, np.uint8)
    action_space = spaces.Discrete(NUM_ACTIONS)

    def __init__(self):
        self._identity, self._episode, self._step = -1, -1, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self._identity = seed
        self._episode, self._step = self._episode + 1, 0
        return encode(self._identity, self._episode, 0), {}

    def step(self, action):
        place = self._identity, self._episode, self._step
        if action != action_at(*place):
            raise AssertionError(f"action {action} at {place} was meant for another state")
        self._step += 1
        done = self._step == episode_length(*place[:2])
        truncated = done and is_truncated(*place[:2])
        return encode(*place[:2], self._step), reward_at(*place), done and not truncated, truncated, {}


class FailingEnvironment(CountingEnvironment):
    """Raises in its second episode."""

    def reset(self, *, seed=None, options=None):
        if self._episode == 1:
            raise RuntimeError("the emulator is gone")
        return super().reset(seed=seed, options=options)


class ShortIsBad(gymnasium.Env):
    """Episodes of 1 step score -1, those of 50 steps 1, by the flip of a coin."""

    observation_space = spaces.Box(0, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._left = 1 if self.np_random.random() < 0.5 else 50
        self._reward = -1.0 if self._left == 1 else 1 / 50
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self._left -= 1
        return np.zeros(2, np.float32), self._reward, self._left == 0, False, {}


class EndlessEnvironment(ShortIsBad):
    """Never ends, and gives one point a step."""

    def step(self, action):
        return np.zeros(2, np.float32), 1.0, False, False, {}


class PacedEnvironment(ShortIsBad):
    """At most 200 steps/s for a process, so that a budget in steps lasts as long at least on any machine."""

    def step(self, action):
        time.sleep(0.005)
        return super().step(action)


class PacedCountingEnvironment(CountingEnvironment):
    """At most 1,000 steps a second for a process."""

    def step(self, action):
        time.sleep(0.001)
        return super().step(action)


class HangingEnvironment(CountingEnvironment):
    """Hangs at the beginning of its second episode where its seed is even."""

    def reset(self, *, seed=None, options=None):
        if self._episode == 0 and self._identity % 2 == 0:
            time.sleep(3600)
        return super().reset(seed=seed, options=options)


class ExitingEnvironment(CountingEnvironment):
    """Takes any action, and ends its process in its second episode, as an A3C agent that diverged does."""

    def reset(self, *, seed=None, options=None):
        if self._episode == 1:
            os._exit(DIVERGED)
        return super().reset(seed=seed, options=options)

    def step(self, action):
        return super().step(action_at(self._identity, self._episode, self._step))


class BrokenPipeEnvironment(ShortIsBad):
    """Loses its simulator in its second episode."""

    episodes = 0
    error: Exception = BrokenPipeError("the simulator is gone")

    def reset(self, *, seed=None, options=None):
        self.episodes += 1
        if self.episodes == 2:
            raise self.error
        return super().reset(seed=seed, options=options)


class UnstableEnvironment(BrokenPipeEnvironment):
    """Raises the error that a simulation may raise, at the beginning of its second episode."""

    error = FloatingPointError("unstable")


class StuckEnvironment(ShortIsBad):
    """Hangs in its first step."""

    def step(self, action):
        time.sleep(3600)
        return super().step(action)


class OddInfo(ShortIsBad):
    """Gives an info of another kind at each step, and some that cannot be sent to another process."""

    def step(self, action):
        state, reward, terminated, truncated, _ = super().step(action)
        infos = [None, {"a": 1}, {"a": "text"}, {"a": lambda: 0}, {"a": {"b": None}}, ["a"]]
        return state, reward, terminated, truncated, infos[self._left % len(infos)]


def _answer(pipe):
    while True:
        pipe.send(pipe.recv())


class SimulatedEnvironment(ShortIsBad):
    """Takes its rewards from a process that it starts."""

    def __init__(self):
        context = multiprocessing.get_context("fork")
        self._pipe, pipe = context.Pipe()
        self._simulator = context.Process(target=_answer, args=[pipe], daemon=True)
        self._simulator.start()

    def step(self, action):
        state, reward, *rest = super().step(action)
        self._pipe.send(reward)
        return state, self._pipe.recv(), *rest

    def close(self):
        self._simulator.kill()
        self._simulator.join()


def train_and_evaluate(folder):
    """Train as a program of a few lines does; return why the training ended, and a mean score."""
    run = ga3c_tf.train(
        "helpers:Simulated-v0", preset="smoke", steps=200, num_agents=2, device="cpu", run_dir=folder
    )
    return run.summary["ended"], run.evaluate(episodes=2).mean


class SimulatorEnvironment(ShortIsBad):
    """Has a simulator, a program of its own that runs for SIMULATOR_SECONDS, and does not work without it."""

    def __init__(self):
        self._simulator = subprocess.Popen(["sleep", os.environ["SIMULATOR_SECONDS"]])

    def step(self, action):
        time.sleep(0.001)
        if self._simulator.poll() is not None:
            raise BrokenPipeError("the simulator is gone")
        return super().step(action)

    def close(self):
        self._simulator.terminate()
        self._simulator.wait()


class SlowSimulatorEnvironment(SimulatorEnvironment):
    """Takes long to close in the processes of agents."""

    def close(self):
        if multiprocessing.parent_process():
            time.sleep(600)
        super().close()


class UnclosedSimulatorEnvironment(SimulatorEnvironment):
    """Leaves its simulator behind."""

    def close(self):
        pass


class Lottery(ShortIsBad):
    """Draws the score of its only step from the global random generator."""

    def step(self, action):
        return np.zeros(2, np.float32), float(np.random.randint(10**6)), True, False, {}  # noqa: NPY002


class OneStepEnvironment(ShortIsBad):
    """Episodes of one step."""

    def step(self, action):
        return np.zeros(2, np.float32), 1.0, True, False, {}


class ContinuousEnvironment(ShortIsBad):
    """Has actions that a wrapper makes discrete."""

    action_space = spaces.Box(-1, 1, (1,), np.float32)


def make_discrete(**options):
    """Return an environment whose innermost one has other actions."""
    return gymnasium.wrappers.TransformAction(
        ContinuousEnvironment(), lambda action: [action], spaces.Discrete(3)
    )


gymnasium.register("Discretized-v0", make_discrete)
gymnasium.register("BrokenPipe-v0", BrokenPipeEnvironment)
gymnasium.register("Unstable-v0", UnstableEnvironment)
gymnasium.register("Stuck-v0", StuckEnvironment)
gymnasium.register("Simulator-v0", SimulatorEnvironment)
gymnasium.register("SlowSimulator-v0", SlowSimulatorEnvironment)
gymnasium.register("UnclosedSimulator-v0", UnclosedSimulatorEnvironment)
gymnasium.register("Lottery-v0", Lottery)
gymnasium.register("OddInfo-v0", OddInfo)
gymnasium.register("Simulated-v0", SimulatedEnvironment)
gymnasium.register("OneStep-v0", OneStepEnvironment)
gymnasium.register("ShortIsBad-v0", ShortIsBad)
gymnasium.register("Endless-v0", EndlessEnvironment)
gymnasium.register("Paced-v0", PacedEnvironment)
gymnasium.register("Hanging-v0", HangingEnvironment)
gymnasium.register("Counting-v0", CountingEnvironment)
gymnasium.register("PacedCounting-v0", PacedCountingEnvironment)
gymnasium.register("Failing-v0", FailingEnvironment)
gymnasium.register("Exiting-v0", ExitingEnvironment)


def update_result(version):
    """What a model's `train` returns, of an update whose numbers nobody looks at."""
    return UpdateResult(dict.fromkeys(CheckingModel.metrics, 0.0), UNKNOWN, version, applied=True)


def update_record(
    lags, policy_loss=0.0, value_loss=0.0, entropy=0.0, agents=None, divergence=UNKNOWN, within=None
):
    """What an observer is told of an update with these lags."""
    lags = np.asarray(lags)
    agents = np.zeros(len(lags), np.int64) if agents is None else agents
    metrics = {"policy_loss": policy_loss, "value_loss": value_loss, "entropy": entropy, "masked": 0.0}
    result = UpdateResult(metrics, divergence, 1, applied=True)
    return UpdateRecord(lags, agents, result, NO_SEGMENTS if within is None else within)


class CheckingModel:
    """Stands in for the model: answers by the state alone, and keeps every batch it is trained on."""

    metrics = ("policy_loss", "value_loss", "entropy")
    updates_per_call = 1
    needs_segments = False
    initial_carry = NO_CARRY

    def __init__(self, *args, **kwargs):
        self._lock = threading.Lock()
        self._version = 0
        self.chosen: dict[tuple, int] = {}
        self.batches: list[list[tuple]] = []
        self.batch_sizes: list[int] = []

    def predict(self, states):
        places = [decode(state) for state in states]
        policy = np.zeros((len(states), NUM_ACTIONS), np.float32)
        policy[np.arange(len(states)), [action_at(*place) for place in places]] = 1
        with self._lock:
            self.batch_sizes.append(len(states))
            self.chosen.update(dict.fromkeys(places, self._version))
            values = np.array([value_at(*place) for place in places], np.float32)
            return Prediction(policy, values, self._version)

    def train(self, batches, rates):
        return [self.update(batch, rates) for batch in batches]

    def update(self, batch, rates):
        rows = [
            (decode(state), int(action), float(value))
            for state, action, value in zip(batch.states, batch.actions, batch.returns, strict=True)
        ]
        with self._lock:
            self._version += 1
            self.batches.append(rows)
            return update_result(self._version)

    @property
    def updates(self):
        return self._version

    def load(self):
        pass

    def store(self):
        pass

    def checkpoint_objects(self):
        return {}


def run_bridge_without_ray(number, config, memory, queues, agents, address, answers):
    """Stands in for `run_bridge`: the actor's agents live in the bridge's own process."""
    with errors_told(queues.errors):
        there = RemoteAgents(config, len(agents), memory.spec, memory.initial_carry)
        memory.nodes[number] = b"there"

        def call(orders):
            return pickle.loads(pickle.dumps(there.step(pickle.loads(pickle.dumps(orders)))))

        Bridge(number, memory, queues, agents, call).run(answers)


def take_rmsprop_steps(shared, agent, rate, steps, begin):
    """Steps of an A3C agent that are all of size `rate`: the gradient and the mean square are one and stay
    so.

    Between two steps it rests for up to 2 ms, as an agent that plays in between.
    """
    chance = random.Random(agent)
    weight, mean_square, slot = (shared.groups[name][0] for name in ("weights", "mean_square", "momentum"))
    gradient = np.ones_like(weight)
    begin.wait()
    for _ in range(steps):
        rmsprop_step(weight, mean_square, slot, gradient, rate, decay=0.99, momentum=0.0, epsilon=0.0)
        shared.updates[agent] += 1
        time.sleep(0.002 * chance.random())


SUMMARY = {
    "run": "runs/my pong",
    "ended": "minutes",
    "agent_steps": 241011,
    "updates": 912,
    "episodes": 5912,
    "time_s": 3723.4,
    "pps": 4016.2,
    "tps": 15.0,
    "rolling_score": 8.93,
    "rolling_episodes": 100,
    "dropped_steps": 0,
    "replaced_processes": 0,
    "skipped_updates": 0,
}
"""What a training returns when it ends."""
