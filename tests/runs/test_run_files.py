"""The run folder, its curves and its checkpoints: written, continued, damaged, refused."""

import errno
import fcntl
import json
import os
import resource
import shutil
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from ga3c_tf.config import Config
from ga3c_tf.errors import Diverged, UserError
from ga3c_tf.files import atomic_write, json_text, locked, write_aside
from ga3c_tf.runs import csv_rows, folder
from ga3c_tf.runs.checkpoint_folders import checkpoint_name
from ga3c_tf.runs.checkpoints import Checkpoints
from ga3c_tf.runs.csv_rows import EPISODE_COLUMNS, METRIC_COLUMNS, read_columns, read_rows
from ga3c_tf.runs.folder import RunFolder, read_config
from ga3c_tf.runs.log import RunLog
from ga3c_tf.runs.sessions import read_sessions
from ga3c_tf.runs.stats import MEASURED
from ga3c_tf.trained.pretrained import PUBLISHED


def metrics_row(time_s, agent_steps):
    return {**dict.fromkeys(METRIC_COLUMNS, 1.5), "time_s": time_s, "agent_steps": agent_steps}


def episode_row(episode, time_s):
    return {"time_s": time_s, "agent_steps": 10 * episode, "episode": episode, "score": -20.5, "length": 10}


# the folder


def test_a_new_run_keeps_settings_command_and_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("A_SECRET", "do-not-store-me")
    config = Config(seed=1, run_dir=str(tmp_path / "a" / "run"))
    run = RunFolder.plan(config)
    assert not (tmp_path / "a").exists()
    run.create(["ga3c-tf", "train", "ALE/Pong-v5", "--run-dir", "a b"], {"device": "/CPU:0", "gpus": []})
    run.close()
    assert read_config(tmp_path / "a" / "run") == config
    assert (run.path / "command.txt").read_text() == "ga3c-tf train ALE/Pong-v5 --run-dir 'a b'\n"
    text = (run.path / "meta.json").read_text()
    [session] = json.loads(text)["sessions"]
    assert {
        "started",
        "command",
        "commit",
        "dirty",
        "versions",
        "cpu",
        "cores",
        "memory_gib",
        "device",
    } <= set(session)
    assert session["versions"]["tensorflow"] == tf.__version__
    assert "do-not-store-me" not in text


def test_the_default_folder_is_named_after_the_environment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert str(RunFolder.plan(Config(env_id="ALE/Pong-v5")).path).startswith("runs/Pong-v5-20")
    assert "/" not in RunFolder.plan(Config(env_id="../x:Y-v0")).path.name


def test_a_link_to_a_disk_that_is_not_there_is_no_folder_for_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").symlink_to(tmp_path / "disk")
    with pytest.raises(UserError, match=r"cannot write the run folder runs/.*: File exists"):
        RunFolder.plan(Config()).create([], {})


def test_a_folder_that_is_not_empty_is_refused_and_left_alone(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UserError, match="exists and is not empty"):
        RunFolder.plan(Config(run_dir=str(tmp_path)))
    with pytest.raises(UserError, match="exists and is not empty"):
        RunFolder.plan(Config(run_dir=str(tmp_path / "file")))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    with pytest.raises(UserError, match=r"pong exists and is not empty; name another --run-dir$"):
        RunFolder.plan(Config(run_dir=str(PUBLISHED / "pong")))  # weights, which are no run
    (tmp_path / "a run" / "checkpoints" / "10").mkdir(parents=True)
    with pytest.raises(UserError, match=r"a run has a run; continue it with ga3c-tf resume '.*a run', or"):
        RunFolder.plan(Config(run_dir=str(tmp_path / "a run")))


def test_a_folder_that_could_not_be_written_can_be_used_later(tmp_path, monkeypatch):
    config = Config(run_dir=str(tmp_path / "run"), seed=1)

    def fill_disk(file, *_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch, pytest.raises(UserError, match="cannot write the run folder"):
        patch.setattr(folder, "write_aside", fill_disk)
        RunFolder.plan(config).create([], {})
    assert not (tmp_path / "run").exists()
    RunFolder.plan(config).create([], {})


@pytest.mark.parametrize("written", ["meta.json", "command.txt", "config.json"])
@pytest.mark.parametrize("ended_by", ["Ctrl-C", "a kill"])
def test_a_folder_whose_making_was_interrupted_can_be_used_later(tmp_path, monkeypatch, written, ended_by):
    def interrupted(file, text, **options):
        if file.name == written:
            raise KeyboardInterrupt
        write_aside(file, text, **options)

    path = tmp_path / "run"
    path.mkdir()
    config = Config(run_dir=str(path), seed=1)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(folder, "write_aside", interrupted)
        if ended_by == "a kill":  # nothing is tidied up after it
            patch.setattr(RunFolder, "_remove_files", lambda self: None)
        interrupted_run = RunFolder.plan(config)
        interrupted_run.create([], {})
    interrupted_run.close()
    assert path.exists() == (ended_by == "a kill")
    run = RunFolder.plan(config)
    run.create(["again"], {})
    assert [session["command"] for session in read_sessions(path)] == ["again"]
    run.close()


@pytest.mark.parametrize("names", [["meta.json"], ["lock", "notes.txt"]])
def test_a_folder_with_files_of_the_users_is_not_taken_for_an_interrupted_one(tmp_path, names):
    for name in names:
        (tmp_path / name).write_text("mine")
    with pytest.raises(UserError, match="exists and is not empty"):
        RunFolder.plan(Config(run_dir=str(tmp_path)))


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_used_with_a_word(tmp_path, monkeypatch, capsys, number):
    def refuse(stream, operation):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    said = []
    run = RunFolder.plan(Config(run_dir=str(tmp_path / "run"), seed=1))
    run.create([], {})
    run.close()
    RunFolder.open(run.path).close()
    with locked(tmp_path / "lock", said.append):
        pass
    assert len(said) == 1 and capsys.readouterr().err.count("has no locks") == 2
    with monkeypatch.context() as patch, pytest.raises(UserError, match="cannot write to the run folder"):
        patch.setattr(fcntl, "flock", lambda *_: os.stat(tmp_path / "missing"))
        RunFolder.open(run.path)


def test_a_run_without_a_checkpoint_is_not_to_be_resumed(tmp_path):
    config = Config(run_dir=str(tmp_path / "run"), seed=1)
    RunFolder.plan(config).create([], {})
    (tmp_path / "run" / "checkpoints" / "being-written").mkdir(parents=True)
    with pytest.raises(UserError, match="has a run without a checkpoint; remove it"):
        RunFolder.plan(config)


def test_a_second_process_is_refused_until_the_first_lets_go(tmp_path):
    run = RunFolder.plan(Config(run_dir=str(tmp_path / "run")))
    run.create([], {})
    with pytest.raises(UserError, match="in use by another process"):
        RunFolder.open(run.path)
    run.close()
    RunFolder.open(run.path).close()


def test_a_folder_that_may_not_be_read_says_so(tmp_path, monkeypatch):
    def refuse(self):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(UserError, match="is not a run folder: Permission denied"):
        read_config(tmp_path / "private" / "run")


@pytest.mark.parametrize("meta", ['{"sessions": [{"config_digests": 5}]}', "[" * 10**5])
def test_a_damaged_meta_json_counts_as_missing(tmp_path, meta):
    (tmp_path / "config.json").write_text(Config(seed=1).to_json())
    (tmp_path / "meta.json").write_text(meta)
    assert read_config(tmp_path).seed == 1


def test_a_file_that_cannot_be_written_leaves_nothing_and_what_was_there(tmp_path):
    (tmp_path / "file").write_text("before")
    with pytest.raises(OSError, match="full"), atomic_write(tmp_path / "file") as stream:
        stream.write("half")
        raise OSError("full")
    assert [path.name for path in tmp_path.iterdir()] == ["file"] and (
        tmp_path / "file"
    ).read_text() == "before"


@pytest.mark.parametrize("text", [None, "", "{}x", '{"num_agents": -1}', b"\xff\xfe"])
def test_what_is_not_a_run_folder_is_refused(tmp_path, text):
    if text is not None:
        (tmp_path / "config.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UserError, match=r"is not a run folder|is damaged"):
        read_config(tmp_path)


def test_settings_that_this_version_refuses_are_not_called_damaged(tmp_path, monkeypatch):
    run = RunFolder.plan(Config(run_dir=str(tmp_path / "run"), seed=1))
    monkeypatch.setattr(Config, "to_json", lambda self: '{"network": "of another version", "no_such": 1}')
    run.create([], {})
    run.close()
    with pytest.raises(
        UserError, match=r"was written by another version .* refuses it: unknown setting 'no_such'"
    ):
        read_config(run.path)


# the curves


def test_rows_are_read_as_they_were_written(tmp_path):
    log = RunLog(tmp_path)
    log.metrics({**metrics_row(1.25, 100), "policy_loss": float("nan"), "policy_lag_max": 3.0})
    log.episode(episode_row(1, 1.5), rolling_score=-20.5)
    log.close()
    [row] = read_rows(tmp_path / "metrics.csv", METRIC_COLUMNS)
    assert (row["time_s"], row["agent_steps"], row["policy_loss"], row["pps"]) == ("1.25", "100", "", "1.5")
    assert read_rows(tmp_path / "episodes.csv", EPISODE_COLUMNS) == [
        {"time_s": "1.5", "agent_steps": "10", "episode": "1", "score": "-20.5", "length": "10"}
    ]


def test_numbers_keep_their_digits():
    from ga3c_tf.runs.log import _text

    assert [
        _text(value) for value in (123456789, 12345.6789, 0.000123456789, -21.0, float("nan"), 1e15 + 0.5)
    ] == [
        "123456789",
        "12345.679",
        "0.000123457",
        "-21",
        "",
        "1000000000000000.500",
    ]


def test_a_resumed_log_has_no_gap_and_no_repeat(tmp_path):
    log = RunLog(tmp_path)
    for number in range(1, 11):
        log.metrics(metrics_row(number, 100 * number))
        log.episode(episode_row(number, number), 0.0)
    log.close()
    with (tmp_path / "metrics.csv").open("a") as stream:
        stream.write("11,1100,7")  # the server was killed here
    log = RunLog(tmp_path, agent_steps=600, time_s=6.0004, episodes=6)
    log.metrics(metrics_row(7, 700))
    log.episode(episode_row(7, 7), 0.0)
    log.close()
    assert [row["time_s"] for row in read_rows(tmp_path / "metrics.csv", METRIC_COLUMNS)] == [*"1234567"]
    assert [row["episode"] for row in read_rows(tmp_path / "episodes.csv", EPISODE_COLUMNS)] == [*"1234567"]


def write_episodes(folder, count):
    lines = [f"{number / 8},{10 * number},{number},-20.5,10" for number in range(1, count + 1)]
    (folder / "episodes.csv").write_text("\n".join([",".join(EPISODE_COLUMNS), *lines]) + "\n")


def test_a_long_run_takes_no_more_memory_to_resume_than_a_short_one(tmp_path):
    """A day of MinAtar is four million episodes."""
    write_episodes(tmp_path, 30_000)
    RunLog(tmp_path, agent_steps=1, time_s=10.0**6, episodes=29_000).close()  # whatever is made but once
    tracemalloc.start()
    RunLog(tmp_path, agent_steps=1, time_s=10.0**6, episodes=28_000).close()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10**6
    assert [row["episode"] for row in read_rows(tmp_path / "episodes.csv", EPISODE_COLUMNS)][-1] == "28000"


def test_a_file_of_an_older_version_is_read_and_gone_on_with(tmp_path):
    """metrics.csv has had columns added at its end."""
    older = METRIC_COLUMNS[: METRIC_COLUMNS.index("rss_mb") + 1]
    file = tmp_path / "metrics.csv"
    rows = [",".join(str(number) for _ in older) for number in (1, 2, 3)]
    file.write_text("\n".join([",".join(older), *rows, "4,4"]) + "\n")
    found = read_rows(file, METRIC_COLUMNS)
    assert [row["time_s"] for row in found] == ["1", "2", "3"] and {row["kl"] for row in found} == {""}
    assert np.isnan(read_columns(file, METRIC_COLUMNS)["kl"]).all()
    told = []
    log = RunLog(tmp_path, 2, 2.0, 0, told.append)
    log.metrics({**metrics_row(9, 9), "kl": 0.5})
    log.close()
    rows = [(row["time_s"], row["kl"]) for row in read_rows(file, METRIC_COLUMNS)]
    assert rows == [("1", ""), ("2", ""), ("9", "0.5")]
    assert len(told) == 1 and "1 damaged row is left out" in told[0]


def test_columns_are_those_of_all_rows(tmp_path):
    file = tmp_path / "episodes.csv"
    assert len(csv_rows.read_columns(file, EPISODE_COLUMNS)["score"]) == 0
    write_episodes(tmp_path, 400)
    lines = file.read_text().splitlines()
    lines[300], lines[398] = lines[300].replace("-20.5", ""), '"' + lines[398]
    file.write_text("\n".join(lines) + "\n401,2,")
    rows = read_rows(file, EPISODE_COLUMNS)
    assert len(rows) == 399
    columns = csv_rows.read_columns(file, EPISODE_COLUMNS)
    assert columns["episode"].tolist() == [float(row["episode"]) for row in rows]
    assert np.isnan(columns["score"]).sum() == 1 and columns["score"].dtype == np.float64


@pytest.mark.parametrize(
    ("last", "steps"),
    [(600, [100, 200, 300, 400, 500, 600, 700]), (0, [700])],
    ids=["from a checkpoint", "from the first one"],
)
def test_tensorboard_shows_each_step_once_after_a_resume(tmp_path, last, steps):
    log = RunLog(tmp_path)
    for number in range(1, 11):
        log.metrics(metrics_row(number, 100 * number))
    log.close()
    log = RunLog(tmp_path, agent_steps=last, time_s=last / 100, episodes=0)
    log.metrics(metrics_row(7, 700))
    log.close()
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [event.step for event in events.Scalars("metrics/pps")] == steps


@pytest.mark.parametrize("name", [*MEASURED, "dropped_steps"])
def test_tensorboard_has_policy_lag_as_a_divergence(tmp_path, name):
    log = RunLog(tmp_path)
    for number in range(1, 4):
        log.metrics({**metrics_row(number, 100 * number), name: 0.25 * number})
    log.close()
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [event.value for event in events.Scalars(f"metrics/{name}")] == [0.25, 0.5, 0.75]


# checkpoints


@pytest.fixture
def weights():
    return tf.Variable([1.0, 2.0, 3.0])


def make(tmp_path, weights, warnings=None):
    return Checkpoints(tmp_path, {"weights": [weights]}, (warnings if warnings is not None else []).append)


def test_a_checkpoint_gives_back_weights_and_counters(tmp_path, weights):
    make(tmp_path, weights).save(100, {"agent_steps": 100, "scores": [1.5]}, 2.0)
    weights.assign([0.0, 0.0, 0.0])
    assert make(tmp_path, weights).restore() == {"agent_steps": 100, "scores": [1.5]}
    assert weights.numpy().tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("name", [b"[1]", b"a\\b", b"*?", b"not UTF-8 \xff"])
def test_the_path_of_a_run_may_have_any_characters(tmp_path, weights, name):
    """TensorFlow takes paths for patterns, and writes them as UTF-8."""
    run = tmp_path / os.fsdecode(name)
    assert make(run, weights).save(100, {"agent_steps": 100}, 2.0).parent == run / "checkpoints"
    weights.assign([0.0, 0.0, 0.0])
    assert make(run, weights).restore() == {"agent_steps": 100} and weights.numpy().tolist() == [
        1.0,
        2.0,
        3.0,
    ]
    assert [path.name for path in tmp_path.iterdir()] == [run.name]


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EIO])
def test_a_file_system_that_cannot_sync_folders_is_used(tmp_path, weights, monkeypatch, number):
    def refuse(descriptor):
        if Path(f"/proc/self/fd/{descriptor}").is_dir():
            raise OSError(number, os.strerror(number))
        sync(descriptor)

    sync = os.fsync
    monkeypatch.setattr(os, "fsync", refuse)
    checkpoints = make(tmp_path, weights)
    if number == errno.EIO:
        with pytest.raises(OSError, match="Input/output error"):
            checkpoints.save(1, {}, 1.0)
    else:
        checkpoints.save(1, {"step": 1}, 1.0)
        assert checkpoints.restore() == {"step": 1}


def test_a_checkpoint_whose_score_cannot_be_read_now_is_not_removed(tmp_path, weights, monkeypatch):
    checkpoints = make(tmp_path, weights)
    for step, score in enumerate([5.0, 1.0, 2.0, 3.0]):
        checkpoints.save(step, {"step": step}, score)
    read_text = Path.read_text
    failures = [OSError(errno.ESTALE, "Stale file handle")]

    def fail_once(path):
        if path.parent.name == checkpoint_name(0) and failures:
            raise failures.pop()
        return read_text(path)

    monkeypatch.setattr(Path, "read_text", fail_once)
    checkpoints.save(4, {"step": 4}, 1.0)
    monkeypatch.undo()
    assert checkpoints.steps() == [0, 2, 3, 4] and checkpoints.best() == 0


def test_an_old_memory_that_cannot_be_removed_does_not_fail_a_checkpoint(tmp_path, weights, monkeypatch):
    def fail(path):
        raise PermissionError(errno.EACCES, "Permission denied")

    checkpoints = make(tmp_path, weights)
    checkpoints.save(1, {"step": 1}, 1.0)
    monkeypatch.setattr("ga3c_tf.runs.checkpoints.remove_replay", fail)
    checkpoints.save(2, {"step": 2}, 1.0)
    assert checkpoints.restore() == {"step": 2}


def test_the_last_three_and_the_best_are_kept(tmp_path, weights):
    checkpoints = make(tmp_path, weights)
    for step, score in enumerate([float("nan"), 1.0, 5.0, 2.0, 3.0, 1.0, 4.0]):
        weights.assign([step, step, step])
        checkpoints.save(step, {"step": step}, score)
    assert checkpoints.steps() == [2, 4, 5, 6] and checkpoints.best() == 2
    assert checkpoints.restore("best") == {"step": 2} and weights.numpy()[0] == 2
    assert checkpoints.restore("latest") == {"step": 6}
    assert checkpoints.restore(5) == {"step": 5}
    assert checkpoints.restore(np.int64(5)) == {"step": 5}
    with pytest.raises(UserError, match="no checkpoint at 3 agent steps; those that exist are at 2, 4, 5, 6"):
        checkpoints.restore(3)
    for other in (5.0, None, "newest"):
        with pytest.raises(UserError, match="it must be 'best', 'latest' or the agent steps of one"):
            checkpoints.restore(other)


def damage(path, kind):
    data = next(path.glob("checkpoint.data*"))
    if kind == "truncated":
        os.truncate(data, data.stat().st_size // 2)
    elif kind == "flipped":
        content = bytearray(data.read_bytes())
        content[3] ^= 4
        data.write_bytes(content)
    elif kind == "index":
        (path / "checkpoint.index").write_bytes(b"\0" * 100)
    elif kind == "empty":
        shutil.rmtree(path)
        path.mkdir()


@pytest.mark.parametrize("kind", ["truncated", "flipped", "index", "empty"])
def test_a_damaged_checkpoint_is_passed_over_and_named(tmp_path, weights, kind):
    warnings: list[str] = []
    checkpoints = make(tmp_path, weights, warnings)
    for step in (1, 2):
        weights.assign([step, step, step])
        checkpoints.save(step, {"step": step}, float(step))
    damage(tmp_path / "checkpoints" / f"{2:012d}", kind)
    for which in ("latest", "best"):
        warnings.clear()
        assert checkpoints.restore(which) == {"step": 1} and weights.numpy()[0] == 1
        if which == "latest" or kind != "empty":  # a folder without a score is no candidate for the best
            assert len(warnings) == 1 and "000000000002 is damaged" in warnings[0]
    with pytest.raises(UserError, match="is damaged"):
        checkpoints.restore(2)
    damage(tmp_path / "checkpoints" / f"{1:012d}", kind)
    with pytest.raises(UserError, match=r"every checkpoint in .* is damaged"):
        checkpoints.restore()


def without_memory(*arguments):
    raise tf.errors.ResourceExhaustedError(None, None, "out of memory")


def descriptors_left(count):
    """Allows this process to open `count` more files at a time."""
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (lowest + count, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    )


@pytest.mark.parametrize("short_of", ["memory", "files", "a file"])
def test_a_checkpoint_that_cannot_be_read_now_is_not_taken_for_damaged(
    tmp_path, weights, monkeypatch, short_of
):
    warnings: list[str] = []
    checkpoints = make(tmp_path, weights, warnings)
    for step in (1, 2):
        checkpoints.save(step, {"step": step}, float(step))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        if short_of == "memory":
            monkeypatch.setattr(tf.train, "list_variables", without_memory)
        else:
            descriptors_left(0 if short_of == "files" else 1)
        with pytest.raises(UserError, match=r"cannot be read now: .*nothing has been changed"):
            checkpoints.restore("latest")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        monkeypatch.undo()
    checkpoints.set_damaged_aside()
    assert not warnings and checkpoints.steps() == [1, 2] and checkpoints.restore() == {"step": 2}


def test_damaged_checkpoints_are_set_aside_and_push_out_nothing(tmp_path, weights):
    checkpoints = make(tmp_path, weights)
    for step, score in ((1000, 9.0), (2000, 8.0), (3000, 7.0), (4000, 7.0)):
        checkpoints.save(step, {"step": step}, score)
    for step in (2000, 3000, 4000):
        damage(tmp_path / "checkpoints" / f"{step:012d}", "truncated")
    assert checkpoints.restore() == {"step": 1000}
    checkpoints.set_damaged_aside()
    assert checkpoints.save(1500, {"step": 1500}, 6.0).is_dir()
    assert checkpoints.steps() == [1000, 1500]


def test_what_was_just_saved_is_kept_whatever_else_is_there(tmp_path, weights):
    checkpoints = make(tmp_path, weights)
    for step in (5000, 6000, 7000, 1500):
        assert checkpoints.save(step, {}, 1.0).is_dir()


def test_a_leftover_of_a_replaced_checkpoint_does_no_harm(tmp_path, weights):
    checkpoints = make(tmp_path, weights)
    checkpoints.save(1, {}, 1.0)
    leftover = tmp_path / "checkpoints" / "replaced-000000000001"
    leftover.mkdir()
    (leftover / "file").write_text("old")
    assert checkpoints.restore() == {} and checkpoints.steps() == [1]
    checkpoints.save(1, {"again": True}, 1.0)
    assert checkpoints.restore() == {"again": True} and checkpoints.steps() == [1] and not leftover.exists()


def test_a_kill_between_two_renames_leaves_the_checkpoint_that_was_to_be_replaced(
    tmp_path, weights, monkeypatch
):
    def killed(self, target):
        if self.name == "being-written":
            raise KeyboardInterrupt
        return rename(self, target)

    rename = Path.rename
    make(tmp_path, weights).save(1, {"first": True}, 1.0)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "rename", killed)
        make(tmp_path, weights).save(1, {"second": True}, 2.0)
    checkpoints = make(tmp_path, weights)
    assert checkpoints.steps() == [1] and checkpoints.best() == 1 and checkpoints.restore() == {"first": True}
    checkpoints.save(1, {"second": True}, 2.0)
    assert checkpoints.restore() == {"second": True}
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["000000000001"]


@pytest.mark.parametrize(
    "other", [[tf.Variable([1.0])], [tf.Variable([1.0, 2.0, 3.0]), tf.Variable(1.0)], []]
)
def test_a_checkpoint_of_another_network_is_refused(tmp_path, weights, other):
    Checkpoints(tmp_path, {"weights": other}).save(1, {}, 0.0)
    with pytest.raises(UserError, match="is of another network"):
        make(tmp_path, weights).restore()
    assert weights.numpy().tolist() == [1.0, 2.0, 3.0]


def test_weights_that_are_not_finite_are_not_written(tmp_path, weights):
    checkpoints = make(tmp_path, weights)
    checkpoints.save(100, {"agent_steps": 100}, 1.0)
    before = sorted(path for path in tmp_path.rglob("*"))
    weights.assign([1.0, float("nan"), 3.0])
    with pytest.raises(Diverged, match="weights/0 of the checkpoint to be written is not finite"):
        checkpoints.save(200, {"agent_steps": 200}, 2.0)
    assert checkpoints.steps() == [100] and sorted(path for path in tmp_path.rglob("*")) == before


def test_a_checkpoint_that_was_not_finished_does_not_count(tmp_path, weights):
    checkpoints = make(tmp_path, weights)
    (tmp_path / "checkpoints" / "being-written").mkdir(parents=True)
    assert checkpoints.steps() == []
    with pytest.raises(UserError, match="has no checkpoint: its training has just begun"):
        checkpoints.restore()
    checkpoints.save(1, {}, 0.0)
    assert checkpoints.steps() == [1]


def test_json_has_null_for_numbers_that_are_not_finite():
    value = {"mean": float("nan"), "scores": [1.5, float("inf")], "more": ({"low": float("-inf"), "n": 2},)}
    assert json_text(value) == '{"mean": null, "scores": [1.5, null], "more": [{"low": null, "n": 2}]}'
