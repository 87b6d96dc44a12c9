"""The names of the built-in networks and losses."""

from __future__ import annotations

from ga3c_tf.errors import UserError, did_you_mean

BUILT_IN = {
    "network": ("small", "large", "large-4", "large-3", "large-2", "large-1", "nature", "minatar", "mlp", "auto"),
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
    known = BUILT_IN[setting]
    if ":" not in name and name not in known:
        raise UserError(
            f"unknown {setting} {name!r}; it must be {', '.join(known)} or 'module:function'"
            f"{did_you_mean(name, list(known))}"
        )
