"""RMSProp whose mean square is centred, as deep Q-networks use it, by TensorFlow 1's own fused kernel."""

from __future__ import annotations

from collections.abc import Sequence

from ga3c_tf.model.rmsprop import RMSProp
from ga3c_tf.model.tensorflow import tf


class CentredRMSProp(RMSProp):
    """RMSProp that divides by the deviation of the gradient instead of its root mean square.

    For each variable: a = decay * a + (1 - decay) * g, which starts at zeros; s and m are those of `RMSProp`
    with sqrt(s - a^2 + epsilon) as divisor (Graves 2013, arXiv 1308.0850, equations 38 to 45).

    Attributes:
        mean_gradient: One slot per variable, of its shape, that starts at zeros.
    """

    def __init__(
        self,
        variables: Sequence[tf.Variable],
        decay: float = 0.95,
        momentum: float = 0.0,
        epsilon: float = 0.01,
    ):
        super().__init__(variables, decay, momentum, epsilon)
        self.mean_gradient = [tf.Variable(tf.zeros_like(v), trainable=False) for v in self._variables]

    @property
    def slots(self) -> dict[str, list[tf.Variable]]:
        return {**super().slots, "mean_gradient": list(self.mean_gradient)}

    def apply(
        self, gradients: Sequence[tf.Tensor | None], learning_rate: float | tf.Tensor
    ) -> list[tf.Operation]:
        """Take one step on every variable. Arguments and result are `RMSProp.apply`'s."""
        updates = [
            tf.raw_ops.ResourceApplyCenteredRMSProp(
                var=variable.handle,
                mg=mean.handle,
                ms=square.handle,
                mom=momentum.handle,
                lr=learning_rate,
                rho=self._decay,
                momentum=self._momentum,
                epsilon=self._epsilon,
                grad=gradient,
                use_locking=True,
            )
            for variable, mean, square, momentum, gradient in zip(
                self._variables,
                self.mean_gradient,
                self.mean_square,
                self.momentum_slots,
                gradients,
                strict=True,
            )
            if gradient is not None
        ]
        return [update for update in updates if update is not None]
