"""Rates, policy lag and rolling score against hand-made numbers."""

import math
import time
import tracemalloc

import numpy as np
import pytest
from helpers import update_record
from hypothesis import given
from hypothesis import strategies as st

from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.divergence import MOMENTS, UNKNOWN, Bounds, DivergenceSampler, SegmentLag
from ga3c_tf.runs.stats import Stats

METRICS = ("policy_loss", "value_loss", "entropy")


def test_rates_and_means_of_a_window():
    stats = Stats(METRICS, rolling_episodes=2)
    stats.predicted(10)
    stats.predicted(30)
    stats.updated(update_record(np.array([0, 1, 2, 3]), policy_loss=-4.0, value_loss=8.0, entropy=6.0))
    stats.updated(update_record(np.array([10, 10]), policy_loss=1.0, value_loss=1.0, entropy=0.0))
    row = stats.window(4.0)
    assert row["tps"] == 0.5
    assert row["prediction_batch"] == 20 and row["training_batch"] == 3
    assert row["policy_lag_mean"] == pytest.approx(26 / 6)
    assert row["policy_lag_p95"] == 10 and row["policy_lag_max"] == 10
    assert row["policy_loss"] == -0.5 and row["value_loss"] == 1.5 and row["entropy"] == 1.0
    assert (stats.predictions, stats.updates, stats.trained_samples) == (40, 2, 6)


def test_a_window_starts_empty_and_the_totals_stay():
    stats = Stats(METRICS, rolling_episodes=2)
    stats.predicted(10)
    stats.updated(update_record(np.array([5]), 1.0, 1.0, 1.0))
    stats.window(1.0)
    row = stats.window(1.0)
    assert row["tps"] == 0
    assert all(
        math.isnan(row[name])
        for name in ("policy_lag_mean", "policy_lag_max", "training_batch", "policy_loss")
    )
    assert stats.predictions == 10 and stats.updates == 1


def test_lags_take_no_more_memory_the_longer_a_window_is():
    """With --log-seconds 3600 a window has millions of states."""
    stats, rng, lags, agents = (
        Stats(METRICS, rolling_episodes=2, by_agent=True),
        np.random.default_rng(0),
        [],
        [],
    )
    batches = [(rng.geometric(0.05, size=45) - 1, rng.integers(6, size=45)) for _ in range(300)]
    tracemalloc.start()
    for _ in range(10):
        for batch in batches:
            stats.updated(update_record(batch[0].copy(), 0.0, 0.0, 0.0, batch[1].copy()))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000
    lags, agents = (10 * [*np.concatenate(column)] for column in zip(*batches, strict=True))
    sums, counts = stats.lags_of(8)
    np.testing.assert_array_equal(sums, np.bincount(agents, lags, 8))
    np.testing.assert_array_equal(counts, np.bincount(agents, minlength=8))
    row = stats.window(1.0)
    assert row["policy_lag_mean"] == pytest.approx(np.mean(lags)) and row["policy_lag_max"] == max(lags)
    assert row["policy_lag_p95"] == np.percentile(lags, 95) and row["training_batch"] == 45


@given(st.lists(st.integers(0, 40), min_size=1, max_size=30))
def test_the_percentile_of_the_lags_is_numpys(lags):
    stats = Stats(METRICS, rolling_episodes=2)
    stats.updated(update_record(np.array(lags), 0.0, 0.0, 0.0))
    assert stats.window(1.0)["policy_lag_p95"] == pytest.approx(np.percentile(lags, 95))


def test_the_rolling_score_takes_no_longer_the_more_episodes_it_is_of():
    stats, few = Stats(METRICS, rolling_episodes=10**6), Stats(METRICS, rolling_episodes=7)
    scores = np.random.default_rng(0).normal(size=200_000)
    for score in scores:
        stats.episode(float(score))
        few.episode(float(score))
    started = time.process_time()
    for _ in range(200):
        assert stats.rolling_score == pytest.approx(scores.mean())
    assert time.process_time() - started < 1
    assert few.rolling_score == pytest.approx(scores[-7:].mean(), rel=1e-12)


def test_the_rolling_score_is_the_mean_of_the_last_episodes():
    stats = Stats(METRICS, rolling_episodes=3)
    assert math.isnan(stats.rolling_score)
    for score in (100.0, 1.0):
        stats.episode(score)
    assert stats.rolling_score == 50.5 and math.isnan(stats.settled_score)
    for score in (2.0, 6.0):
        stats.episode(score)
    assert stats.settled_score == 3.0
    assert stats.rolling_score == 3.0 and stats.episodes == 4


def test_totals_continue_from_a_stored_state():
    stats = Stats(METRICS, rolling_episodes=3)
    for score in (1.0, 2.0):
        stats.episode(score)
    stats.predicted(7)
    stats.updated(update_record(np.array([1, 2]), 0.0, 0.0, 0.0))
    again = Stats(METRICS, rolling_episodes=3)
    again.restore(stats.state())
    again.episode(6.0)
    assert again.rolling_score == 3.0
    assert (again.episodes, again.predictions, again.updates, again.trained_samples) == (3, 7, 1, 2)


def test_what_updates_measure_is_a_mean_over_states_of_those_that_measured_it():
    stats = Stats(METRICS, rolling_episodes=2)
    nan = math.nan
    first = {
        "divergence": UNKNOWN._replace(kl=4.0, effective_sample_size=1.0),
        "within": SegmentLag(2.0, nan),
    }
    second = {
        "divergence": UNKNOWN._replace(kl=8.0, effective_sample_size=0.5, floored=0.5),
        "within": SegmentLag(6.0, 3.0),
    }
    stats.updated(update_record(np.zeros(1, int), 0, 0, 0, **first))
    stats.updated(update_record(np.zeros(3, int), 0, 0, 0, **second))
    stats.updated(update_record(np.zeros(5, int), 0, 0, 0))
    row = stats.window(1.0)
    assert (row["kl"], row["effective_sample_size"], row["version_spread"]) == (7.0, 0.625, 5.0)
    assert (row["floored"], row["bootstrap_lag"]) == (0.5, 3.0) and math.isnan(row["clipped"])
    assert math.isnan(stats.window(1.0)["kl"])


def test_the_explained_variance_is_that_of_all_states_of_a_window():
    stats = Stats(METRICS, rolling_episodes=2)
    sampler = DivergenceSampler(Bounds(), every=1)
    rng = np.random.default_rng(0)
    returns, values = rng.normal(3, 2, 20).astype(np.float32), rng.normal(3, 1, 20).astype(np.float32)
    assert math.isnan(stats.window(1.0)["explained_variance"])
    for start, end in ((0, 1), (1, 3), (3, 20)):  # one state alone has no variance
        part = slice(start, end)
        log_mu = np.zeros(end - start, np.float32)
        batch = Batch(mu_log_probabilities=log_mu, returns=returns[part], mu_values=values[part])
        divergence = sampler.sample(batch, log_mu)
        stats.updated(update_record(np.zeros(end - start, int), 0, 0, 0, divergence=divergence))
    row = stats.window(1.0)
    assert row["explained_variance"] == pytest.approx(
        1 - np.var(returns - values) / np.var(returns), rel=1e-5
    )
    assert not {*MOMENTS} & row.keys()


def test_equal_returns_have_no_variance_to_explain():
    stats = Stats(METRICS, rolling_episodes=2)
    returns = np.full(7, 0.1, np.float32)
    batch = Batch(mu_log_probabilities=np.zeros(7), returns=returns, mu_values=np.arange(7.0))
    for _ in range(3):
        divergence = DivergenceSampler(Bounds(), every=1).sample(batch, np.zeros(7))
        stats.updated(update_record(np.zeros(7, int), 0, 0, 0, divergence=divergence))
    assert math.isnan(stats.window(1.0)["explained_variance"])
