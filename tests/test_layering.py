"""Who may import whom: every import of ga3c_tf and reproduce is read from the source and held against the levels."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]

# A module imports only from lower levels: two modules of one level never import each other.
LEVELS = {
    0: [
        "config",
        "stats",
        "returns",
        "worker",
        "console",
        "quiet_tensorflow",
        "cgroups",
        "signals",
        "scheduling",
        "bench_report",
        "failures",
        "appender",
        "stalls",
    ],
    0.5: ["user_code", "status", "memory"],
    0.6: ["minatar"],
    0.7: ["registered"],
    0.8: ["atari"],
    0.9: ["environment_ids"],
    1: ["losses", "environment", "network", "rmsprop", "queues", "run_folder", "run_log", "checkpoints"],
    1.5: ["nodes"],
    2: ["agent", "predictor", "trainer", "adjustment", "model"],
    2.2: ["remote", "remote.actor"],
    2.25: ["remote.cluster"],
    2.3: ["remote.bridge"],
    2.5: ["agent_processes", "baselines", "baselines.agents", "baselines.shared_weights"],
    2.6: ["baselines.replica"],
    2.7: ["baselines.a3c_process"],
    2.8: ["weights"],
    3: ["training", "components"],
    4: ["server", "serial", "evaluate", "bench", "baselines.a2c", "baselines.a3c"],
    5: ["options"],
    6: ["cli"],
    7: ["__main__"],
}
LEVEL_OF = {f"ga3c_tf.{name}": level for level, names in LEVELS.items() for name in names}
LEVEL_OF["ga3c_tf"] = -1  # the package itself: everybody loads it, so it loads nothing
LEVEL_OF["reproduce"] = 5


def ours(*names: str) -> set[str]:
    return {f"ga3c_tf.{name}" for name in names}


TENSORFLOW = {"tensorflow", "keras"}
TENSORFLOW_MODULES = ours(
    "quiet_tensorflow",
    "losses",
    "network",
    "rmsprop",
    "checkpoints",
    "model",
    "baselines.replica",
    "baselines.a3c_process",
)
MAY_IMPORT_TENSORFLOW = ours("quiet_tensorflow")
# What an agent's process loads: no TensorFlow through our own modules either.
FREE_OF_TENSORFLOW = ours(
    "config",
    "stats",
    "returns",
    "environment",
    "queues",
    "agent",
    "agent_processes",
    "baselines.agents",
    "remote.actor",
    "remote.bridge",
)
CLI_IMPORTS_LATE = TENSORFLOW | set(LEVEL_OF) - ours("config", "console", "options", "signals") - {"ga3c_tf"}
REPRODUCE_MAY_IMPORT = {"reproduce"} | {
    name
    for name, level in LEVEL_OF.items()
    if level in (3, 4) or name in ours("config", "stats", "run_folder", "run_log", "remote.cluster", "weights")
}
MAY_IMPORT_CLICK = ours("cli", "options")
MAY_IMPORT_RAY = {"reproduce.conductor", "reproduce.ray_executor", *ours("remote.cluster", "remote.bridge")}
MAY_IMPORT_FSSPEC = {"reproduce.storage"}
MAY_IMPORT_MATPLOTLIB = {"reproduce.plots", "reproduce.run_plots"}


class Import(NamedTuple):
    target: str  # one of our modules by its full name, or somebody else's top package
    line: int
    in_function: bool


def walk(node: ast.AST, in_function: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    for child in ast.iter_child_nodes(node):
        yield child, in_function
        yield from walk(child, in_function or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))


def imported_names(node: ast.AST, package: str) -> list[str]:
    """Full dotted names that a statement or call imports; of `from a import b` it is "a.b", module or not."""
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=base, names=names, level=dots):
            parents = package.split(".")[: 1 - dots or None] if dots else []
            return [".".join([*parents, *([base] if base else []), alias.name]) for alias in names]
        case ast.Call(func=ast.Name(id=function) | ast.Attribute(attr=function), args=[ast.Constant(str(name)), *_]):
            return [name] if function in ("import_module", "__import__") else []
    return []


def target_of(name: str) -> str:
    parts = name.split(".")
    prefixes = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return next((prefix for prefix in prefixes if prefix in LEVEL_OF), parts[0])


def read_imports(source: str, package: str) -> list[Import]:
    return [
        Import(target_of(name), node.lineno, in_function)
        for node, in_function in walk(ast.parse(source))
        for name in imported_names(node, package)
    ]


def objection(module: str, imported: Import) -> str | None:
    """Why `module` must not have this import, or None."""
    target = imported.target
    if target in TENSORFLOW and module not in MAY_IMPORT_TENSORFLOW:
        return f"{target} is for {', '.join(sorted(MAY_IMPORT_TENSORFLOW))}"
    if target in TENSORFLOW_MODULES and module in FREE_OF_TENSORFLOW:
        return f"{target} brings TensorFlow into an agent's process"
    if target == "matplotlib" and module not in MAY_IMPORT_MATPLOTLIB:
        return f"matplotlib is for {', '.join(MAY_IMPORT_MATPLOTLIB)}"
    if target == "ray" and module not in MAY_IMPORT_RAY:
        return f"ray is for {', '.join(sorted(MAY_IMPORT_RAY))}"
    if target == "ray" and module.startswith("ga3c_tf") and not imported.in_function:
        return f"{module} imports ray inside a function: it is an extra"
    if target == "fsspec" and module not in MAY_IMPORT_FSSPEC:
        return f"fsspec is for {', '.join(MAY_IMPORT_FSSPEC)}"
    if target == "click" and module not in MAY_IMPORT_CLICK:
        return f"click is for {', '.join(sorted(MAY_IMPORT_CLICK))}"
    if module == "ga3c_tf.cli" and not imported.in_function and target in CLI_IMPORTS_LATE:
        return f"ga3c_tf.cli imports {target} inside the command that needs it, so that --help is quick"
    if target not in LEVEL_OF or target == "ga3c_tf":
        return None
    if module.split(".")[0] == "reproduce":
        return (
            None
            if target in REPRODUCE_MAY_IMPORT
            else "reproduce uses config, stats, run_folder, run_log, weights, remote.cluster and levels 3 and 4 only"
        )
    level, other = LEVEL_OF[module], LEVEL_OF[target]
    return None if other < level else f"{module} (level {level}) may not import {target} (level {other})"


def objections(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """One line for each forbidden import of a module with this source, and one if the module has no level."""
    if module.split(".")[0] == "ga3c_tf" and module not in LEVEL_OF:
        return [f"{module} has no level: place it in LEVELS of tests/test_layering.py (and in the design's table)"]
    package = module if is_package else module.rpartition(".")[0]
    found = [(imported.line, objection(module, imported)) for imported in read_imports(source, package)]
    return [f"{module}, line {line}: {why}" for line, why in found if why]


def test_every_module_imports_only_what_its_level_allows():
    paths = sorted(path for folder in ("ga3c_tf", "reproduce") for path in (ROOT / folder).rglob("*.py"))
    assert ROOT / "ga3c_tf" / "config.py" in paths
    problems = []
    for path in paths:
        parts = path.relative_to(ROOT).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        module = ".".join(parts[:-1] if is_package else parts)
        problems += objections(path.read_text(encoding="utf-8"), module, is_package=is_package)
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    ("module", "source", "because"),
    [
        ("config", "import ga3c_tf.stats", "level 0"),
        ("returns", "from . import stats", "level 0"),
        ("queues", "from ga3c_tf.environment import make_environment", "level 1"),
        ("trainer", "from ga3c_tf import __version__, predictor", "level 2"),
        ("trainer", "def run():\n    from ga3c_tf.server import Server", "level 4"),
        ("baselines.a3c", "from ..server import Server", "level 4"),
        ("server", "import ga3c_tf.cli as cli", "level 6"),
        ("evaluate", "import reproduce.records", "level 5"),
        ("agent", "import os, tensorflow.keras as keras", "tensorflow is for"),
        ("server", "def run():\n    import tensorflow as tf", "tensorflow is for"),
        ("predictor", "import importlib\ntf = importlib.import_module('tensorflow')", "tensorflow is for"),
        ("trainer", "from keras import Model", "keras is for"),
        ("model", "import tensorflow as tf", "tensorflow is for"),
        ("agent", "from ga3c_tf.losses import policy_loss", "brings TensorFlow"),
        ("evaluate", "import matplotlib.pyplot as plt", "matplotlib is for"),
        ("server", "import click", "click is for"),
        ("server", "def run():\n    import ray.util", "ray is for"),
        ("remote.bridge", "import ray", "inside a function"),
        ("cli", "def run():\n    import fsspec", "fsspec is for"),
        ("cli", "from ga3c_tf.server import Server", "inside the command"),
        ("cli", "import tensorflow", "tensorflow is for"),
        ("cli", "if True:\n    import reproduce", "inside the command"),
        ("novelty", "", "has no level"),
    ],
)
def test_a_forbidden_import_is_found(module, source, because):
    [line] = objections(source, f"ga3c_tf.{module}")
    assert because in line


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("queues", "import os\nfrom ga3c_tf.config import Config\nfrom . import stats"),
        ("model", "from ga3c_tf.quiet_tensorflow import tf, keras\nfrom ga3c_tf import losses, network"),
        ("server", "from ga3c_tf.model import Model\nfrom ga3c_tf.trainer import Trainer"),
        ("baselines.a3c", "from ..model import Model"),
        ("cli", "import click\nfrom ga3c_tf import __version__\nfrom ga3c_tf.config import Config"),
        ("cli", "def train():\n    from ga3c_tf.server import Server\n    import reproduce.pps"),
        ("__main__", "from ga3c_tf.cli import main"),
    ],
)
def test_an_allowed_import_passes(module, source):
    assert objections(source, f"ga3c_tf.{module}") == []


def test_reproduce_uses_the_finished_systems_only():
    allowed = "from reproduce import records\nfrom . import report\nfrom ga3c_tf import config, evaluate"
    assert objections(allowed, "reproduce.pps") == []
    for source in ("import ga3c_tf.model", "from ga3c_tf import cli", "import tensorflow", "import matplotlib"):
        assert len(objections(source, "reproduce.pps")) == 1


def packages_loaded_by(module: str) -> set[str]:
    code = f"import sys, {module}; print(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "name", ["config", "queues", "environment", "agent", "agent_processes", "baselines.agents", "cli"]
)
def test_importing_it_does_not_load_tensorflow(name):
    loaded = packages_loaded_by(f"ga3c_tf.{name}")
    assert "ga3c_tf" in loaded
    assert not loaded & TENSORFLOW


def test_reproducing_on_one_machine_does_not_load_ray():
    assert "ray" not in packages_loaded_by("reproduce.command") | packages_loaded_by("ga3c_tf.cli")


def test_a_loaded_package_is_seen():
    assert "click" in packages_loaded_by("click")
