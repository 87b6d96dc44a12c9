"""The Ray cluster that a run uses. Importing this module does not import Ray."""

from __future__ import annotations

import os
import signal
import site
import socket
import sys
import sysconfig
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import ga3c_tf
from ga3c_tf.errors import UserError
from ga3c_tf.plugins import PLACES

NAMESPACE = "ga3c_tf"
CONNECT_SECONDS = 5.0
START_SECONDS = 60.0


def connect(address: str, **options) -> None:
    """Make this process a driver of the cluster; it must run on one of the cluster's machines.

    The cluster's processes find the Python modules that this process finds, if their machines have the same
    folders. The handlers of SIGINT and SIGTERM remain in place.

    Args:
        address: 'auto', host:port, or 'local' for a cluster on this machine that ends with this process.
        options: further options of `ray.init`.

    Raises:
        UserError: Ray is not installed, or there is no cluster that can be used.
    """
    try:
        import ray
    except ImportError:
        raise UserError("--ray needs pip install '.[ray]' in a clone") from None
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        _check_somebody_listens(address)
        ray.init(
            address,
            namespace=NAMESPACE,
            log_to_driver=False,
            logging_level="ERROR",
            runtime_env={"env_vars": environment_of_processes()},
            **options,
        )
    except Exception as error:  # whatever Ray raises
        reason = (str(error).splitlines() or [""])[0]
        if "InvalidAuthToken" in str(error.__cause__):
            reason = (
                "it asks for a token: set RAY_AUTH_MODE=token, as Ray's page on token authentication says"
            )
        raise UserError(f"--ray {address}: no cluster to use there: {reason}") from None
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def check_room(address: str, actors: int) -> None:
    """Check that the cluster can run this number of actors.

    The check runs in its own process, so that no state of Ray is left in this one.

    Args:
        address: address of the cluster.
        actors: number of actors, each of which needs one CPU.

    Raises:
        UserError: there is no cluster, it has too few CPUs in all, or a machine lacks this version of the
            package.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        cpus = pool.submit(_cpus, address).result()
    if sum(map(int, cpus)) < actors:
        raise UserError(
            f"the remote agents want {actors} CPUs, one for every --agents-per-actor of them, and the "
            f"machines of the cluster have {', '.join(f'{count:g}' for count in cpus) or 'none'}"
        )


def _cpus(address: str) -> list[float]:
    """Return the number of CPUs of each machine of the cluster that has any.

    Raises:
        UserError: a machine has another version of the package, or none that works.
    """
    connect(address)
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0.0) >= 1]
    version_of = ray.remote(num_cpus=0)(_version)
    versions = [
        version_of.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        ).remote()
        for node in nodes
    ]
    for node, version in zip(nodes, versions, strict=True):
        try:
            node_version = ray.get(version, timeout=START_SECONDS)
        except Exception as error:  # whatever keeps it from importing this package
            node_version = f"none that works ({type(error).__name__})"
        if node_version != ga3c_tf.__version__:
            raise UserError(
                f"{node['NodeManagerAddress']} has ga3c_tf {node_version}; here it is {ga3c_tf.__version__}"
            )
    return [node["Resources"]["CPU"] for node in nodes]


def _version() -> str:
    """Return the version of this package on the machine that runs this function."""
    import ga3c_tf.remote.actor

    return ga3c_tf.__version__


def _check_somebody_listens(address: str) -> None:
    """Raise an OSError if nothing listens at the address: Ray itself would try for more than a minute."""
    host, colon, port = address.rpartition(":")
    if "://" in address:
        raise ValueError("give it as host:port")
    if colon:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()


def environment_of_processes() -> dict[str, str]:
    """Return the environment variables with which the cluster's processes find the same code as this process.

    The current folder is not among the folders that come before the standard library: a file `queue.py` in it
    would replace Python's own. `ga3c_tf.plugins` searches the current folder last, as in this process.
    """
    installed = [*(sysconfig.get_path(name) for name in ("stdlib", "platstdlib")), *site.getsitepackages()]
    here = os.getcwd()
    checkout = str(Path(ga3c_tf.__file__).parents[1])  # it may be the current folder
    places = [path for path in sys.path if os.path.isabs(path) and os.path.exists(path) and path != here]
    places = [
        path for path in (checkout, *places) if not any(Path(path).is_relative_to(root) for root in installed)
    ]
    return {"PYTHONPATH": os.pathsep.join(dict.fromkeys(places)), PLACES: here}
