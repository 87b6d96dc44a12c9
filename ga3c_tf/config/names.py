"""The names of the built-in networks and losses."""

from __future__ import annotations

from collections.abc import Sequence

from ga3c_tf.config.declaration import ACTOR_CRITIC, RECURRENT
from ga3c_tf.config.settings import SMALLEST_SCREEN
from ga3c_tf.errors import UserError, did_you_mean

BUILT_IN = {
    "network": (
        "small",
        "large",
        "large-4",
        "large-3",
        "large-2",
        "large-1",
        "nature",
        "minatar",
        "mlp",
        "mlp-two-trunks",
        "auto",
        "lstm",
        *RECURRENT,
    ),
    "loss": ("paper",),
}
"""Names that a setting takes besides 'module:function', by setting."""


def check_name(setting: str, name: str) -> None:
    """Check that a network or loss is built in or named as 'module:function', which need not exist.

    Args:
        setting: 'network' or 'loss'.
        name: value of the setting.

    Raises:
        UserError: the name is neither; the message says which names there are, and which are similar.
    """
    built_in = BUILT_IN[setting]
    if ":" not in name and name not in built_in:
        raise UserError(
            f"unknown {setting} {name!r}; it must be {', '.join(built_in)} or 'module:function'"
            f"{did_you_mean(name, list(built_in))}"
        )


def network_for(name: str, shape: Sequence[int], algorithm: str = "actor-critic") -> str:
    """Return the name of the network of a new run, in place of 'auto'. Records thus name their network.

    Args:
        name: the setting `network`.
        shape: shape of one state.
        algorithm: the setting `algorithm`; only the actor-critic has two outputs, for two trunks.

    Raises:
        UserError: the name is 'auto', and there is no built-in network for such states.
    """
    if name == "auto" and len(shape) == 1 and algorithm in ACTOR_CRITIC:
        return "mlp-two-trunks"
    return network_of_record(name, shape)


def network_of_record(name: str, shape: Sequence[int]) -> str:
    """Return the name of the network that a record means. Only runs of version 0.2.0 and before recorded
    'auto'.

    Args:
        name: the setting `network`.
        shape: shape of one state.

    Raises:
        UserError: the name is 'auto' or 'lstm', and there is no built-in network for such states.
    """
    if name == "lstm":
        return f"{network_for('auto', shape)}-lstm"
    if name != "auto":
        return name
    if len(shape) == 1:
        return "mlp"
    if len(shape) == 3 and min(shape[:2]) >= SMALLEST_SCREEN:
        return "small"
    if len(shape) == 3 and min(shape[:2]) >= 3:
        return "minatar"
    raise UserError(f"no network for states of shape {tuple(shape)}: give --network module:function")
