"""Statistics of the agents on each machine, for runs with agents on several machines."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable

import numpy as np

from ga3c_tf.experience.buffers import RolloutBuffers

HERE = "server"


class NodeRates:
    """Computes the rates of each machine since the last call.

    Args:
        memory: buffers shared with the agents; `nodes` names the machine of a process's agents.
        process_of: returns the number of an agent's process.
    """

    def __init__(self, memory: RolloutBuffers, process_of: Callable[[int], int]):
        self._memory = memory
        self._process_of = process_of
        self._looked = time.monotonic()
        self._steps = memory.steps.copy()
        self._trips = memory.round_trips.copy()

    def rows(
        self, agents: Iterable[int], lags: np.ndarray, trained: np.ndarray
    ) -> list[dict[str, float | str]]:
        """Return one row for each machine.

        Args:
            agents: numbers of the current agents.
            lags: float64 [num_agents], sum of the policy lags of each agent's trained states.
            trained: float64 [num_agents], number of each agent's trained states.

        Returns:
            For each machine 'node', 'agents', 'pps' (steps per second of its agents), 'policy_lag_mean' (in
            updates) and 'round_trip_ms' (mean duration of a call to it). A mean over nothing is not-a-number.
        """
        now = time.monotonic()
        steps = self._memory.steps.copy()
        trips = self._memory.round_trips.copy()
        seconds = max(now - self._looked, 1e-9)
        of_node: dict[str, list[int]] = defaultdict(list)
        for agent in agents:
            of_node[self._memory.nodes[self._process_of(agent)].decode() or HERE].append(agent)
        rows: list[dict[str, float | str]] = []
        for node, members in of_node.items():
            processes = list({self._process_of(agent) for agent in members})
            took, calls = (trips - self._trips)[processes].sum(axis=0)
            rows.append(
                {
                    "node": node,
                    "agents": len(members),
                    "pps": float((steps - self._steps)[members].sum()) / seconds,
                    "policy_lag_mean": _ratio(lags[members].sum(), trained[members].sum()),
                    "round_trip_ms": 1000 * _ratio(took, calls),
                }
            )
        self._looked = now
        self._steps = steps
        self._trips = trips
        return rows


def _ratio(total: float, count: float) -> float:
    return float(total / count) if count else math.nan
