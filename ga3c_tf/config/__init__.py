"""The settings of a run: their meaning, bounds, conflicts and presets."""

from ga3c_tf.config.config import FIXED, Config, is_optional, setting_type
from ga3c_tf.config.names import BUILT_IN, check_name, network_for, network_of_record
from ga3c_tf.config.rules import check_environment, has_effect, spelled, without_effect_on
from ga3c_tf.config.settings import ATARI, MOST_EPISODE_STEPS, SMALLEST_SCREEN

__all__ = [
    "ATARI",
    "BUILT_IN",
    "FIXED",
    "MOST_EPISODE_STEPS",
    "SMALLEST_SCREEN",
    "Config",
    "check_environment",
    "check_name",
    "has_effect",
    "is_optional",
    "network_for",
    "network_of_record",
    "setting_type",
    "spelled",
    "without_effect_on",
]
