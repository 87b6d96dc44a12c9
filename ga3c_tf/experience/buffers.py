"""The arrays that agents and server share: states, steps, segments, predictions and counters."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from ga3c_tf.config import Config
from ga3c_tf.experience.columns import NO_VERSION, SegmentEnd, Step, along, columns_with
from ga3c_tf.experience.contracts import NO_CARRY, Prediction
from ga3c_tf.experience.shared_memory import SharedMemory
from ga3c_tf.experience.spec import EnvironmentSpec


class RolloutBuffers:
    """The arrays that agents and server share.

    There is room for `config.most_agents` agents and, after them, the remote agents. Each agent owns
    `slots_per_agent` segment slots: it fills one of them while the others wait for training. A state is
    written into its segment's slot, from which both predictions and training read it.

    Args:
        config: settings of the run; those for the numbers of agents, segments and steps are used.
        spec: shape and type of states, and number of actions.
        initial_carry: float32 [H], carry with which an episode begins; H is 0 without memory.

    Attributes:
        spec: shape and type of states, and number of actions.
        states: [slots, t_max + 1, *state_shape]; the last state is the one from which a full segment
            bootstraps.
        flat_states: [slots * (t_max + 1), *state_shape], the same memory; requests for predictions are
            indices into it.
        step_columns: by name, [slots, t_max, *shape]; also attributes, such as `actions`.
        segment_columns: by name, [slots, *shape]; also attributes, such as `lengths`.
        columns: step columns and segment columns together.
        of_step: the step columns that a `Step` fills, in the order of its fields.
        of_end: the segment columns that a `SegmentEnd` fills, in the order of its fields.
        policy: float32 [num_agents, num_actions], policy of the newest prediction for each agent.
        value: float32 [num_agents], value of that prediction.
        version: int64 [num_agents], version of the model that made it.
        next_carry: float32 [num_agents, H], carry of the network after the state of that prediction.
        carry: float32 [num_agents, H], carry before that state.
        carry_version: int64 [num_agents], version of the model that gave `carry`; -1 if it is the initial
            one.
        steps: int64 [num_agents], environment steps taken by each agent.
        streams: int64 [num_agents], number of the random stream with which each agent begins.
        sent: int64 [num_agents], steps of each agent in segments that it has sent to training.
        busy_since: float64 [num_agents], by process: time at which its current step, reset or start began
            (`time.monotonic`), or 0 while it waits.
        nodes: bytes [num_agents], by process: machine that runs its agents, or empty for this one.
        round_trips: float64 [num_agents, 2], by process: total seconds of calls to that machine, and number
            of calls.
    """

    states: np.ndarray
    mu_values: np.ndarray
    returns: np.ndarray
    lengths: np.ndarray
    policy: np.ndarray
    value: np.ndarray
    version: np.ndarray
    carry: np.ndarray
    next_carry: np.ndarray
    carry_version: np.ndarray
    steps: np.ndarray
    streams: np.ndarray
    sent: np.ndarray
    busy_since: np.ndarray
    nodes: np.ndarray
    round_trips: np.ndarray

    def __init__(self, config: Config, spec: EnvironmentSpec, initial_carry: np.ndarray = NO_CARRY):
        self.spec = spec
        self.initial_carry = initial_carry
        columns = columns_with(len(initial_carry))
        self.num_agents = config.most_agents + config.remote_agents
        self.t_max = config.t_max
        self.slots_per_agent = config.segments_per_agent + 1
        slots = self.num_agents * self.slots_per_agent
        self._layout: dict[str, tuple[tuple[int, ...], DTypeLike]] = {
            "steps": ((self.num_agents,), np.int64),
            "streams": ((self.num_agents,), np.int64),
            "sent": ((self.num_agents,), np.int64),
            "busy_since": ((self.num_agents,), np.float64),
            "nodes": ((self.num_agents,), "S64"),
            "round_trips": ((self.num_agents, 2), np.float64),
            "version": ((self.num_agents,), np.int64),
            "policy": ((self.num_agents, spec.num_actions), np.float32),
            "value": ((self.num_agents,), np.float32),
            "carry": ((self.num_agents, len(initial_carry)), np.float32),
            "next_carry": ((self.num_agents, len(initial_carry)), np.float32),
            "carry_version": ((self.num_agents,), np.int64),
            **{
                column.name: ((slots, self.t_max, *column.shape), column.dtype)
                for column in along(columns, "step")
            },
            **{column.name: ((slots, *column.shape), column.dtype) for column in along(columns, "segment")},
            "states": ((slots, self.t_max + 1, *spec.state_shape), np.dtype(spec.state_dtype)),
        }
        self._memory = SharedMemory(sum(_nbytes(*entry) for entry in self._layout.values()), _smaller(config))
        self._map()

    def __getstate__(self):
        pickled = (
            "spec",
            "num_agents",
            "t_max",
            "slots_per_agent",
            "initial_carry",
            "_layout",
            "_memory",
        )
        return {name: self.__dict__[name] for name in pickled}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._map()

    def _map(self) -> None:
        offset = 0
        for name, (shape, dtype) in self._layout.items():
            setattr(self, name, np.ndarray(shape, dtype, self._memory.buffer, offset))
            offset += _nbytes(shape, dtype)
        self.flat_states = self.states.reshape(-1, *self.states.shape[2:])
        columns = columns_with(len(self.initial_carry))
        self.step_columns = {column.name: getattr(self, column.name) for column in along(columns, "step")}
        self.segment_columns = {
            column.name: getattr(self, column.name) for column in along(columns, "segment")
        }
        self.columns = self.step_columns | self.segment_columns
        self.of_step = [self.step_columns[name] for name in Step._fields]
        self.of_end = [self.segment_columns[name] for name in SegmentEnd._fields]

    def state_index(self, slot: int, step: int) -> int:
        """Return the index of a slot's state in `flat_states`, as used in the prediction queue."""
        return slot * (self.t_max + 1) + step

    def agents_of(self, state_indices: np.ndarray) -> np.ndarray:
        """Return the agents to which the states with these indices belong."""
        return state_indices // ((self.t_max + 1) * self.slots_per_agent)

    def write_predictions(self, agents: np.ndarray, prediction: Prediction) -> None:
        """Write predictions, one for each of these agents (uint32 [n]), to the agents' rows."""
        self.policy[agents] = prediction.policy
        self.value[agents] = prediction.value
        self.version[agents] = prediction.version
        if self.has_carry:
            self.next_carry[agents] = prediction.carry

    @property
    def has_carry(self) -> bool:
        """Whether the network has memory."""
        return len(self.initial_carry) > 0

    def forget(self, agent: int) -> None:
        """Give an agent the carry with which an episode begins."""
        self.carry[agent] = self.initial_carry
        self.carry_version[agent] = NO_VERSION

    def advance(self, agent: int) -> None:
        """Give an agent the carry after the state that was predicted last, before it has the next state."""
        self.carry[agent] = self.next_carry[agent]
        self.carry_version[agent] = self.version[agent]

    def slots_of(self, agent: int) -> range:
        """Return the segment slots that an agent owns."""
        return range(agent * self.slots_per_agent, (agent + 1) * self.slots_per_agent)


def _smaller(config: Config) -> str:
    """Return the changes of settings that need less memory, for an error message."""
    changes = ["fewer --agents"] if config.adjustment == "off" else ["--adjustment off", "fewer --max-agents"]
    changes.append("a smaller --t-max")
    if config.segments_per_agent > 1:
        changes.append("a smaller --max-training-queue")
    return f"{', '.join(changes[:-1])} or {changes[-1]}"


def _nbytes(shape: tuple[int, ...], dtype: DTypeLike) -> int:
    """Return the size of an array in bytes, rounded up so that the next array is aligned."""
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    return -(-size // 64) * 64
