"""What the compiled model spares a GPU, counted on a CPU: kernels, and copies between devices."""

import json
import re
from pathlib import Path

from commands import python

from ga3c_tf.algorithms.actor_critic.model import Model
from ga3c_tf.algorithms.compiled.model import CompiledModel
from ga3c_tf.config import Config
from ga3c_tf.experience.spec import EnvironmentSpec

ROOT = Path(__file__).resolve().parents[3]
NOT_LAUNCHED = re.compile(r" (parameter|constant|tuple|bitcast)\(")


def kernels_of(program):
    """The operations in the program that XLA launches, each by itself: for each, what it computes."""
    text = program.function.experimental_get_compiler_ir(program.upload.spec)(stage="optimized_hlo")
    computations = dict(re.findall(r"^(%[\w.-]+) \(.*?\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL))
    entry = text.partition("\nENTRY")[2].partition("\n}")[0]
    lines = [line for line in entry.splitlines() if " = " in line and not NOT_LAUNCHED.search(line)]
    return [line + computations.get("".join(re.findall(r"calls=(%[\w.-]+)", line)), "") for line in lines]


def test_kernels_of_the_small_network_on_a_cpu():
    """Of 59, 8 bring arrays into another order, which the compiler for CPUs needs for its convolutions."""
    config = Config(seed=1, network="small", min_training_batch=0)
    programs = CompiledModel(config, Model(config, EnvironmentSpec((84, 84, 4), "uint8", 6), 1))._programs
    update = kernels_of(programs.update(programs.sizes.usual()[0]).program)
    in_order = [kernel for kernel in update if not re.search(r" (copy|transpose)\(", kernel)]
    assert len(update) <= 59 and len(in_order) <= 51
    assert len(kernels_of(programs.prediction(32).program)) <= 18


def test_on_an_h100_an_update_of_the_small_network_takes_at_most_45_kernels_and_a_prediction_15():
    """As docs/gpu_kernels.py has counted them with XLA's compiler for this GPU, which tests do not have."""
    record = json.loads((ROOT / "docs" / "data" / "gpu-kernels.json").read_text())["networks"]
    assert record["small"]["update"]["kernels"] <= 45 and record["small"]["prediction"]["kernels"] <= 15
    assert record["dqn-atari"]["update"]["kernels"] <= 65


TRAFFIC = """
from ga3c_tf.model.tensorflow import eager_context, tf

devices = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], devices)

import numpy as np
from ga3c_tf.algorithms.actor_critic.model import Model
from ga3c_tf.algorithms.compiled.model import CompiledModel
from ga3c_tf.config import Config
from ga3c_tf.config.rates import Rates
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.spec import EnvironmentSpec

config = Config(seed=1, network="mlp", min_training_batch=0)
ones = np.ones((5, 4), np.float32)
batch = Batch(states=ones, actions=np.zeros(5, np.int32), returns=ones[:, 0])
context = eager_context.context()
plain = Model(config, EnvironmentSpec((4,), "float32", 3), 1, device="/CPU:1")
for model in (plain, CompiledModel(config, plain, "/CPU:1")):
    for call in (lambda: model.train([batch], Rates(0.01)), lambda: model.predict(batch.states)):
        context.enable_graph_collection()
        call()
        graphs = context.export_run_metadata().partition_graphs
        context.disable_graph_collection()
        operations = [node.op for graph in graphs for node in graph.node]
        print(len(graphs), operations.count("_Send"), operations.count("_Recv"))
"""


def test_a_call_on_another_device_is_not_partitioned():
    """A plain update is two graphs, a prediction one, and a compiled call none; none sends anything."""
    done = python(TRAFFIC, check=True)
    plain_update, plain_prediction, *compiled = done.stdout.splitlines()
    assert plain_update == "2 0 0" and plain_prediction == "1 0 0"
    assert compiled == ["0 0 0"] * 2
