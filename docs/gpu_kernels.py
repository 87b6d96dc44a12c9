"""Counts the kernels that the compiled model starts on an H100, by XLA's compiler for it, which needs no GPU.

It needs JAX's plugin for CUDA, `pip install "jax[cuda12]"`, beside this package. Without a GPU XLA cannot try
which variant of a product or convolution is the fastest, so that it takes the first one.

Usage, from the repository: `python docs/gpu_kernels.py`. It writes docs/data/gpu-kernels.json.
"""

from __future__ import annotations

import collections
import os
import pkgutil
import re
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"
os.environ["XLA_FLAGS"] = "--xla_gpu_autotune_level=0"

from ga3c_tf.algorithms.compiled.model import CompiledModel
from ga3c_tf.config import Config
from ga3c_tf.config.declaration import ALGORITHM_MODELS
from ga3c_tf.config.presets import PRESETS
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.files import json_text
from ga3c_tf.host.machine import package_versions, source_version
from ga3c_tf.model.compiled.program import Program

RECORD = Path(__file__).parent / "data" / "gpu-kernels.json"
H100 = """
platform_name: "CUDA" device_description_str: "NVIDIA H100 80GB HBM3"
dnn_version_info { major: 9 minor: 7 } runtime_version { major: 12 minor: 8 }
gpu_device_info {
  cuda_compute_capability { major: 9 } core_count: 132 fpus_per_core: 128 clock_rate_ghz: 1.98
  threads_per_warp: 32 threads_per_block_limit: 1024 threads_per_core_limit: 2048
  registers_per_block_limit: 65536 registers_per_core_limit: 65536
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  shared_memory_per_block: 49152 shared_memory_per_block_optin: 232448 shared_memory_per_core: 233472
  memory_bandwidth: 3352320000000 l2_cache_size: 52428800 device_memory_size: 84929347584
}
"""
"""The GPU, as XLA describes it (openxla/xla, specification h100_sxm)."""
NOT_STARTED = ("parameter", "constant", "tuple", "get-tuple-element", "bitcast")


def kernels_of(program: Program) -> dict[str, int]:
    """Return the number of kernels of a program on an H100, by the kind of their operation."""
    generator = program.function.experimental_get_compiler_ir(program.upload.spec)
    text = compiled_for_h100(generator(stage="hlo_serialized"))
    entry = text.partition("\nENTRY")[2].partition("\n}")[0]
    kinds = re.findall(r"^ .* = (?:\([^=]*\)|\S+) ([\w-]+)\(", entry, re.MULTILINE)
    return dict(collections.Counter(kind for kind in kinds if kind not in NOT_STARTED))


def compiled_for_h100(module: bytes) -> str:
    """Return XLA's optimized program for an H100 as text, from a serialized program."""
    import jaxlib._jax
    import numpy as np
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jax.experimental import topologies
    from jaxlib.mlir import ir

    topology = topologies.get_topology_desc(platform="cuda", target_config=H100, topology="1x1x1")
    [device] = topology.devices
    options = xla_client.CompileOptions()
    options.device_assignment = xla_client.DeviceAssignment.create(np.array([[0]]))
    with mlir.make_ir_context():
        parsed = ir.Module.parse(jaxlib._jax.mlir.hlo_to_stablehlo(module))
        # The copies of variables to their new values, which XLA removes, have no form in the other language.
        generic = parsed.operation.get_asm(print_generic_op_form=True, large_elements_limit=None)
        parsed = ir.Module.parse(generic.replace('"mhlo.copy"', '"stablehlo.reshape"'))
        executable = device.client.compile(parsed, jaxlib._jax.DeviceList((device,)), options)
    return executable.hlo_modules()[0].to_string()


CONFIGS = {
    "small": Config(seed=1, network="small", min_training_batch=0),
    "large-1": Config(seed=1, network="large-1", min_training_batch=0),
    "dqn-atari": Config(seed=1, **{**PRESETS["dqn-atari"], "network": "small"}),
}
"""By name: a network with updates of 5 states, or a preset with its own batches."""


def counts(config: Config) -> dict[str, Any]:
    """Return the kernels of an update and of a prediction of 128 states."""
    kind = pkgutil.resolve_name(ALGORITHM_MODELS[config.algorithm])
    programs = CompiledModel(config, kind(config, EnvironmentSpec((84, 84, 4), "uint8", 6), 1))._programs
    update = kernels_of(programs.update(programs.sizes.usual()[0]).program)
    prediction = kernels_of(programs.prediction(128).program)
    return {
        "update": {"kernels": sum(update.values()), **update},
        "prediction": {"kernels": sum(prediction.values()), **prediction},
    }


if __name__ == "__main__":
    import jaxlib

    record = {
        **source_version(),
        "versions": {**package_versions(), "jaxlib": jaxlib.__version__},
        "networks": {name: counts(config) for name, config in CONFIGS.items()},
    }
    RECORD.write_text(json_text(record))
    for network, programs in record["networks"].items():
        print(network, {name: kinds["kernels"] for name, kinds in programs.items()})
