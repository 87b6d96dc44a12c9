"""Training batches from a replay memory, as many as the training intensity asks for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.experience.buffers import RolloutBuffers
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.replay.files import ReplayUnreadable, has_replay, load_replay, save_replay
from ga3c_tf.experience.replay.memory import CollectedSegment, ReplayMemory, Sampling


class Replay:
    """Takes segments into a replay memory, and samples the batches that are due. A `BatchSource`.

    Segments and batches are for one thread at a time; `feedback` and `save` are for any. The training
    intensity is the number of states that are trained on for each agent step (the term of Stooke & Abbeel,
    arXiv 1803.02811). A batch is due as soon as enough steps were taken in; those of the start allow none.
    What they allow and is not trained on yet is kept, so the intensity is exact in the long run.

    Args:
        config: settings of the run; those of the replay memory are used.
        buffers: buffers shared with the agents.
    """

    def __init__(self, config: Config, buffers: RolloutBuffers):
        self._config = config
        self._buffers = buffers
        self._start = config.replay_start
        self._collected = self._trained = 0
        self._lock = threading.Lock()
        self._begin(0)

    @property
    def states(self) -> int:
        """Number of states taken in since the start of the session."""
        return self._collected

    def copy(self, slot: int, generation: int) -> None:
        """Copy the segment in `slot`, which a process of this generation has sent."""
        buffers = self._buffers
        store = self._memory.store
        length = int(buffers.lengths[slot])
        columns = {
            name: buffers.columns[name][slot, :length].copy() for name in ("actions", "rewards", "versions")
        }
        states = buffers.states[slot, : length + 1]
        self._copied = CollectedSegment(
            agent=slot // buffers.slots_per_agent,
            generation=generation,
            older=store.older(states[0]).copy(),
            frames=store.newest(states).copy(),
            terminated=bool(buffers.columns["terminated"][slot]),
            truncated=bool(buffers.columns["truncated"][slot]),
            **columns,
        )

    def add(self) -> None:
        """Take in the segment that was copied last."""
        with self._lock:
            self._memory.add(self._copied)
        self._collected += len(self._copied.actions)

    def due(self) -> Batch | None:
        """Return a batch if one is due, else None."""
        size = self._config.replay_batch
        allowed = self._config.training_intensity * (self._collected - self._start)
        with self._lock:
            if self._trained + size > allowed or not self._memory.can_sample:
                return None
            self._trained += size
            return self._memory.sample(size)

    def feedback(self, batch: Batch, errors: np.ndarray) -> None:
        """Give the steps of a batch priorities by their errors, float32 [B]."""
        with self._lock:
            self._memory.set_errors(batch, errors)

    def save(self, folder: Path) -> None:
        """Write the replay memory to a folder.

        Raises:
            OSError: a file cannot be written.
        """
        with self._lock:
            save_replay(self._memory, folder)

    def resume(self, folder: Path, agent_steps: int, warn: Callable[[str], None]) -> None:
        """Continue from a checkpoint; before the first segment.

        Args:
            folder: the checkpoint; it need not hold a replay memory.
            agent_steps: steps of earlier sessions, whose samples are not repeated.
            warn: called with one line if the replay memory is filled anew.

        Raises:
            UserError: the memory may be undamaged, but cannot be read now.
        """
        self._begin(agent_steps)
        anew = f"it is filled anew with {self._config.replay_start} steps before the training goes on"
        if not has_replay(folder):
            why = "this checkpoint has none" if self._config.save_replay else "--save-replay would"
            warn(f"the replay memory was not saved ({why}); {anew}")
            return
        try:
            load_replay(self._memory, folder)
        except ReplayUnreadable as error:
            warn(f"the replay memory in {folder} {error}; {anew}")
            self._begin(agent_steps)
        else:
            self._start = max(0, self._config.replay_start - self._memory.collected)

    def _begin(self, agent_steps: int) -> None:
        """Make an empty memory."""
        config = self._config
        self._memory = ReplayMemory(
            config.replay_size,
            self._buffers.num_agents,
            self._buffers.spec,
            Sampling(config.n_step, config.gamma, config.priority_exponent, config.importance_exponent),
            np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=(0, 1, agent_steps))),
        )
