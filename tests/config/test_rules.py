"""The rules beside the settings: what they name exists, presets follow them, and a start checks them once."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ga3c_tf
from ga3c_tf.cli import training as training_commands
from ga3c_tf.cli.main import cli
from ga3c_tf.config import Config, check_environment, config, setting_type, spelled
from ga3c_tf.config.config import is_optional
from ga3c_tf.config.declaration import (
    ALGORITHMS,
    ATARI_GAMES,
    GROUPS,
    OWN,
    SCREENS,
    SET,
    SYSTEMS,
    beside,
    checked,
)
from ga3c_tf.config.presets import BUDGETS, PRESETS, preset_beside
from ga3c_tf.config.rules import check_effects, conflicts, only_with, unread
from ga3c_tf.config.settings import BEYOND_PAPER, Settings
from ga3c_tf.errors import UserError

FIELDS = {setting.name: setting for setting in dataclasses.fields(Config)}


def test_settings_of_other_algorithms_and_of_several_devices_are_not_in_the_paper():
    others = {
        name for name, setting in FIELDS.items() if set(setting.metadata["algorithms"]) <= {"pqn", "dqn"}
    }
    assert {"epsilon", "replay_size"} <= others <= BEYOND_PAPER
    assert "devices" in BEYOND_PAPER and not BEYOND_PAPER & {"device", "t_max", "beta", "min_training_batch"}


def is_allowed(name, value):
    if value in (SET, OWN) or (value is None and is_optional(name)):
        return True
    return checked(FIELDS[name], setting_type(name), value) == value


@pytest.mark.parametrize("setting", FIELDS.values(), ids=FIELDS)
def test_a_rule_names_what_there_is(setting):
    rule = setting.metadata
    assert rule["group"] in GROUPS and rule["environments"] in (None, ATARI_GAMES, SCREENS)
    assert rule["systems"] and set(rule["systems"]) <= set(SYSTEMS)
    assert rule["algorithms"] and set(rule["algorithms"]) <= set(ALGORITHMS)
    for relation in (*rule["read_with"], *rule["needs"], *rule["excludes"]):
        assert all(is_allowed(setting.name, value) for value in relation.when)
        assert relation.cases and setting.name not in relation.cases
        for name, values in relation.cases.items():
            assert all(is_allowed(name, value) for value in values)


def test_the_defaults_have_no_conflict_and_each_setting_is_read_somewhere():
    assert not list(conflicts(Settings()))
    for system in SYSTEMS:
        assert not list(conflicts(Settings(system=system)))
    for name, setting in FIELDS.items():
        case = {"system": setting.metadata["systems"][0], "algorithm": setting.metadata["algorithms"][0]}
        for relation in setting.metadata["read_with"]:
            for other, values in relation.cases.items():
                case |= {other: values[0] if values else 1}
        if case.get("correction") == "ppo":
            case["clip_ratio"] = 0.2
        assert unread(Settings(**case), name) is None, name


def test_options_are_spelled_as_they_are_typed():
    assert [spelled("num_agents"), spelled("num_agents", 8), spelled("gamma", 1.0)] == [
        "--agents",
        "--agents 8",
        "--gamma 1",
    ]
    assert [spelled("clip_rewards", value) for value in (None, True, False)] == [
        "--clip-rewards",
        "--clip-rewards",
        "--no-clip-rewards",
    ]


def test_help_and_refusal_name_the_same_condition():
    refused = 0
    for name, setting in FIELDS.items():
        options = [option for option in only_with(name) if not option.startswith(("--system", "--algorithm"))]
        if not options or name == "clip_ratio":  # off where it is not set
            continue
        optimizer = "rmsprop" if name == "adam_epsilon" else "adam"
        config = Settings(
            system=setting.metadata["systems"][0],
            algorithm=setting.metadata["algorithms"][0],
            log_softmax=True,
            optimizer=optimizer,
        )
        with pytest.raises(UserError) as caught:
            check_effects(config, [name])
        assert str(caught.value) == f"{spelled(name)} does nothing without {options[0]}"
        refused += 1
    assert refused >= 10
    assert only_with("importance_clip") == [
        "--algorithm actor-critic",
        "--correction clipped-is",
    ]
    assert only_with("max_agents") == ["--system ga3c", "--adjustment fast or paper or nvlabs"]
    assert only_with("correction") == ["--algorithm actor-critic"]
    assert only_with("epsilon") == ["--algorithm pqn or dqn"] and only_with("gamma") == []


def test_a_setting_for_some_environments_is_refused_for_others():
    check_environment("ALE/Pong-v5", True, ["frame_skip", "normalize_images", "no_setting"])
    check_environment("CartPole-v1", False, ["gamma"])
    for name in ("frame_skip", "normalize_images"):
        with pytest.raises(UserError, match=f"{spelled(name)} has no effect on CartPole-v1; it is for "):
            check_environment("CartPole-v1", False, [name])
    with pytest.raises(
        UserError, match="states that are screens; for other states there is --normalize-observations"
    ):
        check_environment("MinAtar/Breakout-v1", False, ["normalize_images"])


def test_a_relation_needs_one_of_its_settings():
    relation = beside(steps=SET, system=("a2c", "a3c"), because="so it is")
    assert (relation.cases, relation.because) == ({"steps": (), "system": ("a2c", "a3c")}, "so it is")


VALUES = {
    "system": SYSTEMS,
    "algorithm": ALGORITHMS,
    "correction": ("v-trace", "ppo", "none", "decoupled-ppo", "m2po+ess", "vcpo"),
    "advantage": ("nstep", "gae"),
    "optimizer": ("rmsprop", "adam"),
    "dual_rmsprop": (False, True),
    "clip_ratio": (0.0, 0.3),
    "epochs": (1, 2),
    "minibatch_size": (0, 8),
    "grad_clip_norm": (2.0,),
    "grad_clip_global": (0.0, 2.0),
    "loss": ("paper", "mine:loss"),
    "network": ("small", "mine:network"),
    "initialization": ("fan-in", "he"),
    "normalize_images": (False, True),
    "normalize_observations": (False, True),
    "log_softmax": (False, True),
    "learning_rate_end": (0.0,),
    "beta_end": (0.0,),
    "anneal_steps": (9,),
    "anneal_fraction": (0.5,),
    "adjustment": ("off", "paper"),
    "train_last_transition": (True, False),
    "scheduling": ("tuned", "plain"),
    "num_predictors": (1,),
    "steps": (500,),
    "episodes": (500,),
}
GIVEN = st.dictionaries(st.sampled_from([*VALUES]), st.integers(0, 5), max_size=4).map(
    lambda drawn: {name: VALUES[name][number % len(VALUES[name])] for name, number in drawn.items()}
)


@given(st.sampled_from([*PRESETS]), GIVEN)
@settings(max_examples=400, deadline=None)
def test_a_preset_leaves_out_exactly_what_does_not_fit_beside_what_is_given(preset, chosen):
    values = preset_beside(preset, chosen)
    beside_given = Settings(**values)
    from_preset = values.keys() - chosen.keys()
    for name in from_preset:
        assert not unread(beside_given, name)
    for conflict in conflicts(beside_given):
        # What is given conflicts with itself or with a default.
        assert not from_preset & set(conflict.settings)
    other_budget = set(BUDGETS) if chosen.keys() & set(BUDGETS) else set()
    for name in PRESETS[preset].keys() - values.keys() - other_budget:
        with_it = Settings(**{**values, name: PRESETS[preset][name]})
        conflicting = {setting for conflict in conflicts(with_it) for setting in conflict.settings}
        assert unread(with_it, name) or name in conflicting or (name, with_it.system) == ("num_agents", "a3c")


@pytest.mark.parametrize("given", [{"system": "a3c"}, {"network": "mlp-lstm"}], ids=str)
@pytest.mark.parametrize("preset", ["pqn", "dqn", "dqn-atari"])
def test_a_preset_does_not_silently_become_another_algorithm(preset, given):
    with pytest.raises(UserError, match=r"--algorithm (pqn|dqn)|--network mlp-lstm"):
        Config.from_preset(preset, given)


@given(st.sampled_from([*PRESETS]), GIVEN)
@settings(max_examples=200, deadline=None)
def test_no_preset_makes_what_is_given_invalid(preset, chosen):
    """What is valid beside the defaults is so beside a preset, but for a3c's fewer agents and own budgets.

    The algorithm is the preset's.
    """
    algorithm = {"algorithm": PRESETS[preset].get("algorithm", "actor-critic")}
    try:
        alone = Config(**algorithm | chosen)
        check_effects(alone, chosen)
    except UserError:
        return
    made = Config.from_preset(preset, chosen)
    assert {name: getattr(made, name) for name in chosen} == chosen


@pytest.mark.parametrize("way", ["command line", "Python"])
def test_a_start_checks_the_settings_once(way, monkeypatch, tmp_path):
    checks = []
    for name in ("check_conflicts", "check_effects"):
        check = getattr(config, name)
        monkeypatch.setattr(
            config, name, lambda *given, name=name, check=check: (checks.append(name), check(*given))
        )
    started = []
    if way == "Python":
        monkeypatch.setattr("ga3c_tf.api.run._run", lambda training, *_, **__: started.append(training))
        ga3c_tf.train(
            "CartPole-v1", preset="smoke", system="serial", clip_ratio=0.1, run_dir=str(tmp_path / "run")
        )
    else:
        monkeypatch.setattr(training_commands, "_run", lambda training, *_: started.append(training))
        words = ["CartPole-v1", "--preset", "smoke", "--system", "serial", "--clip-ratio", "0.1", "--run-dir"]
        cli.commands["train"].main([*words, str(tmp_path / "run")], standalone_mode=False)
    [training] = started
    assert checks == ["check_conflicts", "check_effects"]
    used = training.session.config
    assert (used.system, used.clip_ratio, used.network) == ("serial", 0.1, "mlp-two-trunks")


def test_a_resumed_run_checks_its_settings_as_they_are_read_and_again_if_they_change(monkeypatch):
    checks = []
    monkeypatch.setattr(config, "check_conflicts", checks.append)
    recorded = Config.from_json(Config().to_json())
    checks.clear()
    assert recorded.changed({}) is recorded.changed({"gamma": recorded.gamma}) is recorded
    assert not checks
    assert recorded.changed({"gamma": 0.5}).gamma == 0.5 and len(checks) == 1


def test_what_the_program_puts_in_place_is_not_checked_and_the_settings_stay():
    before = Config(env_id="CartPole-v1")
    after = before.resolved(network="mlp")
    assert (before.network, after.network, type(after)) == ("auto", "mlp", Config)
    assert after == before.replace(network="mlp")
