"""The correction of policy lag that the settings choose, from tables of the parts of each axis."""

from __future__ import annotations

import math
from collections.abc import Callable

from ga3c_tf.algorithms.actor_critic.advantages import Advantages
from ga3c_tf.algorithms.actor_critic.correction import Correction
from ga3c_tf.algorithms.actor_critic.masks import Mask, NegativeSegments, RatioRange, TotalVariation
from ga3c_tf.algorithms.actor_critic.trust_regions import (
    Clipped,
    Decoupled,
    LogLinear,
    SecondMoment,
    TrustRegion,
)
from ga3c_tf.algorithms.actor_critic.weights import ImportanceRatio, Unweighted, VTrace, Weight
from ga3c_tf.config import Config

WEIGHTS: dict[str, Callable[[Config], Weight]] = {
    "none": lambda config: Unweighted(_advantages(config)),
    "epsilon": lambda config: Unweighted(_advantages(config)),
    "is": lambda config: ImportanceRatio(_advantages(config), math.inf),
    "clipped-is": lambda config: ImportanceRatio(_advantages(config), config.importance_clip),
    "one-step": lambda config: ImportanceRatio(_advantages(config), config.rho_bar),
    "v-trace": lambda config: VTrace(
        config.gamma, config.rho_bar, config.c_bar, config.t_max, config.normalize_advantages
    ),
}
MASKS: dict[str, type[Mask]] = {
    "ratio-mask": RatioRange,
    "tv-mask": TotalVariation,
    "negative-mask": NegativeSegments,
}
TRUST_REGIONS: dict[str, Callable[[Config], TrustRegion]] = {
    "ppo": lambda config: Clipped(config.clip_ratio),
    "decoupled": lambda config: LogLinear(config.clip_ratio),
    "decoupled-recompute": lambda config: Decoupled(config.clip_ratio),
    "decoupled-ewma": lambda config: Decoupled(config.clip_ratio),
    "m2po": lambda config: SecondMoment(),
}


def correction_of(config: Config) -> Correction:
    """Return the correction that the settings choose, or imply."""
    parts = config.correction_parts
    [weight, *_] = [*(part for part in parts if part in WEIGHTS), "none"]
    masks = [MASKS[part]() for part in parts if part in MASKS]
    regions = [TRUST_REGIONS[part](config) for part in parts if part in TRUST_REGIONS]
    has_floor = weight == "epsilon" or (regions and not config.log_softmax)
    return Correction(
        WEIGHTS[weight](config),
        next(iter(masks), None),
        next(iter(regions), None),
        "ess" in parts,
        config.min_policy,
        config.log_epsilon if has_floor else None,
    )


def _advantages(config: Config) -> Advantages:
    """Return the advantages of the settings.

    Their baseline is the value from the time when the action was chosen with GAE, so that lambda-return minus
    V is the generalized advantage estimate, and in a trust region, so that they stay the same in every epoch.
    """
    fixed = config.advantage == "gae" or any(part in TRUST_REGIONS for part in config.correction_parts)
    return Advantages("mu_values" if fixed else "values", config.normalize_advantages)
