"""Benchmark of GA3C without its environment: processes, queues, threads and statistics, and a model."""

from __future__ import annotations

import time
from collections.abc import Callable

from ga3c_tf.bench.stand_ins import InstantModel, free_environment
from ga3c_tf.config import Config, network_for
from ga3c_tf.console import warn
from ga3c_tf.environments.environment import describe_environment
from ga3c_tf.host.libraries import enable_onednn
from ga3c_tf.plugins import name_of
from ga3c_tf.workers.inference import Inference
from ga3c_tf.workers.minibatches import Minibatches
from ga3c_tf.workers.updater import Updater

START_SECONDS = 120.0
"""Most seconds until the first update."""
POLL_SECONDS = 0.25


def server_component(
    config: Config, device: str, answers_at_once: bool
) -> tuple[dict, Callable[[float], dict]]:
    """Build GA3C with an environment that takes no time, to be measured once.

    It measures 'predictions_per_s', 'updates_per_s', and 'server_us', the microseconds of the server's
    processor time for each prediction, updates included.

    Args:
        config: settings; the seed must be set.
        device: device as in Config's `device`.
        answers_at_once: whether an `InstantModel` takes the place of the model.

    Returns:
        No facts, and the function that measures.
    """
    config = config.resolved(env_id=name_of(free_environment(config)))
    spec = describe_environment(config)
    if spec.is_screen:
        enable_onednn()

    from ga3c_tf.model.device import configure_device
    from ga3c_tf.systems.ga3c.system import GA3C
    from ga3c_tf.systems.session import Session

    config = config.resolved(network=network_for(config.network, spec.state_shape, config.algorithm))
    session = Session(config, spec, configure_device(device), warn)
    if answers_at_once:
        model = InstantModel(config.num_agents, spec.num_actions, session.model.metrics)
        session.inference = Inference(model, session.memory, session.stats)
        session.updater = Updater(model, session.stats, Minibatches(config), session.rates)
    system = GA3C(session)

    def run_until(ended: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not ended() and (left := deadline - time.monotonic()) > 0:
            system.poll(min(POLL_SECONDS, left))

    def counts() -> tuple[int, int, float]:
        return session.agent_steps, session.stats.updates, time.process_time()

    def measure(seconds: float) -> dict:
        session.begin()
        try:
            system.start()
            run_until(lambda: session.stats.updates > 0, START_SECONDS)
            before = counts()
            start = time.monotonic()
            run_until(lambda: False, seconds)
            took = time.monotonic() - start
            predictions, updates, processor = (b - a for a, b in zip(before, counts(), strict=True))
        finally:
            system.stop()
        return {
            "predictions_per_s": predictions / took,
            "updates_per_s": updates / took,
            "server_us": 1e6 * processor / max(1, predictions),
        }

    return {}, measure
