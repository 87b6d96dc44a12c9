"""The public Python functions: train, resume, and load an agent.

```python
import ga3c_tf

run = ga3c_tf.train("CartPole-v1", minutes=2, seed=1)
print(run.evaluate(episodes=20).mean)
```
"""

from __future__ import annotations

import contextlib
import gc
import os
import secrets
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ga3c_tf.config import MOST_EPISODE_STEPS, Config
from ga3c_tf.config.presets import BUDGETS, USUAL_PRESET
from ga3c_tf.console import say
from ga3c_tf.environments.environment import describe_environment
from ga3c_tf.errors import UserError
from ga3c_tf.host.onednn import enable_onednn
from ga3c_tf.host.scheduling import scheduling_restored
from ga3c_tf.plugins import OBJECT, check_trust, name_of, objects_called
from ga3c_tf.runner import new_training, resumed_training
from ga3c_tf.runs import outcomes
from ga3c_tf.runs.folder import RunFolder, read_config
from ga3c_tf.runs.log import EPISODE_COLUMNS, METRIC_COLUMNS, read_columns
from ga3c_tf.runs.weights import weights_called

if TYPE_CHECKING:
    from ga3c_tf.evaluation import TrainedAgent
    from ga3c_tf.systems.training import Training

CODE = {"env": "env_id", "network": "network", "loss": "loss"}
"""Settings that may be Python functions: name of the argument to name of the setting."""


@dataclass(frozen=True)
class Scores:
    """Raw scores of whole episodes, as `Agent.evaluate` and `Run.evaluate` return them.

    Attributes:
        mean: mean of the scores.
        std: sample standard deviation of the scores; 0 for one episode.
        median: median of the scores.
        interval_95: lower and upper end of the 95 % bootstrap interval of the mean.
        scores: raw score of each episode.
        protocol: how the episodes were played, in words.
    """

    mean: float
    std: float
    median: float
    interval_95: tuple[float, float]
    scores: list[float]
    protocol: str


class Agent:
    """A trained agent, as `load_agent` and `Run.agent` return it.

    Attributes:
        config: settings that the agent was trained with, except that a lost life does not end an episode.
        agent_steps: number of environment steps that the agent was trained for.
    """

    def __init__(self, trained: TrainedAgent, greedy: bool):
        self._trained = trained
        self._greedy = greedy
        self.config = trained.config
        self.agent_steps = trained.agent_steps

    def act(self, state: np.ndarray) -> int:
        """Choose an action for one state.

        The action is sampled from the policy, or is the most probable one if the agent was loaded with `greedy=True`.

        Args:
            state: one state, [*state_shape], as an environment from `make_environment` returns it.

        Returns:
            The action, from 0 to the number of actions - 1.
        """
        return int(self._trained.act(np.asarray(state)[None])[0])

    def predict(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predict policy and values for a batch of states.

        Args:
            states: batch of states, [B, *state_shape], of the dtype that the environment returns.

        Returns:
            Policy [B, actions] and values [B], both float32.
        """
        policy, values, _ = self._trained.model.predict(np.asarray(states))
        return policy, values

    def make_environment(self, render_mode: str | None = None):
        """Make a Gymnasium environment with the preprocessing that the agent was trained with.

        A state is valid until the next `step` or `reset` of the environment. Copy it to keep it.

        Args:
            render_mode: None, 'rgb_array' or 'human'.
        """
        from ga3c_tf.environments.environment import make_environment

        return make_environment(self.config, render_mode)

    def evaluate(self, episodes: int = 30, seed: int = 0, max_episode_steps: int = MOST_EPISODE_STEPS) -> Scores:
        """Play whole episodes and return their raw scores.

        Args:
            episodes: number of episodes.
            seed: seed of the environments and of the sampled actions; the same seed gives the same scores.
            max_episode_steps: number of agent steps after which an episode is ended.

        Raises:
            UserError: an argument is too small.
        """
        from ga3c_tf.evaluation import evaluate, summary

        _check_range("episodes", episodes, 1)
        _check_range("seed", seed, 0)
        _check_range("max_episode_steps", max_episode_steps, 1)
        self._trained.seed_actions(seed)
        found = summary(self._trained, evaluate(self._trained, episodes, seed, max_episode_steps), self._greedy, seed)
        low, high = found["interval_95"]
        return Scores(found["mean"], found["std"], found["median"], (low, high), found["scores"], found["protocol"])

    def record(self, file: str | Path, episodes: int = 1, seed: int = 0) -> list[float]:
        """Write a video of whole episodes and return their raw scores.

        Args:
            file: file to write, .mp4 or .gif.
            episodes: number of episodes.
            seed: seed of the environment and of the sampled actions; the same seed gives the same episodes.

        Raises:
            UserError: the file is neither .mp4 nor .gif or cannot be written, the environment draws no pictures, or an
                argument is too small.
        """
        from ga3c_tf.playback import record

        _check_range("episodes", episodes, 1)
        _check_range("seed", seed, 0)
        self._trained.seed_actions(seed)
        return record(self._trained, episodes, seed, Path(file))

    def export(self, file: str | Path, form: str = "onnx") -> dict[str, Any]:
        """Write the network to a file for other programs, and its metadata to FILE.json beside it.

        The metadata says how states are made and what the outputs mean.

        Args:
            file: file to write, or folder for 'savedmodel'; it must not exist.
            form: 'onnx', 'savedmodel' or 'keras'.

        Returns:
            The metadata in FILE.json.

        Raises:
            UserError: the file exists, has the wrong suffix or cannot be written, a package is missing, or the network
                cannot be converted.
        """
        from ga3c_tf.export import export_agent

        return export_agent(self._trained, Path(file), form)


class Run:
    """A training run in its run folder, as `train` and `resume` return it.

    `Run(path)` opens an existing run folder.

    Args:
        path: the run folder.
        summary: summary of a training session, as described below.
        trust_code: whether to import custom code that the run's settings name.
        functions: the functions `env`, `network` and `loss` by name, if the run was trained with functions by another
            program.

    Attributes:
        path: the run folder.
        config: the run's settings.
        summary: summary of the training session that returned this object: why it ended (key 'ended'), counters,
            rates, rolling score and checkpoint. It is empty if the run folder was only opened.

    Raises:
        UserError: `path` is not a run folder, or its settings are damaged.
    """

    def __init__(
        self,
        path: str | Path,
        summary: dict[str, Any] | None = None,
        trust_code: bool = False,
        functions: dict[str, Callable[..., Any]] | None = None,
    ):
        self.path = Path(path)
        self._trust_code = trust_code
        self._functions = functions or {}
        self.summary = summary or {}
        self.config = read_config(self.path)

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    def agent(self, checkpoint: str | int = "best", **options: Any) -> Agent:
        """Load the agent of a checkpoint.

        Args:
            checkpoint: 'best' (highest rolling score), 'latest', or the agent steps of a checkpoint.
            options: other keyword arguments of `load_agent`, except `trust_code`.
        """
        given = {**self._functions, **options}
        return load_agent(self.path, checkpoint=checkpoint, trust_code=self._trust_code, **given)

    def evaluate(self, episodes: int = 30, checkpoint: str | int = "best", seed: int = 0) -> Scores:
        """Play whole episodes with the agent of a checkpoint and return their raw scores.

        Args:
            episodes: number of episodes.
            checkpoint: 'best' (highest rolling score), 'latest', or the agent steps of a checkpoint.
            seed: seed of the environments and of the sampled actions; the same seed gives the same scores.
        """
        return self.agent(checkpoint, seed=seed).evaluate(episodes, seed)

    def resume(self, **changes: Any) -> Run:
        """Continue the training from the newest checkpoint and return the run.

        Args:
            changes: keyword arguments of `ga3c_tf.resume`, except `trust_code`.
        """
        return resume(self.path, trust_code=self._trust_code, **{**self._functions, **changes})

    def metrics(self) -> dict[str, np.ndarray]:
        """Return the columns of metrics.csv by name, each float64 [rows]; an empty cell is not-a-number."""
        return dict(read_columns(self.path / "metrics.csv", METRIC_COLUMNS))

    def episodes(self) -> dict[str, np.ndarray]:
        """Return the columns of episodes.csv by name, each float64 [episodes], such as 'score' and 'length'."""
        return dict(read_columns(self.path / "episodes.csv", EPISODE_COLUMNS))


def train(env: str | Callable[..., Any], *, preset: str = USUAL_PRESET, progress: bool = True, **settings: Any) -> Run:
    """Train an agent until its budget is reached, and return the run.

    Without a budget (`steps`, `minutes` or `episodes`), training continues until Ctrl-C. Ctrl-C ends any training with
    a checkpoint.

    Args:
        env: Gymnasium id such as 'CartPole-v1' or 'ALE/Pong-v5', or a function that makes an environment.
        preset: name of the preset to start from; `settings` override its values.
        progress: whether to print a line every few seconds.
        settings: any setting of `ga3c-tf train`, by its name in `Config`, such as `minutes=2`, `seed=1` or
            `num_agents=8`. None is the same as leaving a setting out. Without `seed`, a random seed is drawn. `network`
            and `loss` may be functions. Remote agents need the command line, because they need its option `--ray`.

    Returns:
        The run, with its folder, settings and summary.

    Raises:
        UserError: a setting is invalid; the message says what would be right.
        FloatingPointError: the training diverged; the last checkpoint is kept.
        RuntimeError: too many agent processes failed, or the last checkpoint could not be written.
    """
    if env is None:
        raise UserError("train needs an environment, such as 'CartPole-v1'")
    given = _by_name({"env": env, **{name: value for name, value in settings.items() if value is not None}})
    config = Config.from_preset(preset, {"seed": secrets.randbelow(2**31), **given})
    _free_ended_trainings()
    return _run(*new_training(config, _command("train"), _warn, given=given), progress, trust_code=True)


def resume(path: str | Path, *, progress: bool = True, trust_code: bool = False, **changes: Any) -> Run:
    """Continue the training of a run folder from its newest checkpoint.

    Args:
        path: the run folder.
        progress: whether to print a line every few seconds.
        trust_code: whether to import custom code that the run's settings name.
        changes: settings to change, such as `learning_rate` or a new budget (`steps`, `minutes` or `episodes`). A
            budget is a total that includes earlier sessions; a budget of None is ignored. If `env`, `network` or `loss`
            were functions of another program, pass them again. Settings that hold for a whole run
            (`ga3c_tf.config.HELD`), such as the environment or the network, are rejected.

    Returns:
        The run, with its folder, settings and the summary of this session.

    Raises:
        UserError: `path` is not a run folder, the run is in use or has reached its budget, or a change is invalid.
        FloatingPointError: as for `train`.
        RuntimeError: as for `train`.
    """
    config = read_config(path)
    given = {name: value for name, value in changes.items() if value is not None or name not in BUDGETS}
    functions, left = _functions_of(config, given)
    _free_ended_trainings()
    with objects_called({getattr(config, CODE[name]): function for name, function in functions.items()}):
        training, folder = resumed_training(Path(path), _by_name(left), _command("resume"), _warn, trust_code)
        return _run(training, folder, progress, trust_code, functions)


def load_agent(
    source: str | Path,
    *,
    checkpoint: str | int = "best",
    greedy: bool = False,
    seed: int = 0,
    device: str = "auto",
    trust_code: bool = False,
    **functions: Callable[..., Any],
) -> Agent:
    """Load a trained agent.

    Args:
        source: a run folder, a folder of weights, or the name of published weights such as 'pong'.
        checkpoint: 'best' (highest rolling score), 'latest', or the agent steps of a checkpoint; always 'best' for
            weights.
        greedy: whether to take the most probable action instead of sampling one.
        seed: seed of the sampled actions.
        device: 'auto', 'cpu', 'gpu' or 'gpu:N'.
        trust_code: whether to import custom code that the run's settings name.
        functions: the functions `env`, `network` and `loss`, if the agent was trained with functions by another
            program.

    Raises:
        UserError: the agent, the checkpoint or the device does not exist, or the settings name custom code and
            `trust_code` is False.
    """
    folder = Path(source) if os.path.exists(Path(source) / "config.json") else weights_called(str(source))
    config = read_config(folder)
    given, left = _functions_of(config, functions)
    if left:
        raise UserError(f"load_agent has no argument {next(iter(left))!r} for this agent")
    names = _by_name(given)
    config = config.replace(**names)
    check_trust(config, folder, trust_code)
    _check_range("seed", seed, 0)

    if describe_environment(config).is_screen:
        enable_onednn()

    from ga3c_tf.evaluation import TrainedAgent
    from ga3c_tf.model.device import configure_device

    return Agent(TrainedAgent(folder, checkpoint, greedy, seed, configure_device(device), _warn, names), greedy)


def _by_name(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings under their names in `Config`, with each function replaced by its name.

    Raises:
        UserError: a setting is given under both of its names, or a function cannot be used.
    """
    for short, name in CODE.items():
        if short != name and {short, name} <= settings.keys():
            raise UserError(f"{short} and {name} are the same setting; give one of them")
    named = {CODE.get(name, name): value for name, value in settings.items()}
    for name in CODE.values():
        value = named.get(name)
        if value is not None and not isinstance(value, str):
            named[name] = name_of(value)
    return named


def _functions_of(config: Config, given: dict[str, Any]) -> tuple[dict[str, Callable[..., Any]], dict[str, Any]]:
    """Split `given` into the functions that the run was trained with, and all other arguments."""
    functions = {
        argument: given[argument]
        for argument, name in CODE.items()
        if callable(given.get(argument)) and getattr(config, name).startswith(f"{OBJECT}:")
    }
    return functions, {name: value for name, value in given.items() if name not in functions}


def _check_range(name: str, value: int, low: int) -> None:
    if value < low:
        raise UserError(f"{name} is {value}; it must be at least {low}")


def _command(function: str) -> list[str]:
    return ["python", Path(sys.argv[0]).name or "-", f"(ga3c_tf.{function})"]


def _warn(text: str) -> None:
    say(f"ga3c-tf: {text}", sys.stderr)


def _free_ended_trainings() -> None:
    """Free the pipes and the memory of trainings that have ended in this process.

    The objects of a training refer to each other, so Python frees them only when its garbage collector runs. A script
    that trains many times would run out of file descriptors before that.
    """
    gc.collect()


def _run(
    training: Training,
    folder: RunFolder,
    progress: bool,
    trust_code: bool,
    functions: dict[str, Callable[..., Any]] | None = None,
) -> Run:
    from ga3c_tf.status import beginning, line

    with closing(folder), scheduling_restored(), _interrupts(training):
        say(beginning(folder.config, folder.path))
        summary = training.run((lambda row: say(line(row))) if progress else (lambda row: None))
    return Run(folder.path, summary, trust_code, functions)


@contextlib.contextmanager
def _interrupts(training: Training) -> Iterator[None]:
    """Let Ctrl-C, or a notebook's stop button, end the training with a checkpoint; a second one ends it at once.

    In other threads than the main one, where Python allows no signal handlers, do nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []

    def on_interrupt(number, frame):
        if received:
            training.kill()
            raise KeyboardInterrupt
        received.append(number)
        training.stop(outcomes.INTERRUPTED)

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
