"""The synchronous system: each round whole, no policy lag, and nothing lost or mixed however episodes end."""

import collections
import itertools

import numpy as np
import pytest
from checks import check_nothing_lost_or_repeated, check_segment, run_counting

from ga3c_tf.runs import outcomes
from ga3c_tf.runs.csv_rows import METRIC_COLUMNS, read_rows
from ga3c_tf.systems.a2c import A2C
from ga3c_tf.workers.supervisor import AgentError


def pieces(rows):
    """What one agent sent in one round, by episode."""
    by_episode = collections.defaultdict(list)
    for row in rows:
        by_episode[row[0][1]].append(row)
    return by_episode.values()


@pytest.mark.parametrize(("t_max", "processes"), [(1, 3), (5, 1), (5, 6), (40, 3)])
def test_each_update_is_a_round_of_t_max_steps_of_every_agent_without_policy_lag(
    tmp_path, monkeypatch, t_max, processes
):
    lags = []
    # So that the last step falls between two looks.
    monkeypatch.setattr("ga3c_tf.systems.training.POLL_SECONDS", 0.001)
    monkeypatch.setattr("ga3c_tf.runs.stats.Stats.updated", lambda self, update: lags.append(update.lags))
    model, _, summary = run_counting(
        tmp_path, monkeypatch, A2C, t_max=t_max, agent_processes=processes, steps=1200
    )
    assert len(lags) == len(model.batches) > 1200 // (6 * t_max) - 2
    assert max(lag.max() for lag in lags) == 0
    for number, batch in enumerate(model.batches):
        # The last prediction of each state.
        assert all(model.chosen[place] == number for place, _, _ in batch)
        by_agent = collections.defaultdict(list)
        for row in batch:
            by_agent[row[0][0]].append(row)
        assert [len(rows) for rows in by_agent.values()] == [t_max] * 6
        for rows in by_agent.values():
            for piece in pieces(rows):
                check_segment(piece, t_max, cut=True)
    check_nothing_lost_or_repeated([row for batch in model.batches for row in batch], agents=6)
    assert sum(map(len, model.batches)) == summary["agent_steps"] == 1200  # with the last round


def test_one_prediction_answers_all_agents_that_step(tmp_path, monkeypatch):
    model, _, _ = run_counting(tmp_path, monkeypatch, A2C, num_agents=24, steps=2400)
    sizes = np.array(model.batch_sizes)
    assert sizes.max() == 24
    assert sizes.sum() / 24 < 1.5 * len(model.batches) * 5  # few more than steps: bootstraps
    assert (sizes == 24).sum() >= 4 * len(model.batches)


def test_metrics_say_that_the_lag_is_0_and_count_steps_as_pps(tmp_path, monkeypatch):
    _, training, summary = run_counting(tmp_path, monkeypatch, A2C, log_seconds=0.05)
    rows = read_rows(tmp_path / "run" / "metrics.csv", METRIC_COLUMNS)
    lags = {row[name] for row in rows for name in ("policy_lag_mean", "policy_lag_p95")}
    assert "0" in lags and lags <= {"0", ""}  # empty: a window without an update
    assert len(rows) > 2
    for before, row in itertools.pairwise(rows):
        steps = float(row["pps"]) * (float(row["time_s"]) - float(before["time_s"]))
        assert steps == pytest.approx(int(row["agent_steps"]) - int(before["agent_steps"]), rel=0.01, abs=0.1)
    assert training.session.stats.predictions > summary["agent_steps"]


def test_an_agents_error_ends_the_run_with_its_traceback(tmp_path, monkeypatch):
    with pytest.raises(AgentError, match="RuntimeError: the emulator is gone"):
        run_counting(tmp_path, monkeypatch, A2C, env_id="helpers:Failing-v0")


class LosesAnAgentAtTheEnd(A2C):
    """An agent process ends, and only then the run is asked to: as Ctrl-C does when it reaches both."""

    def poll(self, seconds):
        self._processes.end(0, "its simulator has gone")
        try:
            super().poll(60)
        except AgentError:
            self.session.stop(outcomes.INTERRUPTED)
            raise


def test_an_agent_that_ends_shortly_before_the_run_is_asked_to_does_not_make_it_fail(tmp_path, monkeypatch):
    summary = run_counting(tmp_path, monkeypatch, LosesAnAgentAtTheEnd, steps=None)[2]
    assert summary["ended"] == outcomes.INTERRUPTED
