"""What compare_sb3.py and compare_sb3_speed.py give to both programs: one network, and one set of settings.

The values are those of Stable-Baselines3's zoo for CartPole and for Atari, which MinAtar has too
(https://github.com/DLR-RM/rl-baselines3-zoo, hyperparams/a2c.yml and ppo.yml). Only the clip range of PPO is
constant here, while the zoo lets it fall to 0, and A2C has TensorFlow's RMSProp for CartPole too.
"""

from __future__ import annotations

from typing import Any

PAIRS = {"a2c": "sb3-a2c", "ppo": "sb3-ppo", "ga3c": "sb3-ppo"}
"""By system of ga3c_tf, the one of Stable-Baselines3 whose settings it has."""

A2C = {"n_steps": 5, "learning_rate": 7e-4, "gamma": 0.99, "vf_coef": 0.5, "ent_coef": 0.0}
PPO = {"gamma": 0.99, "gae_lambda": 0.95, "vf_coef": 0.5, "batch_size": 256}
ATARI = {
    "sb3-a2c": (16, {**A2C, "vf_coef": 0.25, "ent_coef": 0.01}),
    "sb3-ppo": (
        8,
        {**PPO, "n_steps": 128, "n_epochs": 4, "learning_rate": 2.5e-4, "clip_range": 0.1, "ent_coef": 0.01},
    ),
}
CARTPOLE = {
    "sb3-a2c": (8, A2C),
    "sb3-ppo": (
        8,
        {
            **PPO,
            "n_steps": 32,
            "n_epochs": 20,
            "learning_rate": 1e-3,
            "clip_range": 0.2,
            "ent_coef": 0.0,
            "gamma": 0.98,
            "gae_lambda": 0.8,
        },
    ),
}
SETTINGS: dict[str, dict[str, tuple[int, dict[str, Any]]]] = {
    "CartPole-v1": CARTPOLE,
    "MinAtar/Breakout-v1": ATARI,
    "ALE/Pong-v5": ATARI,
}
"""By environment and system, the number of environments and the arguments of Stable-Baselines3's class."""
NETWORKS = {"CartPole-v1": "mlp-two-trunks", "MinAtar/Breakout-v1": "minatar", "ALE/Pong-v5": "nature"}
"""Our names of the networks that `sb3_policy` gives to Stable-Baselines3."""
OPTIONS = {
    "n_steps": "--t-max",
    "n_epochs": "--epochs",
    "batch_size": "--minibatch-size",
    "learning_rate": "--learning-rate",
    "gamma": "--gamma",
    "gae_lambda": "--gae-lambda",
    "clip_range": "--clip-ratio",
    "ent_coef": "--beta",
}
"""By argument of Stable-Baselines3, our option of the same meaning."""
COMMON = "--loss-reduction mean --grad-clip-global 0.5 --initialization orthogonal"
AS_PPO = "--advantage gae --normalize-advantages --optimizer adam --learning-rate-end 0 --anneal-fraction 1"
AS_A2C = "--rmsprop-epsilon 1e-5"


def ga3c_options(system: str, environment: str) -> list[str]:
    """Return the options of `ga3c-tf train` that are the settings of `PAIRS[system]`."""
    name = PAIRS[system]
    agents, settings = SETTINGS[environment][name]
    options = ["--agents", str(agents), "--network", NETWORKS[environment], *COMMON.split()]
    for argument, option in OPTIONS.items():
        if argument in settings:
            options += [option, str(settings[argument])]
    # Stable-Baselines3's value loss is (R - V)^2, ours half of it.
    options += ["--value-coefficient", str(2 * settings["vf_coef"])]
    options += (AS_PPO if name == "sb3-ppo" else AS_A2C).split()
    if environment.startswith("ALE/"):
        options.append("--normalize-images")
    if system != "ga3c":
        return ["--system", "a2c", *options]
    batch = str(agents * settings["n_steps"] - 1)  # which a training batch exceeds
    threads = ["--predictors", "1", "--trainers", "1", "--adjustment", "off"]
    return [*options, "--min-training-batch", batch, *threads]


def sb3_model(system: str, environment: str, seed: int, usual: bool = False) -> Any:
    """Return the model of Stable-Baselines3, not yet trained; with its defaults if `usual`."""
    import stable_baselines3
    from stable_baselines3.common.sb2_compat.rmsprop_tf_like import RMSpropTFLike

    algorithm = {"sb3-ppo": stable_baselines3.PPO, "sb3-a2c": stable_baselines3.A2C}[system]
    if usual:
        return algorithm("MlpPolicy", environment, seed=seed, device="cpu")
    number, settings = SETTINGS[environment][system]
    policy, policy_kwargs = sb3_policy(environment)
    if system == "sb3-ppo":
        rate = settings["learning_rate"]
        settings = {**settings, "learning_rate": lambda remaining: remaining * rate}
    else:
        policy_kwargs |= {"optimizer_class": RMSpropTFLike, "optimizer_kwargs": {"eps": 1e-5}}
    environments = sb3_environments(environment, number, seed)
    return algorithm(policy, environments, seed=seed, device="cpu", policy_kwargs=policy_kwargs, **settings)


def sb3_environments(environment: str, number: int, seed: int) -> Any:
    """Return the environments, as Stable-Baselines3 makes them."""
    from stable_baselines3.common.env_util import make_atari_env, make_vec_env
    from stable_baselines3.common.vec_env import SubprocVecEnv, VecFrameStack

    if environment.startswith("ALE/"):
        import ale_py
        import gymnasium

        gymnasium.register_envs(ale_py)
        # AtariWrapper repeats the action by itself.
        plain = {"frameskip": 1, "repeat_action_probability": 0.0}
        # Processes of their own, for all cores. They are forked, since each would import PyTorch else.
        processes = {"vec_env_cls": SubprocVecEnv, "vec_env_kwargs": {"start_method": "fork"}}
        return VecFrameStack(make_atari_env(environment, number, seed, env_kwargs=plain, **processes), 4)
    if environment.startswith("MinAtar/"):
        from minatar.gym import register_envs

        register_envs()
    return make_vec_env(environment, number, seed)


def sb3_policy(environment: str) -> tuple[str, dict[str, Any]]:
    """Return the policy's name and arguments: the network that `NETWORKS` names for ga3c_tf."""
    if environment.startswith("ALE/"):
        return "CnnPolicy", {}
    if not environment.startswith("MinAtar/"):
        return "MlpPolicy", {}
    import torch
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

    class MinAtarNetwork(BaseFeaturesExtractor):
        """MinAtar's network: conv 16 3x3, FC 128."""

        def __init__(self, space: Any):
            super().__init__(space, 128)
            height, width, planes = space.shape
            flat = 16 * (height - 2) * (width - 2)
            self.layers = torch.nn.Sequential(
                torch.nn.Conv2d(planes, 16, 3),
                torch.nn.ReLU(),
                torch.nn.Flatten(),
                torch.nn.Linear(flat, 128),
                torch.nn.ReLU(),
            )

        def forward(self, states: torch.Tensor) -> torch.Tensor:
            return self.layers(states.permute(0, 3, 1, 2))

    # "MlpPolicy" takes any observation that its feature extractor takes.
    return "MlpPolicy", {"features_extractor_class": MinAtarNetwork, "net_arch": []}
