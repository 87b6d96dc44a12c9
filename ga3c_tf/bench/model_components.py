"""Benchmark of the model: predictions and updates by batch size."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ga3c_tf.bench.physical import mflop_per_state
from ga3c_tf.bench.timing import bind_to_one_core, ms_per_call
from ga3c_tf.config import Config, network_for
from ga3c_tf.config.rates import Rates
from ga3c_tf.environments.environment import describe_environment
from ga3c_tf.errors import UserError
from ga3c_tf.experience.columns import Batch
from ga3c_tf.host.libraries import enable_onednn

PREDICTION_SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
TRAINING_SIZES = (5, 25, 45, 85, 128)


def add_sampled_columns(batch: Batch) -> None:
    """Add the columns that only batches from a replay memory have."""
    ones = np.ones(len(batch), np.float32)
    vars(batch).update(next_states=batch.states, discounts=ones, weights=ones, ages=ones)


def model_components(config: Config, device: str) -> tuple[dict, Callable[[float], dict]]:
    """Build the benchmark of the model on `device`.

    It measures 'prediction_ms' and 'update_ms' by batch size, and 'full_call_ms', a call with as many updates
    of t_max states as the model makes in one.

    On a GPU the times are those that a caller waits, including transfers.

    Returns:
        The facts 'device', 'gpus', 'onednn', 'network', 'compiled', 'updates_per_call' and 'mflop', and the
        function that measures.
    """
    spec = describe_environment(config)
    if spec.is_screen:
        enable_onednn()

    from ga3c_tf.algorithms.actor_critic.compiled.model import CompiledModel
    from ga3c_tf.algorithms.factory import new_model
    from ga3c_tf.model.device import configure_device, gpu_names
    from ga3c_tf.model.tensorflow import ONEDNN

    placed = configure_device(device, intra_op_threads=1, inter_op_threads=1)
    if "GPU" not in placed:
        bind_to_one_core()
    config = config.replace(network=network_for(config.network, spec.state_shape, config.algorithm))
    model = new_model(config, spec, 0, placed)
    if len(model.initial_carry):
        raise UserError("bench measures networks without memory; `train` logs the rates of any network")
    predictions = prediction_sizes(config)
    updates = training_sizes(config)
    states, actions, returns = _random_batch(max(predictions + updates), spec)

    def predict(size: int) -> None:
        model.predict(states[:size])

    def train(size: int, count: int = 1) -> None:
        # Columns the loss reads.
        batch = Batch(states=states[:size], actions=actions[:size], returns=returns[:size])
        if config.reads("replay_batch"):
            add_sampled_columns(batch)
        model.train([batch] * count, Rates(1e-6, config.beta))

    def measure(seconds: float) -> dict:
        seconds_per_size = seconds / (len(predictions) + len(updates) + 1)
        most = model.updates_per_call
        return {
            "full_call_ms": ms_per_call(partial(train, config.t_max, most), seconds_per_size),
            "prediction_ms": {
                size: ms_per_call(partial(predict, size), seconds_per_size) for size in predictions
            },
            "update_ms": {size: ms_per_call(partial(train, size), seconds_per_size) for size in updates},
        }

    facts = {
        "device": "gpu" if "GPU" in placed else "cpu",
        "gpus": gpu_names(),
        "onednn": ONEDNN,
        "network": model.network.name,
        "compiled": isinstance(model, CompiledModel),
        "updates_per_call": model.updates_per_call,
        "mflop": mflop_per_state(model.network, spec.state_shape, spec.state_dtype),
    }
    return facts, measure


def prediction_sizes(config: Config) -> list[int]:
    """Return the prediction batch sizes to measure: up to 128, and the number of agents if that is larger."""
    return sorted({*PREDICTION_SIZES, max(config.num_agents, max(PREDICTION_SIZES))})


def training_sizes(config: Config) -> list[int]:
    """Return the training batch sizes to measure: fixed ones, and those that these settings produce.

    A trainer merges segments until they exceed the minimum training batch. Full segments give the smallest
    multiple of t_max above it, and no batch is larger than the minimum plus one segment. Samples of a replay
    memory have one size.
    """
    if config.reads("replay_batch"):
        return sorted({*TRAINING_SIZES, config.t_max, config.replay_batch})
    whole = config.t_max * (config.min_training_batch // config.t_max + 1)
    return sorted({*TRAINING_SIZES, config.t_max, whole, config.min_training_batch + config.t_max})


def _random_batch(size: int, spec) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    shape = (size, *spec.state_shape)
    dtype = np.dtype(spec.state_dtype)
    states = (
        random.integers(0, 256, shape).astype(dtype)
        if dtype == np.uint8
        else random.random(shape, np.float32)
    )
    return (
        states,
        random.integers(spec.num_actions, size=size).astype(np.int32),
        random.random(size, np.float32),
    )
