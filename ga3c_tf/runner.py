"""Prepares trainings with their run folders, for both the command line and the Python functions.

Modules that load TensorFlow, which takes seconds, are imported after the checks, so that bad input is
rejected at once.
"""

from __future__ import annotations

import functools
import pkgutil
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ga3c_tf.callbacks import Callback, Evaluate
from ga3c_tf.config import SMALLEST_SCREEN, Config, check_environment, network_for, network_of_record
from ga3c_tf.config.declaration import SYSTEM_CLASSES
from ga3c_tf.console import counted
from ga3c_tf.environments.environment import check_separate, describe_environment
from ga3c_tf.environments.ids import in_words, resolve_env_id
from ga3c_tf.environments.statistics import observation_statistics
from ga3c_tf.errors import BudgetReached, UserError
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.host.libraries import SWITCH, enable_onednn, enabled_too_late
from ga3c_tf.host.machine import usable_cores
from ga3c_tf.host.resources import open_files_allowed
from ga3c_tf.plugins import check_trust, installer
from ga3c_tf.runs import outcomes
from ga3c_tf.runs.csv_rows import ADJUSTMENT_COLUMNS, read_rows
from ga3c_tf.runs.folder import RunFolder, read_config
from ga3c_tf.runs.trackers import check_tracker
from ga3c_tf.trained.pretrained import weights_called
from ga3c_tf.trained.weights import check_same_scaling, keep_origin, load_weights

if TYPE_CHECKING:
    from ga3c_tf.systems.system import System
    from ga3c_tf.systems.training import Training

FILES_PER_PROCESS = 3
"""Files that the server has open for each agent process (measured: 47 with 8 processes, 119 with 32)."""
OTHER_FILES = 100
"""Room for TensorFlow's files, those of the run folder, and those of the program that trains."""


def check_linux(what: str) -> None:
    """Check that agents can be started here, in processes that Linux ends with their parent.

    Raises:
        UserError: this is another system.
    """
    if sys.platform != "linux":
        raise UserError(f"{what} needs Linux, and this is {sys.platform}; use Docker: docs/platforms.md")


def new_training(
    config: Config,
    command: Sequence[str],
    warn: Callable[[str], None],
    ray: str | None = None,
    given: Iterable[str] = (),
    callbacks: Sequence[Callback] = (),
) -> tuple[Training, RunFolder]:
    """Make a run folder and the training that will fill it.

    Args:
        config: the settings, with a seed.
        command: words of the command or call, recorded in the run folder.
        warn: called with one line about a problem that was dealt with.
        ray: address of the Ray cluster of the remote agents.
        given: names of the settings that the user gave; those that have no effect on the environment are
            rejected.
        callbacks: callbacks of the training.

    Raises:
        UserError: the settings do not fit the environment, or the folder is taken.
    """
    env_id, note = resolve_env_id(config.env_id)
    if note:
        warn(f"{note}; now: {in_words(config)}")
    config = config.resolved(env_id=env_id)
    spec = describe_environment(config)
    origin = weights_called(config.initial_weights) if config.initial_weights is not None else None
    check_environment(env_id, spec.is_screen, given)
    config = config.resolved(network=_network(config, spec, origin))
    check_separate(config)
    if len(spec.state_shape) == 1 and spec.state_shape[0] >= SMALLEST_SCREEN**2:
        warn(
            f"the observations of {env_id} become vectors of {spec.state_shape[0]:,} numbers; if they are "
            "images, the convolutional networks need them as a Box of uint8"
        )
    installer([env_id])  # rejects an environment that cannot be sent to another process
    run = RunFolder.plan(config)
    _check_cluster(config, ray)
    check_tracker(config)
    training, hardware = _training(run, spec, warn, ray, callbacks)
    if training.session.model.network.losses:
        raise UserError(
            f"network {config.network!r} has losses of its own, such as regularizers, which are not trained "
            "on; leave them out"
        )
    if origin:
        check_same_scaling(origin, config)
        load_weights(origin, training.session.model)
    elif config.normalize_observations:
        training.session.model.standardize(*observation_statistics(config, say=warn))
    try:
        run.create(list(command), hardware)
        if origin:
            keep_origin(origin, run.path)
    except BaseException:
        run.close()
        raise
    return training, run


def _network(config: Config, spec: EnvironmentSpec, origin: Path | None) -> str:
    """Return a new run's network: the one named, else that of its initial weights, else the usual one."""
    if config.network == "auto" and origin:
        network = network_of_record(read_config(origin).network, spec.state_shape)
        if ":" not in network:  # a user's function runs only if the user names it
            return network
    return network_for(config.network, spec.state_shape, config.algorithm)


def resumed_training(
    path: Path,
    changes: dict,
    command: Sequence[str],
    warn: Callable[[str], None],
    trust_code: bool = False,
    ray: str | None = None,
    callbacks: Sequence[Callback] = (),
) -> tuple[Training, RunFolder]:
    """Open a run folder to continue its training from the newest checkpoint.

    Args:
        path: the run folder.
        changes: new settings by name, as `Config.changed` takes them.
        command: words of the command or call, recorded in the run folder.
        warn: called with one line about a problem that was dealt with.
        trust_code: whether user code that the settings name may run.
        ray: address of the Ray cluster of the remote agents.
        callbacks: callbacks of the training.

    Raises:
        BudgetReached: the run has reached its budget or target score.
        UserError: `path` is not a run folder, is in use or damaged, or a change is not possible.
    """
    folder = RunFolder.open(path, warn)
    try:
        return _continued(folder, changes, command, warn, trust_code, ray, callbacks), folder
    except BaseException:
        folder.close()
        raise


def _continued(
    folder: RunFolder,
    changes: dict,
    command: Sequence[str],
    warn: Callable[[str], None],
    trust_code: bool,
    ray: str | None,
    callbacks: Sequence[Callback],
) -> Training:
    path = folder.path
    if folder.config.seed is None:
        raise UserError(f"{path / 'config.json'} is damaged: it has no seed, and every run has one")
    check_trust(folder.config, path, trust_code)
    if folder.config.adjustment != "off" == changes.get("adjustment"):
        changes = {**_workers_found(path), **changes}
    folder.config = folder.config.changed(changes)
    _check_cluster(folder.config, ray)
    check_tracker(folder.config)
    training, hardware = _training(folder, describe_environment(folder.config), warn, ray, callbacks)
    time_s = training.resume()
    session = training.session
    if session.reached() == outcomes.TARGET_SCORE:
        raise BudgetReached(
            f"{path} has reached its target score, {folder.config.target_score:g}; give a larger "
            "--target-score, or remove it with --set target_score=none"
        )
    if session.reached():
        raise BudgetReached(
            f"{path} has reached its budget: {counted(session.agent_steps, 'agent step')}, "
            f"{session.time_s / 60:.1f} minutes, {counted(session.stats.episodes, 'episode')}; give a larger "
            "--steps, --minutes or --episodes"
        )
    folder.continue_with(folder.config, list(command), hardware, time_s)
    return training


def _workers_found(path: Path) -> dict[str, int]:
    """Return the N_A, N_P and N_T that the run's dynamic adjustment accepted last, as settings; {} if there
    are none.

    N_A, N_P and N_T are the numbers of agents, predictors and trainers.
    """
    workers = ("agents", "predictors", "trainers")
    rows = read_rows(path / "adjustment.csv", ADJUSTMENT_COLUMNS)
    accepted = [row for row in rows if row["accepted"] == "1" and all(row[name] for name in workers)]
    return {f"num_{name}": int(accepted[-1][name]) for name in workers if accepted}


def _check_cluster(config: Config, ray: str | None) -> None:
    """Reject remote agents without a cluster, and a cluster without remote agents.

    The user gives the address for each session. It is never read from a run folder, because the members of a
    cluster run any code that they are sent.
    """
    from ga3c_tf.remote.cluster import check_room

    if ray is None and config.remote_agents:
        raise UserError(
            f"{config.remote_agents} remote agents need a Ray cluster: the command's --ray ADDRESS"
        )
    if ray is not None and not config.remote_agents:
        raise UserError("--ray does nothing without --remote-agents")
    if ray == "local":
        raise UserError(
            "--ray local is for reproduce; remote agents want a cluster that is there: ray start --head"
        )
    if ray is not None:
        check_room(ray, len(config.remote_actors))


def _check_open_files(processes: int) -> None:
    """Allow this process the open files that it needs for its agent processes.

    Raises:
        UserError: the system allows fewer.
    """
    needed = FILES_PER_PROCESS * processes + OTHER_FILES
    allowed = open_files_allowed(needed)
    if allowed < needed:
        most = max(1, (allowed - OTHER_FILES) // FILES_PER_PROCESS)
        raise UserError(
            f"{processes} agent processes need {needed} open files, and the limit is {allowed} (ulimit -Hn); "
            f"it is enough for {most}"
        )


def _training(
    run: RunFolder,
    spec: EnvironmentSpec,
    warn: Callable[[str], None],
    ray: str | None,
    callbacks: Sequence[Callback],
) -> tuple[Training, dict]:
    """Return a run folder's training, and a dict of device, GPUs, oneDNN and dtype policy for meta.json."""
    check_linux("training")
    if spec.is_screen:
        enable_onednn()

    from ga3c_tf.model.device import configure_device, configure_devices, gpu_names, make_deterministic
    from ga3c_tf.model.tensorflow import ONEDNN
    from ga3c_tf.systems.training import Training

    if spec.is_screen and enabled_too_late(ONEDNN):
        warn(
            "TensorFlow has started without oneDNN, with which screens are trained faster; set "
            f"{SWITCH}=1 before Python starts"
        )
    config = run.config
    system = _system(config)
    if system.is_deterministic:
        make_deterministic(config.seed or 0)
    _check_open_files(system.num_processes(config))
    # With several epochs, agents wait while a batch is trained on, and an update may use their cores.
    threads = usable_cores() if config.epochs > 1 else None
    if config.devices is None:
        device = configure_device(system.device or config.device, threads)
    else:
        device = configure_devices(config.devices, threads)
    make: Callable[..., System] = system
    if ray:
        make = functools.partial(make, ray=ray)
    if config.evaluate_every and not any(isinstance(callback, Evaluate) for callback in callbacks):
        callbacks = [Evaluate(config.evaluate_every), *callbacks]
    training = Training(make, config, spec, run, device, warn, callbacks)
    hardware = {
        "device": ",".join(config.device_names) or device,
        "gpus": gpu_names(),
        "onednn": ONEDNN,
        "dtype_policy": training.session.model.dtype_policy,
    }
    return training, hardware


def _system(config: Config) -> type[System]:
    """Return the class of the system that the settings name."""
    return pkgutil.resolve_name(SYSTEM_CLASSES[config.system])
