"""Limits that the machine sets for any program: the bare emulator and the network's arithmetic."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from ga3c_tf.host.calibration import Calibration, agree, mean

WEIGHTED = ("Conv2D", "MatMul")


def mflop_per_state(network: Any, state_shape: Sequence[int], state_dtype: str) -> dict[str, float]:
    """Return the MFLOP of a 'prediction' and of an 'update' of one state.

    Only convolutions and products with weight matrices are counted, with two operations per weight and
    output. An update computes them in the forward pass, for the gradients of the weights and, except in the
    first layer, for the gradients of the inputs.

    Args:
        network: Keras model.
        state_shape: shape of one state.
        state_dtype: dtype of the states.
    """
    from ga3c_tf.model.tensorflow import tf

    graph = tf.function(network).get_concrete_function(tf.TensorSpec((1, *state_shape), state_dtype)).graph
    layers = [
        2e-6 * math.prod(operation.inputs[1].shape) * math.prod(operation.outputs[0].shape[:-1])
        for operation in graph.get_operations()
        if operation.type in WEIGHTED
    ]
    return {"prediction": sum(layers), "update": 3 * sum(layers) - sum(layers[:1])}


def machine_limits(
    bare_ms: float, mflop: Mapping[str, float], passes: float, gflops: float, cores: int, on_gpu: bool
) -> dict[str, float | None]:
    """Return the maximum number of agent steps per second that the machine allows.

    Args:
        bare_ms: milliseconds of one step of the bare environment on one core.
        mflop: MFLOP per state, from `mflop_per_state`.
        passes: states that are trained on for each agent step.
        gflops: GFLOP/s of one core.
        cores: number of cores of the host.
        on_gpu: whether a GPU makes the predictions and updates.

    Returns:
        'emulator_pps', the limit if the cores only ran the bare environment, and 'arithmetic_pps', the limit
        if they also made predictions and updates at `gflops`. The latter is None with a GPU, whose GFLOP/s
        are not measured.
    """
    arithmetic_ms = (mflop["prediction"] + passes * mflop["update"]) / gflops
    return {
        "emulator_pps": 1000 * cores / bare_ms,
        "arithmetic_pps": None if on_gpu else 1000 * cores / (bare_ms + arithmetic_ms),
    }


def against_the_machine(
    summary: Mapping[str, Any], mflop: Mapping[str, float], calibrations: Sequence[Calibration]
) -> dict:
    """Compare a device's summary with the calibrations and the limits of the machine.

    Args:
        summary: summary of the device, from `ga3c_tf.bench.run.summarize`.
        mflop: MFLOP per state, from `mflop_per_state`.
        calibrations: calibrations before and after the measurements.

    Returns:
        Entries to add to the summary: 'calibrations', 'calibrations_agree', 'unit_pps' (`Calibration.unit`),
        'pps_per_unit', 'mflop_per_state', 'machine_limits' (from `machine_limits`), and 'machine_shares', the
        share of each limit that is reached.
    """
    machine = mean(calibrations)
    bare_ms = summary["components"]["bare_environment_ms"]
    cores, on_gpu = summary["cores"], summary["device"] == "gpu"
    limits = machine_limits(bare_ms, mflop, summary["passes"], machine.gflops, cores, on_gpu)
    return {
        "calibrations": [dataclasses.asdict(calibration) for calibration in calibrations],
        "calibrations_agree": agree(calibrations),
        "unit_pps": machine.unit,
        "pps_per_unit": summary["pps"] / machine.unit,
        "mflop_per_state": dict(mflop),
        "machine_limits": limits,
        "machine_shares": {name: limit and summary["pps"] / limit for name, limit in limits.items()},
    }
