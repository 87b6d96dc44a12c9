"""A correction of policy lag: a rule for policy and values to learn from an older policy's actions.

It is put together from four axes: the weight of the advantages, a mask, a trust region, and the scale of the
step (`ga3c_tf.config.corrections` has the names of their parts). Where the policy pi and the policy mu that
chose the actions are the same, every ratio of the two is 1, nothing is masked, and each correction whose
bounds are at least 1 gives exactly the uncorrected gradient. The exception is a trust region around an
average of weights.

B is the number of states in a batch and A the number of actions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ga3c_tf.algorithms.actor_critic.advantages import Advantages
from ga3c_tf.algorithms.actor_critic.masks import Mask, NegativeSegments, RatioRange, TotalVariation
from ga3c_tf.algorithms.actor_critic.probabilities import log_policy, log_taken
from ga3c_tf.algorithms.actor_critic.trust_regions import (
    Clipped,
    Decoupled,
    LogLinear,
    SecondMoment,
    TrustRegion,
)
from ga3c_tf.algorithms.actor_critic.weights import ImportanceRatio, Unweighted, VTrace, Weight
from ga3c_tf.config import Config
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.divergence import Bounds
from ga3c_tf.model.tensorflow import tf


class Estimate(NamedTuple):
    """What a correction makes of a batch."""

    objectives: tf.Tensor  # [B] float32, to be maximized in sum, without the entropy
    targets: tf.Tensor  # [B] float32, targets of the values
    masked: tf.Tensor  # [B] float32, 1 for states whose objective is left out, else 0


@dataclass(frozen=True)
class Correction:
    """How policy and values learn from actions that an older policy chose.

    Args:
        weight: weight of the advantages.
        mask: which steps are left out; None for none.
        trust_region: how pi is kept near another policy; None for the paper's objective, log pi * advantage.
        scales_step: whether the learning rate of an update is multiplied by the root of the effective sample
            size's share of the batch, as in VCPO (mit-han-lab/vcpo, arXiv 2602.17616).
        min_policy: as in `probabilities.policy`.
        floor: smallest probability inside a logarithm; None for no floor. It holds for the entropy and the
            paper's objective. In a ratio it would make that of a rare action wrong and stop its gradient.
    """

    weight: Weight
    mask: Mask | None = None
    trust_region: TrustRegion | None = None
    scales_step: bool = False
    min_policy: float = 0.0
    floor: float | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the trajectory that `estimate` reads, besides the actions."""
        names = self.weight.columns
        if self.mask:
            names = (*names, *self.mask.columns)
        if self.trust_region:
            names = (*names, *self.trust_region.columns)
        return tuple(dict.fromkeys(names))

    @property
    def bounds(self) -> Bounds:
        """What is clipped, left out or floored of pi / mu."""
        if self.trust_region:
            bounds = self.trust_region.bounds
        else:
            bounds = self.weight.bounds._replace(lowest_probability=self.floor)
        if self.mask and self.mask.bounds != Bounds():
            return self.mask.bounds._replace(lowest_probability=bounds.lowest_probability)
        return bounds

    def estimate(self, batch: Batch, logarithms: tf.Tensor) -> Estimate:
        """Return the objective of the policy and the targets of the values.

        Args:
            batch: training batch with `logits`, `values`, `actions` and `columns`.
            logarithms: [B, A] float32, log pi, with the floor.
        """
        if self.trust_region:
            log_pi = self._log_pi(batch)
            weighted = self.weight.of(batch, self.trust_region.numerator(batch, tf.stop_gradient(log_pi)))
            objectives = self.trust_region.objectives(batch, log_pi, weighted)
        else:
            log_pi = log_taken(logarithms, batch.actions)
            weighted = self.weight.of(batch, log_pi)
            objectives = log_pi * (weighted.weights * weighted.advantages)
        masked = tf.zeros_like(objectives)
        if self.mask:
            is_trained = self.mask.keeps(batch, tf.stop_gradient(self._log_pi(batch)), weighted.advantages)
            objectives = tf.where(is_trained, objectives, 0.0)
            masked = tf.where(is_trained, masked, 1.0)
        return Estimate(objectives, weighted.targets, masked)

    def _log_pi(self, batch: Batch) -> tf.Tensor:
        """Return log pi of the actions taken, [B], without the floor."""
        return log_taken(log_policy(batch.logits, self.min_policy, None), batch.actions)


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
