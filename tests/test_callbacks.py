"""Callbacks: what they are told, what they may do to a run, and those that come with the package."""

import json
import math
import time
from types import SimpleNamespace

import numpy as np
import optuna
import pytest
from commands import ga3c_tf as command
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import ga3c_tf
from ga3c_tf.callbacks import BEST, Callback, EarlyStop, Evaluate, OptunaPruning
from ga3c_tf.model.tensorflow import tf
from ga3c_tf.runs.checkpoint_folders import checkpoint_folders
from ga3c_tf.runs.csv_rows import METRIC_COLUMNS, metric_columns, read_columns, read_rows
from ga3c_tf.runs.log import RunLog
from ga3c_tf.systems.callbacks import Callbacks
from ga3c_tf.systems.serial import SerialGA3C

SMALL = {
    "preset": "smoke",
    "num_agents": 2,
    "device": "cpu",
    "seed": 1,
    "progress": False,
    "log_seconds": 0.1,
}


class Witness(Callback):
    """Keeps all that it is told, and logs the number of rows as a metric."""

    metrics = ("witness/rows",)

    def __init__(self):
        self.rows, self.lengths, self.checkpoints, self.summaries = [], [], [], []

    def on_row(self, row):
        self.rows.append(row)
        self.training.log({"witness/rows": len(self.rows)})

    def on_episode(self, episode):
        self.lengths.append(episode["length"])

    def on_checkpoint(self, path):
        assert path.is_dir()
        self.checkpoints.append(path)

    def on_end(self, summary):
        self.summaries.append(summary)


class Failing(Callback):
    """Raises in the method that is named."""

    def __init__(self, method):
        setattr(self, method, self._fail)

    def _fail(self, _):
        if self.training.agent_steps > 0:
            raise ZeroDivisionError("mine")

    def on_episode(self, episode):
        pass


class StopAt(Callback):
    """Ends the training at a row after so many steps."""

    def __init__(self, steps):
        self.steps = steps

    def on_row(self, row):
        if row["agent_steps"] >= self.steps:
            self.training.stop()


def train(folder, callbacks, **settings):
    return ga3c_tf.train(
        "CartPole-v1", run_dir=folder, callbacks=callbacks, **{**SMALL, "steps": 10**7, **settings}
    )


def test_a_callback_is_told_of_all_and_its_metric_is_logged_and_continued(tmp_path):
    witness = Witness()
    run = train(tmp_path / "run", [witness, StopAt(1500)], checkpoint_minutes=0.0005)
    assert run.summary["ended"] == "callback" and witness.summaries == [run.summary]
    assert witness.lengths == run.episodes()["length"].tolist() and len(witness.lengths) > 10
    assert {"pps", "rolling_score", "progress", "witness/rows"} <= witness.rows[-1].keys()
    assert len(witness.checkpoints) >= 3 and str(witness.checkpoints[-1]) == run.summary["checkpoint"]
    rows = run.metrics()["witness/rows"]
    assert rows.tolist() == list(range(1, len(witness.rows) + 1))
    [events] = run.path.glob("events.out.tfevents.*")
    logged = EventAccumulator(str(events)).Reload().Scalars("witness/rows")
    assert [event.value for event in logged] == rows.tolist()
    again = run.resume(callbacks=[StopAt(3000)], steps=10**7, progress=False)
    more = again.metrics()["witness/rows"]
    assert more[: len(rows)].tolist() == rows.tolist() and np.isnan(more[len(rows) :]).all()
    assert len(more) > len(rows)


@pytest.mark.parametrize("method", ["on_row", "on_episode", "on_checkpoint"])
def test_an_error_in_a_callback_ends_the_run_with_a_checkpoint(tmp_path, method):
    folder = tmp_path / "run"
    with pytest.raises(ZeroDivisionError, match="mine"):
        train(folder, [Failing(method)], checkpoint_minutes=0.003, system="serial")
    [*_, steps] = checkpoint_folders(folder)
    assert steps > 0
    assert ga3c_tf.resume(folder, steps=steps + 10, progress=False).summary["agent_steps"] > steps


@pytest.mark.parametrize(
    "system",
    ["ga3c", "serial", pytest.param("a3c", marks=pytest.mark.slow)],  # which goes on meanwhile
)
def test_evaluations_keep_the_best_weights_and_their_score(tmp_path, system):
    evaluate = Evaluate(every=500, episodes=2)
    run = train(tmp_path / "run", [evaluate, StopAt(1000)], system=system)
    scores = run.metrics()["evaluation/score"]
    assert evaluate.best == np.nanmax(scores) and np.isfinite(scores).any()
    kept = json.loads((run.path / BEST / "score.json").read_text())
    assert kept["mean"] == evaluate.best == run.summary["best_score"]
    assert "current checkpoint" in kept["protocol"] and run.summary["best_evaluated"] == str(run.path / BEST)
    best = ga3c_tf.load_agent(run.path / BEST, device="cpu")
    found = best.evaluate(episodes=2)
    assert found.scores == kept["scores"] and "best evaluated checkpoint" in found.protocol
    assert best.agent_steps == kept["agent_steps"] > 0
    following = Evaluate(every=10**6)
    run.resume(callbacks=[following], steps=run.summary["agent_steps"] + 10, progress=False)
    assert following.best == evaluate.best


def test_a_row_that_is_wanted_at_the_end_of_the_budget_is_written(tmp_path):
    class Late(Callback):
        """Wants a row at the beginning, and one once the agents have finished."""

        def begin(self, training):
            super().begin(training)
            self.rows = 0
            self.finished = False
            self.finish = training.system.finish
            training.system.finish = self.finishing

        def finishing(self):
            self.finish()
            self.finished = True

        def wants_row(self):
            return self.rows <= self.finished

        def on_row(self, row):
            self.rows += 1

    run = train(tmp_path / "run", [Late()], steps=1500, log_seconds=1000)
    assert len(run.metrics()["agent_steps"]) == 2


def test_a_callers_evaluation_takes_the_place_of_the_settings(tmp_path):
    evaluate = Evaluate(every=500, episodes=1)
    run = train(tmp_path / "run", [evaluate, StopAt(800)], evaluate_every=10**6)
    assert run.summary["best_score"] == evaluate.best > 0


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"mean": null}'])
def test_a_damaged_score_of_the_best_weights_is_told(tmp_path, capsys, text):
    (tmp_path / BEST).mkdir()
    (tmp_path / BEST / "score.json").write_text(text)
    evaluate = Evaluate(every=500)
    evaluate.best = 5.0  # of an earlier training
    evaluate.begin(SimpleNamespace(agent_steps=0, path=tmp_path))
    assert evaluate.best == -math.inf
    assert "score.json is damaged; the next evaluation counts as the best one" in capsys.readouterr().err


def test_a_training_goes_on_if_the_best_weights_cannot_be_saved(tmp_path, monkeypatch):
    def fail(*_):
        raise ga3c_tf.UserError("cannot write best_evaluated: No space left on device")

    monkeypatch.setattr("ga3c_tf.callbacks.save_weights", fail)
    evaluate = Evaluate(every=500, episodes=2)
    run = train(tmp_path / "run", [evaluate, StopAt(1000)])
    assert run.summary["ended"] == "callback" and evaluate.best == -math.inf
    assert "not saved,cannot write best_evaluated" in (run.path / "events.csv").read_text()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "an environment failed: OSError: simulator lost\nTraceback",
            "an environment failed: OSError: simulator lost",
        ),
        ("", ""),
    ],
)
def test_a_training_goes_on_if_an_evaluation_fails(tmp_path, monkeypatch, text, told):
    """As it does if the environment of an agent fails."""

    def fail(*_):
        raise RuntimeError(text)

    monkeypatch.setattr("ga3c_tf.trained.evaluation.evaluate", fail)
    evaluate = Evaluate(every=500, episodes=2)
    run = train(tmp_path / "run", [evaluate, StopAt(1000)], system="serial")
    assert run.summary["ended"] == "callback" and evaluate.best == -math.inf
    events = (run.path / "events.csv").read_text()
    assert f"not evaluated,{told}; the training goes on" in events


def test_a_worker_that_fails_during_an_evaluation_ends_the_training(tmp_path, monkeypatch):
    def fail(_):
        raise RuntimeError("agent process 1 ended by itself")

    monkeypatch.setattr(SerialGA3C, "keep_up", fail)
    with pytest.raises(RuntimeError, match="agent process 1 ended by itself"):
        train(tmp_path / "run", [Evaluate(every=500, episodes=2), StopAt(1000)], system="serial")
    assert "not evaluated" not in (tmp_path / "run" / "events.csv").read_text()


def test_a_callback_sees_what_one_behind_it_in_the_list_logs(tmp_path):
    class Look(Callback):
        def on_row(self, row):
            seen.append(row["witness/rows"])

    seen = []
    train(tmp_path / "run", [Look(), Witness()], steps=2000)
    assert len(seen) > 1 and seen == [*range(1, len(seen) + 1)]


def test_the_clock_of_a_training_stands_during_an_evaluation(tmp_path):
    class Look(Callback):
        def on_row(self, row):
            with self.training.at_rest():
                session = self.training.session
                before = session.time_s, session.model.updates
                time.sleep(0.3)
                assert (session.time_s, session.model.updates) == before
                assert session.inference.gate.locked()
            self.training.stop()

    assert train(tmp_path / "run", [Look()]).summary["ended"] == "callback"


@pytest.mark.parametrize("compile", ["off", "on"])
def test_the_network_of_a_training_at_rest_has_the_newest_weights(tmp_path, compile):
    class Look(Callback):
        def on_row(self, row):
            model = self.training.session.model
            if row["updates"] > 10:
                with self.training.at_rest():
                    logits, values = model.network(states)
                    seen.append((tf.nn.softmax(logits), values, *model.predict(states)[:2]))
                self.training.stop()

    seen = []
    states = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
    train(tmp_path / "run", [Look()], compile=compile)
    policy, values, predicted_policy, predicted_values = seen[0]
    np.testing.assert_allclose(policy, predicted_policy, rtol=1e-4)
    np.testing.assert_allclose(values, predicted_values, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("system", ["ga3c", "a3c"])
def test_episodes_are_collected_while_a_callback_keeps_up(tmp_path, system):
    class Slow(Callback):
        def on_row(self, row):
            if row["episodes"]:
                deadline = time.monotonic() + 30
                while (
                    self.training.session.stats.episodes < row["episodes"] + 5 and time.monotonic() < deadline
                ):
                    self.training.system.keep_up()
                collected.append(self.training.session.stats.episodes - row["episodes"])
                self.training.stop()

    collected = []
    train(tmp_path / "run", [Slow()], system=system)
    assert collected[0] >= 5


def test_an_evaluation_gives_way_to_the_end_of_the_training(tmp_path):
    class Stop(Evaluate):
        def _check(self):
            self.training.stop("interrupted")
            super()._check()

    run = train(tmp_path / "run", [Stop(every=1)])
    assert run.summary["ended"] == "interrupted" and not (run.path / BEST).exists()


@pytest.mark.parametrize("interrupted", [False, True])
def test_ctrl_c_in_the_last_row_interrupts(tmp_path, interrupted):
    class Stop(Callback):
        def on_row(self, row):
            if row["agent_steps"] >= 1500:
                self.training.stop("interrupted" if interrupted else "callback")

    run = train(tmp_path / "run", [Stop()], steps=1500, log_seconds=1000)
    assert run.summary["ended"] == ("interrupted" if interrupted else "steps")


def test_evaluations_of_a_command_are_in_its_lines(tmp_path):
    options = ("--preset", "smoke", "--log-seconds", 60, "--evaluate-every", 1000, "--seed", 1)
    done = command("train", "CartPole-v1", *options, "--run-dir", tmp_path / "run")
    assert "[evaluation/score: " in done.stdout and (tmp_path / "run" / BEST / "weights.npz").exists()


# by themselves


def rows_for(callback, values, step=1000, rolling_episodes=1):
    """Shows rows with these rolling scores, one episode each; returns the number of those until the training
    was ended.
    """
    stopped = []
    config = SimpleNamespace(rolling_episodes=rolling_episodes)
    callback.begin(SimpleNamespace(stop=lambda: stopped.append(True), config=config))
    for number, value in enumerate(values, start=1):
        callback.on_row({"agent_steps": step * number, "rolling_score": value, "episodes": number})
        if stopped:
            return number
    return None


def test_a_training_ends_when_its_score_does_not_rise():
    nan = math.nan
    assert rows_for(EarlyStop(patience=2), [1, 2, 2, nan, nan, 2, 3]) == 6
    assert rows_for(EarlyStop(patience=3), [1, 2, 2, nan, nan, 2, 3, 3, 3]) is None
    assert rows_for(EarlyStop(patience=2, min_delta=1.0), [1, 1.5, 2]) == 3
    few = [9, 9, 1, 2, 2, 2]  # the first two are scores of too few episodes
    assert rows_for(EarlyStop(patience=2), few, rolling_episodes=3) == 6
    again = EarlyStop(patience=2)
    assert [rows_for(again, [1, 1, 1]), rows_for(again, [1, 1])] == [3, None]
    with pytest.raises(
        ga3c_tf.UserError, match="there is no metric 'rolling' in a row; close: rolling_score"
    ):
        rows_for(EarlyStop("rolling", patience=2), [1])


def test_a_trial_is_pruned_after_equal_numbers_of_steps():
    study = optuna.create_study(direction="maximize", pruner=optuna.pruners.MedianPruner(n_startup_trials=1))
    good, bad = study.ask(), study.ask()
    rows_for(OptunaPruning(good, every=2000), [1, 2, 3, 4, math.nan])
    assert study.trials[0].intermediate_values == {2000: 2, 4000: 4}
    study.tell(good, 4.0)
    with pytest.raises(optuna.TrialPruned, match="rolling_score was 1 after 2,000 agent steps"):
        rows_for(OptunaPruning(bad, every=2000), [3, 1, 1])


@pytest.mark.parametrize("callback", [EarlyStop(), OptunaPruning(None)])
def test_a_callback_that_never_had_a_value_says_so(capsys, callback):
    rows_for(callback, [1, 1], step=20_000, rolling_episodes=3)
    callback.on_end({})
    assert "did nothing: there was no value of rolling_score (a mean of too few" in capsys.readouterr().err


def test_a_row_has_all_columns_and_numbers():
    class Look(Callback):
        def on_row(self, row):
            rows.append(row)

    rows = []
    Callbacks([Look()]).metrics_of({"q_loss": 1.0, "progress": None})  # of Q-learning, without a budget
    assert {*METRIC_COLUMNS} < rows[0].keys() and rows[0]["q_loss"] == 1.0
    assert math.isnan(rows[0]["entropy"]) and math.isnan(rows[0]["progress"])


class Nameless(Callback):
    metrics = ("score",)


@pytest.mark.parametrize(
    ("callback", "words"),
    [
        (
            print,
            "a callback is of the type builtin_function_or_method; it must be a ga3c_tf.callbacks.Callback",
        ),
        (Nameless(), "Nameless names the metric 'score'; it must be like 'group/name'"),
        ([Evaluate(9), Evaluate(8)], "two callbacks log the metric 'evaluation/score'; give one of them"),
    ],
)
def test_what_is_no_callback_is_refused(tmp_path, callback, words):
    with pytest.raises(ga3c_tf.UserError, match=words):
        train(tmp_path / "run", callback)
    assert not (tmp_path / "run").exists()
    with pytest.raises(ga3c_tf.UserError, match="both must be at least 1"):
        Evaluate(every=0)
    with pytest.raises(ga3c_tf.UserError, match="it must be at least 1"):
        OptunaPruning(None, every=0)


@pytest.mark.parametrize("damage", ["", "time;agent_steps"])
def test_a_file_without_its_header_is_kept_aside(tmp_path, damage):
    columns = (*METRIC_COLUMNS, "mine/a")
    rows = [",".join([str(number)] * len(columns)) for number in (1, 2, 3)]
    text = "".join(f"{line}\n" for line in (damage, *rows))
    (tmp_path / "metrics.csv").write_text(text)
    told = []
    RunLog(tmp_path, time_s=5.0, warn=told.append).close()
    [aside] = tmp_path.glob("metrics.csv.damaged-*")
    assert aside.read_text() == text and f"the file as it was is {aside.name}" in told[0]


def test_line_ends_of_other_systems_and_infinite_metrics_take_no_row(tmp_path):
    columns = (*METRIC_COLUMNS, "mine/a")
    log = RunLog(tmp_path, own_metrics=["mine/a"])
    for second in (1.0, 2.0):
        log.metrics({"time_s": second, "agent_steps": 9, "mine/a": math.inf if second == 1 else 5.0})
    log.close()
    file = tmp_path / "metrics.csv"
    file.write_text(file.read_text().replace("\n", "\r\n"), newline="")
    assert metric_columns(tmp_path) == columns
    found = read_columns(file, columns)
    assert found["time_s"].tolist() == [1, 2] and math.isnan(found["mine/a"][0]) and found["mine/a"][1] == 5
    assert [row["mine/a"] for row in read_rows(file, columns)] == ["", "5"]


def test_columns_of_callbacks_follow_those_of_a_file_of_an_older_version(tmp_path):
    """It had one column less, and one of another callback."""
    older = METRIC_COLUMNS[:-1]
    lines = [",".join((*older, "mine/a")), ",".join(("1", *["2"] * (len(older) - 1), "3"))]
    file = tmp_path / "metrics.csv"
    file.write_text("".join(f"{line}\n" for line in lines))
    log = RunLog(tmp_path, time_s=5.0, own_metrics=["mine/b"])
    log.metrics({"time_s": 6.0, "agent_steps": 9, "mine/b": 4.0})
    log.close()
    columns = metric_columns(tmp_path)
    assert columns == (*METRIC_COLUMNS, "mine/a", "mine/b")
    for names in (columns, METRIC_COLUMNS):
        found = read_columns(file, names)
        assert found["time_s"].tolist() == [1, 6] and found["pps"].tolist()[0] == 2
        assert np.isnan(found[METRIC_COLUMNS[-1]]).all() and list(found) == list(names)
    assert [row["mine/a"] for row in read_rows(file, columns)] == ["3", ""]
    file.write_text(file.read_text().replace("9,", "9,9,", 1))  # a cell too many
    assert read_columns(file, METRIC_COLUMNS)["time_s"].tolist() == [1]
