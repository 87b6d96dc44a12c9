"""RMSProp and Adam by TensorFlow's fused kernels, and the authors' clipping of gradients.

RMSProp is TensorFlow 1's, which Keras 3 no longer has. These kernels are thread-safe, and Keras 3's
optimizers are not.
"""

from __future__ import annotations

from collections.abc import Sequence

from ga3c_tf.model.tensorflow import tf

BETA_1 = 0.9
BETA_2 = 0.999


class RMSProp(tf.Module):
    """RMSProp with shared statistics, by TensorFlow 1's own fused kernels.

    For each variable: s = decay * s + (1 - decay) * g^2; m = momentum * m + rate * g / sqrt(s + epsilon); w =
    w - m. The mean square s starts at **ones**, and epsilon is inside the root. Keras 3 starts at zeros,
    which makes the first steps several times larger. Source: section 3 of the paper and the authors'
    NetworkVP.py (tf.train.RMSPropOptimizer).

    Centred, as deep Q-networks use it, the divisor is sqrt(s - a^2 + epsilon) with the mean gradient a =
    decay * a + (1 - decay) * g, which starts at zeros (Graves 2013, arXiv 1308.0850, equations 38 to 45).

    Several threads may apply gradients at once, because the kernel holds the locks of the variable and its
    slots.

    Args:
        variables: Variables to update.
        decay: Decay of the mean square.
        momentum: Momentum of the formula above.
        epsilon: Epsilon of the formula above.
        centred: Whether to divide by the deviation of the gradient instead of its root mean square.

    Attributes:
        slots: Groups of slots by their names in a checkpoint, one slot per variable, of its shape.
            'mean_square' starts at ones, 'momentum' and, if centred, 'mean_gradient' at zeros.
    """

    def __init__(
        self,
        variables: Sequence[tf.Variable],
        decay: float = 0.99,
        momentum: float = 0.0,
        epsilon: float = 0.1,
        centred: bool = False,
    ):
        super().__init__(name="rmsprop")
        self._variables = tuple(variables)
        self._decay = decay
        self._momentum = momentum
        self._epsilon = epsilon
        self.slots = {"mean_square": [tf.Variable(tf.ones_like(v), trainable=False) for v in self._variables]}
        for name in ("momentum", "mean_gradient") if centred else ("momentum",):
            self.slots[name] = _zeros(self._variables)

    def apply(
        self, gradients: Sequence[tf.Tensor | None], learning_rate: float | tf.Tensor
    ) -> list[tf.Operation]:
        """Take one step on every variable, eagerly or inside a tf.function.

        Args:
            gradients: One float32 tensor per variable, of its shape. A variable whose gradient is None does
                not change.
            learning_rate: Learning rate, scalar float32.

        Returns:
            The update operations, for control dependencies; without meaning when called eagerly.
        """
        return [
            self._apply_one(gradient, learning_rate, variable, *slots)
            for gradient, variable, *slots in zip(
                gradients, self._variables, *self.slots.values(), strict=True
            )
            if gradient is not None
        ]

    def _apply_one(self, gradient, learning_rate, variable, mean_square, momentum, mean_gradient=None):
        arguments = {
            "var": variable.handle,
            "ms": mean_square.handle,
            "mom": momentum.handle,
            "lr": learning_rate,
            "rho": self._decay,
            "momentum": self._momentum,
            "epsilon": self._epsilon,
            "grad": gradient,
            "use_locking": True,
        }
        if mean_gradient is None:
            return tf.raw_ops.ResourceApplyRMSProp(**arguments)
        return tf.raw_ops.ResourceApplyCenteredRMSProp(mg=mean_gradient.handle, **arguments)


class Adam(tf.Module):
    """Adam (Kingma & Ba 2015, arXiv 1412.6980), in the form that the paper calls efficient (end of section
    2).

    For each variable, at step t: m = beta_1 * m + (1 - beta_1) * g; v = beta_2 * v + (1 - beta_2) * g^2;
    w = w - rate * sqrt(1 - beta_2^t) / (1 - beta_1^t) * m / (sqrt(v) + epsilon).

    Args:
        variables: Variables to update.
        steps: Scalar int64 variable, the number of steps taken so far; the caller increments it after each
            step.
        epsilon: Epsilon of the formula above.

    Attributes:
        slots: Groups of slots by their names in a checkpoint. A group has one slot per variable, of its
            shape.
    """

    def __init__(self, variables: Sequence[tf.Variable], steps: tf.Variable, epsilon: float):
        super().__init__(name="adam")
        self._variables = tuple(variables)
        self._steps = steps
        self._epsilon = epsilon
        self.slots = {name: _zeros(self._variables) for name in ("first_moment", "second_moment")}

    def apply(
        self, gradients: Sequence[tf.Tensor | None], learning_rate: float | tf.Tensor
    ) -> list[tf.Operation]:
        """Take one step on every variable, in a tf.function. Arguments and result are `RMSProp.apply`'s."""
        step = tf.cast(self._steps.read_value() + 1, tf.float32)
        return [
            tf.raw_ops.ResourceApplyAdam(
                var=variable.handle,
                m=first.handle,
                v=second.handle,
                beta1_power=tf.pow(BETA_1, step),
                beta2_power=tf.pow(BETA_2, step),
                lr=learning_rate,
                beta1=BETA_1,
                beta2=BETA_2,
                epsilon=self._epsilon,
                grad=gradient,
                use_locking=True,
            )
            for variable, first, second, gradient in zip(
                self._variables, *self.slots.values(), gradients, strict=True
            )
            if gradient is not None
        ]


def clip_by_average_norm(gradient: tf.Tensor, clip_norm: float) -> tf.Tensor:
    """Scale the gradient down so that its average norm, ||g|| / size, is at most `clip_norm`.

    With one optimizer, the authors clip the gradient of every variable by itself with TensorFlow 1's
    tf.clip_by_average_norm. With two optimizers (DUAL_RMSPROP) they use tf.clip_by_norm instead.

    Args:
        gradient: Gradient g of one variable, float32 of any shape.
        clip_norm: Maximum average norm c; the result is g * c / max(||g|| / size, c).

    Returns:
        A tensor of the gradient's shape.
    """
    average_norm = tf.norm(gradient) / tf.cast(tf.size(gradient), gradient.dtype)
    return gradient * (clip_norm / tf.maximum(average_norm, clip_norm))


def _zeros(variables: Sequence[tf.Variable]) -> list[tf.Variable]:
    return [tf.Variable(tf.zeros_like(variable), trainable=False) for variable in variables]
