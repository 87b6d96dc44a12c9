"""Functions that XLA compiles as a whole, called with little overhead in Python."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from ga3c_tf.model.compiled.upload import Upload
from ga3c_tf.model.tensorflow import eager_context, eager_execute, tf


class Program:
    """A compiled function of one packed upload, for tensors of one size. Thread-safe.

    XLA compiles it at the first call, which takes seconds.

    Args:
        function: function from the arrays of the upload by name to one tensor, in a graph.
        upload: arrays that it takes.
        device: TensorFlow device; None leaves the choice to TensorFlow.

    Attributes:
        upload: arrays that it takes.
        function, concrete: TensorFlow's function, and the ConcreteFunction that was traced.
    """

    def __init__(
        self, function: Callable[[dict[str, tf.Tensor]], tf.Tensor], upload: Upload, device: str | None
    ):
        self.upload = upload
        self.function = tf.function(
            lambda packed: function(upload.unpacked(packed)),
            input_signature=[upload.spec],
            autograph=False,
            jit_compile=True,
        )
        with tf.device(device):
            self.concrete: Any = self.function.get_concrete_function()
        self._call = named_call(self.concrete)

    def __call__(self, packed: tf.Tensor) -> tf.Tensor:
        """Return the result for the tensor of a buffer. On a GPU it may still be computed."""
        [result] = self._call(packed)
        return result

    def compile(self) -> None:
        """Compile the function, by a call with an upload of zeros."""
        with self.upload.buffer() as buffer:
            self(buffer.tensor()).numpy()


def named_call(concrete: Any) -> Callable[[tf.Tensor], list[tf.Tensor]]:
    """Return a callable that runs a compiled function by its own name.

    The function's name is an operation with the attribute that XLA has to compile it. `direct_call`, through
    StatefulPartitionedCall, would silently leave that out. It takes a tenth of the time of a ConcreteFunction
    in Python. XLA does not move variables, so that the call is made on their device.
    """
    captured = concrete.captured_inputs
    name = concrete.name.decode()
    outputs = len(concrete.outputs)
    attributes = {"executor_type": "", "config_proto": tf.compat.v1.ConfigProto().SerializeToString()}
    flat = tuple(itertools.chain.from_iterable(attributes.items()))

    context = eager_context.context()
    device = captured[0].device

    def call(tensor, function=concrete):  # the function is deleted with the last reference to it
        with context.device(device):
            return eager_execute.quick_execute(name, outputs, [tensor, *captured], flat, context)

    return call
