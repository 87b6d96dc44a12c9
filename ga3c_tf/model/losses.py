"""The former place of the losses, from which users' modules import their parts."""

from ga3c_tf.algorithms.actor_critic.losses import *  # noqa: F403
from ga3c_tf.algorithms.actor_critic.losses import __all__ as __all__
