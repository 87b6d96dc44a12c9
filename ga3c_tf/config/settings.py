"""The settings of a run, as one frozen dataclass, and quantities derived from them.

The declarations are in `ga3c_tf/config/declared/`. The metadata of a field holds its help text (with symbol
and unit), the group it is listed under, its bounds or choices, and its rules: what reads it, what it needs or
excludes, and whether it may change within a run.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from ga3c_tf.config.corrections import parts_of
from ga3c_tf.config.declaration import ATARI_GAMES, READERS
from ga3c_tf.config.declared.beyond import BeyondPaperSettings
from ga3c_tf.config.declared.devices import DeviceSettings
from ga3c_tf.config.declared.environment import EnvironmentSettings
from ga3c_tf.config.declared.learning import LearningSettings
from ga3c_tf.config.declared.q_learning import QLearningSettings
from ga3c_tf.config.declared.replay import ReplaySettings
from ga3c_tf.config.declared.run import RunSettings
from ga3c_tf.config.declared.workers import WorkerSettings
from ga3c_tf.config.rates import Rates

MOST_EPISODE_STEPS = 100_000
"""Agent steps after which an evaluation ends an episode. Atari itself ends after 27,000, at frame skip 4."""

SMALLEST_SCREEN = 36
"""Least height and width in pixels of an image taken as a game's screen; smaller ones are grids of cells."""


BEYOND_PAPER = {
    setting.name
    for part in (BeyondPaperSettings, QLearningSettings, ReplaySettings, DeviceSettings)
    for setting in dataclasses.fields(part)
} - {"device"}
"""Names of the settings that the paper does not have."""


@dataclass(frozen=True)
class Settings(
    RunSettings,
    ReplaySettings,
    BeyondPaperSettings,
    QLearningSettings,
    DeviceSettings,
    LearningSettings,
    WorkerSettings,
    EnvironmentSettings,
):
    """The settings of one run, unchecked. Section and table numbers refer to the paper (ICLR 2017)."""

    def reads(self, name: str) -> bool:
        """Return whether the system and the algorithm read the setting `name`."""
        return self.not_read_by(name) is None

    def not_read_by(self, name: str) -> str | None:
        """Return what does not read the setting `name`, 'system' or 'algorithm'; None if both read it."""
        rule = self.__dataclass_fields__[name].metadata
        for chooser, readers in READERS.items():
            if getattr(self, chooser) not in rule[readers]:
                return chooser
        return None

    @property
    def device_names(self) -> list[str]:
        """TensorFlow's names of `devices`; none without them."""
        if self.devices is None:
            return []
        if self.devices.startswith("cpu:"):
            return [f"/CPU:{number}" for number in range(int(self.devices[4:]))]
        return [f"/{device.upper()}" for device in self.devices.split(",")]

    @property
    def segments_per_agent(self) -> int:
        """Maximum number of one agent's segments that wait for training; beyond it the agent itself waits."""
        if not self.reads("max_training_queue"):
            return 1
        room = self.waiting_segments or self.max_training_queue
        return max(1, room // (self.most_agents + self.remote_agents))

    @property
    def waiting_segments(self) -> int | None:
        """Number of waiting segments at which agents get no more predictions; None without such a bound.

        Each agent has room for at least one segment, so many agents can fill the queue with several batches.
        With several epochs per batch the trainers are always behind, so at most one batch may wait.
        """
        if not self.reads("max_training_queue") or self.epochs == 1:
            return None
        return min(self.max_training_queue, math.ceil(self.states_per_update / self.t_max))

    @property
    def correction_used(self) -> str:
        """Policy-lag correction in use: the given one, or the one that the other settings imply."""
        if self.correction is not None:
            return self.correction
        if self.clip_ratio:
            return "ppo"
        return "none" if self.log_softmax else "epsilon"

    @property
    def correction_parts(self) -> tuple[str, ...]:
        """Parts of the correction in use, at most one of each axis."""
        return parts_of(self.correction_used)

    @property
    def return_lambda(self) -> float | None:
        """Lambda of the returns that are trained on; None for n-step returns."""
        is_used = self.algorithm == "pqn" or self.advantage == "gae"
        return self.gae_lambda if is_used else None

    @property
    def has_minibatches(self) -> bool:
        """Whether updates use shuffled parts of a training batch instead of all of it."""
        return self.reads("minibatch_size") and (self.epochs > 1 or self.minibatch_size > 0)

    def minibatches_of(self, states: int) -> int:
        """Return the number of minibatches into which an epoch cuts a batch of so many states.

        It is the batch size divided by `minibatch_size`, rounded, but at least 1; without a `minibatch_size`
        it is 1.
        """
        return max(1, round(states / self.minibatch_size)) if self.minibatch_size else 1

    @property
    def states_per_update(self) -> int:
        """Minimum number of states that an update needs: in its batch, or more in a replay memory."""
        if self.reads("replay_batch"):
            return math.ceil(self.replay_batch / self.training_intensity)
        if self.reads("min_training_batch"):
            return self.min_training_batch + 1
        return self.num_agents * self.t_max if self.system == "a2c" else 1

    @property
    def smallest_replay(self) -> int:
        """Least `replay_size`: for each agent a segment, the frames before its first state and after its
        last, and the steps whose return is not known yet.
        """
        return (self.num_agents + self.remote_agents) * (self.t_max + self.n_step + 2 * self.frame_stack)

    @property
    def most_agents(self) -> int:
        """Maximum number of agents on this machine, remote agents not included."""
        if self.adjustment == "off":
            return self.num_agents
        return self.max_agents or max(128, self.num_agents)

    def processes(self, cores: int) -> int:
        """Return the number of agent processes, at most `most_agents`.

        It is the given number, or else one per core; with plain scheduling, one per agent.

        Args:
            cores: number of cores that this process may use.
        """
        usual = self.most_agents if self.scheduling == "plain" else cores
        return min(self.most_agents, self.agent_processes or usual)

    @property
    def remote_actors(self) -> list[range]:
        """Agent numbers of each remote actor. They follow the numbers reserved for agents on this machine."""
        first = self.most_agents
        last = self.most_agents + self.remote_agents
        per_actor = self.agents_per_actor
        return [range(start, min(start + per_actor, last)) for start in range(first, last, per_actor)]

    def progress(self, agent_steps: int, time_s: float, episodes: int = 0) -> float | None:
        """Return the share of the budget that is used, 0 to 1; None without a budget.

        Args:
            agent_steps: agent steps so far.
            time_s: seconds of training so far.
            episodes: episodes so far.
        """
        shares = []
        if self.steps:
            shares.append(agent_steps / self.steps)
        if self.minutes:
            shares.append(time_s / (60 * self.minutes))
        if self.episodes:
            shares.append(episodes / self.episodes)
        return min(1.0, max(shares)) if shares else None

    def annealed(self, agent_steps: int, time_s: float) -> Rates:
        """Return the rates at a time of the run.

        Each changes linearly to its end value, where it has one, and then stays.

        Args:
            agent_steps: agent steps so far, earlier sessions included.
            time_s: seconds of training so far, earlier sessions included.
        """
        done = 0.0
        if self.anneal_steps:
            done = min(1.0, agent_steps / self.anneal_steps)
        if self.anneal_fraction:
            done = min(1.0, (self.progress(agent_steps, time_s) or 0.0) / self.anneal_fraction)

        def at(start, end):
            return start if end is None else start + (end - start) * done

        epsilon = 0.0
        if self.reads("epsilon"):
            explored = min(1.0, agent_steps / self.epsilon_steps)
            epsilon = self.epsilon + (self.epsilon_end - self.epsilon) * explored
        return Rates(at(self.learning_rate, self.learning_rate_end), at(self.beta, self.beta_end), epsilon)


ATARI = tuple(
    setting.name
    for setting in dataclasses.fields(Settings)
    if setting.metadata["environments"] == ATARI_GAMES
)
"""Settings that have an effect on Atari games only."""
