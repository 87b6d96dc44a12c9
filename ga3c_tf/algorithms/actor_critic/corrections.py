"""Corrections of policy lag: what each makes of a batch, what it reads, and what it clips or floors.

`CORRECTIONS` has one entry for each choice of the setting `correction`. An importance ratio is
pi(action) / mu(action): the probability of the action under the current policy, divided by that under the
policy that chose it. Where both policies are the same, every ratio is 1, and each correction whose bounds are
at least 1 gives exactly the uncorrected gradient.

B is the number of states in a batch and A the number of actions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ga3c_tf.algorithms.actor_critic.advantages import Advantages, normalized
from ga3c_tf.algorithms.actor_critic.probabilities import log_policy, log_taken
from ga3c_tf.algorithms.actor_critic.v_trace import v_trace
from ga3c_tf.config import Config
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.divergence import Bounds
from ga3c_tf.model.tensorflow import tf


class Estimate(NamedTuple):
    """What a correction makes of a batch."""

    objectives: tf.Tensor  # [B] float32, to be maximized in sum, without the entropy
    targets: tf.Tensor  # [B] float32, targets of the values


class Correction(ABC):
    """How policy and values learn from actions that an older policy chose.

    Attributes:
        floor: smallest probability inside a logarithm; None for no floor. It also holds for the entropy.
    """

    floor: float | None = None

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Columns of the trajectory that `estimate` reads, besides the actions."""

    @property
    @abstractmethod
    def bounds(self) -> Bounds:
        """What is clipped or floored."""

    @abstractmethod
    def estimate(self, batch: Batch, logarithms: tf.Tensor) -> Estimate:
        """Return the objective of the policy and the targets of the values.

        Args:
            batch: training batch with `logits`, `values`, `actions` and the columns that the correction
                reads.
            logarithms: [B, A] float32, log pi, with the correction's floor.
        """


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


@dataclass(frozen=True)
class ClippedSurrogate(Correction):
    """PPO's clipped surrogate objective (Schulman et al. 2017).

    A batch may be trained on several times. Its advantages stay the same in every epoch if their baseline is
    the value from the time when the action was chosen.

    Args:
        advantages: advantages with that baseline.
        clip_ratio: half the width of the clip range around 1.
        min_policy: as in `probabilities.policy`.
        floor: as in `Correction`; it holds for the entropy only.
    """

    advantages: Advantages
    clip_ratio: float
    min_policy: float = 0.0
    floor: float | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.advantages.columns, "mu_log_probabilities")

    @property
    def bounds(self) -> Bounds:
        return Bounds(lowest_ratio=1 - self.clip_ratio, highest_ratio=1 + self.clip_ratio)

    def estimate(self, batch: Batch, logarithms: tf.Tensor) -> Estimate:
        # Without the floor, which would make the ratio of a rare action wrong and stop its gradient.
        log_pi = log_taken(log_policy(batch.logits, self.min_policy, None), batch.actions)
        advantages = self.advantages.of(batch)
        objectives = clipped_objectives(log_pi, batch.mu_log_probabilities, advantages, self.clip_ratio)
        return Estimate(objectives, batch.returns)


CORRECTIONS: dict[str, Callable[[Config], Correction]] = {
    "none": lambda config: Uncorrected(_advantages(config)),
    "epsilon": lambda config: Uncorrected(_advantages(config), config.log_epsilon),
    "clipped-is": lambda config: ImportanceSampling(_advantages(config), config.importance_clip),
    "one-step": lambda config: ImportanceSampling(_advantages(config), config.rho_bar),
    "v-trace": lambda config: VTrace(
        config.gamma, config.rho_bar, config.c_bar, config.t_max, config.normalize_advantages
    ),
    "ppo": lambda config: ClippedSurrogate(
        Advantages("mu_values", config.normalize_advantages),
        config.clip_ratio,
        config.min_policy,
        None if config.log_softmax else config.log_epsilon,
    ),
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


def importance_ratios(log_pi: tf.Tensor, log_mu: tf.Tensor, most: float) -> tf.Tensor:
    """Return the importance ratios pi / mu of the actions taken, at most `most`. No gradient flows into them.

    As a weight of advantages, this is tensorpack's clipped importance sampling. With rho-bar for `most`, it
    is IMPALA's one-step importance sampling (Espeholt et al. 2018, arXiv 1802.01561, table 2).

    Args:
        log_pi: [B] float32, log-probability of the action taken under the current policy.
        log_mu: [B] float32, log-probability of the action taken under the policy that chose it.
        most: upper bound of a ratio, above 0.

    Returns:
        [B] float32.
    """
    return tf.minimum(tf.exp(tf.stop_gradient(log_pi) - log_mu), most)


def clipped_objectives(
    log_pi: tf.Tensor, log_mu: tf.Tensor, advantages: tf.Tensor, clip_ratio: float
) -> tf.Tensor:
    """Compute PPO's objective of each action (Schulman et al. 2017, arXiv 1707.06347, equation 7).

    It is the smaller of ratio * advantage and clipped ratio * advantage. The ratio is
    pi(action) / mu(action), and it is clipped to 1 +- `clip_ratio`. A policy change beyond the clip range
    therefore does not increase the objective.

    Args:
        log_pi: [B] float32, log-probability of the action taken under the current policy.
        log_mu: [B] float32, log-probability of the action taken under the policy that chose it.
        advantages: [B] float32.
        clip_ratio: half the width of the clip range around 1.

    Returns:
        [B] float32, to be maximized in sum.
    """
    ratio = tf.exp(log_pi - log_mu)
    clipped = tf.clip_by_value(ratio, 1 - clip_ratio, 1 + clip_ratio)
    return tf.minimum(ratio * advantages, clipped * advantages)
