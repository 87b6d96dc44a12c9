"""The agent: steps its environment, asks for predictions, sends segments to training. Never imports TensorFlow."""

from __future__ import annotations

import os
import select
import traceback
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass
from multiprocessing import connection

import gymnasium
import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.environment import make_environment
from ga3c_tf.queues import INDEX, RELEASED, AgentMemory, IndexQueue, RecordQueue
from ga3c_tf.returns import nstep_returns


def sample_action(policy: np.ndarray, rng: np.random.Generator) -> int:
    """Draws an action from `policy`, float32 [num_actions], which need not sum to exactly 1."""
    cumulative = policy.cumsum()
    return min(int(cumulative.searchsorted(rng.random() * cumulative[-1], side="right")), len(policy) - 1)


class Segment:
    """Up to t_max steps of one agent, written straight into its slot of the shared memory."""

    def __init__(self, memory: AgentMemory, slot: int, state: np.ndarray):
        self.slot, self.length = slot, 0
        self._rewards: list[float] = []
        self._memory = memory
        memory.states[slot, 0] = state

    @property
    def newest(self) -> int:
        """Index, as the prediction queue carries it, of the state after the last step."""
        return self._memory.state_index(self.slot, self.length)

    @property
    def full(self) -> bool:
        """Whether it has t_max steps."""
        return self.length == self._memory.t_max

    def append(self, action: int, reward: float, version: int, next_state: np.ndarray) -> None:
        """Adds one step, chosen with model version `version`, and the state that it led to."""
        memory, slot, step = self._memory, self.slot, self.length
        memory.actions[slot, step] = action
        memory.versions[slot, step] = version
        memory.states[slot, step + 1] = next_state
        self._rewards.append(reward)
        self.length += 1

    def close(self, bootstrap: float, gamma: float) -> None:
        """Writes the returns, from the value `bootstrap` of the newest state."""
        self._memory.lengths[self.slot] = self.length
        self._memory.returns[self.slot, : self.length] = nstep_returns(self._rewards, bootstrap, gamma)


class Agent:
    """One agent with its own environment, episode and random numbers.

    `run` is a generator, so that a process may drive several agents, and the serial mode all of them. It yields the
    index of a state whose prediction it needs, or None when it needs a free segment slot; it is sent nothing: policy,
    value and version lie in the shared memory.

    Args:
        number: which agent of the run this is; also its row in `memory`.
        environment: a Gymnasium environment whose observations are states.
        memory: the shared arrays.
        training_queue: takes the slot of each finished segment.
        episode_queue: takes (agent, length, raw score) at the end of each episode.
        seed: seed of the environment and of the sampled actions.
    """

    def __init__(
        self,
        number: int,
        config: Config,
        environment: gymnasium.Env,
        memory: AgentMemory,
        training_queue: IndexQueue,
        episode_queue: RecordQueue,
        seed: np.random.SeedSequence,
    ):
        self.number = number
        self.free_slots = deque(memory.slots_of(number))
        self._config, self._environment, self._memory = config, environment, memory
        self._training_queue, self._episode_queue = training_queue, episode_queue
        self._rng = np.random.default_rng(seed)

    def run(self) -> Generator[int | None, None, None]:
        """Plays episodes for ever."""
        config, memory, number = self._config, self._memory, self.number
        environment_seed: int | None = int(self._rng.integers(2**31))
        while True:
            state, _ = self._environment.reset(seed=environment_seed)
            environment_seed = None
            segment = yield from self._new_segment(state)
            score, length, done = 0.0, 0, False
            while not done:
                yield segment.newest
                value, version = float(memory.value[number]), int(memory.version[number])
                if segment.full and config.train_last_transition:
                    segment = yield from self._next_segment(segment, value)
                action = sample_action(memory.policy[number], self._rng)
                state, raw_reward, terminated, truncated, _ = self._environment.step(action)
                memory.steps[number] += 1
                reward = float(raw_reward)
                score, length, done = score + reward, length + 1, bool(terminated or truncated)
                if not config.train_last_transition:
                    # as the authors' agent: a segment is cut one step late, and the step that ends an episode dropped
                    if done:
                        self._finish(segment, 0.0)
                        break
                    if segment.full:
                        segment = yield from self._next_segment(segment, value)
                segment.append(action, min(1.0, max(-1.0, reward)) if config.clip_rewards else reward, version, state)
            else:
                if truncated and not terminated:
                    yield segment.newest
                self._finish(segment, 0.0 if terminated else float(memory.value[number]))
            self._episode_queue.put((number, length, score))

    def _new_segment(self, state: np.ndarray) -> Generator[int | None, None, Segment]:
        while not self.free_slots:
            yield None
        return Segment(self._memory, self.free_slots.popleft(), state)

    def _next_segment(self, segment: Segment, bootstrap: float) -> Generator[int | None, None, Segment]:
        newest = self._memory.states[segment.slot, segment.length]
        self._finish(segment, bootstrap)
        return (yield from self._new_segment(newest))

    def _finish(self, segment: Segment, bootstrap: float) -> None:
        if segment.length:
            segment.close(bootstrap, self._config.gamma)
            self._training_queue.put(segment.slot)
        else:
            self.free_slots.append(segment.slot)


@dataclass(frozen=True)
class AgentQueues:
    """Where agents write: the queues of design.md's picture, and the pipe for a traceback."""

    prediction: IndexQueue
    training: IndexQueue
    episodes: RecordQueue
    errors: connection.Connection


def run_agents(
    config: Config,
    memory: AgentMemory,
    queues: AgentQueues,
    answers: connection.Connection,
    seeds: dict[int, np.random.SeedSequence],
) -> None:
    """The agent process: drives the agents numbered in `seeds` until its answers end. Target of a Process.

    An error is sent, as a traceback, down the error pipe, and ends the process with exit code 1.
    """
    try:
        _drive(config, memory, queues, answers, seeds)
    except BrokenPipeError:
        pass  # the server is gone
    except BaseException:
        queues.errors.send_bytes(traceback.format_exc().encode()[-select.PIPE_BUF + 64 :])
        raise SystemExit(1) from None


def _drive(config, memory, queues, answers, seeds):
    agents = {
        number: Agent(number, config, make_environment(config), memory, queues.training, queues.episodes, seed)
        for number, seed in seeds.items()
    }
    runs = {number: agent.run() for number, agent in agents.items()}
    without_slot: set[int] = set()
    turn = list(runs)
    while True:
        requests = []
        for number in turn:
            request = next(runs[number])
            if request is None:
                without_slot.add(number)
            else:
                requests.append(request)
        if requests:
            queues.prediction.put(requests)
        records = np.frombuffer(os.read(answers.fileno(), 4096), INDEX).tolist()
        if not records:
            return
        turn = []
        for record in records:
            if not record & RELEASED:
                turn.append(record)
                continue
            slot = record & ~RELEASED
            number = slot // memory.slots_per_agent
            agents[number].free_slots.append(slot)
            if number in without_slot:
                without_slot.remove(number)
                turn.append(number)
