"""Experiment trackers: Weights & Biases and MLflow receive the rows of metrics.csv.

A tracker works in its own thread. If it fails or hangs, the training goes on, and only its end may be
delayed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import json
import math
import os
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.files import write_aside
from ga3c_tf.runs import outcomes

PROJECT = "ga3c_tf"
"""Default project in Weights & Biases and experiment in MLflow, unless environment variables name another."""
FILE = "tracker.json"
"""File in the run folder with the tracker's id of the run, which a resumed run continues."""
MOST_WAITING = 1000
CLOSE_SECONDS = 60.0
MOST_PARAMS = 100
"""Parameters that MLflow takes at once."""
Row = dict[str, float]


class Tracker(Protocol):
    """A tracker that has begun or continued a run. Each call may take long and may fail.

    Attributes:
        id: the tracker's id of the run.
    """

    id: str

    def log(self, agent_steps: int, values: Row) -> None:
        """Log a row of metrics."""

    def close(self, ended: str) -> None:
        """End the run.

        Args:
            ended: a value of `runs.outcomes`; FAILED if an error ended the training.
        """


class WandbTracker:
    """Weights & Biases. Its environment variables (WANDB_MODE, WANDB_DIR and so on) apply.

    Args:
        folder: the run folder, whose name becomes the name of the run.
        config: the settings.
        run_id: id of the run from an earlier session, or None.
    """

    def __init__(self, folder: Path, config: Config, run_id: str | None):
        import wandb

        online = wandb.setup().settings.mode not in ("offline", "dryrun", "disabled")
        if online and wandb.run is None and not wandb.login(prompt=False, verify=False):
            # `init` would ask on the terminal, where the progress is shown and nobody expects a question
            raise RuntimeError("there is no API key: run 'wandb login' first, or set WANDB_MODE=offline")
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            name=folder.resolve().name,
            id=run_id,
            resume="allow",
            config=dataclasses.asdict(config),
            tags=[tag[:64] for tag in _tags(config).values()],  # longer tags are rejected
            settings=wandb.Settings(console="off"),
        )
        self.id = self._run.id

    def log(self, agent_steps: int, values: Row) -> None:
        self._run.log(values, step=agent_steps)

    def close(self, ended: str) -> None:
        self._run.finish(exit_code=int(ended == outcomes.FAILED))


class MlflowTracker:
    """MLflow. The store is MLFLOW_TRACKING_URI, by default mlflow.db in the current folder.

    Args:
        folder: the run folder, whose name becomes the name of the run.
        config: the settings.
        run_id: id of the run from an earlier session, or None; a new run is begun if the store does not have
            it.
    """

    def __init__(self, folder: Path, config: Config, run_id: str | None):
        from mlflow import MlflowClient

        self._client = MlflowClient()
        self.id = run_id if run_id and self._has(run_id) else self._begin(folder, config)
        self._client.update_run(self.id, status="RUNNING")

    def _has(self, run: str) -> bool:
        from mlflow.exceptions import MlflowException

        try:
            self._client.get_run(run)
        except MlflowException as error:
            if error.error_code == "RESOURCE_DOES_NOT_EXIST":
                return False
            raise
        return True

    def _begin(self, folder: Path, config: Config) -> str:
        from mlflow.entities import Param

        name = folder.resolve().name
        run = self._client.create_run(self._experiment(), tags=_tags(config), run_name=name).info.run_id
        params = [Param(setting, str(value)) for setting, value in dataclasses.asdict(config).items()]
        for first in range(0, len(params), MOST_PARAMS):
            self._client.log_batch(run, params=params[first : first + MOST_PARAMS])
        return run

    def _experiment(self) -> str:
        """Return the id of the experiment, which two runs that start together may both try to create."""
        from mlflow.exceptions import MlflowException

        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
        if self._client.get_experiment_by_name(name) is None:
            with contextlib.suppress(MlflowException):
                self._client.create_experiment(name)
        return self._client.get_experiment_by_name(name).experiment_id

    def log(self, agent_steps: int, values: Row) -> None:
        from mlflow.entities import Metric

        now = time.time_ns() // 10**6
        self._client.log_batch(
            self.id, [Metric(name, value, now, agent_steps) for name, value in values.items()]
        )

    def close(self, ended: str) -> None:
        status = {outcomes.INTERRUPTED: "KILLED", outcomes.FAILED: "FAILED"}.get(ended, "FINISHED")
        self._client.set_terminated(self.id, status)


TRACKERS: dict[str, Callable[[Path, Config, str | None], Tracker]] = {
    "wandb": WandbTracker,
    "mlflow": MlflowTracker,
}


def check_tracker(config: Config) -> None:
    """Check that the tracker that the settings name is installed.

    Raises:
        UserError: the tracker's package is missing.
    """
    if config.track and importlib.util.find_spec(config.track) is None:
        raise UserError(
            f"--track {config.track} needs the package {config.track}: pip install '.[track]' in a clone, or "
            "leave it out, with `resume` by --set track=none"
        )


class Tracking:
    """Passes rows of metrics to the tracker that the settings name, if any.

    Args:
        folder: the run folder.
        config: the settings.
        warn: called once with one line if the tracker fails; nothing is tracked from then on.
    """

    def __init__(self, folder: Path, config: Config, warn: Callable[[str], None]):
        self._folder = folder
        self._config = config
        self._warn = warn
        self._rows: queue.SimpleQueue[Row | None] = queue.SimpleQueue()
        self._ended = outcomes.FAILED
        self._given_up = False
        self._thread = threading.Thread(target=self._work, name="tracker", daemon=True)
        if config.track:
            self._thread.start()

    def log(self, row: Row) -> None:
        """Queue a row of metrics.csv for the tracker; it is dropped if `MOST_WAITING` rows wait already."""
        if self._thread.is_alive() and self._rows.qsize() < MOST_WAITING:
            self._rows.put(row)

    def close(self, ended: str) -> None:
        """End the tracker's run, as `Tracker.close` does; wait at most `CLOSE_SECONDS` for it."""
        if not self._thread.is_alive():
            return
        self._ended = ended
        self._rows.put(None)
        self._thread.join(CLOSE_SECONDS)
        if self._thread.is_alive():
            self._given_up = True
            self._warn(
                f"--track {self._config.track}: not done after {CLOSE_SECONDS:g} seconds; "
                "the last rows are lost"
            )

    def _work(self) -> None:
        try:
            tracker = self._begin()
            while (row := self._rows.get()) is not None:
                values = {
                    name: value for name, value in row.items() if value is not None and not math.isnan(value)
                }
                tracker.log(int(row["agent_steps"]), values)
            tracker.close(self._ended)
        except BaseException as error:  # some trackers raise SystemExit
            if not self._given_up:
                self._warn(
                    f"--track {self._config.track}: {_first_line(error)}; the training goes on without it"
                )

    def _begin(self) -> Tracker:
        """Begin a run, or continue the run of an earlier session."""
        name = str(self._config.track)
        file = self._folder / FILE
        run_ids = json.loads(file.read_text()) if file.exists() else {}
        tracker = TRACKERS[name](self._folder, self._config, run_ids.get(name))
        write_aside(file, json.dumps(run_ids | {name: tracker.id}))
        return tracker


def _tags(config: Config) -> dict[str, str]:
    return {"env_id": config.env_id, "system": config.system}


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
