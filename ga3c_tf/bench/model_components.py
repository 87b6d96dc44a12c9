"""Benchmark of the model: predictions and updates by batch size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ga3c_tf.bench.component_process import bind_to_one_core, ms_per_call
from ga3c_tf.bench.physical import mflop_per_state
from ga3c_tf.config import Config, network_for
from ga3c_tf.config.rates import Rates
from ga3c_tf.environments.environment import describe_environment
from ga3c_tf.errors import UserError
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.host.libraries import enable_onednn

if TYPE_CHECKING:
    from ga3c_tf.algorithms.network_model import NetworkModel

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

    from ga3c_tf.algorithms.compiled.model import CompiledModel
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
    facts = {
        "device": "gpu" if "GPU" in placed else "cpu",
        "gpus": gpu_names(),
        "onednn": ONEDNN,
        "network": model.network.name,
        "compiled": isinstance(model, CompiledModel),
        "updates_per_call": model.updates_per_call,
        "mflop": mflop_per_state(model.network, spec.state_shape, spec.state_dtype),
    }
    return facts, _Calls(model, config, spec).measure


class _Calls:
    """Calls a model with the first of some random states."""

    def __init__(self, model: NetworkModel, config: Config, spec: EnvironmentSpec):
        self._model = model
        self._config = config
        self._predictions = prediction_sizes(config)
        self._updates = training_sizes(config)
        self._states, self._actions, self._returns = _random_batch(
            max(self._predictions + self._updates), spec
        )

    def measure(self, seconds: float) -> dict:
        """Return the milliseconds of each kind of call, measured for so many seconds in all."""
        seconds_per_size = seconds / (len(self._predictions) + len(self._updates) + 1)
        full = partial(self._train, self._config.t_max, self._model.updates_per_call)
        return {
            "full_call_ms": ms_per_call(full, seconds_per_size),
            "prediction_ms": _by_size(self._predict, self._predictions, seconds_per_size),
            "update_ms": _by_size(self._train, self._updates, seconds_per_size),
        }

    def _predict(self, size: int) -> None:
        self._model.predict(self._states[:size])

    def _train(self, size: int, count: int = 1) -> None:
        # Columns the loss reads.
        columns = {"states": self._states, "actions": self._actions, "returns": self._returns}
        batch = Batch(**{name: column[:size] for name, column in columns.items()})
        if self._config.reads("replay_batch"):
            add_sampled_columns(batch)
        self._model.train([batch] * count, Rates(1e-6, self._config.beta))


def _by_size(call: Callable[[int], None], sizes: Sequence[int], seconds: float) -> dict[int, float]:
    return {size: ms_per_call(partial(call, size), seconds) for size in sizes}


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
