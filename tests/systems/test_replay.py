"""The replay memory in every system, on the counting environment: nothing lost, repeated or mixed."""

import errno
import hashlib
import itertools
import json
import signal

import helpers
import numpy as np
import pytest
from checks import GAMMA, Killed, check_nothing_lost_or_repeated, run_counting
from commands import ENVIRONMENT, ga3c_tf

from ga3c_tf.environments.environment import describe_environment
from ga3c_tf.experience.contracts import Prediction
from ga3c_tf.experience.replay import files
from ga3c_tf.experience.replay.replay import Replay
from ga3c_tf.experience.replay.sum_tree import SumTree
from ga3c_tf.runs import checkpoints
from ga3c_tf.runs.checkpoint_folders import checkpoint_folders
from ga3c_tf.runs.folder import RunFolder
from ga3c_tf.systems.a2c import A2C
from ga3c_tf.systems.ga3c.system import GA3C
from ga3c_tf.systems.saving import NotSaved
from ga3c_tf.systems.serial import SerialGA3C
from ga3c_tf.systems.training import Training

N_STEP = 3


class SampleCheckingModel(helpers.CheckingModel):
    """Checks every sample that it is trained on.

    Attributes:
        samples: the places of all of them.
        versions: whether each carries the version of the model that chose its action.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.samples = []

    def update(self, batch, rates):
        for row, state in enumerate(batch.states):
            place = helpers.decode(state)
            check_sample(place, {name: column[row] for name, column in vars(batch).items()})
            assert batch.versions[row] == self.chosen[place]
            self.samples.append(place)
        errors = np.random.default_rng(self._version).normal(size=len(batch))
        return super().update(batch, rates)._replace(errors=errors)


def check_sample(place, sample):
    """A sample has the right action, n-step return and next state."""
    identity, episode, step = place
    length = helpers.episode_length(identity, episode)
    span = min(N_STEP, length - step)
    if sample["discounts"]:  # it may be cut by a time limit, or by the end of its agent's process
        span = helpers.decode(sample["next_states"])[2] - step
        assert helpers.decode(sample["next_states"]) == (identity, episode, step + span)
        assert 1 <= span <= N_STEP
    is_over = step + span == length and not helpers.is_truncated(identity, episode)
    rewards = [helpers.reward_at(identity, episode, step + number) for number in range(span)]
    expected = sum(GAMMA**number * max(-1.0, min(1.0, reward)) for number, reward in enumerate(rewards))
    assert sample["actions"] == helpers.action_at(*place)
    assert sample["returns"] == pytest.approx(expected, abs=1e-6)
    assert sample["discounts"] == pytest.approx(0.0 if is_over else GAMMA**span)


def run_with_replay(tmp_path, monkeypatch, kind, **settings):
    settings = {
        "algorithm": "dqn",
        "n_step": N_STEP,
        "replay_start": 200,
        "replay_batch": 16,
        "training_intensity": 2.0,
        "priority_exponent": 0.6,
        "epsilon": 0.0,
        "epsilon_end": 0.0,
        **settings,
    }
    return run_counting(tmp_path, monkeypatch, kind, model=SampleCheckingModel, **settings)


def steps_in(replay):
    """The places of all steps in a replay memory, agent by agent, in their order."""
    memory = replay._memory
    rows = []
    for lane in memory.lanes:
        lane_places = lane.places(0, lane.head)
        numbers = memory.steps["numbers"][lane_places]
        is_step = memory.priorities(slice(lane.first, lane.first + lane.head)) > 0
        assert (np.diff(numbers[is_step]) > 0).all()
        rows += [(helpers.decode(memory.store.frames[place]), 0, 0.0) for place in lane_places[is_step]]
    return rows


@pytest.mark.parametrize("kind", [GA3C, A2C, SerialGA3C])
def test_every_step_is_in_the_memory_once_and_every_sample_is_right(tmp_path, monkeypatch, kind):
    queue = {} if kind is A2C else {"max_training_queue": 6}
    model, training, summary = run_with_replay(tmp_path, monkeypatch, kind, **queue)
    check_nothing_lost_or_repeated(steps_in(training.session.replay), agents=6)
    assert set(model.samples) <= {place for place, _, _ in steps_in(training.session.replay)}
    collected, trained = training.session.replay.states, training.session.replay._trained
    due = 2.0 * (collected - 200)
    assert due - 16 < trained <= due
    assert len(model.samples) in (trained, trained - 16)  # the last batch comes too late
    # at most: of each agent one segment of 5 steps under way and one in the training queue
    assert summary["sent_steps"] - collected <= 6 * 2 * 5


class KilledAndOverwritten(Killed):
    """Goes on until the memory has been full, and many samples were drawn."""

    def ended(self, by_budget):
        session = self.session
        enough = session.replay._memory.collected > 600 and len(session.model.samples) > 1000
        return super().ended(by_budget) if enough else None


def test_samples_are_right_where_processes_die_and_the_memory_is_overwritten(tmp_path, monkeypatch):
    settings = {"steps": None, "replay_size": 600, "max_failures": 100}
    _, _, summary = run_with_replay(tmp_path, monkeypatch, KilledAndOverwritten, **settings)
    assert summary["ended"] == "all again"


def test_the_serial_system_samples_the_same_in_every_run(tmp_path, monkeypatch):
    runs = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        model, _, _ = run_with_replay(tmp_path / name, monkeypatch, SerialGA3C)
        runs.append(model.samples)
    assert runs[0] == runs[1]


class StateKeepingModel(helpers.CheckingModel):
    """Acts at random, and keeps a digest of each state that an agent had and of each that was sampled."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.seen = set()
        self.sampled = set()

    def predict(self, states):
        self.seen |= set(map(digest, states))
        return Prediction(np.ones((len(states), 4), np.float32), np.zeros(len(states), np.float32), 0)

    def update(self, batch, rates):
        self.sampled |= set(map(digest, batch.states))
        self.sampled |= set(map(digest, batch.next_states[batch.discounts > 0]))
        return helpers.update_result(1)


def digest(state):
    return hashlib.sha256(state.tobytes()).digest()


@pytest.mark.parametrize("lives", [True, False])
def test_stacks_of_atari_frames_are_the_states_that_agents_had(tmp_path, monkeypatch, lives):
    settings = {"env_id": "ALE/Breakout-v5", "num_agents": 2, "steps": 600, "terminal_on_life_loss": lives}
    settings |= {"replay_start": 100, "replay_size": 500, "training_intensity": 1.0, "algorithm": "dqn"}
    model, _, _ = run_counting(tmp_path, monkeypatch, SerialGA3C, model=StateKeepingModel, **settings)
    assert len(model.sampled) > 300 and model.sampled <= model.seen


def resumed(folder, config):
    """The replay memory of a run that is resumed, and what the user is told."""
    lines = []
    run = RunFolder(folder, config)
    training = Training(SerialGA3C, config, describe_environment(config), run, "/CPU:0", lines.append)
    training.resume()
    return training.session.replay, lines[1:]  # without the memory that it takes


def test_the_sums_of_priorities_are_computed_by_one_thread_at_a_time(tmp_path, monkeypatch):
    locks = []
    make = Replay.__init__
    compute = SumTree._sum

    def make_noted(replay, *arguments):
        make(replay, *arguments)
        locks.append(replay._lock)

    def compute_locked(tree):
        [lock] = locks
        assert lock.locked()
        compute(tree)

    monkeypatch.setattr(Replay, "__init__", make_noted)
    monkeypatch.setattr(SumTree, "_sum", compute_locked)
    run_with_replay(tmp_path, monkeypatch, SerialGA3C)


def holding_replay(run):
    """Whether each checkpoint of a run holds a replay memory, the newest last."""
    return [files.has_replay(folder) for folder in checkpoint_folders(run).values()]


def test_a_resumed_run_has_its_saved_replay_memory_again(tmp_path, monkeypatch):
    settings = {"save_replay": True, "checkpoint_minutes": 1e-3}
    _, training, _ = run_with_replay(tmp_path, monkeypatch, SerialGA3C, **settings)
    *older, newest = holding_replay(tmp_path / "run")
    assert newest and older and not any(older)
    saved = training.session.replay._memory
    replay, lines = resumed(tmp_path / "run", training.session.config)
    assert replay._memory.collected == saved.collected and not lines
    everywhere = slice(0, len(saved.store.frames))
    np.testing.assert_array_equal(replay._memory.priorities(everywhere), saved.priorities(everywhere))


def test_without_it_the_memory_is_filled_anew_and_the_user_is_told(tmp_path, monkeypatch):
    _, training, _ = run_with_replay(tmp_path, monkeypatch, SerialGA3C)
    assert not any(holding_replay(tmp_path / "run"))
    replay, lines = resumed(tmp_path / "run", training.session.config)
    assert not replay._memory.can_sample
    assert lines == [
        "the replay memory was not saved (--save-replay would); it is filled anew with 200 steps before the "
        "training goes on"
    ]


def test_a_damaged_replay_memory_is_filled_anew_and_the_user_is_told(tmp_path, monkeypatch):
    _, training, _ = run_with_replay(tmp_path, monkeypatch, SerialGA3C, save_replay=True)
    newest = list(checkpoint_folders(tmp_path / "run").values())[-1]
    (newest / "replay-00003.npz").write_bytes(b"")
    replay, [line] = resumed(tmp_path / "run", training.session.config)
    assert not replay._memory.can_sample
    assert "cannot be read" in line and "filled anew" in line


def fill_the_disk(monkeypatch, module, name, after):
    """Let a function that writes files fail after so many calls."""
    write = getattr(module, name)
    calls = itertools.count()

    def write_few(*arguments, **more):
        if next(calls) >= after:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(*arguments, **more)

    monkeypatch.setattr(module, name, write_few)


def test_a_full_disk_keeps_the_last_checkpoint_and_its_replay_memory(tmp_path, monkeypatch):
    fill_the_disk(monkeypatch, checkpoints, "json_text", after=1)
    settings = {"save_replay": True, "checkpoint_minutes": 1e-3}
    with pytest.raises(NotSaved, match="No space left on device"):
        run_with_replay(tmp_path, monkeypatch, SerialGA3C, **settings)
    *_, newest = holding_replay(tmp_path / "run")
    assert newest


def test_a_memory_that_does_not_fit_on_the_disk_costs_no_weights(tmp_path, monkeypatch):
    fill_the_disk(monkeypatch, np, "savez", after=8)
    settings = {"save_replay": True, "checkpoint_minutes": 1e-3}
    _, training, _ = run_with_replay(tmp_path, monkeypatch, SerialGA3C, **settings)
    assert [*checkpoint_folders(tmp_path / "run")][-1] == training.session.agent_steps
    assert not any(holding_replay(tmp_path / "run"))
    assert "steps: No space left on device; the weights are" in (tmp_path / "run" / "events.csv").read_text()


KILLED_WHILE_SAVING = """
import os, pathlib, signal
import gymnasium
import numpy as np

gymnasium.register("Pole-v0", "gymnasium.envs.classic_control:CartPoleEnv", max_episode_steps=500)
save = np.savez

def killed(file, **arrays):
    save(file, **arrays)
    whole = max(int(folder.name) for folder in [pathlib.Path("0"), *file.parent.parent.glob("0*")])
    if file.name == "replay-00001.npz" and whole > 1000:
        os.kill(os.getpid(), signal.SIGKILL)

if "KILLED" in os.environ:
    np.savez = killed
"""


def test_a_kill_while_the_memory_is_written_leaves_the_checkpoint_before_with_its_own(tmp_path):
    (tmp_path / "mine.py").write_text(KILLED_WHILE_SAVING)
    run = tmp_path / "run"
    words = ["--algorithm", "dqn", "--agents", 4, "--seed", 1, "--save-replay", "--checkpoint-minutes", 0.01]
    killing = {"cwd": tmp_path, "env": {**ENVIRONMENT, "KILLED": "1"}}
    done = ga3c_tf("train", "mine:Pole-v0", *words, "--run-dir", run, **killing)
    assert done.returncode == -signal.SIGKILL
    assert (run / "checkpoints" / "being-written" / "replay-00001.npz").exists()
    [(before, newest)] = list(checkpoint_folders(run).items())[-1:]
    saved = json.loads((newest / files.HEAD).read_text())["collected"]
    assert 0 < saved <= before and before > 1000
    done = ga3c_tf("resume", run, "--trust-code", "--steps", before + 2000, cwd=tmp_path)
    assert done.returncode == 0 and "filled anew" not in done.stderr, done.stderr
    [(after, newest)] = list(checkpoint_folders(run).items())[-1:]
    collected = json.loads((newest / files.HEAD).read_text())["collected"]
    assert saved + 1500 < collected <= saved + after - before
    assert not (run / "checkpoints" / "being-written").exists()
