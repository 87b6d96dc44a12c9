"""The policies that are evaluated and shown: that of a checkpoint or of weights, and the random policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from ga3c_tf.algorithms.factory import new_model
from ga3c_tf.algorithms.network_model import NetworkModel
from ga3c_tf.config import Config
from ga3c_tf.config.declaration import Q_LEARNING
from ga3c_tf.environments.environment import describe_environment
from ga3c_tf.errors import UserError
from ga3c_tf.experience.contracts import Prediction
from ga3c_tf.runs.checkpoints import Checkpoints
from ga3c_tf.runs.folder import read_config
from ga3c_tf.trained import weights

ACTIONS = 1
"""Key of the actions' random stream. Without it, an environment of the same seed would have the same one."""


class ModelAgent:
    """The policy of a model, which acts by itself.

    Args:
        config: settings of the run.
        model: the model, whose current weights are used.
        greedy: whether to take the most probable action instead of sampling one.
        seed: seed of the sampled actions.
        agent_steps: agent steps that the model was trained for.
        checkpoint: where the weights are from, in words.
        before: called before each choice of actions; its error ends what the agent is used for.
        epsilon: probability of a uniformly random action, unless `greedy`.

    Attributes:
        config: the run's settings, for whole games (`terminal_on_life_loss` off).
        model, agent_steps, checkpoint, epsilon: as given.
    """

    def __init__(
        self,
        config: Config,
        model: NetworkModel,
        greedy: bool,
        seed: int,
        agent_steps: int,
        checkpoint: str,
        before: Callable[[], None] = lambda: None,
        epsilon: float = 0.0,
    ):
        self.config = config.replace(terminal_on_life_loss=False)
        self.model = model
        self.agent_steps = agent_steps
        self.checkpoint = checkpoint
        self.epsilon = epsilon
        self._greedy = greedy
        self._before = before
        self.seed_actions(seed)
        self.begin()

    def seed_actions(self, seed: int) -> None:
        """Restart the random stream of the sampled actions from `seed`."""
        self._rng = _actions_of(seed)

    def begin(self, rows: Sequence[int] | None = None) -> None:
        """Take the next states in these rows as the first of their episodes; None for all rows.

        Without memory this changes nothing.
        """
        if rows is None:
            self._carry = np.empty((0, len(self.model.initial_carry)), np.float32)
        else:  # rows that are new have no memory yet
            self._carry[[row for row in rows if row < len(self._carry)]] = self.model.initial_carry

    def act(self, states: np.ndarray, greedy: bool | None = None) -> np.ndarray:
        """Return actions int64 [B] for states [B, *state_shape]. Row for row, they follow those before.

        Args:
            states: the states.
            greedy: whether to take the most probable actions; None: as given to the constructor.
        """
        self._before()
        policy = self.predict(states).policy
        if self._greedy if greedy is None else greedy:
            return policy.argmax(axis=1)
        policy = (1 - self.epsilon) * policy + self.epsilon / policy.shape[1]
        cumulative = policy.cumsum(axis=1)
        draws = self._rng.random(len(policy))[:, None] * cumulative[:, -1:]
        return np.minimum((cumulative <= draws).sum(axis=1), policy.shape[1] - 1)

    def predict(self, states: np.ndarray) -> Prediction:
        """Return the prediction for states [B, *state_shape]. Row for row, they follow those before."""
        initial = self.model.initial_carry
        if not len(initial):
            return self.model.predict(states)
        if len(self._carry) != len(states):
            self._carry = np.tile(initial, (len(states), 1))
        prediction = self.model.predict(states, self._carry)
        self._carry = np.array(prediction.carry)
        return prediction


class TrainedAgent(ModelAgent):
    """The policy of a run's checkpoint, or of published weights.

    Args:
        run: a run folder, or a folder of weights that `weights.save_weights` wrote.
        checkpoint: 'best', 'latest' or the agent steps of a checkpoint; it must be 'best' for a folder of
            weights.
        greedy: whether to take the most probable action instead of sampling one.
        seed: seed of the sampled actions.
        device: TensorFlow device, as `configure_device` returns it.
        warn: called with one line about a problem that was dealt with.
        changes: settings that replace the run's, such as names of functions in this program.
        epsilon: probability of a uniformly random action, unless `greedy`.

    Attributes:
        folder: `run` as a path.
        config: the run's settings, for whole games (`terminal_on_life_loss` off).
        model: the model, with the checkpoint's weights.
        agent_steps: agent steps of the checkpoint.
        checkpoint: description of the checkpoint in words.

    Raises:
        UserError: `run` is not a run folder, the checkpoint does not exist or belongs to another network, or
            `epsilon` is no probability or not for this agent.
    """

    def __init__(
        self,
        run: Path | str,
        checkpoint: str | int,
        greedy: bool,
        seed: int,
        device: str,
        warn: Callable[[str], None],
        changes: Mapping[str, Any] = MappingProxyType({}),
        epsilon: float = 0.0,
    ):
        self.folder = Path(run)
        config: Config = read_config(run, "playing", warn).replace(**changes, terminal_on_life_loss=False)
        _check_epsilon(epsilon, greedy, config.algorithm)
        # The same scores and exports on every processor.
        plain = config.resolved(dtype_policy="float32", compile="off", devices=None)
        model = new_model(plain, describe_environment(config), seed, device)
        if weights.file_of(self.folder):
            if checkpoint != "best":
                raise UserError(
                    f"{run} has weights, and no checkpoints to choose from; leave --checkpoint out"
                )
            agent_steps = weights.load_weights(self.folder, model)
            description = "best evaluated" if self.folder.resolve().name == weights.BEST else "published"
        else:
            checkpoints = Checkpoints(self.folder, model.checkpoint_objects(), warn)
            agent_steps = checkpoints.restore(checkpoint)["agent_steps"]
            description = _in_words(checkpoint, agent_steps, checkpoints.best())
        super().__init__(config, model, greedy, seed, agent_steps, description, epsilon=epsilon)


def _check_epsilon(epsilon: float, greedy: bool, algorithm: str) -> None:
    """Refuse random actions where they have no meaning."""
    if not 0 <= epsilon <= 1:
        raise UserError(f"epsilon is {epsilon}; it must be from 0 to 1")
    if epsilon and greedy:
        raise UserError("epsilon adds random actions, and a greedy agent has none; leave one of them out")
    if epsilon and algorithm not in Q_LEARNING:
        raise UserError(
            f"epsilon is for Q-learning; this agent's algorithm, {algorithm}, samples its actions"
        )


def _in_words(wanted: str | int, loaded: int, best: int | None) -> str:
    """Return which checkpoint was loaded, in words.

    The latest checkpoint stands in for the best one if none has a score or the best one is damaged.

    Args:
        wanted: 'best', 'latest' or agent steps.
        loaded: agent steps of the loaded checkpoint.
        best: agent steps of the checkpoint with the best rolling score; None if there is none.
    """
    if wanted == "best" and loaded == best:
        return "best (by rolling score)"
    return "latest" if wanted in ("best", "latest") else str(loaded)


class RandomAgent:
    """The random policy in a run's environment: uniformly random actions, as a baseline for scores.

    Args:
        run: a run folder; it needs no checkpoint.
        seed: seed of the actions.
        changes: settings that replace the run's.

    Attributes:
        config: the run's settings, for whole games (`terminal_on_life_loss` off).
        agent_steps: 0, since nothing was trained.
        checkpoint: None, since there is no trained policy.
        epsilon: 0, since no action is added to its own.

    Raises:
        UserError: `run` is not a run folder, or its environment does not exist.
    """

    checkpoint = None
    agent_steps = 0
    epsilon = 0.0

    def __init__(self, run: Path | str, seed: int, changes: Mapping[str, Any] = MappingProxyType({})):
        self.config: Config = read_config(run, "playing").replace(**changes, terminal_on_life_loss=False)
        self._num_actions = describe_environment(self.config).num_actions
        self._rng = _actions_of(seed)

    def begin(self, rows: Sequence[int] | None = None) -> None:
        """Begin episodes, as `ModelAgent.begin` does; there is no memory."""

    def act(self, states: np.ndarray) -> np.ndarray:
        """Return actions int64 [B] for states [B, *state_shape]."""
        return self._rng.integers(self._num_actions, size=len(states))


def _actions_of(seed: int) -> np.random.Generator:
    """Return the random generator of the sampled actions."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(ACTIONS,)))
