"""Opens a trained agent: for the command line and for Python."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ga3c_tf.console import warn
from ga3c_tf.environments.environment import describe_environment
from ga3c_tf.host.libraries import enable_onednn
from ga3c_tf.plugins import check_trust
from ga3c_tf.runs.folder import read_config

if TYPE_CHECKING:
    from ga3c_tf.trained.policies import RandomAgent, TrainedAgent


def open_agent(
    folder: Path,
    checkpoint: str | int,
    greedy: bool,
    seed: int,
    device: str,
    trust_code: bool,
    changes: Mapping[str, Any] = MappingProxyType({}),
    epsilon: float = 0.0,
) -> TrainedAgent:
    """Return the agent that acts with a checkpoint. It is checked as far as possible before TensorFlow loads.

    Args:
        folder: a run folder, or a folder of weights.
        checkpoint, greedy, seed, changes, epsilon: as for `TrainedAgent`.
        device: device as in Config's `device`.
        trust_code: whether to import custom code that the settings name.

    Raises:
        UserError: the settings name code that is not trusted, the device does not exist, or an error of
            `TrainedAgent`.
    """
    _check_code(folder, trust_code, changes)

    from ga3c_tf.model.device import configure_device
    from ga3c_tf.trained.policies import TrainedAgent

    return TrainedAgent(folder, checkpoint, greedy, seed, configure_device(device), warn, changes, epsilon)


def open_random_agent(folder: Path, seed: int, trust_code: bool, changes: Mapping[str, Any]) -> RandomAgent:
    """Return the random policy in the environment of an agent; arguments and errors as for `open_agent`."""
    _check_code(folder, trust_code, changes)

    from ga3c_tf.trained.policies import RandomAgent

    return RandomAgent(folder, seed, changes)


def _check_code(folder: Path, trust_code: bool, changes: Mapping[str, Any]) -> None:
    """Refuse code that is not trusted, and prepare TensorFlow for the states of the environment."""
    config = read_config(folder).replace(**changes)
    check_trust(config, folder, trust_code)
    if describe_environment(config).is_screen:
        enable_onednn()
