"""The settings of a run: their meaning, bounds, conflicts and presets."""

from ga3c_tf.config.config import HELD, Config, has_effect, is_optional, option_of, setting_type
from ga3c_tf.config.names import BUILT_IN, check_name, network_for, network_of_record
from ga3c_tf.config.settings import ATARI, MOST_EPISODE_STEPS, SMALLEST_SCREEN

__all__ = [
    "ATARI",
    "BUILT_IN",
    "HELD",
    "MOST_EPISODE_STEPS",
    "SMALLEST_SCREEN",
    "Config",
    "check_name",
    "has_effect",
    "is_optional",
    "network_for",
    "network_of_record",
    "option_of",
    "setting_type",
]
