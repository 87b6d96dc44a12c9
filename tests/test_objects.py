"""Objects of other libraries as arguments of the Python API, and the types of its keyword arguments."""

import dataclasses
import inspect
import sys
import threading
import typing
from collections.abc import Callable
from os import PathLike

import gymnasium
import numpy as np
import pytest
from commands import ga3c_tf as command
from gymnasium.envs.classic_control import CartPoleEnv

import ga3c_tf
from ga3c_tf.api.keywords import ChangeableSettings, RunChanges, TrainSettings
from ga3c_tf.config import FIXED, Config
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model.networks import build_network
from ga3c_tf.model.tensorflow import keras
from ga3c_tf.plugins import name_of
from ga3c_tf.plugins.copies import Remade, as_name_or_function
from ga3c_tf.plugins.objects import installer

SMALL = {"preset": "smoke", "num_agents": 2, "device": "cpu", "seed": 1, "progress": False}


def lake(*rows):
    """A lake whose map is an array, which has no truth value of its own when it is compared."""
    return gymnasium.make("FrozenLake-v1", desc=np.array([list(row) for row in rows]))


class Halved(gymnasium.Wrapper):
    """Has no arguments on record, so that Gymnasium cannot make it again."""

    def step(self, action):
        observation, reward, *ends = self.env.step(action)
        return observation, reward / 2, *ends


def of_seven_steps():
    return gymnasium.wrappers.TimeLimit(gymnasium.make("CartPole-v1").unwrapped, 7)


@pytest.mark.parametrize(
    ("env", "name", "most"),
    [
        (gymnasium.make("CartPole-v1", render_mode="rgb_array"), "CartPole-v1", 500.0),
        (of_seven_steps(), "object:CartPole-v1", 7.0),
        (Halved(of_seven_steps()), "object:Halved", 3.5),
        (gymnasium.wrappers.TimeLimit(CartPoleEnv(), 6), "object:TimeLimit", 6.0),
    ],
    ids=["as registered", "by its spec", "by a copy", "without a spec"],
)
def test_each_agent_has_an_environment_like_the_one_that_is_passed(env, name, most):
    function = as_name_or_function("env", env)
    if isinstance(function, str):
        assert function == name
        return
    assert f"object:{function.__name__}" == name
    first, second = function(), function()
    assert first.unwrapped is not second.unwrapped is not env.unwrapped
    for made in (first, second):
        made.reset(seed=1)
        score, ended = 0.0, False
        while not ended:
            _, reward, terminated, truncated, _ = made.step(0)
            score += reward
            ended = terminated or truncated
        assert score <= most


@pytest.mark.parametrize(
    ("env", "other"),
    [
        (of_seven_steps(), gymnasium.wrappers.TimeLimit(of_seven_steps().unwrapped, 8)),
        (Halved(of_seven_steps()), Halved(Halved(of_seven_steps()))),
        (lake("SF", "FG"), lake("SF", "HG")),
    ],
    ids=["by its spec", "by a copy", "with an array"],
)
def test_an_object_that_is_passed_again_has_its_name(env, other):
    names = [name_of(as_name_or_function("env", passed)) for passed in (env, other, env, other)]
    assert names[:2] == names[2:] and names[0] != names[1]


def test_an_environment_that_shows_a_window_is_not_copied():
    env = gymnasium.make("CartPole-v1")
    env.unwrapped.render_mode = "human"
    assert as_name_or_function("env", env) == "CartPole-v1"
    env = Halved(env)
    with pytest.raises(ga3c_tf.UserError, match=r"^env opens a window, .* without render_mode='human'$"):
        as_name_or_function("env", env)


def test_arguments_that_cannot_be_copied_are_one_line():
    spec = dataclasses.replace(gymnasium.spec("FrozenLake-v1"), kwargs={"desc": threading.Lock()})
    with pytest.raises(ga3c_tf.UserError, match=r"FrozenLake-v1 cannot be handed to another process"):
        name_of(Remade(spec))


def test_an_environment_of_the_main_program_is_known_to_other_processes(monkeypatch):
    monkeypatch.setattr(sys.modules["__main__"], "MinePole", CartPoleEnv, raising=False)
    gymnasium.register("MinePole-v0", entry_point="__main__:MinePole")
    install = installer(["MinePole-v0"])
    monkeypatch.delattr(sys.modules["__main__"], "MinePole")  # as in another process
    gymnasium.registry.pop("MinePole-v0")
    try:
        install()
        assert isinstance(gymnasium.make("MinePole-v0").unwrapped, CartPoleEnv)
    finally:
        gymnasium.registry.pop("MinePole-v0", None)


def test_an_environment_and_a_model_are_trained_and_played(tmp_path):
    env = Halved(of_seven_steps())
    model = build_network(Config(network="mlp"), EnvironmentSpec((4,), "float32", 2), seed=7)
    before = model.get_weights()
    settings = {**SMALL, "learning_rate": 1e-30, "run_dir": tmp_path / "run"}
    run = ga3c_tf.train(env, network=model, steps=600, **settings)
    assert run.config.env_id.startswith("object:Halved") and max(run.episodes()["score"]) <= 3.5
    agent = run.agent(device="cpu")
    assert isinstance(agent.network, keras.Model) and agent.network is not model
    for trained, given in zip(agent.network.get_weights(), before, strict=True):
        np.testing.assert_allclose(trained, given, atol=1e-6)
    agent = ga3c_tf.load_agent(run.path, env=env, network=model, device="cpu")
    assert max(agent.evaluate(episodes=3).scores) <= 3.5
    again = ga3c_tf.resume(run.path, env=env, network=model, steps=900, progress=False)
    assert again.summary["agent_steps"] >= 900
    assert "pass it again, from Python" in command("evaluate", run.path, "--trust-code").stderr
    assert repr(again).startswith(f"<Run {run.path}: object:Halved")
    assert repr(agent).startswith("<Agent for object:Halved") and "agent steps, network object:" in repr(
        agent
    )


def mean_score(agent, env, episodes):
    """Calls an agent as `stable_baselines3.common.evaluation.evaluate_policy` does, with a batch of one."""
    scores = []
    for episode in range(episodes):
        observation, _ = env.reset(seed=episode)
        states, starts, score = None, np.ones(1, bool), 0.0
        while True:
            actions, states = agent.predict(
                observation[None], state=states, episode_start=starts, deterministic=True
            )
            observation, reward, terminated, truncated, _ = env.step(actions[0])
            starts = np.array([terminated or truncated])
            score += reward
            if starts[0]:
                break
        scores.append(score)
    return np.mean(scores)


def test_an_agent_predicts_as_one_of_stable_baselines3():
    agent = ga3c_tf.load_agent("minatar_breakout", device="cpu", seed=3)
    env = agent.make_environment()
    assert mean_score(agent, env, 2) > 1
    state, _ = env.reset(seed=0)
    best = agent.policy(state[None])[0][0].argmax()
    action, hidden = agent.predict(state, deterministic=True)
    assert action == best and np.shape(action) == () and hidden is None and env.action_space.contains(action)
    drawn = {int(agent.predict(state)[0]) for _ in range(200)}
    assert len(drawn) > 1
    greedy = ga3c_tf.load_agent("minatar_breakout", device="cpu", greedy=True)
    assert greedy.predict(state)[0] == best


def test_stable_baselines3_itself_evaluates_an_agent():
    evaluation = pytest.importorskip("stable_baselines3.common.evaluation")
    agent = ga3c_tf.load_agent("minatar_breakout", device="cpu", seed=3)
    env = agent.make_environment()
    scores, lengths = evaluation.evaluate_policy(agent, env, 2, return_episode_rewards=True, warn=False)
    assert len(scores) == 2 and min(scores) > 1 and min(lengths) > 20


FUNCTION = str | Callable[..., typing.Any]
PLACE = str | PathLike[str] | None
WIDER = {"network": FUNCTION, "loss": FUNCTION, "run_dir": PLACE, "initial_weights": PLACE}
"""Settings that take more in Python than they hold."""
ELSEWHERE = {"env_id", "remote_agents", "agents_per_actor"}
"""Settings that are no such arguments: the first argument, and what needs the option --ray."""


def type_of(setting):
    hint = WIDER.get(setting.name) or typing.get_type_hints(Config)[setting.name]
    if choices := setting.metadata["choices"]:
        is_optional = type(None) in typing.get_args(hint)
        return typing.Literal[tuple(choices)] | None if is_optional else typing.Literal[tuple(choices)]
    return hint


def test_each_setting_has_its_type():
    settings = {
        setting.name: type_of(setting)
        for setting in dataclasses.fields(Config)
        if setting.name not in ELSEWHERE
    }
    assert typing.get_type_hints(TrainSettings) == settings
    changeable = typing.get_type_hints(ChangeableSettings)
    assert changeable.keys() == {name for name in settings if name not in FIXED or name == "network"}
    assert typing.get_type_hints(RunChanges) == {**changeable, "env": typing.Any}


def test_train_and_resume_have_them():
    for function, settings in ((ga3c_tf.train, TrainSettings), (ga3c_tf.resume, RunChanges)):
        [*_, keywords] = inspect.signature(function).parameters.values()
        assert keywords.annotation == f"Unpack[{settings.__name__}]"
