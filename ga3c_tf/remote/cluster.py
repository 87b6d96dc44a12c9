"""The Ray cluster that a run makes use of. Importing this module does not import Ray."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from ga3c_tf.config import UserError
from ga3c_tf.signals import ignored

NAMESPACE = "ga3c_tf"
CONNECT_SECONDS = 5.0


def connect(address: str) -> None:
    """Makes this process a driver of the cluster; it must run on one of the cluster's machines.

    What Python finds here, the cluster's processes find too, where the same folders are there.

    Args:
        address: as `ray.init` takes it, such as 'auto' or 'host:6379'.

    Raises:
        UserError: Ray is not installed, or there is no cluster.
    """
    try:
        import ray
    except ImportError:
        raise UserError("--ray needs the package ray: pip install 'ga3c-tf[ray]'") from None
    try:
        _check_somebody_listens(address)
        with ignored(signal.SIGINT, signal.SIGTERM):  # whoever connects has said already what they do
            ray.init(
                address=address,
                namespace=NAMESPACE,
                log_to_driver=False,
                logging_level=logging.ERROR,
                runtime_env={"env_vars": {"PYTHONPATH": _python_path()}},
            )
    except (OSError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"no Ray cluster at --ray {address}: {reason or type(error).__name__}") from None


def check_room(address: str, actors: int) -> None:
    """Refuses what the cluster can never do. Connects in a process of its own, so that nothing of Ray is left here.

    Args:
        address: of the cluster.
        actors: each wants one CPU.

    Raises:
        UserError: no cluster, or too few CPUs in all.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        cpus = pool.submit(_cpus, address).result()
    if sum(map(int, cpus)) < actors:
        raise UserError(
            f"the remote agents want {actors} CPUs, one for every --agents-per-actor of them, and the machines of the "
            f"cluster have {', '.join(f'{each:g}' for each in cpus) or 'none'}"
        )


def _cpus(address: str) -> list[float]:
    """CPUs of each machine of the cluster."""
    connect(address)
    import ray

    return [node["Resources"].get("CPU", 0.0) for node in ray.nodes() if node["Alive"]]


def _check_somebody_listens(address: str) -> None:
    """Raises an OSError where nobody does: Ray itself would try for more than a minute."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "://" not in address:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()


def _python_path() -> str:
    """Where this process finds modules, installed packages left aside."""
    here = [os.path.abspath(folder) for folder in sys.path if not folder.endswith(".zip")]
    return os.pathsep.join(folder for folder in here if "-packages" not in folder and "/lib/python" not in folder)
