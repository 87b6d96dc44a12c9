"""Environment ids: current ones, legacy Atari ids, and suggestions for unknown ids."""

from __future__ import annotations

import difflib
import re

import gymnasium

from ga3c_tf.config import Config
from ga3c_tf.environments.atari import load_ale
from ga3c_tf.environments.minatar import MINATAR_IDS, register_minatar
from ga3c_tf.errors import UserError
from ga3c_tf.plugins import OBJECT, import_users_module, passed_object

_LEGACY_ATARI = re.compile(r"([A-Za-z0-9]+?)(Deterministic|NoFrameskip)?(?:-v([045]))?")


def resolve_env_id(env_id: str) -> tuple[str, str | None]:
    """Return the current id for `env_id`, and a note for the user where it differs.

    Legacy ids such as `PongDeterministic-v0`, `PongNoFrameskip-v4`, `Pong-v4` and `Pong` mean ALE/Pong-v5
    with other settings of frame skip and sticky actions. Here these settings come from the Config alone. For
    `module:Name-v0`, `module` is imported first.

    Returns:
        The current id, and None or, for a legacy id, one line that says what that id meant.

    Raises:
        UserError: the id is unknown (the message suggests similar ids), or a package or module cannot be
            imported.
    """
    module, colon, name = env_id.rpartition(":")
    if module == OBJECT:
        passed_object(env_id, "the environment")
        return env_id, None
    if colon:
        import_users_module(module, env_id)
        resolved, note = resolve_env_id(name)
        return (resolved if resolved.startswith("ALE/") else f"{module}:{resolved}"), note
    if env_id.startswith("MinAtar/"):
        register_minatar()
    if _is_registered_outside_ale(env_id):
        return env_id, None
    games = {atari_id.removeprefix("ALE/").removesuffix("-v5"): atari_id for atari_id in atari_ids()}
    if env_id in games.values():
        return env_id, None
    legacy = _LEGACY_ATARI.fullmatch(env_id)
    if legacy and legacy[1] in games:
        return games[legacy[1]], _legacy_note(env_id, games[legacy[1]], legacy[2], legacy[3])
    raise UserError(f"unknown environment {env_id!r}{_close_ids(env_id)}")


def atari_ids() -> list[str]:
    """Return the Atari ids that can be played here, `ALE/<game>-v5`, sorted.

    Raises:
        UserError: ale-py is not installed.
    """
    roms = set(load_ale().roms.get_all_rom_ids())
    return sorted(
        env_id
        for env_id, spec in gymnasium.registry.items()
        if env_id.startswith("ALE/") and spec.version == 5 and spec.kwargs.get("game") in roms
    )


def _is_registered_outside_ale(env_id: str) -> bool:
    spec = gymnasium.registry.get(env_id)
    return spec is not None and not str(spec.entry_point).startswith("ale_py")


def _legacy_note(env_id: str, today: str, kind: str | None, version: str | None) -> str:
    """Return a line on what a legacy Atari id meant in Gym, where SpaceInvaders' frame skip was 3, not 4."""
    if version in (None, "5"):
        return (
            f"{env_id} is called {today} today; "
            "--frame-skip and --repeat-action-probability set how it is played"
        )
    fixed = "3" if today == "ALE/SpaceInvaders-v5" else "4"
    skip = {"Deterministic": fixed, "NoFrameskip": "1", None: "drawn from 2 to 4"}[kind]
    sticky = "0.25" if version == "0" else "0"
    usual = f"--frame-skip 4 --repeat-action-probability {sticky} --noop-max 30"
    return (
        f"{env_id} is called {today} today; it meant frame skip {skip} and repeat action probability "
        f"{sticky}, which --frame-skip and --repeat-action-probability now set"
        + (f" (what papers play with it, by wrappers, is {usual})" if kind == "NoFrameskip" else "")
    )


def in_words(config: Config) -> str:
    """Return how an Atari game is played with these settings, in words."""
    noops = f"at most {config.noop_max}" if config.noop_max else "no"
    return (
        f"frame skip {config.frame_skip}, repeat action probability {config.repeat_action_probability:g} and "
        f"{noops} no-ops at the start"
    )


def _close_ids(env_id: str) -> str:
    """Return a hint like '; close: ALE/Pong-v5'. Namespace, version and case affect only the order of ids."""

    def bare(name: str) -> str:
        return re.sub(r"-v\d+$", "", name.rpartition("/")[2]).casefold()

    ids_by_name: dict[str, list[str]] = {}
    registered = [name for name in gymnasium.registry if _is_registered_outside_ale(name)]
    for name in sorted({*registered, *atari_ids(), *MINATAR_IDS}, reverse=True):
        ids_by_name.setdefault(bare(name), []).append(name)
    close = difflib.get_close_matches(bare(env_id), ids_by_name, n=3, cutoff=0.6)
    names = sorted(
        (name for key in close for name in ids_by_name[key]),
        reverse=True,
        key=lambda name: difflib.SequenceMatcher(None, name, env_id).ratio(),
    )
    return f"; close: {', '.join(names[:3])}" if names else "; ALE/Pong-v5 and CartPole-v1 are two that exist"
