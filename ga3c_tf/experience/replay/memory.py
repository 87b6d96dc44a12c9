"""The replay memory: the newest steps of all agents, and batches that are sampled from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.replay.frames import FrameStore
from ga3c_tf.experience.replay.lane import Lane
from ga3c_tf.experience.replay.sum_tree import SumTree
from ga3c_tf.experience.replay.targets import GOES_ON, TERMINATED, TRUNCATED, nstep_returns
from ga3c_tf.experience.spec import EnvironmentSpec

SMALLEST_PRIORITY = 1e-6
"""Added to an absolute error, so that every step can be sampled (Schaul et al. 2016, section 3.3)."""


STEP_COLUMNS = {
    "actions": np.int32,
    "rewards": np.float32,
    "versions": np.int64,  # of the model that chose the action
    "numbers": np.int64,  # steps that were added before
    "ends": np.uint8,  # how the episode stands after the step, see `targets`
}
"""Types of what is stored for each step besides its frame."""


class CollectedSegment(NamedTuple):
    """A segment as an agent has sent it, copied out of its slot.

    Attributes:
        agent: number of the agent.
        generation: generation of its process.
        older: frames [stacked - 1, ...] of the first state, without the newest one.
        frames: newest frames [L + 1, ...] of the states before each step, and of the state after the last.
        actions, rewards, versions: int32, float32 and int64 [L].
        terminated, truncated: whether the last step ended the episode, or reached a time limit.
    """

    agent: int
    generation: int
    older: np.ndarray
    frames: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    versions: np.ndarray
    terminated: bool
    truncated: bool


@dataclass(frozen=True)
class Sampling:
    """How batches are sampled.

    Attributes:
        n_step: most steps of a return.
        gamma: discount factor of one step.
        priority_exponent: exponent of a step's last error in its probability; 0 samples uniformly.
        importance_exponent: exponent of the weights that correct for these probabilities.
    """

    n_step: int
    gamma: float
    priority_exponent: float
    importance_exponent: float


class ReplayMemory:
    """The newest steps of each agent. For one thread at a time.

    Every agent fills a lane of its own. A lane holds, one behind another, the frames of the states from which
    the agent took steps. An episode begins with the older frames of its first state, and, where its last
    state has a value, ends with the frame of that state; these two kinds of places hold no step. A step can
    be sampled once the state after its n-step return is known, and until a frame of its own state is
    overwritten.

    Args:
        size: number of places for all agents together; each agent has as many as all others.
        agents: number of agents.
        spec: shape and type of states, and whether they are stacks of frames.
        sampling: how batches are sampled.
        random: generator of the samples.

    Attributes:
        collected: number of steps that were ever added.
        highest: priority of steps that were never trained on.
        sampling: how batches are sampled.
        stacked: number of frames that a state is a stack of.
        lanes: the lane of each agent.
        store: the frames.
        steps: what is stored for each place besides, by the names of `STEP_COLUMNS`.
    """

    def __init__(
        self,
        size: int,
        agents: int,
        spec: EnvironmentSpec,
        sampling: Sampling,
        random: np.random.Generator,
    ):
        self.collected = 0
        self.sampling = sampling
        self._random = random
        self.stacked = spec.stacked
        self._lane_size = size // agents
        size = self._lane_size * agents
        self.lanes = [Lane(agent * self._lane_size, self._lane_size) for agent in range(agents)]
        self.store = FrameStore(size, spec)
        self.steps = {name: np.zeros(size, dtype) for name, dtype in STEP_COLUMNS.items()}
        self._tree = SumTree(size)
        self.highest = 1.0

    @property
    def can_sample(self) -> bool:
        """Whether there is a step to be sampled."""
        return self._tree.total > 0

    def add(self, segment: CollectedSegment) -> None:
        """Add a segment behind those of its agent."""
        lane = self.lanes[segment.agent]
        if lane.goes_on and lane.generation != segment.generation:
            self._end_early(lane)
        lane.generation = segment.generation
        if not lane.goes_on:
            self._begin_episode(lane, segment.older)
        self._write(lane, segment)
        self._release(lane, segment)

    def sample(self, size: int) -> Batch:
        """Return a batch of steps; some step must be there to be sampled.

        Of as many equal parts of all priorities as the batch has steps, one step is drawn from each.

        Returns:
            Besides columns of `columns.COLUMNS`, of which `returns` is the n-step return without a bootstrap:
            `next_states` [B, *state_shape] from which it bootstraps with factors `discounts` float32 [B];
            `weights` float32 [B]; `ages` int64 [B], steps added since and itself; and `places` and
            `numbers`, int64 [B], by which `set_errors` knows the steps.
        """
        strata = (np.arange(size) + self._random.random(size)) * (self._tree.total / size)
        places = self._tree.find(strata)
        sampling = self.sampling
        path = self._behind(places, np.arange(sampling.n_step))
        steps = self.steps
        nstep = nstep_returns(steps["rewards"][path], steps["ends"][path], sampling.gamma)
        after = self._behind(places, np.where(nstep.discounts > 0, nstep.spans, 0)[:, None])[:, 0]
        return Batch(
            states=self._states(places),
            next_states=self._states(after),
            actions=steps["actions"][places],
            returns=nstep.rewards,
            discounts=nstep.discounts,
            weights=self._weights(places),
            versions=steps["versions"][places],
            agents=places // self._lane_size,
            ages=self.collected - steps["numbers"][places],
            places=places,
            numbers=steps["numbers"][places],
        )

    def set_errors(self, batch: Batch, errors: np.ndarray) -> None:
        """Give the steps of a batch priorities by the errors that were made on them.

        Steps that were overwritten since are left out.

        Args:
            batch: a batch that was sampled.
            errors: float32 [B], difference of each step's value and its target.
        """
        exponent = self.sampling.priority_exponent
        if exponent == 0:
            return
        places = batch.places
        is_there = (self.steps["numbers"][places] == batch.numbers) & (self._tree.priorities(places) > 0)
        if is_there.any():
            priorities = (np.abs(errors[is_there], dtype=np.float64) + SMALLEST_PRIORITY) ** exponent
            self.highest = max(self.highest, float(priorities.max()))
            self._tree.set(places[is_there], priorities)

    def priorities(self, part: slice) -> np.ndarray:
        """Return the priorities of some places, float64; 0 where no step can be sampled."""
        return self._tree.priorities(np.arange(part.start, part.stop))

    def set_priorities(self, part: slice, priorities: np.ndarray) -> None:
        """Set the priorities of some places."""
        self._tree.set(np.arange(part.start, part.stop), priorities)

    def _begin_episode(self, lane: Lane, older: np.ndarray) -> None:
        """Write the older frames of an episode's first state."""
        self._forget(lane, len(older))
        self.store.frames[lane.places(lane.head, len(older))] = older
        lane.head += len(older)
        lane.ready = lane.head

    def _write(self, lane: Lane, segment: CollectedSegment) -> None:
        """Write the steps of a segment, and the frame of the state after it."""
        length = len(segment.actions)
        self._forget(lane, length + 1)
        places = lane.places(lane.head, length + 1)
        self.store.frames[places] = segment.frames
        steps = places[:-1]
        columns = self.steps
        columns["actions"][steps] = segment.actions
        columns["rewards"][steps] = segment.rewards
        columns["versions"][steps] = segment.versions
        columns["numbers"][steps] = self.collected + np.arange(length)
        columns["ends"][steps] = GOES_ON
        lane.head += length
        self.collected += length

    def _release(self, lane: Lane, segment: CollectedSegment) -> None:
        """Let the steps be sampled whose return is known after a segment."""
        lane.goes_on = not (segment.terminated or segment.truncated)
        if segment.terminated:
            self._end(lane, TERMINATED)
        elif segment.truncated:
            self._end_early(lane)
        else:
            self._make_ready(lane, lane.head - self.sampling.n_step + 1)

    def _end_early(self, lane: Lane) -> None:
        """End an episode whose next steps will not come. The frame of its last state is kept."""
        lane.goes_on = False
        self._end(lane, TRUNCATED)
        lane.head += 1

    def _end(self, lane: Lane, how: int) -> None:
        self.steps["ends"][lane.places(lane.head - 1, 1)] = how
        self._make_ready(lane, lane.head)

    def _make_ready(self, lane: Lane, end: int) -> None:
        """Let the steps before the position `end` be sampled."""
        if end > lane.ready:
            self._tree.set(lane.places(lane.ready, end - lane.ready), self.highest)
            lane.ready = end

    def _forget(self, lane: Lane, count: int) -> None:
        """Let no step be sampled any more of whose state a frame will be in the next `count` places."""
        count += self.stacked - 1
        if lane.head + count > lane.size:
            self._tree.set(lane.places(lane.head, count), 0.0)

    def _behind(self, places: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Return the places so many positions behind others in their lanes: int64 [B, n].

        Args:
            places: int64 [B].
            offsets: int64 [n] or [B, n].
        """
        lanes, within = np.divmod(places[:, None], self._lane_size)
        return lanes * self._lane_size + (within + offsets) % self._lane_size

    def _states(self, places: np.ndarray) -> np.ndarray:
        return self.store.states(self._behind(places, np.arange(1 - self.stacked, 1)))

    def _weights(self, places: np.ndarray) -> np.ndarray:
        """Return the importance weight of each sample: 1 for the least likely one, float32 [B]."""
        priorities = self._tree.priorities(places)
        weights = (priorities / priorities.min()) ** -self.sampling.importance_exponent
        return weights.astype(np.float32)
