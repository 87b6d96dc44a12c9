"""Exports a trained network to a file for programs without this package: ONNX, TensorFlow's SavedModel, or
Keras.

In all three formats the input is `states` [B, *state_shape]. The outputs are `policy` float32 [B, A] and
`value` float32 [B], the same as those of `NetworkModel.predict`. A recurrent network has another input
`carry` and output `next_carry`, float32 [B, H].
"""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ga3c_tf.algorithms.network_model import NetworkModel
from ga3c_tf.errors import UserError
from ga3c_tf.files import json_text, removed
from ga3c_tf.model.layer_norm import LayerNorm
from ga3c_tf.model.networks import MOST_DEVIATIONS, Standardize, keras_settings
from ga3c_tf.model.tensorflow import keras, plain_path, tf
from ga3c_tf.plugins import one_line


def write_network(
    model: NetworkModel, min_policy: float, file: Path, form: str, metadata: dict[str, Any]
) -> None:
    """Write the network of a model, with its weights, to a file.

    Args:
        model: model whose network is written.
        min_policy: value of the setting `Config.min_policy`.
        file: file to write, which must not exist yet; for 'savedmodel' a folder. It is complete or not
            there.
        form: format, 'onnx', 'savedmodel' or 'keras'.
        metadata: metadata to store in an ONNX file, with values other than strings as JSON; the other formats
            do not store it.

    Raises:
        UserError: the file cannot be written, or a user-defined network cannot be converted.
    """
    aside = file.with_name(f".new-{file.name}")
    removed(aside)  # of an export that was killed
    try:
        with keras_settings(), plain_path(file.parent) as plain:
            network = _in_built_in_layers(model.network) if form == "keras" else model.network
            carry = len(model.initial_carry)
            _write(_exported(network, model.states, carry, min_policy), Path(plain, aside.name), form)
        if form == "onnx":
            _finish_onnx(aside, metadata)
        aside.rename(file)
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror or error}") from None
    except tf.errors.ResourceExhaustedError as error:
        raise UserError(f"cannot write {file}: {one_line(error)}") from None
    except Exception as error:  # a converter may raise anything for layers that it does not know
        raise UserError(
            f"network {model.network.name!r} cannot be exported as {form}: {one_line(error)}"
        ) from error
    finally:
        removed(aside)


def _exported(network: keras.Model, spec: tf.TensorSpec, carry: int, min_policy: float) -> keras.Model:
    """Return the network with outputs 'policy' [B, A] and 'value' [B]; the policy holds probabilities, not
    logits.

    The probabilities are (softmax + m) / (1 + m * A), with m = `min_policy`. With a carry of so many numbers,
    the network has it as another input and output.
    """
    states = keras.Input(spec.shape[1:], dtype=spec.dtype.name, name="states")
    if carry:
        inputs = {"states": states, "carry": keras.Input((carry,), name="carry")}
        (logits, value), after = network((states, inputs["carry"]))
        outputs = _of_logits(logits, value, min_policy)
        outputs["next_carry"] = keras.layers.Identity(name="next_carry")(after)
        return keras.Model(inputs, outputs, name="agent")
    outputs = network(states)
    if isinstance(outputs, keras.KerasTensor):
        return keras.Model(states, _of_q_values(outputs), name="agent")
    logits, value = outputs
    return keras.Model(states, _of_logits(logits, value, min_policy), name="agent")


def _of_logits(
    logits: keras.KerasTensor, value: keras.KerasTensor, min_policy: float
) -> dict[str, keras.KerasTensor]:
    """Return the outputs of an actor-critic's network: the policy, and the value."""
    scale = 1 / (1 + min_policy * logits.shape[-1])
    policy = keras.layers.Rescaling(scale, min_policy * scale, name="policy")(keras.layers.Softmax()(logits))
    return {"policy": policy, "value": keras.layers.Identity(name="value")(value)}


def _of_q_values(q_values: keras.KerasTensor) -> dict[str, keras.KerasTensor]:
    """Return the outputs of Q-learning's network: the greedy policy, the highest Q, and Q itself."""
    best, actions = keras.ops.top_k(q_values, 1)  # Keras's argmax has a Bitcast, which ONNX lacks
    greedy = keras.ops.one_hot(keras.ops.squeeze(actions, -1), q_values.shape[-1])
    return {
        "policy": keras.layers.Identity(name="policy")(greedy),
        "value": keras.layers.Identity(name="value")(keras.ops.squeeze(best, -1)),
        "q_values": keras.layers.Identity(name="q_values")(q_values),
    }


def _in_built_in_layers(network: keras.Model) -> keras.Model:
    """Return the network with Keras layers in place of this package's own, which other programs lack."""
    if any(isinstance(layer, LayerNorm | Standardize) for layer in network.layers):
        return keras.models.clone_model(network, clone_function=_built_in)
    return network


def _built_in(layer: keras.layers.Layer) -> keras.layers.Layer:
    """Return equivalent Keras layers for one of this package, and any other layer itself."""
    if isinstance(layer, LayerNorm):
        return layer.built_in()
    if not isinstance(layer, Standardize):
        return layer
    states = keras.Input(layer.mean.shape)
    normalize = keras.layers.Normalization(axis=tuple(range(1, 1 + len(layer.mean.shape))))
    scaled = normalize(states)
    normalize.set_weights([layer.mean.numpy(), layer.deviation.numpy() ** 2, np.zeros((), "int32")])
    normalize.finalize_state()
    return keras.Model(states, keras.ops.clip(scaled, -MOST_DEVIATIONS, MOST_DEVIATIONS), name=layer.name)


def _write(exported: keras.Model, file: Path, form: str) -> None:
    if form == "keras":
        exported.save(file)
        return
    signature = keras.tree.map_structure(
        lambda tensor: keras.InputSpec(shape=tensor.shape, dtype=tensor.dtype, name=tensor.name),
        [exported.input],
    )
    its_name = {"onnx": "onnx", "savedmodel": "tf_saved_model"}[form]
    logging.getLogger("tf2onnx").setLevel(logging.CRITICAL)  # `_finish_onnx` reports what cannot be converted
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the converter's warnings about NumPy
        exported.export(file, format=its_name, verbose=False, input_signature=signature)


def _finish_onnx(file: Path, metadata: dict[str, Any]) -> None:
    """Add the metadata to an ONNX file, name the first axis of inputs and outputs 'batch', and check the
    file.

    The check is needed because the converter keeps operations that it cannot convert, which are not valid
    ONNX.
    """
    import onnx

    model = onnx.load(file)
    values = {name: value if isinstance(value, str) else json_text(value) for name, value in metadata.items()}
    onnx.helper.set_model_props(model, values)
    for tensor in (*model.graph.input, *model.graph.output):
        tensor.type.tensor_type.shape.dim[0].dim_param = "batch"
    onnx.checker.check_model(model)
    onnx.save(model, file)
