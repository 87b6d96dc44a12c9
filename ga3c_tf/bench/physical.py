"""The limit that the machine sets, whatever program uses it: bare emulator, and the network's arithmetic."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from ga3c_tf.host.calibration import Calibration, agree, mean

WEIGHTED = ("Conv2D", "MatMul")


def mflop_per_state(network: Any, state_shape: Sequence[int], state_dtype: str) -> dict[str, float]:
    """Return the MFLOP of a 'prediction' and an 'update' of one state, of a Keras model for such states.

    Only convolutions and products with weight matrices count, two operations each weight and output. An update computes
    them forwards, for the gradients of the weights, and, but for the first layer, for those of the inputs.
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
    bare_ms: float, mflop: Mapping[str, float], gflops: float, cores: int, on_gpu: bool
) -> dict[str, float | None]:
    """Return the most agent steps per second that the machine allows.

    Args:
        bare_ms: of a step of the bare environment on one core.
        mflop: of a state, as `mflop_per_state`.
        gflops: of one core.
        cores: of the host.
        on_gpu: predictions and updates are not the cores' work.

    Returns:
        'emulator_pps': if the cores had nothing to do but the bare environment; 'arithmetic_pps': and predictions and
        updates at `gflops`, None with a GPU, whose GFLOP/s are not measured.
    """
    arithmetic_ms = sum(mflop.values()) / gflops
    return {
        "emulator_pps": 1000 * cores / bare_ms,
        "arithmetic_pps": None if on_gpu else 1000 * cores / (bare_ms + arithmetic_ms),
    }


def against_the_machine(summary: Mapping[str, Any], mflop: Mapping[str, float], found: Sequence[Calibration]) -> dict:
    """Return what is to be added to a device's summary.

    Args:
        summary: of `ga3c_tf.bench.run.summarize`.
        mflop: of a state, as `mflop_per_state`.
        found: the calibrations before and after.

    Returns:
        'calibrations', 'calibrations_agree', 'unit_pps' (`Calibration.unit`), 'pps_per_unit', 'mflop_per_state';
        'machine_limits' as of `machine_limits`, and 'machine_shares', what share of each is reached.
    """
    machine = mean(found)
    bare_ms = summary["components"]["bare_environment_ms"]
    limits = machine_limits(bare_ms, mflop, machine.gflops, summary["cores"], summary["device"] == "gpu")
    return {
        "calibrations": [dataclasses.asdict(each) for each in found],
        "calibrations_agree": agree(found),
        "unit_pps": machine.unit,
        "pps_per_unit": summary["pps"] / machine.unit,
        "mflop_per_state": dict(mflop),
        "machine_limits": limits,
        "machine_shares": {name: limit and summary["pps"] / limit for name, limit in limits.items()},
    }
