"""Corrections of policy lag, against a reference, slow sums and hand-derived gradients."""

import numpy as np
import pytest
import tensorflow as tf
from batches import PUBLISHED, SEGMENTS

from ga3c_tf.algorithms.actor_critic import losses
from ga3c_tf.algorithms.actor_critic.corrections import correction_of
from ga3c_tf.algorithms.actor_critic.trust_regions import M2PO_RANGE, SECOND_MOMENT, largest_bound
from ga3c_tf.algorithms.actor_critic.weights import backward_sums, importance_ratios, v_trace
from ga3c_tf.config import Config
from ga3c_tf.config.corrections import CLIPPED, NAMES, parts_of
from ga3c_tf.config.rules import check_effects
from ga3c_tf.errors import UserError
from ga3c_tf.experience.columns import COLUMNS, PROXIMAL, Batch
from ga3c_tf.experience.returns import nstep_returns
from ga3c_tf.model.graph_call import inputs_read, trace

LENGTHS = (3, 1, 5, 2, 5)
B, A, T_MAX, GAMMA, BETA = sum(LENGTHS), 4, 5, 0.9, 0.3
VERSION = 40
LAGS = np.arange(B) % 5
COMBINED = (
    "v-trace+ratio-mask",
    "one-step+tv-mask+ess",
    "v-trace+ppo",
    "decoupled-recompute",
    "v-trace+m2po+ess",
)
CORRECTIONS = (*NAMES, *COMBINED)
IDLE = ("none", "epsilon", "ess")  # they leave the gradient as it is, whatever the lag
LAGGED = [name for name in CORRECTIONS if name not in IDLE]


@pytest.mark.parametrize("segment", SEGMENTS, ids=lambda segment: str(segment["seed"]))
def test_the_estimates_are_those_of_the_reference(segment):
    def column(name):
        return tf.constant(segment[name], tf.float32)

    steps = len(segment["rewards"])
    ratios = importance_ratios(column("log_pi"), column("log_mu"), np.inf)
    batch = Batch(
        values=column("values"),
        rewards=column("rewards"),
        lengths=tf.constant([steps]),
        bootstrap_values=tf.constant([segment["bootstrap"]], tf.float32),
    )
    found = v_trace(batch, ratios, segment["gamma"], segment["rho_bar"], segment["c_bar"], steps)
    np.testing.assert_allclose(found.targets, segment["vtrace_targets"], rtol=1e-5, atol=1e-5)
    weighted = tf.minimum(ratios, segment["rho_bar"]) * found.advantages
    np.testing.assert_allclose(weighted, segment["vtrace_pg_advantages"], rtol=1e-5, atol=1e-5)

    plain = np.array(segment["nstep_returns"]) - segment["values"]
    for most, name in (("rho_bar", "one_step_is_advantages"), ("is_clip", "clipped_is_advantages")):
        ratios = importance_ratios(column("log_pi"), column("log_mu"), segment[most])
        np.testing.assert_allclose(ratios * plain, segment[name], rtol=1e-5, atol=1e-5)


@pytest.fixture
def columns():
    """A batch of several segments, some of which end an episode."""
    rng = np.random.default_rng(7)
    rewards = rng.normal(size=B)
    bootstrap_values = rng.normal(size=len(LENGTHS)) * np.array([1, 0, 1, 1, 0])
    parts = np.split(rewards, np.cumsum(LENGTHS)[:-1])
    returns = [nstep_returns(part, end, GAMMA) for part, end in zip(parts, bootstrap_values, strict=True)]
    return {
        "logits": rng.normal(0, 1.5, (B, A)),
        "values": rng.normal(size=B),
        "actions": rng.integers(0, A, B),
        "rewards": rewards,
        "returns": np.concatenate(returns),
        "lengths": np.array(LENGTHS),
        "bootstrap_values": bootstrap_values,
    }


def log_policy(logits):
    exponentials = np.exp(logits.astype(np.float64))
    return np.log(exponentials / exponentials.sum(axis=1, keepdims=True))


def slow_v_trace(columns, ratios, rho_bar, c_bar):
    """Equation 1 of the paper as a double sum, and the advantages of its section 4.2, not yet weighted."""
    targets, advantages = [], []
    start = 0
    for length, bootstrap in zip(columns["lengths"], columns["bootstrap_values"], strict=True):
        steps = range(start, start + length)
        values = [*columns["values"][steps], bootstrap]
        rho = np.minimum(ratios[steps], rho_bar)
        c = np.minimum(ratios[steps], c_bar)
        errors = [
            rho[t] * (columns["rewards"][start + t] + GAMMA * values[t + 1] - values[t])
            for t in range(length)
        ]
        own = [
            values[s] + sum(GAMMA ** (t - s) * np.prod(c[s:t]) * errors[t] for t in range(s, length))
            for s in range(length)
        ]
        following = [*own[1:], bootstrap]
        targets += own
        advantages += [
            columns["rewards"][start + t] + GAMMA * following[t] - values[t] for t in range(length)
        ]
        start += length
    return np.array(targets), np.array(advantages)


def loss_of(columns, log_mu, log_proximal=None, **settings):
    """Losses, and the gradients of the policy's by logits and of the values' by values."""
    config = Config(**{"gamma": GAMMA, "t_max": T_MAX, "beta": BETA} | settings)
    with tf.GradientTape(persistent=True) as tape:
        logits, values = (tf.Variable(columns[name], dtype=tf.float32) for name in ("logits", "values"))
        given = {name: column for name, column in columns.items() if name not in ("logits", "values")}
        given |= {"mu_log_probabilities": log_mu, "mu_values": columns["values"]}
        given |= {"version": VERSION, "versions": VERSION - LAGS}
        given |= {PROXIMAL.name: log_mu if log_proximal is None else log_proximal}
        whole = ("actions", "lengths", "version", "versions")
        tensors = {
            name: tf.constant(column, tf.int32 if name in whole else tf.float32)
            for name, column in given.items()
        }
        found = losses.actor_critic(Batch(logits=logits, values=values, beta=config.beta, **tensors), config)
    return found, tape.gradient(found.policy_loss, logits), tape.gradient(found.value_loss, values)


def settings_of(name):
    return {"correction": name, "clip_ratio": 0.2 if set(parts_of(name)) & set(CLIPPED) else 0.0}


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize(
    ("name", "clips"),
    [
        ("clipped-is", {"importance_clip": 1.5}),
        ("one-step", {"rho_bar": 1.2}),
        ("v-trace", {"rho_bar": 1.2, "c_bar": 0.8}),
    ],
)
def test_the_losses_and_gradients_are_the_slow_ones(columns, name, clips, normalize):
    """Advantages are normalized before the ratios weight them."""
    log_pi = log_policy(columns["logits"])[np.arange(B), columns["actions"]]
    log_mu = log_pi - np.random.default_rng(5).normal(0, 0.5, B)
    ratios = np.exp(log_pi - log_mu)
    targets, advantages = columns["returns"], columns["returns"] - columns["values"]
    if name == "v-trace":
        targets, advantages = slow_v_trace(columns, ratios, **clips)
    if normalize:
        mean = sum(advantages) / B
        advantages = (advantages - mean) / np.sqrt(sum((advantages - mean) ** 2) / B)
    most = next(iter(clips.values()))
    assert 0 < np.count_nonzero(ratios > most) < B, "some ratios must be clipped, and some not"
    weighted = np.minimum(ratios, most) * advantages
    found, by_logits, by_values = loss_of(
        columns, log_mu, correction=name, normalize_advantages=normalize, **clips
    )

    logs = log_policy(columns["logits"])
    pi = np.exp(logs)
    spread = -(pi * logs).sum(axis=1)
    np.testing.assert_allclose(found.policy_loss, -(log_pi * weighted + BETA * spread).sum(), rtol=1e-4)
    expected = -(np.eye(A)[columns["actions"]] - pi) * weighted[:, None] + BETA * pi * (
        logs + spread[:, None]
    )
    np.testing.assert_allclose(by_logits, expected, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(found.value_loss, 0.5 * ((targets - columns["values"]) ** 2).sum(), rtol=1e-4)
    np.testing.assert_allclose(by_values, columns["values"] - targets, rtol=1e-3, atol=1e-5)


def clipped_factors(ratios, advantages, low, high):
    """Factors of the advantages in the gradient by log pi: 0 where the clipped ratio is the smaller."""
    beyond = np.where(advantages > 0, ratios > high, ratios < low)
    return np.where(beyond, 0.0, ratios)


def slow_decoupled(log_pi, log_mu, advantages):
    factors = []
    for number, lag in enumerate(LAGS):
        proximal = (
            log_mu[number] if lag == 0 else log_mu[number] + (log_pi - log_mu)[number] * (lag - 1) / lag
        )
        ratio = np.exp(log_pi[number] - proximal)
        weight = min(np.exp(proximal - log_mu[number]), 1.3)
        factors.append(weight * clipped_factors(ratio, advantages[number], 0.8, 1.2))
    return factors


def slow_m2po(log_pi, log_mu, advantages):
    harmful = [x for x, a in zip(log_pi - log_mu, advantages, strict=True) if x * a > 0]
    bounds = np.linspace(0, 3, 300_001)
    moments = np.minimum(np.square(harmful)[:, None], bounds**2).mean(axis=0)
    assert moments[-1] > SECOND_MOMENT, "the bound must be needed"
    most = bounds[moments <= SECOND_MOMENT].max()
    low = min(np.exp(-most), M2PO_RANGE[0])
    high = max(np.exp(most), M2PO_RANGE[1])
    return clipped_factors(np.exp(log_pi - log_mu), advantages, low, high)


def slow_icepop(log_pi, log_mu, advantages):
    ratios = np.exp(log_pi - log_mu)
    return [ratio if 0.5 <= ratio <= 2 else 0.0 for ratio in ratios]


def slow_dppo(log_pi, log_mu, advantages):
    moved = np.exp(log_pi) - np.exp(log_mu)
    dropped = ((advantages > 0) & (moved > 0.2)) | ((advantages < 0) & (moved < -0.2))
    return np.where(dropped, 0.0, np.exp(log_pi - log_mu))


def slow_deepseek(log_pi, log_mu, advantages):
    factors = clipped_factors(np.exp(log_pi - log_mu), advantages, 0.8, 1.2)
    start = 0
    for length in LENGTHS:
        steps = range(start, start + length)
        if sum(log_mu[step] - log_pi[step] for step in steps) / length > 0.5:
            for step in steps:
                factors[step] *= advantages[step] >= 0
        start += length
    return factors


@pytest.mark.parametrize(
    ("name", "slow", "more"),
    [
        ("decoupled-ppo", slow_decoupled, {"importance_clip": 1.3}),
        ("m2po", slow_m2po, {}),
        ("icepop", slow_icepop, {}),
        ("dppo-tv", slow_dppo, {}),
        ("deepseek-v3.2", slow_deepseek, {}),
    ],
)
def test_corrections_of_language_models_have_the_slow_gradients(columns, name, slow, more):
    log_pi = log_policy(columns["logits"])[np.arange(B), columns["actions"]]
    log_mu = log_pi - np.random.default_rng(5).normal(0, 0.7, B)
    advantages = columns["returns"] - columns["values"]
    factors = np.array(slow(log_pi, log_mu, advantages))
    ratios = np.exp(log_pi - log_mu)
    assert 0 < np.count_nonzero(np.abs(factors - ratios) > 1e-6) < B, "it must change some steps, and not all"
    _, by_logits, _ = loss_of(columns, log_mu, **settings_of(name), **more, beta=0.0)
    score = np.eye(A)[columns["actions"]] - np.exp(log_policy(columns["logits"]))
    np.testing.assert_allclose(by_logits, -score * (factors * advantages)[:, None], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("case", PUBLISHED["gradients"], ids=lambda case: case["correction"])
def test_the_gradients_are_those_of_published_code(case):
    """They were computed once, by the functions of the packages that the file names, on its batch."""
    columns = {name: np.array(PUBLISHED[name]) for name in ("logits", "actions", "lengths")}
    columns |= {"values": np.zeros(B), "rewards": np.zeros(B), "returns": np.array(PUBLISHED["advantages"])}
    columns["bootstrap_values"] = np.zeros(len(columns["lengths"]))
    policies = (np.array(PUBLISHED[name]) for name in ("log_mu", "log_proximal"))
    settings = {"correction": case["correction"], **case["settings"], "beta": 0.0}
    assert PUBLISHED["version"] == VERSION and PUBLISHED["versions"] == (VERSION - LAGS).tolist()
    _, by_logits, _ = loss_of(columns, *policies, **settings)
    np.testing.assert_allclose(by_logits, case["by_logits"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("values", "most", "bound"),
    [
        ([1.0, 0.0, 4.0], 3.0, 2.0),
        ([1.0, 0.0, 4.0], 1.0, 0.5),
        ([1.0, 0.0, 4.0], 0.0, 0.0),
        ([1.0, 0.0, 4.0], 5.0, np.inf),
        ([2.0], 1.0, 1.0),
    ],
)
def test_the_largest_bound_of_a_sum_of_bounded_values(values, most, bound):
    assert float(largest_bound(tf.constant(values), tf.constant(most))) == pytest.approx(bound)


def slow_decoupled_by(log_pi, log_mu, log_proximal, advantages, most):
    weights = np.minimum(np.exp(log_proximal - log_mu), most)
    return weights * clipped_factors(np.exp(log_pi - log_proximal), advantages, 0.8, 1.2)


def test_decoupled_ppo_with_a_given_proximal_policy_has_the_slow_gradient(columns):
    log_pi, log_proximal, log_mu = three_policies(columns)
    advantages = columns["returns"] - columns["values"]
    factors = slow_decoupled_by(log_pi, log_mu, log_proximal, advantages, 1.3)
    settings = {**settings_of("clipped-is+decoupled-recompute"), "importance_clip": 1.3, "beta": 0.0}
    _, by_logits, _ = loss_of(columns, log_mu, log_proximal, **settings)
    np.testing.assert_allclose(
        by_logits, -score_of(columns) * (factors * advantages)[:, None], rtol=1e-3, atol=1e-5
    )


def test_impact_has_the_slow_gradients(columns):
    """V-trace's ratios, weights and targets are of the proximal policy to mu."""
    log_pi, log_proximal, log_mu = three_policies(columns)
    targets, advantages = slow_v_trace(columns, np.exp(log_proximal - log_mu), 1.0, 1.0)
    factors = slow_decoupled_by(log_pi, log_mu, log_proximal, advantages, 1.0)
    _, by_logits, by_values = loss_of(columns, log_mu, log_proximal, **settings_of("impact"), beta=0.0)
    np.testing.assert_allclose(
        by_logits, -score_of(columns) * (factors * advantages)[:, None], rtol=1e-3, atol=1e-5
    )
    np.testing.assert_allclose(by_values, columns["values"] - targets, rtol=1e-3, atol=1e-5)


def test_a_mask_is_joined_with_any_weight(columns):
    log_pi, _, log_mu = three_policies(columns)
    ratios = np.exp(log_pi - log_mu)
    targets, advantages = slow_v_trace(columns, ratios, 1.0, 1.0)
    factors = np.minimum(ratios, 1.0) * ((ratios >= 0.5) & (ratios <= 2))
    assert 0 < np.count_nonzero(factors) < B
    _, by_logits, by_values = loss_of(columns, log_mu, correction="v-trace+ratio-mask", beta=0.0)
    np.testing.assert_allclose(
        by_logits, -score_of(columns) * (factors * advantages)[:, None], rtol=1e-3, atol=1e-5
    )
    np.testing.assert_allclose(by_values, columns["values"] - targets, rtol=1e-3, atol=1e-5)


def three_policies(columns):
    """Log-probabilities of the actions under pi, a proximal policy, and mu."""
    log_pi = log_policy(columns["logits"])[np.arange(B), columns["actions"]]
    rng = np.random.default_rng(6)
    log_proximal = log_pi - rng.normal(0, 0.4, B)
    return log_pi, log_proximal, log_proximal - rng.normal(0, 0.5, B)


def score_of(columns):
    """Gradient of log pi of the actions by the logits."""
    return np.eye(A)[columns["actions"]] - np.exp(log_policy(columns["logits"]))


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("name", ["epsilon", *LAGGED])
def test_without_lag_each_correction_gives_the_uncorrected_gradient(columns, name, normalize):
    log_mu = log_policy(columns["logits"])[np.arange(B), columns["actions"]]
    same = {"normalize_advantages": normalize}
    plain, *gradients = loss_of(columns, log_mu, correction="none", **same)
    found, *others = loss_of(columns, log_mu, **settings_of(name), **same)
    for one, other in zip(others, gradients, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    assert float(found.value_loss) == pytest.approx(float(plain.value_loss), rel=1e-5)
    assert float(found.entropy) == pytest.approx(float(plain.entropy), rel=1e-6)


@pytest.mark.parametrize("name", LAGGED)
def test_with_lag_each_correction_changes_the_gradient(columns, name):
    log_mu = log_policy(columns["logits"])[np.arange(B), columns["actions"]] - np.linspace(-1, 1, B)
    _, plain, _ = loss_of(columns, log_mu, correction="none")
    _, found, _ = loss_of(columns, log_mu, **settings_of(name))
    assert np.abs(found - plain).max() > 0.1


def test_the_paper_is_the_floor_and_none_is_without_it(columns):
    columns["logits"][:, 0] = -20.0
    columns["actions"][:] = 0
    _, floored, _ = loss_of(columns, np.zeros(B), correction="epsilon", beta=0.0)
    _, by_default, _ = loss_of(columns, np.zeros(B), beta=0.0)
    _, without, _ = loss_of(columns, np.zeros(B), correction="none", beta=0.0)
    np.testing.assert_array_equal(floored, by_default)
    assert np.abs(floored).max() < 1e-5 < np.abs(without).max()


def test_the_ratio_of_a_rare_action_is_exact_in_ppo(columns):
    """The floor of the logarithms would make the ratio too large and stop its gradient."""
    columns["logits"][:, 0] = -20.0
    columns["actions"][:] = 0
    log_pi = log_policy(columns["logits"])
    assert np.exp(log_pi[:, 0]).max() < 1e-7
    _, by_logits, _ = loss_of(columns, log_pi[:, 0], **settings_of("ppo"), beta=0.0)
    advantages = columns["returns"] - columns["values"]
    np.testing.assert_allclose(
        by_logits, -(np.eye(A)[0] - np.exp(log_pi)) * advantages[:, None], rtol=1e-3, atol=1e-5
    )


def test_the_ratio_in_ppo_is_of_the_policy_with_its_minimum(columns):
    minimum = 0.2
    pi = (np.exp(log_policy(columns["logits"])) + minimum) / (1 + minimum * A)
    log_pi = np.log(pi)[np.arange(B), columns["actions"]]
    log_mu = log_pi - np.random.default_rng(5).normal(0, 0.3, B)
    found, _, _ = loss_of(columns, log_mu, **settings_of("ppo"), min_policy=minimum, beta=0.0)
    advantages = columns["returns"] - columns["values"]
    ratios = np.exp(log_pi - log_mu)
    expected = -np.minimum(ratios * advantages, np.clip(ratios, 0.8, 1.2) * advantages).sum()
    np.testing.assert_allclose(found.policy_loss, expected, rtol=1e-4)


@pytest.mark.parametrize("most", [1, 2, 5, 8])
def test_backward_sums_are_the_recursion(most):
    rng = np.random.default_rng(most)
    terms, factors = rng.normal(size=(2, 23))
    factors[most - 1 :: most] = 0
    expected = np.zeros(24)
    for i in reversed(range(23)):
        expected[i] = terms[i] + factors[i] * expected[i + 1]
    found = backward_sums(tf.constant(terms), tf.constant(factors), most)
    np.testing.assert_allclose(found, expected[:-1], rtol=1e-9, atol=1e-12)


# the table


class Recording:
    """Settings that note which of them are read."""

    def __init__(self, config):
        self.config = config
        self.read = set()

    def __getattr__(self, name):
        self.read.add(name)
        return getattr(self.config, name)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("icepop", "ratio-mask+is"),
        ("m2po+ess", "ess+m2po"),
        ("impact+tv-mask", "v-trace+decoupled-ewma+tv-mask"),
    ],
)
def test_a_published_name_is_a_combination_and_may_be_a_part_of_one(one, other):
    assert sorted(parts_of(one)) == sorted(parts_of(other))


@pytest.mark.parametrize(
    ("correction", "words"),
    [
        ("vtrace", "'vtrace' is no correction or part of one; close: v-trace"),
        ("m2po+", "'' is no correction or part of one; it must be one of none, epsilon, is"),
        ("ppo+m2po", "it has several trust regions, ppo and m2po; give one"),
        ("icepop+tv-mask", "it has several masks, ratio-mask and tv-mask; give one"),
        ("one-step+m2po", "one-step does nothing beside m2po, which has a ratio of its own"),
        ("epsilon+decoupled", "epsilon does nothing beside decoupled"),
    ],
)
def test_what_is_no_correction_is_refused_in_one_line(correction, words):
    with pytest.raises(UserError) as caught:
        Config(correction=correction, clip_ratio=0.2)
    assert str(caught.value).startswith(f"correction (--correction) is {correction!r}: {words}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", CORRECTIONS)
def test_a_setting_has_an_effect_where_the_correction_reads_it(name):
    config = Config(**settings_of(name))
    recording = Recording(config)
    correction_of(recording)
    for setting in ("importance_clip", "log_epsilon", "rho_bar", "c_bar"):
        if setting in recording.read:
            check_effects(config, [setting])
        else:
            with pytest.raises(UserError, match="does nothing without"):
                check_effects(config, [setting])


@pytest.mark.parametrize(
    ("name", "advantage"),
    [
        *((name, "nstep") for name in CORRECTIONS),
        *((name, "gae") for name in CORRECTIONS if "v-trace" not in parts_of(name)),
    ],
)
def test_a_correction_reads_the_columns_that_it_declares(name, advantage):
    """The inputs of its graph that no operation reads are those that it does not declare."""
    config = Config(advantage=advantage, **settings_of(name))
    specs = {column.name: tf.TensorSpec((None,), column.dtype) for column in (*COLUMNS, PROXIMAL)}

    def graph(logits, values, *columns):
        whole = dict(zip(specs, columns, strict=True))
        batch = Batch(logits=logits, values=values, beta=0.1, version=tf.constant(VERSION, tf.int64), **whole)
        return losses.actor_critic(batch, config)

    outputs = [tf.TensorSpec((None, A)), tf.TensorSpec((None,))]
    _, _, *read = inputs_read(trace(graph, [*outputs, *specs.values()]), 2 + len(specs))
    expected = {column for column, is_read in zip(specs, read, strict=True) if is_read}
    assert losses.find_loss(config, A).columns == expected


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"correction": "ppo"}, "--correction ppo needs --clip-ratio"),
        (
            {"correction": "v-trace", "clip_ratio": 0.1},
            "needs --correction ppo or decoupled or .*, not --correction v-trace",
        ),
        ({"correction": "epsilon", "log_softmax": True}, "the floor that --log-softmax leaves out"),
        (
            {"correction": "v-trace", "advantage": "gae"},
            "needs --advantage nstep, not --advantage gae: it est",
        ),
        (
            {"correction": "v-trace", "loss": "mine:huber"},
            "needs --loss paper, not --loss mine:huber: it is a",
        ),
    ],
)
def test_what_does_not_go_with_a_correction_is_refused(settings, words):
    with pytest.raises(UserError, match=words):
        Config(**settings)


def test_the_other_settings_imply_a_correction():
    assert Config().correction_used == "epsilon"
    assert Config(log_softmax=True).correction_used == "none"
    assert (
        Config(clip_ratio=0.1).correction_used
        == Config(clip_ratio=0.1, correction="ppo").correction_used
        == "ppo"
    )


@pytest.mark.parametrize("mask", ["ratio-mask", "tv-mask"])
def test_the_floor_of_the_epsilon_acts_beside_a_mask(mask):
    correction = correction_of(Config(env_id="e", correction=f"epsilon+{mask}"))
    assert correction.bounds.lowest_probability == Config(env_id="e").log_epsilon
    assert correction_of(Config(env_id="e", correction=f"is+{mask}")).bounds.lowest_probability is None
