"""A trained network as a file for programs without this package: ONNX, TensorFlow's SavedModel, or Keras.

All three take `states` [B, *state_shape] and give `policy` float32 [B, A] and `value` float32 [B], as `Model.predict`.
"""

from __future__ import annotations

import json
import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ga3c_tf.errors import UserError
from ga3c_tf.model.model import Model
from ga3c_tf.model.networks import MOST_DEVIATIONS, Standardize
from ga3c_tf.model.tensorflow import keras, tf
from ga3c_tf.plugins import one_line


def write_network(model: Model, min_policy: float, file: Path, form: str, metadata: dict[str, Any]) -> None:
    """Write the network of a model, with its weights.

    Args:
        model: whose network.
        min_policy: as `Config.min_policy`.
        file: to write, which is not there yet; for 'savedmodel' a folder. After an error, part of it may be left.
        form: 'onnx', 'savedmodel' or 'keras'.
        metadata: becomes the ONNX file's own metadata, values as JSON; the other formats have no place for it.

    Raises:
        UserError: the file cannot be written, or the network (one of the user's own) cannot be converted.
    """
    try:
        network = _in_built_in_layers(model.network) if form == "keras" else model.network
        _write(_exported(network, model.states, min_policy), file, form)
        if form == "onnx":
            _finish_onnx(file, metadata)
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror or error}") from None
    except tf.errors.ResourceExhaustedError as error:
        raise UserError(f"cannot write {file}: {one_line(error)}") from None
    except Exception as error:  # whatever a converter raises at layers that it does not know
        raise UserError(f"network {model.network.name!r} cannot be exported as {form}: {one_line(error)}") from error


def _exported(network: keras.Model, spec: tf.TensorSpec, min_policy: float) -> keras.Model:
    """Return a network for states [B, *state_shape] with probabilities in place of logits.

    They are (softmax + m) / (1 + m * A), with m = `min_policy`.
    """
    states = keras.Input(spec.shape[1:], dtype=spec.dtype.name, name="states")
    logits, value = network(states)
    scale = 1 / (1 + min_policy * logits.shape[-1])
    policy = keras.layers.Rescaling(scale, min_policy * scale, name="policy")(keras.layers.Softmax()(logits))
    return keras.Model(states, {"policy": policy, "value": keras.layers.Identity(name="value")(value)}, name="agent")


def _in_built_in_layers(network: keras.Model) -> keras.Model:
    """Return the network with layers of Keras in place of this package's own, which other programs do not have."""
    if any(isinstance(layer, Standardize) for layer in network.layers):
        return keras.models.clone_model(network, clone_function=_built_in)
    return network


def _built_in(layer: keras.layers.Layer) -> keras.layers.Layer:
    """Return the layer itself, or in place of `Standardize` layers of Keras that do the same."""
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
    [states] = exported.inputs
    signature = [keras.InputSpec(shape=states.shape, dtype=states.dtype, name=states.name)]
    its_name = {"onnx": "onnx", "savedmodel": "tf_saved_model"}[form]
    logging.getLogger("tf2onnx").setLevel(logging.CRITICAL)  # of what it cannot convert `_finish_onnx` tells
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the converter, about NumPy
        exported.export(file, format=its_name, verbose=False, input_signature=signature)


def _finish_onnx(file: Path, metadata: dict[str, Any]) -> None:
    """Add the metadata to an ONNX file, call its first axes 'batch', and check it.

    The converter leaves what it cannot convert as it was, which is no ONNX.
    """
    import onnx

    model = onnx.load(file)
    values = {name: value if isinstance(value, str) else json.dumps(value) for name, value in metadata.items()}
    onnx.helper.set_model_props(model, values)
    for tensor in (*model.graph.input, *model.graph.output):
        tensor.type.tensor_type.shape.dim[0].dim_param = "batch"
    onnx.checker.check_model(model)
    onnx.save(model, file)
