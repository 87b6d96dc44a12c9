"""Scores of the random policy that are on record, for comparison."""

from __future__ import annotations

import json

from ga3c_tf.config import Config
from ga3c_tf.runs.folder import read_config
from ga3c_tf.trained.pretrained import PUBLISHED, published_names
from ga3c_tf.trained.weights import SCORE

PLAYED_WITH = ("env_id", "frame_skip", "repeat_action_probability", "full_action_space", "noop_max")
"""Settings that the scores of the random policy depend on."""


def random_score(config: Config) -> float | None:
    """Return the mean score of the random policy in the environment of a run; None if it is not on record.

    It is on record for the environments of published weights, if these were played with the same settings.
    """
    for name in published_names():
        folder = PUBLISHED / name
        if _is_same_environment(config, read_config(folder)):
            return json.loads((folder / SCORE).read_text(encoding="utf-8")).get("random_policy")
    return None


def _is_same_environment(config: Config, other: Config) -> bool:
    return all(getattr(config, name) == getattr(other, name) for name in PLAYED_WITH)
