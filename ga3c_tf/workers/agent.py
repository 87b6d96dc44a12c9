"""The agent: steps its environment, requests predictions, sends segments to training. Without TensorFlow."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Generator

import gymnasium
import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.experience.buffers import RolloutBuffers
from ga3c_tf.experience.columns import NO_VERSION, SegmentEnd, Step
from ga3c_tf.experience.queues import Writable
from ga3c_tf.experience.segment import Segment

SMALLEST_PROBABILITY = 1e-30
"""Lower bound of probabilities in logarithms: rounding can leave a probability of 0 for a sampled action."""


def sample_action(policy: np.ndarray, rng: np.random.Generator) -> int:
    """Sample an action from `policy`, float32 [num_actions], whose sum need not be exactly 1."""
    cumulative = policy.cumsum()
    return min(int(cumulative.searchsorted(rng.random() * cumulative[-1], side="right")), len(policy) - 1)


class TrainingAgent:
    """One agent with its own environment, episode and random numbers.

    `run` is a generator, so that one process can drive several agents, and the system `serial` all of them.
    It yields the index of a state that needs a prediction, or None if the agent needs a free segment slot.
    Nothing is sent into the generator: the agent reads policy, value and version from the shared memory.

    Args:
        number: number of this agent in the run; also its row in `memory`.
        environment: Gymnasium environment whose observations are the states.
        memory: buffers shared with the server.
        training_queue: receives the slot of each finished segment.
        episode_queue: receives (agent, length, raw score) at the end of each whole game.
        free_slots: segment slots of this agent that are not in training. A slot is appended again once its
            segment has been copied into a batch.
        seed: seed of the environment and of the sampled actions.
    """

    def __init__(
        self,
        number: int,
        config: Config,
        environment: gymnasium.Env,
        memory: RolloutBuffers,
        training_queue: Writable,
        episode_queue: Writable,
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
        self._score = 0.0  # raw score of the current game
        self._length = 0

    def run(self) -> Generator[int | None, None, None]:
        """Play episodes until the generator is closed."""
        play = self._play_episode if self._config.train_last_transition else self._play_episode_as_nvlabs
        seed: int | None = int(self._rng.integers(2**31))
        self._memory.forget(self._number)
        try:
            while True:
                # Those of an earlier agent with this number may all still be in training.
                while not self._free_slots:
                    yield None
                state, _ = self._environment.reset(seed=seed)
                seed = None
                yield from play(self._new_segment(state))
                # A lost life may end a rollout only; memory is of the whole game, as in evaluations.
                if not getattr(self._environment, "game_continues", False):
                    self._memory.forget(self._number)
                    self._episode_queue.put((self._number, self._length, self._score))
                    self._score = 0.0
                    self._length = 0
        finally:
            self._environment.close()
            if self._slot is not None:
                self._free_slots.append(self._slot)

    def _play_episode(self, segment: Segment) -> Generator[int | None, None, None]:
        """Play one episode as section 2 of the paper describes it."""
        done = False
        while not done:
            # 1. Request policy and value of the newest state; the predictor writes them to this agent's row.
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
        """Play one episode as the authors' code does (ProcessAgent.py).

        A segment is cut one step late, and the last step of an episode is dropped. The bootstrap of a segment
        is the value of the state in which the action after the segment was chosen.
        """
        while True:
            # 1. Request policy and value of the newest state, and act.
            yield segment.newest
            bootstrap = self._end()
            step, state, terminated, truncated = self._act()
            # 2. The step that ends the episode is dropped, and nothing is bootstrapped. Its state stays in
            # memory if the game goes on.
            if terminated or truncated:
                if self._memory.has_carry:
                    self._memory.advance(self._number)
                yield from self._send(segment, self._end(terminated, truncated, bootstraps=False))
                return
            # 3. A segment that was full before this step goes to training now; the step begins the next one.
            if segment.full:
                segment = yield from self._next_segment(segment, bootstrap)
            segment.append(step, state)

    def _act(self) -> tuple[Step, np.ndarray, bool, bool]:
        """Take one step with the newest policy; return step, next state, `terminated` and `truncated`."""
        memory = self._memory
        number = self._number
        policy = memory.policy[number]
        action = sample_action(policy, self._rng)
        state, raw_reward, terminated, truncated, _ = self._environment.step(action)
        reward = float(raw_reward)
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
        """Return how a segment ends: with the newest prediction's value, or 0 without `bootstraps`."""
        memory = self._memory
        number = self._number
        return SegmentEnd(
            terminated=terminated,
            truncated=truncated,
            bootstrap_values=float(memory.value[number]) if bootstraps else 0.0,
            bootstrap_versions=int(memory.version[number]) if bootstraps else NO_VERSION,
        )

    def _is_due(self, segment: Segment) -> bool:
        """Return whether the segment must be sent before the next step."""
        return segment.full

    def _new_segment(self, state: np.ndarray) -> Segment:
        self._slot = self._free_slots.popleft()
        return Segment(self._memory, self._slot, state)

    def _next_segment(self, segment: Segment, end: SegmentEnd) -> Generator[int | None, None, Segment]:
        yield from self._send(segment, end)
        return self._new_segment(self._memory.states[segment.slot, segment.length])

    def _send(self, segment: Segment, end: SegmentEnd) -> Generator[None, None, None]:
        """Send a segment to training once there is a free slot for the next one; discard a segment without
        steps.

        The number of slots thus limits how many segments of an agent wait for training.
        """
        if segment.length:
            while not self._free_slots:
                yield None
            segment.close(end, self._config)
            self._memory.sent[self._number] += segment.length
            self._training_queue.put(segment.slot)
        else:
            self._free_slots.append(segment.slot)
        self._slot = None
