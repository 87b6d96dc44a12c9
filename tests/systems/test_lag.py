"""Policy lag that is set: A2C on batches of some rounds ago, and GA3C with a bound."""

import numpy as np
import pytest
from checks import check_nothing_lost_or_repeated, check_segment, run_counting

import ga3c_tf.systems.a2c
from ga3c_tf.config import Config
from ga3c_tf.config.rules import check_effects
from ga3c_tf.environments.environment import describe_environment
from ga3c_tf.errors import UserError
from ga3c_tf.runner import new_training
from ga3c_tf.runs.csv_rows import METRIC_COLUMNS, read_columns
from ga3c_tf.runs.folder import RunFolder
from ga3c_tf.systems.a2c import A2C
from ga3c_tf.systems.ga3c.system import GA3C
from ga3c_tf.systems.lagged_batches import DISTRIBUTIONS, LaggedBatches
from ga3c_tf.systems.serial import SerialGA3C
from ga3c_tf.systems.training import Training


@pytest.fixture
def lags(monkeypatch):
    """The policy lags of every update, filled while a training runs."""
    found = []
    monkeypatch.setattr("ga3c_tf.runs.stats.Stats.updated", lambda self, update: found.append(update.lags))
    return found


@pytest.mark.parametrize("lag", [0, 1, 7])
def test_a2c_trains_on_the_batch_of_so_many_rounds_ago(tmp_path, monkeypatch, lags, lag):
    model, training, _ = run_counting(tmp_path, monkeypatch, A2C, lag=lag, t_max=5, steps=1200)
    assert len(training.system._waiting) == lag
    for number, batch_lags in enumerate(lags):  # the first batches are of the first weights
        assert set(batch_lags) == {min(number, lag)}
    check_nothing_lost_or_repeated([row for batch in model.batches for row in batch], agents=6)


@pytest.mark.parametrize("distribution", ["uniform", "geometric"])
def test_the_lag_of_a_batch_is_drawn_around_its_mean(tmp_path, monkeypatch, lags, distribution):
    settings = {"lag": 3, "lag_distribution": distribution, "t_max": 5, "steps": 3000}
    model, _, _ = run_counting(tmp_path, monkeypatch, A2C, **settings)
    drawn = [int(batch_lags[0]) for batch_lags in lags]
    assert all((batch_lags == batch_lags[0]).all() for batch_lags in lags)  # a round has one version
    assert len(set(drawn)) > 3 and 1.5 < np.mean(drawn) < 4.5
    places = [place for batch in model.batches for place, *_ in batch]
    assert len(set(places)) == len(places)


def test_a_resumed_run_draws_other_lags(tmp_path, monkeypatch):
    streams = []

    def noted(mean, distribution, rng):
        streams.append(rng.bit_generator.state["state"]["state"])
        return LaggedBatches(mean, distribution, rng)

    monkeypatch.setattr(ga3c_tf.systems.a2c, "LaggedBatches", noted)
    settings = {"preset": "smoke", "lag": 2, "lag_distribution": "uniform", "progress": False}
    run = ga3c_tf.train("CartPole-v1", run_dir=tmp_path / "run", system="a2c", steps=300, seed=1, **settings)
    ga3c_tf.resume(run.path, steps=600, progress=False)
    assert len(set(streams)) == 2


def test_the_distributions_are_the_choices_of_the_setting():
    assert tuple(DISTRIBUTIONS) == Config.__dataclass_fields__["lag_distribution"].metadata["choices"]


@pytest.mark.parametrize(("distribution", "largest"), [("constant", 4), ("uniform", 8), ("geometric", None)])
def test_rounds_that_batches_wait(distribution, largest):
    batches = LaggedBatches(4, distribution, np.random.default_rng(1))
    waited = [number - batch for number in range(20_000) for batch in batches.after(number)]
    assert len(waited) + len(batches) == 20_000 and len(batches) < 40
    assert np.mean(waited) == pytest.approx(4, abs=0.15)
    shares = np.bincount(waited) / len(waited)
    if distribution == "geometric":
        np.testing.assert_allclose(shares[:6], 0.2 * 0.8 ** np.arange(6), atol=0.015)
    else:
        assert len(shares) == largest + 1 and (
            largest == 4 or shares == pytest.approx([1 / 9] * 9, abs=0.015)
        )


def test_a2c_refuses_a_lag_that_there_is_no_memory_for(tmp_path, monkeypatch):
    monkeypatch.setattr(ga3c_tf.systems.a2c, "available_bytes", lambda: 10_000)
    with pytest.raises(UserError, match=r"the batches of --lag 100 take \d MiB, and 0 MiB are left here"):
        run_counting(tmp_path, monkeypatch, A2C, lag=100)


@pytest.mark.parametrize("kind", [GA3C, SerialGA3C])
def test_segments_beyond_the_limit_are_dropped_and_counted(tmp_path, monkeypatch, lags, kind):
    model, _, summary = run_counting(
        tmp_path, monkeypatch, kind, max_policy_lag=2, num_trainers=1, max_training_queue=60
    )
    largest = max(lag.max() for lag in lags)
    assert largest <= 2
    if kind is SerialGA3C:  # with processes the lag depends on their speeds
        assert largest == 2
    trained = sum(map(len, model.batches))
    assert summary["dropped_steps"] > 0
    assert trained + summary["dropped_steps"] <= summary["agent_steps"]
    assert summary["agent_steps"] - 6 * 2 * 60 <= trained + summary["dropped_steps"]
    for rows in model.batches:
        check_segment(rows, 5)


def test_with_a_limit_of_zero_segments_of_the_newest_weights_are_trained_on(tmp_path, monkeypatch, lags):
    model, _, summary = run_counting(tmp_path, monkeypatch, SerialGA3C, max_policy_lag=0, steps=600)
    assert len(model.batches) == len(lags) > 20 and not np.concatenate(lags).any()
    assert summary["dropped_steps"] > 0


def test_without_a_limit_nothing_is_dropped(tmp_path, monkeypatch):
    _, _, summary = run_counting(tmp_path, monkeypatch, GA3C)
    assert summary["dropped_steps"] == 0


def test_they_are_for_the_systems_that_have_them():
    for name, value, system in (
        ("lag", 1, "ga3c"),
        ("max_policy_lag", 3, "a2c"),
    ):
        with pytest.raises(UserError, match="has no effect with"):
            check_effects(Config(system=system, **{name: value}), [name])


@pytest.mark.parametrize("lag", [0, 4])
def test_the_divergence_is_nothing_without_lag_and_something_with_it(tmp_path, lag):
    settings = {"system": "a2c", "lag": lag, "num_agents": 4, "learning_rate": 0.01, "seed": 1, "steps": 2000}
    config = Config(env_id="CartPole-v1", run_dir=str(tmp_path / "run"), log_seconds=0.2, **settings)
    training, run = new_training(config, ["train"], print)
    training.run(lambda row: None)
    run.close()
    metrics = read_columns(tmp_path / "run" / "metrics.csv", METRIC_COLUMNS)
    trained = np.isfinite(metrics["kl"])  # rows in which an update was measured
    kl, distance, size = (
        metrics[name][trained] for name in ("kl", "total_variation", "effective_sample_size")
    )
    assert len(kl) and not metrics["version_spread"][trained].any()  # a round has one version
    if lag:
        assert distance.max() > 1e-3 and size.min() < 1 - 1e-6
        assert metrics["bootstrap_lag"][trained].max() == lag == metrics["policy_lag_mean"][trained].max()
    else:
        np.testing.assert_allclose(kl, 0, atol=1e-6)
        np.testing.assert_allclose(distance, 0, atol=1e-5)
        np.testing.assert_allclose(size, 1, atol=1e-6)
        assert not metrics["bootstrap_lag"][trained].any() and not metrics["policy_lag_states"][trained].any()


class WithoutLag(A2C):
    """A2C as it is without the batches that wait."""

    def _train_on(self, batch):
        self.session.updater.train_on([batch])


def weights_of(folder, system, lag, network):
    """The weights after 600 steps of CartPole, with the agents in one process, whose order is fixed."""
    settings = {
        "env_id": "CartPole-v1",
        "system": "a2c",
        "num_agents": 4,
        "agent_processes": 1,
        "lag": lag,
        "network": network,
        "seed": 3,
    }
    config = Config.from_values({**settings, "steps": 600, "run_dir": str(folder)})
    training = Training(
        system, config, describe_environment(config), RunFolder(folder, config), "/CPU:0", print
    )
    folder.mkdir()
    training.run()
    return training.session.model.network.get_weights()


@pytest.mark.parametrize("network", ["auto", "lstm"])
def test_a_lag_of_zero_gives_the_weights_of_a2c_bit_for_bit(tmp_path, network):
    plain = weights_of(tmp_path / "plain", WithoutLag, 0, network)
    for ours, theirs in zip(weights_of(tmp_path / "zero", A2C, 0, network), plain, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    lagging = weights_of(tmp_path / "one", A2C, 1, network)
    assert any((ours != theirs).any() for ours, theirs in zip(lagging, plain, strict=True))
