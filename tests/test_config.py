"""Settings: what is refused and how it is said, presets, annealing, the text form."""

import dataclasses
import json

import numpy as np
import pytest

from ga3c_tf.config import FIXED, Config, spelled
from ga3c_tf.config.config import setting_type
from ga3c_tf.config.declaration import checked
from ga3c_tf.config.elsewhere import ELSEWHERE, setting_called
from ga3c_tf.config.migrations import migrated
from ga3c_tf.config.presets import PRESETS, left_out
from ga3c_tf.config.rates import Rates
from ga3c_tf.config.rules import check_effects
from ga3c_tf.errors import UserError


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("num_agents", 0, "num_agents (--agents) is 0; it must be at least 1"),
        ("num_agents", 2.5, "it must be a whole number"),
        ("num_agents", True, "it must be a whole number"),
        ("gamma", 1.5, "it must be at most 1"),
        ("gamma", float("nan"), "it must be finite"),
        ("learning_rate", 0.0, "it must be above 0"),
        ("learning_rate", 10**400, "it must be finite"),
        ("learning_rate", "fast", "it must be a number"),
        ("preprocessing", "sepia", "it must be one of standard, nvlabs"),
        ("clip_rewards", 1, "it must be true or false"),
        ("env_id", 3, "it must be a text"),
        ("env_id", None, "it must be a text"),
        (
            "beta_end",
            0.0,
            "--beta-end 0 needs --anneal-steps or --anneal-fraction: the agent steps, or the share of",
        ),
        (
            "anneal_steps",
            10,
            "--anneal-steps 10 needs --learning-rate-end or --beta-end: without one of them",
        ),
    ],
)
def test_a_bad_value_is_refused_in_one_line_that_says_what_is_right(name, value, words):
    with pytest.raises(UserError) as caught:
        Config(**{name: value})
    assert words in str(caught.value) and "\n" not in str(caught.value)


WHOLE_NUMBERS = [setting for setting in dataclasses.fields(Config) if "int" in str(setting.type)]


@pytest.mark.parametrize("setting", WHOLE_NUMBERS, ids=lambda setting: setting.name)
def test_every_whole_number_has_an_upper_bound(setting):
    """A deque, a shape or a clock would otherwise refuse it with a traceback, or memory run out."""
    with pytest.raises(UserError, match=rf"{spelled(setting.name)}\) is 1\d+; it must be at most \d+"):
        Config(**{setting.name: 10**30})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"epochs": 3}, "--epochs 3 needs --clip-ratio or --correction m2po or --algorithm pqn: without"),
        (
            {"grad_clip_global": 0.5, "grad_clip_norm": 0.5},
            "--grad-clip-norm 0.5 cannot be combined with --grad-clip-global 0.5",
        ),
        (
            {"dual_rmsprop": True, "optimizer": "adam"},
            "--dual-rmsprop needs --optimizer rmsprop, not --optimizer adam",
        ),
        (
            {"dual_rmsprop": True, "grad_clip_global": 0.5},
            "--dual-rmsprop cannot be combined with --grad-clip-global",
        ),
        (
            {"network": "mine:wide", "initialization": "he"},
            "--initialization he cannot be combined with --network mine:wide: it has its own",
        ),
        (
            {"network": "mine:wide", "normalize_images": True},
            "cannot be combined with --network mine:wide: it has its",
        ),
        (
            {"network": "mine:wide", "normalize_observations": True},
            "cannot be combined with --network mine:wide",
        ),
        (
            {"normalize_images": True, "normalize_observations": True},
            "--normalize-images cannot be combined with --normalize-observations",
        ),
        (
            {"anneal_fraction": 1.0, "steps": 10},
            "--anneal-fraction 1 needs --learning-rate-end or --beta-end",
        ),
        ({"system": "a3c", "correction": "ppo"}, "--clip-ratio, which --system a3c does not have"),
        (
            {"anneal_fraction": 1.0, "beta_end": 0.0},
            "--anneal-fraction 1 needs --steps or --minutes: it is a share of this budget",
        ),
        (
            {"algorithm": "pqn", "epsilon_spread": 7.0, "adjustment": "fast"},
            "--epsilon-spread 7 cannot be combined with --adjustment fast: it is for a constant number",
        ),
        (
            {"anneal_fraction": 1.0, "anneal_steps": 5, "steps": 10, "beta_end": 0.0},
            "--anneal-steps 5 cannot be combined with --anneal-fraction 1",
        ),
        (
            {"clip_ratio": 0.1, "correction": "v-trace"},
            "--clip-ratio 0.1 needs --correction ppo or decoupled or decoupled-rec",
        ),
        ({"correction": "ppo"}, "--correction ppo needs --clip-ratio"),
        (
            {"correction": "ppo", "loss": "mine:loss"},
            "--correction ppo needs --loss paper, not --loss mine:",
        ),
        (
            {"correction": "epsilon", "log_softmax": True},
            "--correction epsilon needs --no-log-softmax, not --log-softmax: it",
        ),
        ({"correction": "v-trace", "advantage": "gae"}, "--correction v-trace needs --advantage nstep"),
        ({"target_score": 5.0, "episodes": 99}, "for the mean of 100 episodes, and --episodes 99 are fewer"),
    ],
)
def test_what_does_not_go_together_is_refused(settings, words):
    with pytest.raises(UserError) as caught:
        Config(**settings)
    assert words in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["epochs", "clip_ratio", "minibatch_size"])
def test_reuse_of_samples_is_refused_with_a3c(name):
    with pytest.raises(UserError, match="has no effect with --system a3c; it is for ga3c, a2c and serial"):
        check_effects(Config(system="a3c"), [name])


@pytest.mark.parametrize("system", ["a2c", "a3c"])
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"adjustment": "fast"},
            "--adjustment fast is for --system ga3c; --system {} requires --adjustment off",
        ),
        (
            {"remote_agents": 2},
            "--remote-agents 2 is for --system ga3c; --system {} requires --remote-agents 0",
        ),
        (
            {"train_last_transition": False},
            "is for --system ga3c or serial; --system {} requires --train-last-transi",
        ),
    ],
)
def test_what_is_for_ga3c_alone_is_refused_with_another_system(system, settings, words):
    with pytest.raises(UserError) as caught:
        Config(system=system, **settings)
    assert words.format(system) in str(caught.value) and "\n" not in str(caught.value)
    [name] = settings
    check_effects(Config(system=system), [name])  # its default holds on every system, and so may be given


def test_limits_of_a_single_system():
    with pytest.raises(
        UserError, match="--system a3c computes on the CPU; it cannot be combined with --device gpu:1"
    ):
        Config(system="a3c", device="gpu:1")
    assert Config(system="a2c", device="gpu").device == "gpu"
    with pytest.raises(UserError, match="a2c trains on --agents x --t-max states at once, 128000 here"):
        Config(system="a2c", num_agents=128, t_max=1000)
    assert Config(system="a3c", num_agents=128, t_max=1000).t_max == 1000


# what a resumed run may change


def test_a_run_goes_on_with_other_values_of_what_training_reads_anew():
    before = Config(seed=1, steps=1000)
    changes = {
        "learning_rate": 3e-4,
        "learning_rate_end": 0,
        "anneal_steps": 500,
        "num_agents": 8,
        "t_max": 20,
    }
    after = before.changed(changes)
    assert after == Config(seed=1, steps=1000, **changes)
    assert before.changed({}) == before == after.changed(dataclasses.asdict(before))


def test_an_unknown_preset_is_refused_with_the_known_ones():
    with pytest.raises(
        UserError, match="unknown preset 'x'; it must be one of default, paper, nvlabs, tuned"
    ):
        Config.from_preset("x", {})


def test_a_change_has_an_effect_with_what_is_changed_together():
    assert Config().changed({"advantage": "gae", "gae_lambda": 0.9}).gae_lambda == 0.9
    assert Config().changed({"correction": "v-trace", "rho_bar": 2.0}).rho_bar == 2.0
    with pytest.raises(UserError, match="--gae-lambda does nothing without --advantage gae"):
        Config(advantage="gae").changed({"advantage": "nstep", "gae_lambda": 0.8})


FOR_A_WHOLE_RUN = (
    "env_id",
    "preprocessing",
    "frame_skip",
    "frame_stack",
    "repeat_action_probability",
    "full_action_space",
    "noop_max",
    "terminal_on_life_loss",
    "clip_rewards",
    "network",
    "initialization",
    "normalize_images",
    "normalize_observations",
    "optimizer",
    "dual_rmsprop",
    "rmsprop_centred",
    "dueling",
    "system",
    "algorithm",
    "seed",
    "rolling_episodes",
    "initial_weights",
    "run_dir",
    "max_agents",
)


@pytest.mark.parametrize("name", FOR_A_WHOLE_RUN)
def test_what_holds_for_a_whole_run_is_refused_with_the_reason_and_may_be_named_again(name):
    config = Config(seed=1)
    value = getattr(config, name)
    if isinstance(value, bool):
        other = not value
    elif isinstance(value, str | None):
        other = f"{value}x"
    else:
        other = value + 1
    with pytest.raises(UserError) as caught:
        config.changed({"beta": 0.1, name: other})
    assert f"{name} ({spelled(name)}) cannot change within a run: {FIXED[name]}" == str(caught.value)
    assert config.changed({name: value}) == config


def test_whatever_describes_the_environment_holds_for_a_whole_run():
    described = [
        setting.name for setting in dataclasses.fields(Config) if setting.metadata["group"] == "environment"
    ]
    assert set(described) <= set(FIXED) == set(FOR_A_WHOLE_RUN)


def test_a_budget_replaces_the_whole_budget():
    before = Config(minutes=2.0, episodes=50)
    assert before.changed({"steps": 100}) == Config(steps=100)
    assert before.changed({"episodes": 60}) == Config(episodes=60)
    assert before.changed({"beta": 0.02}) == Config(minutes=2.0, episodes=50, beta=0.02)


def test_budget_and_target_score_do_not_replace_each_other():
    before = Config(minutes=2.0, target_score=-5.0)
    assert before.changed({"steps": 100}) == Config(steps=100, target_score=-5.0)
    assert before.changed({"target_score": 3}) == Config(minutes=2.0, target_score=3.0)
    assert before.changed({"target_score": None}) == Config(minutes=2.0)


@pytest.mark.parametrize("name", ["num_agents", "num_predictors", "num_trainers"])
def test_counts_that_the_adjustment_has_found_change_only_without_it(name):
    adjusted = Config(adjustment="fast")
    with pytest.raises(UserError, match="has found; set adjustment=off with it"):
        adjusted.changed({name: 5, "adjustment": "paper"})
    assert getattr(adjusted.changed({name: 5, "adjustment": "off"}), name) == 5
    assert getattr(Config().changed({name: 5, "adjustment": "fast"}), name) == 5


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"lerning_rate": 1.0}, "unknown setting 'lerning_rate'; close: learning_rate"),
        ({"learning_rate": 0.0}, "it must be above 0"),
        ({"learning_rate_end": 0.0}, "--learning-rate-end 0 needs --anneal-steps"),
        ({"num_predictors": 3}, "--predictors has no effect with --system a2c"),
    ],
)
def test_a_change_that_cannot_be_is_refused(changes, words):
    with pytest.raises(UserError) as caught:
        Config(system="a2c").changed(changes)
    assert words in str(caught.value) and "\n" not in str(caught.value)


# presets and effects


@pytest.mark.parametrize(
    ("settings", "name", "words"),
    [
        ({}, "gae_lambda", "--gae-lambda does nothing without --advantage gae"),
        ({}, "adam_epsilon", "--adam-epsilon does nothing without --optimizer adam"),
        (
            {"optimizer": "adam"},
            "rmsprop_epsilon",
            "--rmsprop-epsilon does nothing without --optimizer rmsprop",
        ),
        (
            {"correction": "one-step"},
            "log_epsilon",
            "--log-epsilon does nothing without --correction epsilon or ppo",
        ),
        (
            {"log_softmax": True},
            "log_epsilon",
            "--log-epsilon does nothing without --no-log-softmax",
        ),
        ({}, "rho_bar", "--rho-bar does nothing without --correction one-step or v-trace"),
        ({"correction": "one-step"}, "c_bar", "--c-bar does nothing without --correction v-trace"),
        (
            {"clip_ratio": 0.1},
            "importance_clip",
            "--importance-clip does nothing without --correction clipped-is",
        ),
    ],
)
def test_a_given_setting_that_nothing_reads_is_refused(settings, name, words):
    with pytest.raises(UserError, match=words):
        check_effects(Config(**settings), [name])


@pytest.mark.parametrize(
    ("settings", "name", "words"),
    [
        (
            {"system": "serial"},
            "num_predictors",
            "--predictors has no effect with --system serial; it is for ga3c",
        ),
        (
            {"system": "serial"},
            "scheduling",
            "--scheduling has no effect with --system serial; it is for ga3c and a2c",
        ),
        ({}, "max_agents", "--max-agents does nothing without --adjustment fast or paper or nvlabs"),
        ({}, "agents_per_actor", "--agents-per-actor does nothing without --remote-agents"),
        (
            {"clip_ratio": 0.1, "log_softmax": True},
            "log_epsilon",
            "--log-epsilon does nothing without --no-log-soft",
        ),
        (
            {"system": "a3c", "correction": "v-trace"},
            "correction",
            "--correction v-trace does nothing without --sys",
        ),
    ],
)
def test_a_given_setting_without_effect_in_this_combination_is_refused(settings, name, words):
    with pytest.raises(UserError, match=words):
        check_effects(Config(**settings), [name])


def test_a_small_replay_memory_is_judged_by_the_agents_of_the_preset():
    with pytest.raises(UserError, match=r"900 is too small for --agents 8,.*; it must be at least 904"):
        Config.from_preset("dqn", {"n_step": 100, "replay_size": 900})
    assert Config.from_preset("dqn", {"n_step": 100, "replay_size": 904}).num_agents == 8


def test_a_preset_gives_way_to_the_serial_system():
    config = Config.from_preset("smoke", {"system": "serial"})
    assert config.num_predictors == Config().num_predictors and "--predictors" not in config.arguments()


def test_numbers_and_paths_of_other_libraries_are_taken(tmp_path):
    config = Config(seed=np.int64(3), gamma=np.float32(0.5), num_agents=np.uint8(4), run_dir=tmp_path / "run")
    assert (config.seed, config.gamma, config.num_agents) == (3, 0.5, 4)
    assert config.run_dir == str(tmp_path / "run") and Config.from_json(config.to_json()) == config
    with pytest.raises(UserError, match="must be a whole number"):
        Config(num_agents=True)
    assert repr(Config(steps=4e6).steps) == "4000000"


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({"correction": "v-trace"}, ["--advantage gae", "--clip-ratio 0.2", "--epochs 3"]),
        ({"learning_rate": 1e-3, "minutes": 5.0}, []),
    ],
)
def test_what_is_left_out_of_a_preset_is_named(given, left):
    assert left_out("tuned", Config.from_preset("tuned", given), given) == left


def test_settings_that_something_reads_are_taken():
    check_effects(Config(advantage="gae"), ["gae_lambda"])
    check_effects(Config(optimizer="adam"), ["adam_epsilon"])
    check_effects(Config(correction="v-trace"), ["rho_bar", "c_bar"])
    config = Config.from_preset("tuned", {"optimizer": "adam"})  # what the preset sets may be without effect
    check_effects(config, ["optimizer"])


@pytest.mark.parametrize("name", ["rho_bar", "c_bar", "importance_clip", "log_epsilon"])
def test_a_loss_of_ones_own_may_read_what_a_correction_reads(name):
    check_effects(Config(loss="mine:loss"), [name])
    with pytest.raises(UserError, match="--gae-lambda does nothing without --advantage gae"):
        check_effects(Config(loss="mine:loss"), ["gae_lambda"])


def test_a_given_setting_without_effect_is_refused_and_one_of_a_preset_is_not():
    with pytest.raises(UserError, match="--predictors has no effect with --system a2c; it is for ga3c"):
        check_effects(Config(system="a2c"), ["num_agents", "num_predictors"])
    with pytest.raises(
        UserError, match="--agent-processes has no effect with --system a3c; it is for ga3c and a2c"
    ):
        check_effects(Config(system="a3c"), ["agent_processes"])
    check_effects(Config(system="a2c"), ["agent_processes", "learning_rate"])
    unused = {"lag", "lag_distribution", "gae_lambda", "adam_epsilon", "importance_clip", "rho_bar", "c_bar"}
    settings = dataclasses.fields(Config)
    unused |= {setting.name for setting in settings if "actor-critic" not in setting.metadata["algorithms"]}
    unused |= {"max_agents", "adjustment_seconds", "agents_per_actor", "sync", "pull_updates"}
    check_effects(Config(), {setting.name for setting in settings} - unused)
    check_effects(Config(system="a2c"), ["lag"])
    assert Config(system="a2c", **PRESETS["smoke"]).num_trainers == 1


def test_an_unknown_setting_names_close_ones():
    with pytest.raises(UserError, match="unknown setting 'lerning_rate'; close: learning_rate"):
        Config.from_values({"lerning_rate": 1e-3})


def test_the_names_that_other_programs_use_lead_to_one_setting_each():
    given = [
        (name, setting) for setting, row in ELSEWHERE.items() for names in row.values() for name in names
    ]
    assert [setting_called(name) for name, _ in given] == [setting for _, setting in given]
    assert ELSEWHERE.keys() <= {field.name for field in dataclasses.fields(Config)}
    assert setting_called("--max-grad-norm") == "grad_clip_global"
    assert setting_called("abacus") is None


def test_settings_survive_the_way_through_their_text():
    config = Config(env_id="CartPole-v1", seed=7, beta_end=0.0, anneal_steps=10, minutes=2)
    assert Config.from_json(config.to_json()) == config
    assert json.loads(config.to_json())["minutes"] == 2.0


ALLOWED_IN_0_2_0 = {
    "preprocessing": ("standard", "nvlabs"),
    "frame_skip": (
        1,
        1000,
    ),
    "frame_stack": (
        1,
        32,
    ),
    "repeat_action_probability": (
        0,
        1,
    ),
    "noop_max": (
        0,
        10000,
    ),
    "system": ("ga3c", "a2c", "a3c"),
    "num_agents": (
        1,
        4096,
    ),
    "agent_processes": (
        1,
        4096,
    ),
    "t_max": (
        1,
        1000,
    ),
    "gamma": (
        0,
        1,
    ),
    "remote_agents": (
        0,
        4096,
    ),
    "agents_per_actor": (
        1,
        512,
    ),
    "num_predictors": (
        1,
        256,
    ),
    "max_prediction_batch": (
        1,
        16384,
    ),
    "scheduling": ("tuned", "plain"),
    "num_trainers": (
        1,
        256,
    ),
    "min_training_batch": (
        0,
        100_000,
    ),
    "max_training_queue": (
        1,
        10000,
    ),
    "max_policy_lag": (
        0,
        1_000_000,
    ),
    "lag": (
        0,
        100_000,
    ),
    "adjustment": ("off", "fast", "paper", "nvlabs"),
    "adjustment_seconds": (
        1,
        1_000_000,
    ),
    "max_agents": (
        1,
        4096,
    ),
    "learning_rate": (1e-9,),
    "learning_rate_end": (0,),
    "beta": (0,),
    "beta_end": (0,),
    "anneal_steps": (
        1,
        1_000_000_000_000,
    ),
    "anneal_fraction": (
        1e-9,
        1,
    ),
    "log_epsilon": (1e-9,),
    "min_policy": (
        0,
        1,
    ),
    "grad_clip_norm": (1e-9,),
    "rmsprop_decay": (
        0,
        1,
    ),
    "rmsprop_momentum": (
        0,
        1,
    ),
    "rmsprop_epsilon": (1e-9,),
    "advantage": ("nstep", "gae"),
    "gae_lambda": (
        0,
        1,
    ),
    "clip_ratio": (
        0,
        1,
    ),
    "correction": ("none", "epsilon", "clipped-is", "one-step", "v-trace", "ppo"),
    "importance_clip": (1e-9,),
    "rho_bar": (1e-9,),
    "c_bar": (1e-9,),
    "epochs": (
        1,
        100,
    ),
    "minibatch_size": (
        0,
        100_000,
    ),
    "value_coefficient": (0,),
    "loss_reduction": ("sum", "mean"),
    "grad_clip_global": (0,),
    "optimizer": ("rmsprop", "adam"),
    "adam_epsilon": (1e-9,),
    "initialization": ("fan-in", "orthogonal", "he"),
    "seed": (
        0,
        2**63 - 1,
    ),
    "steps": (
        1,
        1_000_000_000_000,
    ),
    "minutes": (1e-9,),
    "episodes": (
        1,
        1_000_000_000_000,
    ),
    "log_seconds": (1e-9,),
    "track": ("wandb", "mlflow"),
    "checkpoint_minutes": (1e-9,),
    "rolling_episodes": (
        1,
        1_000_000,
    ),
    "max_failures": (
        0,
        1_000_000,
    ),
    "agent_timeout": (1e-9,),
}
"""Choices, and values at the bounds, of settings of version 0.2.0, with which a run may have been made."""


def test_runs_of_earlier_versions_stay_readable():
    for name, values in ALLOWED_IN_0_2_0.items():
        setting = Config.__dataclass_fields__[name]
        for value in values:
            recorded = value if setting_type(name) is not float else float(value)
            checked(setting, setting_type(name), migrated({name: recorded}).settings[name])
    assert Config.from_json('{"log_seconds": 0.001}').log_seconds == 0.01
    for refused in (0, -1):
        with pytest.raises(UserError, match="log_seconds"):
            Config.from_json(f'{{"log_seconds": {refused}}}')
    with pytest.raises(UserError, match=r"must be at least 0\.01"):
        Config(log_seconds=0.001)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"num_agents": "x"}', '{"no_such": 1}', "[" * 100_000])
def test_a_damaged_text_is_refused(text):
    with pytest.raises(UserError):
        Config.from_json(text)


def test_presets_are_valid_and_differ():
    configs = [Config.from_values(values) for values in PRESETS.values()]
    assert len({config.to_json() for config in configs}) == len(PRESETS) >= 12


def test_rates_go_linearly_to_their_ends_and_stay_there():
    config = Config(learning_rate=1e-3, learning_rate_end=0.0, beta=0.01, anneal_steps=1000)
    assert config.annealed(0, 9.0) == Rates(1e-3, 0.01)
    assert config.annealed(250, 9.0) == pytest.approx(Rates(7.5e-4, 0.01))
    assert config.annealed(1000, 9.0) == config.annealed(10**9, 9.0) == Rates(0.0, 0.01)
    assert Config().annealed(10**9, 9.0) == Rates(Config().learning_rate, Config().beta)


def test_rates_reach_their_ends_after_a_share_of_the_budget_whatever_that_is():
    config = Config(learning_rate=1e-3, learning_rate_end=0.0, beta_end=0.0, anneal_fraction=0.5, steps=1000)
    assert config.annealed(250, 10.0**6) == pytest.approx(Rates(5e-4, 0.005))
    assert config.annealed(500, 0.0) == config.annealed(1000, 0.0) == Rates(0.0, 0.0)
    assert config.changed({"steps": 2000}).annealed(500, 0.0) == pytest.approx(Rates(5e-4, 0.005))
    by_time = config.changed({"minutes": 2.0})
    assert by_time.annealed(10**6, 30.0) == pytest.approx(Rates(5e-4, 0.005))
    assert by_time.annealed(0, 60.0) == by_time.annealed(0, 999.0) == Rates(0.0, 0.0)
    first_to_end = config.replace(minutes=2.0)
    assert first_to_end.annealed(250, 45.0) == pytest.approx(Rates(2.5e-4, 0.0025))
    assert first_to_end.annealed(250, 15.0) == pytest.approx(Rates(5e-4, 0.005))


def test_where_batches_are_trained_on_several_times_one_batch_waits_at_most():
    settings = {"num_agents": 8, "t_max": 16, "min_training_batch": 255}
    assert Config(**settings).waiting_segments is None
    config = Config(**settings, epochs=3, clip_ratio=0.1)
    assert (config.waiting_segments, config.segments_per_agent) == (16, 2)
    less = config.replace(max_training_queue=8)
    assert (less.waiting_segments, less.segments_per_agent) == (8, 1)
    assert config.replace(system="a2c").waiting_segments is None


def test_the_training_queue_is_shared_out_over_the_agents():
    assert Config(num_agents=32, max_training_queue=100).segments_per_agent == 3
    assert Config(num_agents=256, max_training_queue=100).segments_per_agent == 1


def test_agents_are_spread_over_the_cores_unless_told_otherwise():
    assert [Config(num_agents=32).processes(cores) for cores in (1, 2, 64)] == [1, 2, 32]
    assert [Config(num_agents=32, agent_processes=wanted).processes(2) for wanted in (1, 8, 100)] == [
        1,
        8,
        32,
    ]
    assert Config(num_agents=1, adjustment="fast", max_agents=64).processes(2) == 2


def test_every_setting_has_help_a_group_and_an_option_of_its_own():
    fields = dataclasses.fields(Config)
    assert all(len(field.metadata["help"]) > 10 and field.metadata["group"] for field in fields)
    assert len({spelled(field.name) for field in fields}) == len(fields)


def test_an_option_without_a_default_is_to_be_left_out():
    with pytest.raises(UserError, match=r"--devices cpu:2 is for .*; leave it out with --system a3c$"):
        Config(devices="cpu:2", system="a3c")


def test_a_preset_gives_way_to_what_is_given():
    assert Config.from_preset("default", {"minutes": None}).adjustment == "fast"
    assert Config.from_preset("paper", {"minutes": 1.0}).adjustment == "paper"
    assert Config.from_preset("default", {"adjustment": "off"}).adjustment == "off"
    assert Config.from_preset("paper", {"system": "serial"}).adjustment == "off"
    assert Config.from_preset("nvlabs", {"system": "a2c"}).train_last_transition
    assert Config.from_preset("nvlabs", {}).episodes == 400_000
    assert Config.from_preset("nvlabs", {"steps": 5}).episodes is None
    with pytest.raises(UserError, match="--system serial requires --adjustment off"):
        Config.from_preset("paper", {"system": "serial", "adjustment": "fast"})


def test_a_tuned_preset_gives_way_to_what_excludes_a_part_of_it():
    def tuned(**given):
        return Config.from_preset("tuned", given)

    assert tuned(minutes=3.0).annealed(0, 180.0)[0] == 0.0
    assert (tuned(minutes=3.0).steps, tuned(minutes=3.0).minutes) == (None, 3.0)
    assert tuned(episodes=3).annealed(10**9, 10.0**9)[0] == tuned().learning_rate
    assert tuned(anneal_steps=7).annealed(7, 0.0)[0] == 0.0
    assert tuned(grad_clip_norm=2.0).grad_clip_global == 0.0
    for given, optimizer in ((True, "rmsprop"), (False, "adam")):
        assert Config.from_preset("tuned-small", {"dual_rmsprop": given}).optimizer == optimizer
    assert tuned(episodes=3, anneal_steps=9).annealed(9, 0.0)[0] == 0.0
    assert (tuned(correction="ppo").clip_ratio, tuned(correction="ppo").epochs) == (0.2, 3)
    for correction in ("none", "epsilon", "clipped-is", "one-step", "v-trace"):
        assert (tuned(correction=correction).clip_ratio, tuned(correction=correction).epochs) == (0.0, 1)
    assert (
        tuned(correction="v-trace").advantage == "nstep" and tuned(correction="one-step").advantage == "gae"
    )
    assert tuned(clip_ratio=0.0).epochs == tuned(loss="mine:huber").epochs == 1
    with pytest.raises(UserError, match="network"):
        tuned(network=5)
    assert tuned(network="mine:wide").initialization == "fan-in"
    assert (
        tuned(network="nature").initialization == "orthogonal"
        and tuned(network="nature").normalize_observations
    )
    assert not tuned(network="mine:wide").normalize_observations
    assert not tuned(normalize_images=True).normalize_observations


def test_a_preset_leaves_out_what_has_no_effect_on_the_system():
    asynchronous = Config.from_preset("tuned", {"system": "a3c"})
    assert (asynchronous.epochs, asynchronous.clip_ratio, asynchronous.minibatch_size) == (1, 0.0, 0)
    assert (asynchronous.advantage, asynchronous.optimizer) == ("gae", "rmsprop")
    assert asynchronous.num_agents == 8
    assert Config.from_preset("smoke", {"system": "a3c"}).num_agents == 4
    synchronous = Config.from_preset("tuned", {"system": "a2c"})
    assert (synchronous.epochs, synchronous.min_training_batch) == (3, Config().min_training_batch)


@pytest.mark.parametrize("cores", [1, 3, 48])
def test_a3c_starts_with_an_agent_per_core_unless_it_or_the_preset_says_otherwise(cores, monkeypatch):
    """Each of its agents is a process with TensorFlow, and many of them take minutes to start."""
    monkeypatch.setattr("ga3c_tf.config.config.usable_cores", lambda: cores)
    for preset in ("default", "paper", "tuned-small"):
        assert Config.from_preset(preset, {"system": "a3c"}).num_agents == cores
        assert Config.from_preset(preset, {"system": "a3c", "num_agents": 32}).num_agents == 32
    assert Config.from_preset("default", {"system": "a2c"}).num_agents == 32
    for config in (Config(system="a3c"), Config(system="a3c", num_agents=cores)):
        assert Config.from_json(config.to_json()) == config
        words = config.arguments()  # another machine may have other cores
        assert words[words.index("--agents") + 1] == str(config.num_agents)


def test_the_adjustment_may_start_128_agents_or_as_many_as_there_are():
    assert [Config(adjustment="fast", num_agents=agents).most_agents for agents in (4, 200)] == [128, 200]
    assert Config(adjustment="fast", max_agents=64).most_agents == 64
    with pytest.raises(UserError, match="--agents 32 is more than --max-agents 16"):
        Config(adjustment="fast", max_agents=16)


def test_no_budget_given_leaves_the_others():
    config = Config(steps=100, minutes=3.0)
    assert config.changed({"minutes": None}).steps == 100
    assert config.changed({"steps": 200}).minutes is None
    assert config.changed({"steps": None, "minutes": 4.0}).steps is None
