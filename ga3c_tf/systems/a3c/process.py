"""The agent process of A3C: one agent that predicts and trains by itself, on a replica of the network."""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from multiprocessing import connection

import numpy as np

from ga3c_tf.algorithms.network_model import NetworkModel
from ga3c_tf.config import Config
from ga3c_tf.config.rates import Rates
from ga3c_tf.experience.batch_builder import BatchBuilder
from ga3c_tf.experience.buffers import RolloutBuffers
from ga3c_tf.experience.contracts import UpdateRecord
from ga3c_tf.experience.divergence import Divergence, SegmentLag
from ga3c_tf.experience.queues import INDEX, IndexQueue, RecordQueue
from ga3c_tf.experience.segments import FreeSlots, Segments
from ga3c_tf.model.device import configure_device
from ga3c_tf.runs.failures import FailureBudget
from ga3c_tf.systems.a3c.replica import replica
from ga3c_tf.systems.a3c.shared_weights import SharedWeights
from ga3c_tf.workers.agent_process import errors_told, new_agent
from ga3c_tf.workers.fresh_agents import FreshAgent
from ga3c_tf.workers.inference import Inference
from ga3c_tf.workers.minibatches import Minibatches
from ga3c_tf.workers.updater import Updater


def update_type(metrics: int) -> np.dtype:
    """Return the type of the record that an agent sends to the server for each update.

    It holds the number of predictions since the last update, and the results of this one. A record with 0
    states stands for a skipped update.

    Args:
        metrics: number of metrics of an update.
    """
    return np.dtype(
        [
            ("predictions", np.int64),
            ("states", np.int64),
            ("lag", np.int64),
            ("metrics", np.float64, (metrics,)),
            ("divergence", np.float64, len(Divergence._fields)),
            ("within", np.float64, len(SegmentLag._fields)),
        ]
    )


class UpdateReport:
    """Observes the updates of one agent, and sends one record of each to the server.

    Args:
        update_queue: queue of the records, of type `update_type`.
        most_skipped: number of skipped updates within a minute that is tolerated.
    """

    def __init__(self, update_queue: RecordQueue, most_skipped: int):
        self._queue = update_queue
        self._skips = FailureBudget(most_skipped)
        self._predictions = 0

    def predicted(self, states: int) -> None:
        """Count predictions, which the next record reports."""
        self._predictions += states

    def updated(self, update: UpdateRecord) -> None:
        """Send an update's record. A segment's states have one lag: one replica chose all its actions."""
        result = update.result
        lags = update.lags
        metrics = [*result.metrics.values()]
        record = (self._predictions, len(lags), lags[0], metrics, result.divergence, update.within)
        self._queue.put(np.array(record, self._queue.dtype))
        self._predictions = 0

    def skipped(self, error: Exception) -> None:
        """Send the record of a skipped update, and raise `error` if there have been too many."""
        self._queue.put(np.zeros((), self._queue.dtype))
        self._skips.add(error)


@dataclass(frozen=True)
class A3CShared:
    """Shared objects that an agent process receives: memory, and the queues that it writes to."""

    memory: RolloutBuffers
    weights: SharedWeights
    updates: RecordQueue
    episodes: RecordQueue
    errors: connection.Connection


def play_and_train(
    config: Config,
    number: int,
    shared: A3CShared,
    model: NetworkModel,
    rates: Callable[[], Rates],
    ended: Callable[[], bool],
) -> None:
    """Let agent `number` play, and train on each of its segments as soon as it is complete, until `ended`."""
    memory = shared.memory
    report = UpdateReport(shared.updates, config.max_failures)
    slots = FreeSlots(memory)
    training_queue = IndexQueue()
    segments = Segments(training_queue, slots, BatchBuilder(memory, minimum=0))
    inference = Inference(model, memory, report)
    updater = Updater(model, report, Minibatches(config), rates)
    free_slots = slots.of_agent[number]
    agent = new_agent(FreshAgent, number, config, memory, training_queue, shared.episodes, free_slots)
    with closing(agent.run()) as requests:
        for request in requests:
            for batch in segments.waiting():
                updater.train_on([batch])
            if ended():
                return
            if request is not None:
                inference.answer(np.array([request], INDEX))


def run_agent(
    config: Config,
    number: int,
    shared: A3CShared,
    steps_before: int,
    began: float,
    pipe: connection.Connection,
) -> None:
    """Run the agent process, with errors as in `errors_told`. Target of a Process; it ends when the server
    closes `pipe` or dies.

    Args:
        config: settings of the run.
        number: number of the agent.
        shared: weights, memory and queues.
        steps_before: agent steps of all agents in earlier sessions.
        began: start of the run by the monotonic clock, in seconds, as if all sessions had been one.
        pipe: reading end of the pipe that the server closes to end the process.
    """
    memory = shared.memory
    poll = select.poll()
    poll.register(pipe.fileno(), select.POLLIN)
    with errors_told(shared.errors):
        configure_device("cpu", 1, 1)
        model = replica(config, memory.spec, shared.weights, number)
        play_and_train(
            config,
            number,
            shared,
            model,
            rates=lambda: config.annealed(steps_before + int(memory.steps.sum()), time.monotonic() - began),
            ended=lambda: bool(poll.poll(0)),
        )
