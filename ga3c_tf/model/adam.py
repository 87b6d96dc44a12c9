"""Adam by TensorFlow's fused kernel. Like our RMSProp and unlike Keras 3's optimizers, it is thread-safe."""

from __future__ import annotations

from collections.abc import Sequence

from ga3c_tf.model.tensorflow import tf

BETA_1 = 0.9
BETA_2 = 0.999


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
        self.slots = {
            name: [tf.Variable(tf.zeros_like(v), trainable=False) for v in self._variables]
            for name in ("first_moment", "second_moment")
        }

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
