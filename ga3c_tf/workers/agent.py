"""The agent: steps its environment, asks for predictions, sends segments to training. Never imports TensorFlow."""

from __future__ import annotations

import contextlib
import math
import os
import random
import select
import time
import traceback
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from multiprocessing import connection

import gymnasium
import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.environments.environment import make_environment
from ga3c_tf.host.scheduling import schedule_as
from ga3c_tf.rollouts.columns import NO_VERSION, SegmentEnd, Step
from ga3c_tf.rollouts.queues import ADDED, INDEX, KIND, RELEASED, REMOVED, RecordQueue, RolloutBuffers, ServerGone
from ga3c_tf.rollouts.returns import lambda_returns, nstep_returns

SMALLEST_PROBABILITY = 1e-30
"""Below it the logarithm of a probability is taken as its own: rounding may leave none for an action that was drawn."""


def sample_action(policy: np.ndarray, rng: np.random.Generator) -> int:
    """Draw an action from `policy`, float32 [num_actions], which need not sum to exactly 1."""
    cumulative = policy.cumsum()
    return min(int(cumulative.searchsorted(rng.random() * cumulative[-1], side="right")), len(policy) - 1)


def random_stream(config: Config, number: int) -> np.random.SeedSequence:
    """One of the independent random streams that the run's seed gives."""
    return np.random.SeedSequence(config.seed, spawn_key=(number,))


def seed_global_generators(config: Config, number: int) -> None:
    """Seed the generators of `random` and `numpy.random` for the agent of this stream.

    Agent processes are copies of one process, and would otherwise all draw the same numbers from them. The environments
    of this package have generators of their own; one of the user's may draw from these.
    """
    words = np.random.SeedSequence(config.seed, spawn_key=(1, number)).generate_state(4)
    random.seed(words.tobytes())
    np.random.seed(words)  # noqa: NPY002 - the old generator is the global one


class Segment:
    """Up to t_max steps of one agent, written straight into its slot of the shared memory."""

    def __init__(self, memory: RolloutBuffers, slot: int, state: np.ndarray):
        self.slot = slot
        self.length = 0
        self._memory = memory
        self._rewards: list[float] = []
        memory.states[slot, 0] = state

    @property
    def newest(self) -> int:
        """Index, as the prediction queue carries it, of the state after the last step."""
        return self._memory.state_index(self.slot, self.length)

    @property
    def full(self) -> bool:
        """Whether it has t_max steps."""
        return self.length == self._memory.t_max

    def append(self, step: Step, next_state: np.ndarray) -> None:
        """Add one step and the state that it led to."""
        place = self.slot, self.length
        for column, value in zip(self._memory.of_step, step, strict=True):
            column[place] = value
        self._rewards.append(step.rewards)
        self.length += 1
        self._memory.states[self.slot, self.length] = next_state

    def close(self, end: SegmentEnd, config: Config) -> None:
        """Write how it ends, and the returns, which bootstrap from the value of the newest state."""
        memory = self._memory
        slot = self.slot
        if config.advantage == "gae":
            values = memory.mu_values[slot, : self.length].tolist()
            returns = lambda_returns(self._rewards, values, end.bootstrap_values, config.gamma, config.gae_lambda)
        else:
            returns = nstep_returns(self._rewards, end.bootstrap_values, config.gamma)
        memory.returns[slot, : self.length] = returns
        memory.lengths[slot] = self.length
        for column, value in zip(memory.of_end, end, strict=True):
            column[slot] = value


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
        free_slots: the segment slots of this agent that are not in training; who trains on one appends it again.
        seed: seed of the environment and of the sampled actions.
    """

    def __init__(
        self,
        number: int,
        config: Config,
        environment: gymnasium.Env,
        memory: RolloutBuffers,
        training_queue: RecordQueue,
        episode_queue: RecordQueue,
        free_slots: deque[int],
        seed: np.random.SeedSequence,
    ):
        self._number = number
        self._free_slots = free_slots
        self._config = config
        self._environment = environment
        self._memory = memory
        self._training_queue = training_queue
        self._episode_queue = episode_queue
        self._rng = np.random.default_rng(seed)
        self._slot: int | None = None
        self._score = 0.0  # of the episode, raw
        self._length = 0

    def run(self) -> Generator[int | None, None, None]:
        """Play episodes until it is closed."""
        play = self._play_episode if self._config.train_last_transition else self._play_episode_as_nvlabs
        seed: int | None = int(self._rng.integers(2**31))
        try:
            while True:
                while not self._free_slots:  # of an agent that was here before, all may still be in training
                    yield None
                state, _ = self._environment.reset(seed=seed)
                seed = None
                self._score = 0.0
                self._length = 0
                yield from play(self._new_segment(state))
                self._episode_queue.put((self._number, self._length, self._score))
        finally:
            self._environment.close()
            if self._slot is not None:
                self._free_slots.append(self._slot)

    def _play_episode(self, segment: Segment) -> Generator[int | None, None, None]:
        """Play one episode as section 2 of the paper has it."""
        done = False
        while not done:
            # 1. Request policy and value of the newest state; the predictor writes them to our row.
            yield segment.newest
            # 2. A full segment bootstraps from this value and goes to training.
            if self._is_due(segment):
                segment = yield from self._next_segment(segment, self._end())
            # 3. Act, and append the step to the segment.
            step, state, terminated, truncated = self._act()
            segment.append(step, state)
            done = terminated or truncated
        # 4. A time limit bootstraps from the last state, a terminal state from zero.
        if terminated:
            end = self._end(terminated, truncated, bootstraps=False)
        else:
            yield segment.newest
            end = self._end(terminated, truncated)
        yield from self._send(segment, end)

    def _play_episode_as_nvlabs(self, segment: Segment) -> Generator[int | None, None, None]:
        """Play one episode as the authors' code does: a segment is cut one step late, an episode's last step dropped.

        A segment bootstraps from the value of the state before the action that follows it (ProcessAgent.py).
        """
        while True:
            # 1. Request policy and value of the newest state, and act.
            yield segment.newest
            bootstrap = self._end()
            step, state, terminated, truncated = self._act()
            # 2. The step that ends the episode is dropped, and nothing is bootstrapped.
            if terminated or truncated:
                yield from self._send(segment, self._end(terminated, truncated, bootstraps=False))
                return
            # 3. A segment that was full before this step goes to training now; the step begins the next one.
            if segment.full:
                segment = yield from self._next_segment(segment, bootstrap)
            segment.append(step, state)

    def _act(self) -> tuple[Step, np.ndarray, bool, bool]:
        """Take one step by the newest prediction; return it with the next state, `terminated` and `truncated`."""
        memory = self._memory
        number = self._number
        policy = memory.policy[number]
        action = sample_action(policy, self._rng)
        state, raw_reward, terminated, truncated, _ = self._environment.step(action)
        reward = float(raw_reward)
        if not math.isfinite(reward):  # clipped, not-a-number would be -1
            raise ValueError(f"the environment gave the reward {reward}; it must be finite")
        memory.steps[number] += 1
        self._score += reward
        self._length += 1
        if self._config.clip_rewards:
            reward = min(1.0, max(-1.0, reward))
        log_probability = math.log(max(float(policy[action]), SMALLEST_PROBABILITY))
        step = Step(
            actions=action,
            rewards=reward,
            mu_values=float(memory.value[number]),
            mu_log_probabilities=log_probability,
            versions=int(memory.version[number]),
        )
        return step, state, bool(terminated), bool(truncated)

    def _end(self, terminated: bool = False, truncated: bool = False, bootstraps: bool = True) -> SegmentEnd:
        """Return how a segment ends; unless it `bootstraps` from the newest prediction's value, that value is 0."""
        memory = self._memory
        number = self._number
        return SegmentEnd(
            terminated=terminated,
            truncated=truncated,
            bootstrap_values=float(memory.value[number]) if bootstraps else 0.0,
            bootstrap_versions=int(memory.version[number]) if bootstraps else NO_VERSION,
        )

    def _is_due(self, segment: Segment) -> bool:
        """Whether the segment is to be sent before the next step."""
        return segment.full

    def _new_segment(self, state: np.ndarray) -> Segment:
        self._slot = self._free_slots.popleft()
        return Segment(self._memory, self._slot, state)

    def _next_segment(self, segment: Segment, end: SegmentEnd) -> Generator[int | None, None, Segment]:
        yield from self._send(segment, end)
        return self._new_segment(self._memory.states[segment.slot, segment.length])

    def _send(self, segment: Segment, end: SegmentEnd) -> Generator[None, None, None]:
        """Send a segment to training once there is a free slot for the next one: so many may wait, and no more."""
        if segment.length:
            while not self._free_slots:
                yield None
            segment.close(end, self._config)
            self._memory.sent[self._number] += segment.length
            self._training_queue.put(segment.slot)
        else:
            self._free_slots.append(segment.slot)
        self._slot = None


@dataclass(frozen=True)
class AgentQueues:
    """Where agents write: the queues of docs/architecture.md's picture, and the pipe for a traceback."""

    prediction: RecordQueue
    training: RecordQueue
    episodes: RecordQueue
    errors: connection.Connection


class AgentRunner:
    """Drives the agents of one process, as the records on its pipe tell it (`queues.ReplyPipes`)."""

    def __init__(self, number: int, config: Config, memory: RolloutBuffers, queues: AgentQueues, kind: type[Agent]):
        self._number = number
        self._kind = kind
        self._config = config
        self._memory = memory
        self._queues = queues
        self._runs: dict[int, Generator[int | None, None, None]] = {}
        self._free_slots: dict[int, deque[int]] = {}
        self._without_slot: set[int] = set()
        self._leaving: set[int] = set()

    def run(self, answers: connection.Connection) -> None:
        """Work until the pipe is closed."""
        while records := np.frombuffer(os.read(answers.fileno(), 4096), INDEX).tolist():
            if requests := self.handle(records):
                self._queues.prediction.put(requests)

    def handle(self, records: list[int]) -> list[int]:
        """Let the agents go on that these records concern; return the states that they want predictions for."""
        busy_since = self._memory.busy_since
        requests = []
        for record in records:
            busy_since[self._number] = time.monotonic()
            agent = self._agent_to_run(record & KIND, record & ~KIND)
            if agent is None:
                continue
            request = next(self._runs[agent])
            if request is None:
                self._without_slot.add(agent)
            else:
                requests.append(request)
        busy_since[self._number] = 0.0
        return requests

    def _agent_to_run(self, kind: int, index: int) -> int | None:
        """Take in one record; return the agent that can now go on, if any."""
        if kind == RELEASED:
            agent = index // self._memory.slots_per_agent
            self._free_slots[agent].append(index)
            if agent not in self._without_slot:
                return None
            self._without_slot.remove(agent)
            return agent
        if kind == ADDED:
            return self._add(index)
        if kind == REMOVED:
            self._leaving.add(index)
            if index in self._without_slot:
                self._without_slot.remove(index)
                self._remove(index)
            return None
        if index in self._leaving:  # only now: its prediction was still under way
            self._remove(index)
            return None
        return index

    def _add(self, agent: int) -> int | None:
        if agent in self._leaving:
            self._leaving.remove(agent)
            return None
        config = self._config
        memory = self._memory
        queues = self._queues
        free_slots = self._free_slots.setdefault(agent, deque(memory.slots_of(agent)))
        stream = int(memory.streams[agent])
        seed = random_stream(config, stream)
        seed_global_generators(config, stream)
        environment = make_environment(config)
        self._runs[agent] = self._kind(
            agent, config, environment, memory, queues.training, queues.episodes, free_slots, seed
        ).run()
        return agent

    def _remove(self, agent: int) -> None:
        self._leaving.remove(agent)
        self._runs.pop(agent).close()


def run_agents(
    number: int,
    config: Config,
    memory: RolloutBuffers,
    queues: AgentQueues,
    kind: type[Agent],
    answers: connection.Connection,
) -> None:
    """Agent process `number`, with agents of this kind. Target of a Process.

    An error is sent, as a traceback, down the error pipe, and ends the process with exit code 1.
    """
    with errors_told(queues.errors):
        schedule_as(config.scheduling)  # the forkserver may be that of an earlier training
        AgentRunner(number, config, memory, queues, kind).run(answers)


@contextlib.contextmanager
def errors_told(errors: connection.Connection) -> Iterator[None]:
    """Within it, an error is sent, as a traceback, down this pipe, and ends the process with exit code 1."""
    try:
        yield
    except ServerGone:
        pass
    except BaseException:
        errors.send_bytes(traceback.format_exc().encode()[-select.PIPE_BUF + 64 :])
        raise SystemExit(1) from None
