"""Specifications of runs, each with an id that depends only on its content.

A specification has its settings in their first form (`ga3c_tf.config.migrations`). An id is therefore the
same in plans, records and storages of all versions, whatever the settings are called.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ga3c_tf.config import Config, has_effect, without_effect_on
from ga3c_tf.config.declaration import plain_text
from ga3c_tf.config.migrations import Recorded, first_form, migrated, removed_names
from ga3c_tf.config.rules import check_effects
from ga3c_tf.errors import UserError, did_you_mean
from ga3c_tf.files import as_file_name
from ga3c_tf.reproduce.runs.methods import NAMES, changes_of

BUDGETS = ("smoke", "quick", "gpu", "tuned", "paper")
"""In this order: seconds, as a test; minutes on 2 cores; seconds on a GPU; settings of later work; the
paper's time.
"""
SYSTEMS = {"ga3c": "GA3C", "a3c": "A3C", "a2c": "A2C"}
GAMES = {
    "amidar": "ALE/Amidar-v5",
    "boxing": "ALE/Boxing-v5",
    "centipede": "ALE/Centipede-v5",
    "name_this_game": "ALE/NameThisGame-v5",
    "ms_pacman": "ALE/MsPacman-v5",
    "pong": "ALE/Pong-v5",
    "qbert": "ALE/Qbert-v5",
    "seaquest": "ALE/Seaquest-v5",
    "up_n_down": "ALE/UpNDown-v5",
    "breakout": "ALE/Breakout-v5",
    "minatar_breakout": "MinAtar/Breakout-v1",
    "minatar_asterix": "MinAtar/Asterix-v1",
    "minatar_freeway": "MinAtar/Freeway-v1",
    "minatar_seaquest": "MinAtar/Seaquest-v1",
    "minatar_space_invaders": "MinAtar/SpaceInvaders-v1",
    "cartpole": "CartPole-v1",
}
NINE_GAMES = tuple(GAMES)[:9]
"""The games of the paper's Table 3."""
AN_ENVIRONMENT = re.compile(r"([\w.]+:)?[\w./-]+-v\d+")
"""Pattern of a Gymnasium id, which names a game of the user's own."""
ADDED = ", added seeds"
"""Suffix of the labels of seeds added because a finding was undecided. Only this finding uses them."""
Changes = tuple[tuple[str, Any], ...]
"""Names and values of settings in their first form, sorted by name."""
UNLESS_GIVEN = {"num_agents": 32, "num_predictors": 2, "num_trainers": 2, "adjustment": "off"}
"""Settings in a slug not given by a run, in their first form. They stay, whatever the defaults become."""
# For the estimate of a run's duration, roughly as on 2 cores.
START_SECONDS = 8.0
SECONDS_PER_EPISODE = 2.0
ATARI_STEPS_PER_SECOND = 500.0
OTHER_STEPS_PER_SECOND = 5000.0


@dataclass(frozen=True)
class RunSpec:
    """One run: a system, a game, a seed, settings with a budget, and how it is scored. Made by `run_spec`.

    Attributes:
        settings: given settings; all others have their defaults.
        evaluation_episodes: number of whole episodes in the evaluation after the training.
        random_play: whether the random policy plays as many episodes, for comparison.
        checkpoint: checkpoint to evaluate: 'best' by rolling score, or 'latest'.
        changes: settings of a method of the user's own, which override `settings`.
        label: name of the run in its figure, in one or more words. It does not affect the run, so it is part
            of neither the id nor the stored JSON.
        turn: runs of a seed with a lower turn are made first. Like the label, it does not affect the run.
    """

    system: str
    game: str
    seed: int
    settings: Changes
    evaluation_episodes: int = 0
    random_play: bool = False
    checkpoint: str = "best"
    changes: Changes = ()
    label: tuple[str, ...] = field(default=(), compare=False)
    turn: int = field(default=0, compare=False)

    @property
    def config(self) -> Config:
        """All settings of the run, with the defaults of those that are not given."""
        return _config_of(self)

    @property
    def _migrated(self) -> Recorded:
        return migrated({**dict(self.settings), **dict(self.changes)})

    @property
    def given(self) -> dict[str, Any]:
        """The given settings under the names of today, and those that no longer exist."""
        settings, removed = migrated(dict(self.settings))
        return settings | removed

    @property
    def plain(self) -> RunSpec:
        """The run of the figure itself, without the changes of the user's own method."""
        return replace(self, changes=())

    def called(self, *label: str) -> RunSpec:
        """Return this run with a label."""
        return replace(self, label=label)

    def in_turn(self, turn: int) -> RunSpec:
        """Return this run with a turn."""
        return replace(self, turn=turn)

    def as_added(self) -> RunSpec:
        """Return this run with the label of an added seed."""
        name, *others = self.label or ("",)
        return self.called(f"{name}{ADDED}", *others)

    @property
    def is_added(self) -> bool:
        """Whether the run has the label of an added seed."""
        return bool(self.label) and self.label[0].endswith(ADDED)

    def changed(self, changes: Mapping[str, Any]) -> RunSpec:
        """Return this run with a method of the user's own, see `methods.changes_of`.

        Raises:
            UserError: a setting is invalid, conflicts with the others or has no effect beside them.
        """
        changed = replace(self, changes=_in_order(first_form(changes_of(changes, self.config))))
        check_effects(changed.config, changes)
        return changed

    @property
    def method(self) -> str:
        """Name of the method, such as 'GA3C', 'GA3C with algorithm pqn' or 'GA3C with loss mine:huber'."""
        planned = {name: value for name, value in self.settings if name == "algorithm"}
        named = described(tuple((planned | dict(self.changes)).items()))
        return SYSTEMS[self.system] + (f" with {named}" if named else "")

    @property
    def trust(self) -> list[str]:
        """The option that allows code named by the run folder, if the user has named any; else []."""
        own_code = any(":" in str(text) for text in (self.game, *dict(self.changes).values()))
        return ["--trust-code"] * own_code

    @functools.cached_property
    def id(self) -> str:
        """Readable and stable id: the slug, the seed, and a hash of the whole specification."""
        return f"{self.slug}-s{self.seed}-{hashlib.sha256(self.to_json().encode()).hexdigest()[:8]}"

    @property
    def game_slug(self) -> str:
        """The game as the id of the run begins with it, which also names the archive of its records."""
        return as_file_name(self.game.replace("_", "-"))

    @property
    def slug(self) -> str:
        """Readable name that tells the run from other runs of its figure, apart from the seed."""
        given = dict(self.settings)
        used = {**UNLESS_GIVEN, **given, **dict(self.changes)}
        workers = ["num_agents", "num_predictors", "num_trainers"][: 3 if self.system == "ga3c" else 1]
        parts = [self.game_slug, self.system, "x".join(str(used[name]) for name in workers)]
        parts += [value for _, value in _named(self.changes)]
        if "network" in given:
            parts.append(given["network"])
        if "min_training_batch" in given:
            parts.append(f"m{used['min_training_batch']}")
        if "learning_rate" in given:
            parts.append(f"lr{used['learning_rate']:g}")
        if used["adjustment"] != "off":
            parts.append(used["adjustment"])
        budgets = (("minutes", "min"), ("steps", "steps"), ("episodes", "episodes"))
        parts += [f"{plain_text(given[name])}{unit}" for name, unit in budgets if name in given]
        return as_file_name("-".join(parts))

    @property
    def seconds(self) -> float:
        """Estimated duration of training and evaluation, in seconds."""
        config = self.config
        rate = ATARI_STEPS_PER_SECOND if is_atari(self.game) else OTHER_STEPS_PER_SECOND
        training = 60 * config.minutes if config.minutes else (config.steps or 0) / rate
        evaluation = START_SECONDS + SECONDS_PER_EPISODE * self.evaluation_episodes
        return START_SECONDS + training + len(self.evaluate_commands(Path())) * evaluation

    def train_command(self, folder: Path) -> list[str]:
        """Return the arguments of `ga3c-tf` that begin this run in `folder`.

        A plan may give a setting without effect on its game, which `train` would refuse. It is left out here
        and stays in the id.

        Raises:
            UserError: only an earlier version could make this run.
        """
        for line in self._migrated.unsupported("training"):
            raise UserError(f"{self.id} cannot be made any more: {line}")
        may_be_screen = is_atari(self.game) or self.game not in GAMES
        usual = {name: getattr(Config, name) for name in without_effect_on(self.config.env_id, may_be_screen)}
        return ["train", *self.config.resolved(run_dir=str(folder), **usual).arguments()]

    def resume_command(self, folder: Path) -> list[str]:
        """Return the arguments of `ga3c-tf` that continue this run in `folder`."""
        return ["resume", str(folder), *self.trust]

    def evaluate_commands(self, folder: Path) -> dict[str, list[str]]:
        """Return the arguments of `ga3c-tf` that score this run, by result: 'evaluation' and 'random'."""
        if not self.evaluation_episodes:
            return {}
        words = ["evaluate", str(folder), "--episodes", str(self.evaluation_episodes), "--json", *self.trust]
        commands = {"evaluation": words}
        if self.checkpoint != "best":
            commands["evaluation"] = [*words, "--checkpoint", self.checkpoint]
        if self.random_play:
            commands["random"] = [*words, "--random"]
        return commands

    def to_json(self) -> str:
        """Return the specification as one line of JSON, which is the same for equal specifications."""
        names = ("system", "game", "seed", "evaluation_episodes", "random_play")
        values = {name: getattr(self, name) for name in names}
        values |= {"env_id": env_id_of(self.game), "settings": dict(self.settings)}
        if self.checkpoint != "best":
            values["checkpoint"] = self.checkpoint
        if self.changes:
            values["changes"] = dict(self.changes)
        return json.dumps(values, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> RunSpec:
        """Return the specification with the values of parsed JSON from `to_json`.

        Raises:
            UserError: a value is missing or wrong.
        """
        try:
            plain = {name: value for name, value in values.items() if name != "env_id"}
            ordered: dict[str, Any] = {
                name: _in_order(plain.pop(name, {})) for name in ("settings", "changes")
            }
            spec = cls(**plain, **ordered)
        except (KeyError, TypeError, AttributeError) as error:
            raise UserError(f"a run's specification lacks or mistakes {error}") from None
        _ = spec.config  # refuses bad settings
        return spec


def run_spec(
    game: str,
    seed: int,
    system: str = "ga3c",
    *,
    evaluation_episodes: int = 0,
    random_play: bool = False,
    checkpoint: str = "best",
    **settings: Any,
) -> RunSpec:
    """Return a specification with checked settings. Settings without effect on a baseline ('a3c', 'a2c') are
    left out.

    A setting that no longer exists may be given, since recorded runs that gave it have it in their ids.

    Raises:
        UserError: the game or system is unknown, a setting is invalid, or there is no budget.
    """
    plan = _plan(game, system, **settings)
    return RunSpec(system, game, seed, plan, evaluation_episodes, random_play, checkpoint)


@functools.cache  # plans have many seeds of the same settings
def _plan(game: str, system: str, **settings: Any) -> Changes:
    check_games([game])
    if system not in SYSTEMS:
        raise UserError(f"unknown system {system!r}; there are {', '.join(SYSTEMS)}")
    if system == "ga3c":
        # `train` would otherwise adjust what the figure is about.
        settings = {"adjustment": "off", **settings}
    else:
        unread = {name for name in settings if name == "adjustment" or not has_effect(name, system)}
        settings = {name: value for name, value in settings.items() if name not in unread}
    today = {name: value for name, value in settings.items() if name not in removed_names()}
    config = Config.from_values({**today, "env_id": env_id_of(game), "system": system})
    if not (config.minutes or config.steps or config.episodes):
        raise UserError(f"a run of {game} needs a budget: minutes, steps or episodes")
    return _in_order(first_form({**settings, **{name: getattr(config, name) for name in today}}))


@functools.cache
def _config_of(spec: RunSpec) -> Config:
    # An early plan with `serial` has the system of this name from the migration.
    values = {"system": spec.system, **spec._migrated.settings}
    return Config.from_values({**values, "env_id": env_id_of(spec.game), "seed": spec.seed})


def _in_order(settings: Mapping[str, Any]) -> Changes:
    return tuple(sorted(settings.items()))


def described(changes: Changes) -> str:
    """Describe the method of changed settings, such as 'loss mine:huber, network mine:wide'."""
    return ", ".join(f"{name} {value}" for name, value in _named(changes))


def _named(changes: Changes) -> Changes:
    """Return those of the changes that name the method."""
    return tuple((name, value) for name, value in changes if name in NAMES)


def workers_of(config: Config) -> tuple[int, int, int]:
    """Return the numbers of agents, predictors and trainers: N_A, N_P and N_T."""
    return config.num_agents, config.num_predictors, config.num_trainers


def env_id_of(game: str) -> str:
    """Return the Gymnasium id of a game of `GAMES`; any other name is such an id already."""
    return GAMES.get(game, game)


def is_atari(game: str) -> bool:
    """Return whether a game is an Atari game."""
    return env_id_of(game).startswith("ALE/")


def network_of(game: str) -> dict[str, Any]:
    """Return the setting of the paper's network for an Atari game; other environments have their own."""
    return {"network": "small"} if is_atari(game) else {}


def check_games(games: Sequence[str]) -> None:
    """Refuse unknown games.

    Raises:
        UserError: a game is unknown; the message has similar names, or else all known ones.
    """
    for game in games:
        if game not in GAMES and not AN_ENVIRONMENT.fullmatch(game):
            hint = did_you_mean(game, list(GAMES)) or "; " + ", ".join(GAMES)
            raise UserError(f"unknown game {game!r}{hint}, or the Gymnasium id of an environment")
