"""Makes the model of a run, by the name of its algorithm."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from ga3c_tf.algorithms.actor_critic.model import Model
from ga3c_tf.config import Config
from ga3c_tf.config.declaration import ALGORITHM_MODELS
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model.tensorflow import tf
from ga3c_tf.model.weight_store import Trainable, WeightStore


def new_model(
    config: Config,
    spec: EnvironmentSpec,
    seed: int,
    device: str | None,
    store: Callable[[Trainable, tf.Variable], WeightStore] | None = None,
) -> Model:
    """Return a new model for an environment.

    Args:
        config: settings of the run.
        spec: shape and type of states, and number of actions.
        seed: seed of the initial weights.
        device: TensorFlow device, as `configure_device` returns it; None leaves the choice to TensorFlow.
        store: as in `Model`.

    Raises:
        UserError: the network cannot be built or does not fit the states, or the loss fails.
    """
    module, _, name = ALGORITHM_MODELS[config.algorithm].partition(":")
    model = getattr(importlib.import_module(module), name)
    return model(
        config, spec.state_shape, spec.state_dtype, spec.num_actions, seed, device=device, store=store
    )
