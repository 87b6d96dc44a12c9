"""Policy lag as a divergence, against a reference, slow sums and exact expectations."""

import math

import numpy as np
import pytest
import tensorflow as tf
from batches import PUBLISHED, SEGMENTS

from ga3c_tf.algorithms.actor_critic.losses import find_loss
from ga3c_tf.config import Config
from ga3c_tf.experience.columns import NO_VERSION, Batch
from ga3c_tf.experience.divergence import (
    UNKNOWN,
    Bounds,
    DivergenceSampler,
    divergence,
    segment_lag,
)


def bounds_of(**settings):
    return find_loss(Config(**settings), 3).bounds


def a_loss(batch, config):
    return [tf.reduce_sum(batch.logits)] * 3


@pytest.mark.parametrize("segment", SEGMENTS, ids=lambda segment: str(segment["seed"]))
def test_it_is_that_of_the_reference(segment):
    found = divergence(np.array(segment["log_pi"]), np.array(segment["log_mu"]), Bounds())
    assert found.kl == pytest.approx(segment["log_ratio_mean"], rel=1e-5)
    steps = len(segment["rewards"])
    assert found.effective_sample_size * steps == pytest.approx(segment["effective_sample_size"], rel=1e-5)


def test_it_is_that_of_published_code():
    logits = np.array(PUBLISHED["logits"])
    log_pi = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    of_actions = log_pi[np.arange(len(logits)), PUBLISHED["actions"]]
    found = divergence(of_actions, np.array(PUBLISHED["log_mu"]), Bounds())
    for name in ("kl", "k3", "chi_squared", "effective_sample_size"):
        assert getattr(found, name) == pytest.approx(PUBLISHED["measures"][name], rel=1e-6)


def test_over_many_actions_it_is_the_divergence_of_the_policies():
    rng = np.random.default_rng(0)
    mu, pi = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6])
    actions = rng.choice(3, 200_000, p=mu)
    found = divergence(np.log(pi)[actions], np.log(mu)[actions], Bounds())
    assert found.kl == pytest.approx((mu * np.log(mu / pi)).sum(), rel=0.02)
    assert found.total_variation == pytest.approx(0.5 * np.abs(mu - pi).sum(), rel=0.02)
    assert found.effective_sample_size == pytest.approx(1 / (pi**2 / mu).sum(), rel=0.02)
    assert found.chi_squared == pytest.approx((pi**2 / mu).sum() - 1, rel=0.02)
    assert found.k3 == pytest.approx((mu * np.log(mu / pi)).sum(), rel=0.02)
    assert found.m2 == pytest.approx((mu * np.log(mu / pi) ** 2).sum(), rel=0.02)


def test_its_moments_are_slow_sums():
    ratios = [0.5, 1.0, 1.3, 2.0]
    found = divergence(np.log(ratios), np.zeros(4), Bounds())
    logs = [math.log(ratio) for ratio in ratios]
    assert found.chi_squared == pytest.approx(sum(ratio**2 for ratio in ratios) / 4 - 1)
    assert found.k3 == pytest.approx(sum(ratio - 1 - math.log(ratio) for ratio in ratios) / 4)
    assert found.m2 == pytest.approx(sum(log**2 for log in logs) / 4)
    assert found.effective_sample_size == pytest.approx(1.2**2 / (1 + found.chi_squared))


def test_without_lag_it_is_nothing():
    log_pi = np.log(np.array([0.1, 0.5, 0.9], np.float32))
    found = divergence(log_pi, log_pi, bounds_of(correction="none"))
    assert found[:3] == (0.0, 0.0, 1.0) and (found.chi_squared, found.k3, found.m2) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("correction", ["one-step", "v-trace", "clipped-is"])
def test_rounding_is_not_taken_for_lag(correction):
    log_pi = np.log(np.random.default_rng(0).random(1000).astype(np.float32))
    log_mu = np.log(np.exp(log_pi.astype(np.float64)).astype(np.float32))
    assert (log_pi > log_mu).any()
    assert divergence(log_pi, log_mu, bounds_of(correction=correction)).clipped == 0.0


@pytest.mark.parametrize(
    ("settings", "share"),
    [
        ({}, math.nan),
        ({"correction": "none"}, math.nan),
        ({"loss": "test_divergence:a_loss", "clip_ratio": 0.2}, math.nan),
        ({"clip_ratio": 0.2}, 0.75),
        ({"correction": "one-step", "rho_bar": 1.5}, 0.25),
        ({"correction": "v-trace", "rho_bar": 1.05}, 0.5),
        ({"correction": "clipped-is", "importance_clip": 3.0}, 0.0),
    ],
)
def test_the_share_of_ratios_that_the_correction_clips(settings, share):
    log_ratios = np.log([0.5, 1.0, 1.3, 2.0])
    assert divergence(log_ratios, np.zeros(4), bounds_of(**settings)).clipped == pytest.approx(
        share, nan_ok=True
    )


def test_the_share_of_actions_below_the_floor():
    log_pi = np.log([0.5, 1e-3, 1e-5, 1e-7])
    assert divergence(log_pi, log_pi, bounds_of(log_epsilon=1e-4)).floored == 0.5
    assert math.isnan(divergence(log_pi, log_pi, bounds_of(correction="none")).floored)
    assert math.isnan(divergence(log_pi, log_pi, bounds_of(loss="test_divergence:a_loss")).floored)


def test_the_bounds_of_ratios_are_those_given():
    ratios = np.array([0.79, 0.81, 1.19, 1.21, 1.22])
    bounds = Bounds(lowest_ratio=0.8, highest_ratio=1.2, lowest_probability=0.5)
    found = divergence(np.log(ratios), np.zeros(5), bounds)
    assert (found.clipped, found.floored) == (3 / 5, 0.0)


@pytest.mark.parametrize("every", [1, 3])
def test_a_sampler_measures_the_first_of_so_many_batches(every):
    log_pi, log_mu = np.log([0.5, 0.2]), np.log([0.4, 0.4])
    batch = Batch(mu_log_probabilities=log_mu, returns=np.array([1.0, 3.0]), mu_values=np.array([1.0, 2.0]))
    sampler = DivergenceSampler(Bounds(), every)
    found = [sampler.sample(batch, log_pi) for _ in range(2 * every)]
    expected = divergence(log_pi, log_mu, Bounds())._replace(
        return_mean=2.0, return_square=5.0, error_mean=0.5, error_square=0.5
    )
    for place, measured in enumerate(found):
        if place % every:
            assert measured is UNKNOWN
        else:
            np.testing.assert_equal(measured, expected)


def test_a_batch_without_the_probabilities_of_its_actions_has_no_divergence():
    assert DivergenceSampler(Bounds(), 1).sample(Batch(), np.zeros(2)) is UNKNOWN


def test_ratios_beyond_floats_are_no_error():
    found = divergence(np.array([0.0, 0.0]), np.array([-1000.0, 0.0]), Bounds())
    assert math.isinf(found.total_variation) and found.effective_sample_size == 0.5
    unlikely = divergence(np.array([-400.0, -400.0]), np.array([-1.0, -1.0]), Bounds())
    assert unlikely.effective_sample_size == 1
    impossible = divergence(np.array([-np.inf, -np.inf]), np.array([-1.0, -1.0]), Bounds())
    assert math.isnan(impossible.effective_sample_size)


def batch_of(lengths, versions, bootstrap_versions):
    columns = {"lengths": lengths, "versions": versions, "bootstrap_versions": bootstrap_versions}
    return Batch(**{name: np.array(values) for name, values in columns.items()})


def test_the_lag_within_segments():
    batch = batch_of([3, 1, 2], [4, 6, 5, 7, 2, 9], [8, NO_VERSION, 10])
    found = segment_lag(batch, 12)
    assert found.version_spread == pytest.approx((2 + 0 + 7) / 3)
    assert found.bootstrap_lag == pytest.approx((4 + 2) / 2)


def test_segments_that_end_their_episodes_have_no_lag_of_a_bootstrap_value():
    assert math.isnan(segment_lag(batch_of([2], [1, 1], [NO_VERSION]), 3).bootstrap_lag)
