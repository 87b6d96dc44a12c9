"""A trained agent: load it, play with it, evaluate it, record it and export it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ga3c_tf.config import MOST_EPISODE_STEPS
from ga3c_tf.environments.public import PublicEnvironment
from ga3c_tf.errors import UserError
from ga3c_tf.plugins.arguments import by_config_name, split_functions
from ga3c_tf.runs.folder import read_config
from ga3c_tf.trained.environments import atari_changes
from ga3c_tf.trained.opening import open_agent
from ga3c_tf.trained.pretrained import agent_folder

if TYPE_CHECKING:
    import gymnasium

    from ga3c_tf.model.tensorflow import keras
    from ga3c_tf.trained.policies import TrainedAgent


@dataclass(frozen=True)
class Scores:
    """Raw scores of whole episodes, as `Agent.evaluate` and `Run.evaluate` return them.

    Attributes:
        mean: mean of the scores.
        std: sample standard deviation of the scores; 0 for one episode.
        median: median of the scores.
        interval_95: lower and upper end of the 95 % interval of the mean, by Student's t for fewer than 30
            episodes and by a bootstrap from 30 on; None for one episode.
        scores: raw score of each episode.
        protocol: how the episodes were played, in words.
    """

    mean: float
    std: float
    median: float
    interval_95: tuple[float, float] | None
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

    def __repr__(self) -> str:
        trained = self._trained
        return (
            f"<Agent for {self.config.env_id}: {trained.checkpoint} checkpoint, "
            f"{self.agent_steps:,} agent steps, network {self.config.network}>"
        )

    def act(self, state: np.ndarray) -> int:
        """Choose an action for one state.

        The action is sampled from the policy, or is the most probable one if the agent was loaded with
        `greedy=True`. An agent with memory remembers the states of the calls before, until `reset`.

        Args:
            state: one state, [*state_shape], as an environment from `make_environment` returns it.

        Returns:
            The action, from 0 to the number of actions - 1.
        """
        return int(self._trained.act(np.asarray(state)[None])[0])

    def reset(self) -> None:
        """Begin a new episode: an agent with memory forgets the states that it has acted on.

        Agents without memory need not be told. `evaluate` and `record` begin anew by themselves.
        """
        self._trained.begin()

    def predict(
        self,
        observation: np.ndarray,
        state: None = None,
        episode_start: Any = None,
        deterministic: bool | None = None,
    ) -> tuple[np.ndarray, None]:
        """Choose actions as agents of Stable-Baselines3 do, for its `evaluate_policy` and similar programs.

        Args:
            observation: one state [*state_shape], or a batch of states [B, *state_shape].
            state: not used: an agent with memory remembers the states of the calls before, until `reset`.
            episode_start: bool [B], whether a state is the first of its episode; only memory needs it.
            deterministic: whether to take the most probable action; by default as the agent was loaded.

        Returns:
            The action, or actions int64 [B], and None.
        """
        if episode_start is not None:
            self._trained.begin(np.flatnonzero(episode_start).tolist())
        states = np.asarray(observation)
        is_one = states.ndim == len(self._trained.model.states.shape) - 1
        actions = self._trained.act(states[None] if is_one else states, deterministic)
        return (actions[0] if is_one else actions), None

    def policy(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predict policy and values for a batch of states; an agent with memory takes each as the first of an
        episode.

        Args:
            states: batch of states, [B, *state_shape], of the dtype that the environment returns.

        Returns:
            Policy [B, A] and values [B], both float32. With Q-learning, the greedy policy and the highest Q.
        """
        model = self._trained.model
        carry = np.tile(model.initial_carry, (len(states), 1))
        prediction = model.predict(np.asarray(states), carry)
        return prediction.policy, prediction.value

    @property
    def network(self) -> keras.Model:
        """The network, a `keras.Model` from states [B, *state_shape] to (logits [B, A], values [B]), float32.

        With Q-learning it gives the values of actions instead, [B, A]. A network with memory takes a carry
        [B, elements] beside the states, and gives the next one beside the outputs.
        """
        return self._trained.model.network

    def make_environment(self, render_mode: str | None = None) -> gymnasium.Env:
        """Make a Gymnasium environment with the preprocessing that the agent was trained with.

        Its states are arrays of their own, it can be wrapped, and `gymnasium.make(environment.spec)` makes it
        again.

        Args:
            render_mode: None, 'rgb_array' or 'human'.
        """
        return PublicEnvironment(self.config, render_mode)

    def evaluate(
        self, episodes: int = 30, seed: int = 0, max_episode_steps: int = MOST_EPISODE_STEPS
    ) -> Scores:
        """Play whole episodes and return their raw scores.

        Args:
            episodes: number of episodes.
            seed: seed of the environments and of the sampled actions; the same seed gives the same scores.
            max_episode_steps: number of agent steps after which an episode is ended.

        Raises:
            UserError: an argument is too small.
        """
        from ga3c_tf.trained.evaluation import evaluate, summary

        _check_range("episodes", episodes, 1)
        _check_range("seed", seed, 0)
        _check_range("max_episode_steps", max_episode_steps, 1)
        self._trained.seed_actions(seed)
        result = summary(
            self._trained, evaluate(self._trained, episodes, seed, max_episode_steps), self._greedy, seed
        )
        self.reset()
        ends = result["interval_95"]
        interval = (ends[0], ends[1]) if ends else None
        return Scores(
            result["mean"], result["std"], result["median"], interval, result["scores"], result["protocol"]
        )

    def record(
        self,
        file: str | Path,
        episodes: int = 1,
        seed: int = 0,
        max_episode_steps: int = MOST_EPISODE_STEPS,
    ) -> list[float]:
        """Write a video of whole episodes and return their raw scores.

        Args:
            file: file to write, .mp4 or .gif.
            episodes: number of episodes.
            seed: seed of the environment and of the sampled actions; the same seed gives the same episodes.
            max_episode_steps: number of agent steps after which an episode is ended.

        Raises:
            UserError: the file is neither .mp4 nor .gif or cannot be written, the environment draws no
                pictures, or an argument is too small.
        """
        from ga3c_tf.trained.playback import record

        _check_range("episodes", episodes, 1)
        _check_range("seed", seed, 0)
        _check_range("max_episode_steps", max_episode_steps, 1)
        self._trained.seed_actions(seed)
        scores = record(self._trained, episodes, seed, Path(file), max_episode_steps)
        self.reset()
        return scores

    def export(self, file: str | Path, form: str | None = None) -> dict[str, Any]:
        """Write the network to a file for other programs, and its metadata to FILE.json beside it.

        The metadata says how states are made and what the outputs mean.

        Args:
            file: file to write, or folder for 'savedmodel'; it must not exist.
            form: 'onnx', 'savedmodel' or 'keras'; by default that of the suffix, .onnx or .keras, and
                'savedmodel' for a name without one.

        Returns:
            The metadata in FILE.json.

        Raises:
            UserError: the file exists, has the wrong suffix or cannot be written, a package is missing, or
                the network cannot be converted.
        """
        from ga3c_tf.trained.exporting.export import export_agent, form_of

        return export_agent(self._trained, Path(file), form or form_of(Path(file)))


def load_agent(
    source: str | Path,
    *,
    checkpoint: str | int = "best",
    greedy: bool = False,
    epsilon: float = 0.0,
    seed: int = 0,
    device: str = "auto",
    trust_code: bool = False,
    repeat_action_probability: float | None = None,
    noop_max: int | None = None,
    **functions: Callable[..., Any],
) -> Agent:
    """Load a trained agent.

    Args:
        source: a run folder, a folder of weights, or the name of published weights, such as 'pong', or
            'hf:OWNER/NAME' for weights on the Hugging Face Hub.
        checkpoint: 'best' (highest rolling score), 'latest', or the agent steps of a checkpoint; always
            'best' for weights.
        greedy: whether to take the most probable action instead of sampling one.
        epsilon: probability of a random action instead of the best one, for Q-learning.
        seed: seed of the sampled actions.
        device: 'auto', 'cpu', 'gpu' or 'gpu:N'.
        trust_code: whether to import custom code that the run's settings name.
        repeat_action_probability: for Atari, probability that a frame repeats the previous action; None: as
            in training.
        noop_max: for Atari, maximum number of random no-op frames at reset; None: as in training.
        functions: the functions `env`, `network` and `loss`, if the agent was trained with functions by
            another program.

    Raises:
        UserError: the agent, the checkpoint or the device does not exist, published weights cannot be
            fetched, or the settings name custom code and `trust_code` is False.
    """
    folder = agent_folder(source)
    config = read_config(folder)
    given, left = split_functions(config, functions)
    if left:
        raise UserError(f"load_agent has no argument {next(iter(left))!r} for this agent")
    changes = by_config_name(given) | atari_changes(
        config.env_id, repeat_action_probability=repeat_action_probability, noop_max=noop_max
    )
    _check_range("seed", seed, 0)
    trained = open_agent(folder, checkpoint, greedy, seed, device, trust_code, changes, epsilon)
    return Agent(trained, greedy)


def _check_range(name: str, value: int, low: int) -> None:
    if value < low:
        raise UserError(f"{name} is {value}; it must be at least {low}")
