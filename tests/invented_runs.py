"""Runs that were never made, written into run folders as training would."""

import json
from types import SimpleNamespace

import numpy as np

from ga3c_tf.reproduce.figures.measurements import Results
from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.runs.csv_rows import METRIC_COLUMNS
from ga3c_tf.runs.curve import CURVE_POINTS, write_curve

SESSION = {
    "started": "2026-11-22T10:00:00+0000",
    "command": "ga3c-tf train",
    "commit": "c" * 40,
    "dirty": False,
    "cores": 2,
    "cpu": "an abacus",
    "device": "/CPU:0",
    "gpus": [],
}
EPISODES = 800
ON_GPU = {**SESSION, "device": "/GPU:0", "gpus": ["a loom"]}


def write_table(file, columns, rows):
    lines = [",".join(columns), *(",".join(str(row.get(name, 1.0)) for name in columns) for row in rows)]
    file.write_text("\n".join(lines) + "\n")


def invent(
    runs,
    spec,
    rate=None,
    lag=3.0,
    batch=5,
    prediction=1.0,
    queue=1.0,
    scores=(0.0, 1.0),
    sessions=(SESSION,),
    **result,
):
    """A finished run: constant rates, scores that go through the given values.

    It makes `rate` agent steps a second; if that is not given, so many that it comes to the end of its budget
    in a minute, or 100.
    """
    folder = runs / spec.id
    folder.mkdir(parents=True)
    minutes = spec.config.minutes or 1.0
    rate = rate or (spec.config.steps or 6000) / 60
    times = np.arange(1, 41) * 60 * minutes / 40
    rows = [
        {
            "time_s": time,
            "agent_steps": int(time * rate),
            "updates": int(time * rate / batch),
            "prediction_batch": prediction,
            "training_batch": batch,
            "training_queue": queue,
            "policy_lag_mean": lag,
            "policy_lag_p95": 2 * lag,
        }
        for time in times
    ]
    write_table(folder / "metrics.csv", METRIC_COLUMNS, rows)
    write_curve(folder, invented_curve(scores, 60 * minutes, rate, spec.config.rolling_episodes))
    usual = {"cpu_utilization": 0.5, "gpu_utilization": None, "utilization_from": "first update"}
    result = usual | result
    write_run(folder, spec, status="finished", sessions=list(sessions), **result)
    return RecordedRun.of(spec, runs)


def invented_curve(scores, seconds, rate, rolling_episodes):
    """What `curve_of` makes of 800 episodes of one duration, without the 800 lines of episodes.csv.

    Args:
        scores: values that the scores of the episodes go through.
        seconds: duration of the run.
        rate: agent steps a second.
        rolling_episodes: number of episodes in the rolling score.
    """
    course = np.interp(np.linspace(0, 1, EPISODES), np.linspace(0, 1, len(scores)), scores)
    sums = np.concatenate([[0.0], np.cumsum(course)])
    ends = np.linspace(1, EPISODES, CURVE_POINTS).astype(int)
    starts = np.maximum(0, ends - rolling_episodes)
    times = seconds * ends / (EPISODES + 1)
    return {
        "time_s": times,
        "agent_steps": (times * rate).astype(int),
        "episodes": ends,
        "rolling_score": (sums[ends] - sums[starts]) / (ends - starts),
    }


def write_run(folder, spec, status, **result):
    common = {"status": status, "reason": "", "ended": "", "spec": json.loads(spec.to_json())}
    (folder / "run.json").write_text(json.dumps({**common, **result}))


def played(score, episodes=30, agent_steps=4000):
    """An evaluation of which every episode had this score."""
    return {"scores": [score] * episodes, "protocol": f"{episodes} episodes", "agent_steps": agent_steps}


def recorded(run, **values):
    """The same run, with other values in its record."""
    (run.path / "run.json").write_text(json.dumps({**run.result, **values}))


def of_session(run, session):
    """The same run, made in that session."""
    recorded(run, sessions=[session])


def failed(folder, spec, reason, ended=""):
    """A run that ended so."""
    (folder.runs / spec.id).mkdir(parents=True)
    write_run(folder.runs / spec.id, spec, status="failed", reason=reason, ended=ended)


def labelled(specs, budget, game, seed):
    """The runs of a figure by what it calls them."""
    return {spec.label if len(spec.label) > 1 else spec.label[0]: spec for spec in specs(budget, game, seed)}


def made(folder, name, games=(), seeds=None, budget="quick"):
    """What `ResultsFolder.update` records."""
    folder.update(FIGURES[name], budget, FIGURES[name].all_specs(budget, seeds, games), print)
    return folder.results(FIGURES[name], budget)


def drawn(specs, number, budget="quick", **facts):
    """Results of finished runs on one machine, whose numbers are drawn instead of measured.

    Args:
        specs: of the runs.
        number: the values of a specification, by metric.
        budget: budget of the runs.
        facts: other attributes of the runs.
    """
    usual = {
        "finished": True,
        "diverged": False,
        "ended": True,
        "on_gpu": True,
        "machine": "an abacus",
        "sessions": [SESSION],
        "calibrations": [],
        "started_s": 0.0,
        "result": {"status": "finished"},
        "adjustment": {"time_s": range(1000)},
    }
    runs = [SimpleNamespace(spec=spec, **{**usual, **facts}) for spec in specs]
    records = [
        SimpleNamespace(
            run_id=spec.id,
            game=spec.game,
            method=spec.method,
            metric=metric,
            value=value,
            unit="points",
            status="measured",
        )
        for spec in specs
        for metric, value in number(spec).items()
    ]
    return Results(budget, "", [], runs, records)


def verdicts_of(name, results):
    """The verdict of each claim of a figure, by its key."""
    return {claim.key: claim.finding for claim in FIGURES[name].verdicts(results)}
