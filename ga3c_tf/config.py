"""Every setting of a run: one frozen dataclass in labelled groups, with its presets and its checks.

A field's metadata carries what a user is told (help text with symbol and unit), the group it is listed under, its
bounds or choices, the name of its command-line option where that differs from the field's name, and the systems that it
has an effect on.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import typing
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ga3c_tf.errors import UserError

SYSTEM_CLASSES = {
    "ga3c": "ga3c_tf.systems.ga3c.system:GA3C",
    "a2c": "ga3c_tf.systems.a2c:A2C",
    "a3c": "ga3c_tf.systems.a3c.system:A3C",
}
"""The class of each training system."""
SYSTEMS = tuple(SYSTEM_CLASSES)
BUDGETS: tuple[str, ...] = ("steps", "minutes", "episodes")
HELD: dict[str, str] = {
    **dict.fromkeys(
        (
            "env_id",
            "preprocessing",
            "frame_skip",
            "frame_stack",
            "repeat_action_probability",
            "full_action_space",
            "noop_max",
            "terminal_on_life_loss",
        ),
        "with another the run's scores would be of two environments",
    ),
    **dict.fromkeys(("network", "dual_rmsprop", "optimizer"), "the checkpoint holds the variables that it gives"),
    **dict.fromkeys(("initialization", "normalize_images"), "the run's weights began with it"),
    **dict.fromkeys(("system", "serial"), "the run's speeds and lags would be of two systems"),
    "seed": "the run has begun with it",
    "initial_weights": "the run has begun with them",
    "run_dir": "the run is in its folder, which may be moved or renamed",
    "max_agents": "the adjustment may have started as many",
}
"""Settings that hold for a whole run, and why."""
MOST = 10**6
"""A bound for counts that have no natural one; its square, for budgets in steps and episodes."""
BEYOND = "beyond the paper"
"""The group of what later actor-critics do and the paper does not; all of it is off by default."""
MOST_EPISODE_STEPS = 100_000
"""Agent steps after which an evaluation ends an episode; an Atari game ends by itself after 27,000, at frame skip 4."""


def _setting(default, group, help, *, low=None, high=None, above=None, choices=None, option=None, systems=SYSTEMS):
    metadata = {
        "group": group,
        "help": help,
        "low": low,
        "high": high,
        "above": above,
        "choices": choices,
        "option": option,
        "systems": systems,
    }
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Config:
    """The settings of one run. Section and table numbers refer to the paper (ICLR 2017).

    Raises:
        UserError: a value outside its bounds, of the wrong type, or in conflict with another.
    """

    env_id: str = _setting("ALE/Pong-v5", "environment", "Gymnasium id of the environment.")
    preprocessing: str = _setting(
        "standard",
        "environment",
        "Atari frames: 'standard' (maximum over the last two, area resize) or 'nvlabs' "
        "(the authors': each frame stretched to its own range, bilinear).",
        choices=("standard", "nvlabs"),
    )
    frame_skip: int = _setting(4, "environment", "Atari: frames each action is repeated for.", low=1, high=1000)
    frame_stack: int = _setting(4, "environment", "Atari: frames in one state.", low=1, high=32)
    repeat_action_probability: float = _setting(
        0.25, "environment", "Atari: probability that a frame repeats the previous action (sticky).", low=0, high=1
    )
    full_action_space: bool = _setting(False, "environment", "Atari: all 18 actions instead of the game's own.")
    noop_max: int = _setting(
        0, "environment", "Atari: at most this many random no-op steps at reset.", low=0, high=10_000
    )
    terminal_on_life_loss: bool = _setting(False, "environment", "Atari: a lost life ends the episode.")

    system: str = _setting(
        "ga3c",
        "system",
        "'ga3c', or what it is compared with: 'a2c' (synchronous: one prediction for all agents, one update on all "
        "their segments, no policy lag) or 'a3c' (on the CPU: each agent process has a replica of the network and "
        "updates shared weights without locks).",
        choices=SYSTEMS,
    )

    num_agents: int = _setting(32, "agents", "Agents, N_A.", low=1, high=4096, option="agents")
    agent_processes: int | None = _setting(
        None,
        "agents",
        "Processes that the agents are spread over (default: one per core; with plain scheduling one per agent).",
        low=1,
        high=4096,
        systems=("ga3c", "a2c"),
    )
    t_max: int = _setting(5, "agents", "Most steps in a segment.", low=1, high=1000)
    gamma: float = _setting(0.99, "agents", "Discount factor.", low=0, high=1)
    clip_rewards: bool = _setting(True, "agents", "Clip each reward to [-1, 1] for training; scores stay raw.")
    train_last_transition: bool = _setting(
        True, "agents", "Train on the last transition of an episode, which the authors' code drops."
    )

    remote_agents: int = _setting(
        0,
        "remote agents",
        "Agents on other machines, besides those here: in actors of the Ray cluster that --ray names.",
        low=0,
        high=4096,
        systems=("ga3c",),
    )
    agents_per_actor: int = _setting(
        64, "remote agents", "Remote agents in one actor, which takes one CPU.", low=1, high=512, systems=("ga3c",)
    )

    num_predictors: int = _setting(
        2, "predictors", "Predictor threads, N_P.", low=1, high=256, option="predictors", systems=("ga3c",)
    )
    max_prediction_batch: int = _setting(
        128, "predictors", "Most states in one prediction.", low=1, high=16384, systems=("ga3c",)
    )

    scheduling: str = _setting(
        "tuned",
        "trainers",
        "'tuned': predictors let requests gather while trainers are behind, half of the cores update at once, threads "
        "wait for a core instead of taking one, and agents share one process per core; 'plain': none of these, as in "
        "the paper.",
        choices=("tuned", "plain"),
        systems=("ga3c", "a2c"),
    )
    num_trainers: int = _setting(
        2, "trainers", "Trainer threads, N_T.", low=1, high=256, option="trainers", systems=("ga3c",)
    )
    min_training_batch: int = _setting(
        20,
        "trainers",
        "A trainer merges segments until the batch exceeds this many states (section 5.4).",
        low=0,
        high=100_000,
        systems=("ga3c",),
    )
    max_training_queue: int = _setting(
        100,
        "trainers",
        "Segments that may wait for training, shared out evenly over the agents; each may have at least one. With "
        "--epochs above 1 at most one batch, and predictors pause while so many wait.",
        low=1,
        high=10_000,
        systems=("ga3c",),
    )

    adjustment: str = _setting(
        "off",
        "adjustment",
        "Dynamic adjustment of N_A, N_P and N_T while the run goes on (section 4.3): 'fast' (large moves first), "
        "'paper' (one of the three by 1), 'nvlabs' (the authors': all three at once) or 'off'.",
        choices=("off", "fast", "paper", "nvlabs"),
    )
    adjustment_seconds: float = _setting(
        20.0, "adjustment", "Seconds each setting is measured for.", low=1, high=MOST, systems=("ga3c",)
    )
    max_agents: int | None = _setting(
        None,
        "adjustment",
        "Most agents that the adjustment may start (default: 128, or --agents where those are more).",
        low=1,
        high=4096,
        systems=("ga3c",),
    )

    network: str = _setting(
        "auto",
        "model",
        "'small' (the paper's), 'large-4', 'large-3', 'large-2', 'large-1' (the paper's large ones, by the first "
        "layer's stride; 'large' is 'large-4'), 'nature' (the layers of Mnih et al. 2015), 'minatar', 'mlp', 'auto' "
        "(small, minatar or mlp, by the observation), or 'module:function' returning a keras.Model.",
    )
    loss: str = _setting(
        "paper",
        "model",
        "'paper', or 'module:function' returning (policy loss, value loss, entropy), each summed over the batch.",
    )
    initial_weights: str | None = _setting(
        None, "model", "Published weights to begin with: their folder, or their name as in play --pretrained."
    )
    device: str = _setting("auto", "model", "'auto' (GPU when present), 'cpu', 'gpu' or 'gpu:N'.")
    learning_rate: float = _setting(1e-3, "model", "The optimizer's learning rate at the start.", above=0)
    learning_rate_end: float | None = _setting(
        None, "model", "Learning rate after --anneal-steps (default: constant).", low=0
    )
    beta: float = _setting(0.01, "model", "Weight of the entropy at the start.", low=0)
    beta_end: float | None = _setting(None, "model", "Entropy weight after --anneal-steps (default: constant).", low=0)
    anneal_steps: int | None = _setting(
        None,
        "model",
        "Agent steps over which the learning rate and beta go to their ends, linearly.",
        low=1,
        high=MOST**2,
    )
    anneal_fraction: float | None = _setting(
        None, "model", "The same as a share of the budget --steps, in the place of --anneal-steps.", above=0, high=1
    )
    log_epsilon: float = _setting(1e-6, "model", "Floor of a probability inside a logarithm.", above=0)
    log_softmax: bool = _setting(False, "model", "Take the policy's logarithm by log-softmax, without the floor.")
    min_policy: float = _setting(
        0.0, "model", "Added to every action's probability before renormalising.", low=0, high=1
    )
    grad_clip_norm: float | None = _setting(
        None,
        "model",
        "Clip each variable's gradient to this average norm, ||g|| / size, as the authors' code does; with "
        "--dual-rmsprop to this norm (default: off).",
        above=0,
    )
    rmsprop_decay: float = _setting(0.99, "model", "RMSProp: decay of the mean square.", low=0, high=1)
    rmsprop_momentum: float = _setting(0.0, "model", "RMSProp: momentum.", low=0, high=1)
    rmsprop_epsilon: float = _setting(0.1, "model", "RMSProp: added to the mean square inside the root.", above=0)
    dual_rmsprop: bool = _setting(False, "model", "Separate RMSProp statistics for policy and value loss.")

    advantage: str = _setting(
        "nstep",
        BEYOND,
        "'nstep' (n-step return minus value), or 'gae' (generalized advantage estimation, Schulman et al. 2016, from "
        "the values that the actions were chosen with; the value learns the lambda-return).",
        choices=("nstep", "gae"),
    )
    gae_lambda: float = _setting(0.95, BEYOND, "Lambda of --advantage gae.", low=0, high=1)
    normalize_advantages: bool = _setting(
        False, BEYOND, "Shift and scale the advantages of every update to mean 0 and standard deviation 1."
    )
    clip_ratio: float = _setting(
        0.0,
        BEYOND,
        "PPO's clip range (Schulman et al. 2017): the probability of an action over that at the time it was chosen "
        "counts within 1 +- this; 0: off.",
        low=0,
        high=1,
        systems=("ga3c", "a2c"),
    )
    epochs: int = _setting(
        1,
        BEYOND,
        "Times that each batch is trained on; above 1 with --clip-ratio.",
        low=1,
        high=100,
        systems=("ga3c", "a2c"),
    )
    minibatch_size: int = _setting(
        0,
        BEYOND,
        "Steps in one update: in each epoch a batch is shuffled and cut into equal parts of about this size; 0: the "
        "whole batch.",
        low=0,
        high=100_000,
        systems=("ga3c", "a2c"),
    )
    value_coefficient: float = _setting(
        1.0, BEYOND, "Weight of the value loss, which is 0.5 * (R - V)^2 for each state.", low=0
    )
    loss_reduction: str = _setting(
        "sum", BEYOND, "Reduction of the loss over the states of an update.", choices=("sum", "mean")
    )
    grad_clip_global: float = _setting(0.0, BEYOND, "Clip the norm of all gradients together to this; 0: off.", low=0)
    optimizer: str = _setting(
        "rmsprop", BEYOND, "'rmsprop', or 'adam' (Kingma & Ba 2015).", choices=("rmsprop", "adam")
    )
    adam_epsilon: float = _setting(1e-5, BEYOND, "Adam: added to the root of the mean square.", above=0)
    initialization: str = _setting(
        "fan-in",
        BEYOND,
        "Initial weights of the built-in networks: 'fan-in' (the authors': uniform within +-1/sqrt(fan_in), biases "
        "too), 'orthogonal' or 'he' (normal), both with biases 0 and a gain of sqrt(2) for hidden layers, 0.01 for the "
        "policy and 1 for the value.",
        choices=("fan-in", "orthogonal", "he"),
    )
    normalize_images: bool = _setting(
        False, BEYOND, "Screens enter the built-in networks as x / 255 instead of the authors' x / 128 - 1."
    )

    seed: int | None = _setting(
        None, "run", "Seed of weights, agents and environments (default: drawn, recorded).", low=0, high=2**63 - 1
    )
    serial: bool = _setting(False, "run", "One process, agents stepped in turn: the same seed gives the same weights.")
    steps: int | None = _setting(None, "run", "Budget: stop after this many agent steps in all.", low=1, high=MOST**2)
    minutes: float | None = _setting(None, "run", "Budget: stop after this many minutes of training in all.", above=0)
    episodes: int | None = _setting(None, "run", "Budget: stop after this many episodes in all.", low=1, high=MOST**2)
    run_dir: str | None = _setting(None, "run", "Folder of the run (default: runs/<env>-<time>).")
    log_seconds: float = _setting(5.0, "run", "Seconds between two rows of metrics.csv.", above=0)
    checkpoint_minutes: float = _setting(5.0, "run", "Minutes between two checkpoints.", above=0)
    rolling_episodes: int = _setting(100, "run", "Episodes the rolling score is the mean of.", low=1, high=MOST)
    max_failures: int = _setting(
        10,
        "run",
        "So many updates within a minute may be left out as their loss is not finite (a3c: of each agent), and so many "
        "of GA3C's agent processes may end by themselves and be replaced, one more for each actor of remote agents; "
        "one more ends the run.",
        low=0,
        high=MOST,
    )
    agent_timeout: float = _setting(
        120.0,
        "run",
        "Seconds that a step or reset of an environment, or the start of its process, may take before the process is "
        "replaced.",
        above=0,
        systems=("ga3c",),
    )

    def __post_init__(self):
        for setting in dataclasses.fields(self):
            object.__setattr__(self, setting.name, _checked(setting, getattr(self, setting.name)))
        self._check_annealing()
        self._check_learning()
        if self.num_agents > self.most_agents:
            raise UserError(f"--agents {self.num_agents} is more than --max-agents {self.max_agents}")
        if self.serial and self.remote_agents:
            raise UserError("--serial is one process; it does not go with --remote-agents")
        if self.serial and self.adjustment != "off":
            raise UserError("--serial has nothing to adjust; it goes with --adjustment off")
        if self.system != "ga3c":
            self._check_baseline()

    def _check_annealing(self) -> None:
        """Check that what is annealed says how long it takes, and the other way round."""
        ends = [name for name in ("learning_rate_end", "beta_end") if getattr(self, name) is not None]
        durations = [name for name in ("anneal_steps", "anneal_fraction") if getattr(self, name) is not None]
        if ends and not durations:
            raise UserError(
                f"--{option_of(ends[0])} needs --anneal-steps, the agent steps to reach it in, or --anneal-fraction, "
                "their share of --steps"
            )
        if durations and not ends:
            raise UserError(f"--{option_of(durations[0])} does nothing without --learning-rate-end or --beta-end")
        if len(durations) == 2:
            raise UserError("--anneal-steps and --anneal-fraction exclude each other")
        if self.anneal_fraction is not None and self.steps is None:
            raise UserError("--anneal-fraction is a share of the budget --steps, and there is none")

    def _check_learning(self) -> None:
        """Check what goes together of the group `BEYOND`."""
        if self.epochs > 1 and not self.clip_ratio:
            raise UserError(
                f"--epochs {self.epochs} needs --clip-ratio: without it a batch can be trained on only once"
            )
        if self.grad_clip_global and self.grad_clip_norm is not None:
            raise UserError("--grad-clip-global and --grad-clip-norm exclude each other")
        if self.dual_rmsprop and (self.grad_clip_global or self.optimizer != "rmsprop"):
            raise UserError("--dual-rmsprop goes with --optimizer rmsprop and without --grad-clip-global")
        if ":" in self.network and (self.initialization != "fan-in" or self.normalize_images):
            raise UserError(
                f"--initialization and --normalize-images are for the built-in networks; {self.network} has its own"
            )

    def _check_baseline(self) -> None:
        """Check what goes with GA3C only."""
        system = f"--system {self.system}"
        if self.remote_agents:
            raise UserError(f"{system} has no --remote-agents")
        if self.adjustment != "off":
            raise UserError(f"{system} has nothing to adjust; it goes with --adjustment off")
        if self.serial:
            raise UserError(f"--serial is GA3C in turn; it does not go with {system}")
        if not self.train_last_transition:
            raise UserError(
                f"--no-train-last-transition is how the authors' GA3C cuts segments; {system} goes with "
                "--train-last-transition"
            )
        if self.system == "a3c" and self.device.startswith("gpu"):
            raise UserError(f"{system} computes on the CPU; it does not go with --device {self.device}")
        if self.system == "a2c" and self.num_agents * self.t_max > 100_000:
            raise UserError(
                f"{system} trains on --agents x --t-max states at once, {self.num_agents * self.t_max} here; it must "
                "be at most 100000"
            )

    def check_effect(self, given: Iterable[str]) -> None:
        """Refuse settings that a user gave and that have no effect on the system.

        Raises:
            UserError: one of the settings `given` is for other systems only.
        """
        for name in given:
            if not has_effect(name, self.system):
                systems = type(self).__dataclass_fields__[name].metadata["systems"]
                raise UserError(
                    f"--{option_of(name)} has no effect with --system {self.system}; it is for {' and '.join(systems)}"
                )

    @property
    def segments_per_agent(self) -> int:
        """Segments of one agent that may wait for training before the agent itself waits."""
        if self.system != "ga3c":
            return 1
        room = self.waiting_segments or self.max_training_queue
        return max(1, room // (self.most_agents + self.remote_agents))

    @property
    def waiting_segments(self) -> int | None:
        """Segments that wait for training when agents get no more predictions; None without such a bound.

        An agent has room for one segment at least, so that many agents fill the queue with several batches. Where
        batches are trained on several times the trainers are always behind; there one batch at most waits.
        """
        if self.system != "ga3c" or self.epochs == 1:
            return None
        return min(self.max_training_queue, math.ceil(self.states_per_update / self.t_max))

    @property
    def has_minibatches(self) -> bool:
        """Whether an update is on shuffled steps of a batch instead of its whole segments."""
        return self.system != "a3c" and (self.epochs > 1 or self.minibatch_size > 0)

    @property
    def states_per_update(self) -> int:
        """The states that an update trains on at least."""
        if self.system == "a2c":
            return self.num_agents * self.t_max
        return 1 if self.system == "a3c" else self.min_training_batch + 1

    @property
    def most_agents(self) -> int:
        """Agents there is room for on this machine."""
        if self.adjustment == "off":
            return self.num_agents
        return self.max_agents or max(128, self.num_agents)

    def processes(self, cores: int) -> int:
        """Return the number of agent processes: as given, else one per core, or per agent with plain scheduling."""
        usual = self.most_agents if self.scheduling == "plain" else cores
        return min(self.most_agents, self.agent_processes or usual)

    @property
    def remote_actors(self) -> list[range]:
        """The agents of each actor: they are numbered after all that there is room for here."""
        first = self.most_agents
        last = self.most_agents + self.remote_agents
        each = self.agents_per_actor
        return [range(start, min(start + each, last)) for start in range(first, last, each)]

    def annealed(self, agent_steps: int) -> tuple[float, float]:
        """Return learning rate and beta after `agent_steps` steps in all: linear from start to end, then constant."""
        duration = self.anneal_steps or (self.anneal_fraction or 0) * (self.steps or 0)
        done = min(1.0, agent_steps / duration) if duration else 0.0

        def at(start, end):
            return start if end is None else start + (end - start) * done

        return at(self.learning_rate, self.learning_rate_end), at(self.beta, self.beta_end)

    @classmethod
    def from_preset(cls, preset: str, given: dict[str, Any]) -> Config:
        """Return the settings of a preset with `given` ones on top; the preset gives way where they conflict.

        Any budget that is given replaces the preset's. Where nothing can be adjusted, nothing is.

        Raises:
            UserError: as `from_values`.
        """
        if preset not in PRESETS:
            raise UserError(f"unknown preset {preset!r}{did_you_mean(preset, list(PRESETS))}")
        given = {name: value for name, value in given.items() if value is not None}
        dropped = BUDGETS if any(budget in given for budget in BUDGETS) else ()
        if given.get("serial") or given.get("system", cls.system) != cls.system:
            dropped += ("adjustment",)
        kept = {name: value for name, value in PRESETS[preset].items() if name not in dropped}
        return cls.from_values({**kept, **given})

    def changed(self, changes: dict[str, Any]) -> Config:
        """Return the settings that a run with these goes on with.

        Args:
            changes: new values by name. A budget among them replaces the run's whole budget.

        Raises:
            UserError: an unknown setting, one that holds for a whole run or has no effect here, or a bad value.
        """
        _check_known(changes)
        given = {name: value for name, value in changes.items() if value != getattr(self, name)}
        for name in given:
            if name in HELD:
                raise UserError(f"{name} (--{option_of(name)}) cannot change within a run: {HELD[name]}")
        self.check_effect(given)
        dropped = dict.fromkeys(BUDGETS) if any(budget in changes for budget in BUDGETS) else {}
        after = self.replace(**{**dropped, **changes})
        adjusted = [name for name in ("num_agents", "num_predictors", "num_trainers") if name in given]
        if adjusted and "off" not in (self.adjustment, after.adjustment):
            raise UserError(
                f"{adjusted[0]} (--{option_of(adjusted[0])}) is what the run's dynamic adjustment has found; "
                "set adjustment=off with it"
            )
        return after

    def replace(self, **changes) -> Config:
        """Return a copy with other values, checked again."""
        return dataclasses.replace(self, **changes)

    def arguments(self) -> list[str]:
        """Return the arguments of `ga3c-tf train` that give this config: the environment and the necessary options."""
        usual = self.from_preset(USUAL_PRESET, {"system": self.system, "serial": self.serial})
        words = [self.env_id]
        for setting in dataclasses.fields(self):
            value = getattr(self, setting.name)
            option = option_of(setting.name)
            named = setting.name in ("system", "serial") and value != setting.default
            if setting.name == "env_id" or (value == getattr(usual, setting.name) and not named):
                continue
            if isinstance(value, bool):
                words.append(f"--{option}" if value else f"--no-{option}")
            else:
                words += [f"--{option}", plain_text(value)]
        return words

    def to_json(self) -> str:
        """Format all settings as indented JSON, the text of a run's config.json."""
        return json.dumps(dataclasses.asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Config:
        """Read the settings in `text`, as `to_json` wrote them.

        Raises:
            UserError: not a JSON object, an unknown setting, or a bad value.
        """
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UserError(f"not valid JSON ({error})") from None
        if not isinstance(values, dict):
            raise UserError("not a JSON object of settings")
        return cls.from_values(values)

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> Config:
        """Make a Config from `values`; fields not named keep their defaults.

        Raises:
            UserError: an unknown setting (close names are given), or a bad value.
        """
        _check_known(values)
        return cls(**values)


USUAL_PRESET = "default"
PRESETS: dict[str, dict[str, Any]] = {
    # The paper's settings, with the authors' code where the text is silent, the standard Atari preprocessing, and
    # dynamic adjustment with larger first moves than the paper's.
    "default": {"adjustment": "fast"},
    # The same with the paper's own adjustment.
    "paper": {"adjustment": "paper"},
    # The authors' code as published (its settings and its traits, ../shared/paper).
    "nvlabs": {
        "preprocessing": "nvlabs",
        "learning_rate": 3e-4,
        "min_training_batch": 0,
        "train_last_transition": False,
        "adjustment": "nvlabs",
        "scheduling": "plain",
        "episodes": 400_000,
    },
    # Seconds on a laptop: shows that everything works, not that it learns.
    "smoke": {
        "num_agents": 4,
        "agent_processes": 2,
        "num_predictors": 1,
        "num_trainers": 1,
        "steps": 2_000,
        "log_seconds": 1.0,
    },
}


def option_of(name: str) -> str:
    """Return the command-line option (without dashes) of the setting `name`."""
    setting = Config.__dataclass_fields__[name]
    return setting.metadata["option"] or name.replace("_", "-")


def has_effect(name: str, system: str) -> bool:
    """Return whether the setting `name` has an effect on this system; unknown names are refused elsewhere."""
    setting = Config.__dataclass_fields__.get(name)
    return setting is None or system in setting.metadata["systems"]


def plain_text(value: Any) -> str:
    """Format a value as on a command line, a whole number without a point."""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def did_you_mean(name: str, known: list[str], count: int = 3) -> str:
    """Return a hint such as '; close: a, b', or an empty text."""
    close = difflib.get_close_matches(name, known, n=count, cutoff=0.5)
    return f"; close: {', '.join(close)}" if close else ""


_TYPES = {name: tuple(typing.get_args(hint)) or (hint,) for name, hint in typing.get_type_hints(Config).items()}


def _check_known(names: Iterable[str]) -> None:
    """Refuse names that are no settings, with close ones."""
    known = [setting.name for setting in dataclasses.fields(Config)]
    for name in names:
        if name not in known:
            raise UserError(f"unknown setting {name!r}{did_you_mean(name, known)}")


def is_optional(name: str) -> bool:
    """Return whether a setting may be None."""
    return type(None) in _TYPES[name]


def setting_type(name: str) -> type:
    """Return the type of a setting's value other than None: bool, int, float or str."""
    return next(kind for kind in _TYPES[name] if kind is not type(None))


def _checked(setting: dataclasses.Field, value: Any) -> Any:
    """Return `value` as the setting's type, or raise a UserError that says what would be right."""
    kind: type = setting_type(setting.name)
    rule = setting.metadata
    if value is None and is_optional(setting.name):
        return None
    name = f"{setting.name} (--{option_of(setting.name)})"
    if kind is float and type(value) is int:
        value = float(value) if abs(value) < 2**1000 else math.inf
    if type(value) is not kind:
        words = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
        raise UserError(f"{name} is {value!r}; it must be {words[kind]}")
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{name} is {value}; it must be finite")
    if rule["choices"] and value not in rule["choices"]:
        raise UserError(f"{name} is {value!r}; it must be one of {', '.join(rule['choices'])}")
    if rule["low"] is not None and value < rule["low"]:
        raise UserError(f"{name} is {value}; it must be at least {rule['low']}")
    if rule["above"] is not None and value <= rule["above"]:
        raise UserError(f"{name} is {value}; it must be above {rule['above']}")
    if rule["high"] is not None and value > rule["high"]:
        raise UserError(f"{name} is {value}; it must be at most {rule['high']}")
    return value
