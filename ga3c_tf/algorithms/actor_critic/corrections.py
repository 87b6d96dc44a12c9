"""Corrections of policy lag: what each makes of a batch, what it reads, and what it clips or floors.

`CORRECTIONS` has one entry for each choice of the setting `correction`. An importance ratio is
pi(action) / mu(action): the probability of the action under the current policy, divided by that under the
policy that chose it. Where both policies are the same, every ratio is 1, and each correction whose bounds are
at least 1 gives exactly the uncorrected gradient.

B is the number of states in a batch and A the number of actions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ga3c_tf.algorithms.actor_critic.advantages import Advantages, normalized
from ga3c_tf.algorithms.actor_critic.correction import Correction, Estimate, importance_ratios
from ga3c_tf.algorithms.actor_critic.masks import Mask, Masked, NegativeSegments, RatioRange, TotalVariation
from ga3c_tf.algorithms.actor_critic.probabilities import log_taken
from ga3c_tf.algorithms.actor_critic.surrogates import ClippedSurrogate, Decoupled, SecondMoment
from ga3c_tf.algorithms.actor_critic.v_trace import v_trace
from ga3c_tf.config import Config
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.divergence import Bounds
from ga3c_tf.model.tensorflow import tf


@dataclass(frozen=True)
class Uncorrected(Correction):
    """The paper's objective (section 3): log pi(action) * (R - V). With a floor, the authors' epsilon.

    The floor stops the gradient of actions that have become unlikely.
    """

    advantages: Advantages
    floor: float | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return self.advantages.columns

    @property
    def bounds(self) -> Bounds:
        return Bounds(lowest_probability=self.floor)

    def estimate(self, batch: Batch, logarithms: tf.Tensor) -> Estimate:
        log_pi = log_taken(logarithms, batch.actions)
        return Estimate(log_pi * self.advantages.of(batch), batch.returns)


@dataclass(frozen=True)
class ImportanceSampling(Correction):
    """Advantages weighted by importance ratios of at most `most`."""

    advantages: Advantages
    most: float

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.advantages.columns, "mu_log_probabilities")

    @property
    def bounds(self) -> Bounds:
        return Bounds.of_ratio(self.most)

    def estimate(self, batch: Batch, logarithms: tf.Tensor) -> Estimate:
        log_pi = log_taken(logarithms, batch.actions)
        weights = importance_ratios(log_pi, batch.mu_log_probabilities, self.most)
        weighted = weights * self.advantages.of(batch)
        return Estimate(log_pi * weighted, batch.returns)


@dataclass(frozen=True)
class VTrace(Correction):
    """V-trace (Espeholt et al. 2018), with advantages and value targets of its own. It needs whole segments.

    Args:
        gamma: discount factor of one step.
        rho_bar: upper bound of the ratios that weight the one-step errors.
        c_bar: upper bound of the ratios in the trace coefficients.
        t_max: maximum number of steps in a segment.
        normalize: whether advantages are normalized before the ratios weight them.
    """

    gamma: float
    rho_bar: float
    c_bar: float
    t_max: int
    normalize: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return ("rewards", "mu_log_probabilities", "lengths", "bootstrap_values")

    @property
    def bounds(self) -> Bounds:
        return Bounds.of_ratio(self.rho_bar)

    def estimate(self, batch: Batch, logarithms: tf.Tensor) -> Estimate:
        log_pi = log_taken(logarithms, batch.actions)
        ratios = importance_ratios(log_pi, batch.mu_log_probabilities, float("inf"))
        returns = v_trace(batch, ratios, self.gamma, self.rho_bar, self.c_bar, self.t_max)
        advantages = normalized(returns.advantages, batch) if self.normalize else returns.advantages
        weighted = tf.minimum(ratios, self.rho_bar) * advantages
        return Estimate(log_pi * weighted, returns.targets)


CORRECTIONS: dict[str, Callable[[Config], Correction]] = {
    "none": lambda config: Uncorrected(_advantages(config)),
    "epsilon": lambda config: Uncorrected(_advantages(config), config.log_epsilon),
    "clipped-is": lambda config: ImportanceSampling(_advantages(config), config.importance_clip),
    "one-step": lambda config: ImportanceSampling(_advantages(config), config.rho_bar),
    "v-trace": lambda config: VTrace(
        config.gamma, config.rho_bar, config.c_bar, config.t_max, config.normalize_advantages
    ),
    "ppo": lambda config: _surrogate(config, ClippedSurrogate),
    "decoupled-ppo": lambda config: _surrogate(config, Decoupled, most=config.importance_clip),
    "m2po": lambda config: _surrogate(config, SecondMoment),
    "icepop": lambda config: _masked(config, RatioRange()),
    "dppo-tv": lambda config: _masked(config, TotalVariation()),
    "deepseek-v3.2": lambda config: _masked(config, NegativeSegments(), _surrogate(config, ClippedSurrogate)),
}
"""Each correction by its name in the settings: made from the few numbers of the settings that it reads."""


def correction_of(config: Config) -> Correction:
    """Return the correction that the settings choose, or imply."""
    return CORRECTIONS[config.correction_used](config)


def _advantages(config: Config) -> Advantages:
    """Return the advantages of a correction that trains on a batch once.

    With GAE, V is the value from the time when the action was chosen, so that lambda-return minus V is the
    generalized advantage estimate.
    """
    return Advantages("mu_values" if config.advantage == "gae" else "values", config.normalize_advantages)


def _surrogate(config: Config, kind: type[ClippedSurrogate], **more: float) -> ClippedSurrogate:
    """Return a correction that may train on a batch several times: its advantages stay the same."""
    advantages = Advantages("mu_values", config.normalize_advantages)
    floor = None if config.log_softmax else config.log_epsilon
    return kind(advantages, config.clip_ratio, config.min_policy, floor, **more)


def _masked(config: Config, mask: Mask, correction: ClippedSurrogate | None = None) -> Masked:
    """Return a correction with a mask; by default importance sampling without a bound."""
    if correction:
        return Masked(correction, mask, correction.advantages, config.min_policy, correction.floor)
    advantages = _advantages(config)
    return Masked(ImportanceSampling(advantages, float("inf")), mask, advantages, config.min_policy)
