"""Runs of the counting environment, and what must hold for each; processes, and whether they live.

Not in helpers.py, which agent processes import: they have no TensorFlow.
"""

import collections
import contextlib
import ctypes
import itertools
import os
import pickle
import random
import signal
import subprocess
import threading
import time
from pathlib import Path

import helpers
import pytest
import warm

import ga3c_tf.systems.a2c
import ga3c_tf.systems.session
from ga3c_tf.config import Config
from ga3c_tf.config.rates import Rates
from ga3c_tf.environments.environment import describe_environment
from ga3c_tf.experience.columns import Batch
from ga3c_tf.host.processes import process_group
from ga3c_tf.runs.folder import RunFolder
from ga3c_tf.systems.a3c import process as a3c_process
from ga3c_tf.systems.a3c.replica import replica
from ga3c_tf.systems.a3c.shared_weights import SharedWeights
from ga3c_tf.systems.ga3c.system import GA3C
from ga3c_tf.systems.training import Training

GAMMA = 0.9
PATIENCE = 100.0
"""Seconds that only what hangs takes, however slow and busy the machine is."""


def run_counting(
    tmp_path, monkeypatch, kind, env_id="helpers:Counting-v0", model=helpers.CheckingModel, **settings
):
    """Trains the checking model with the system `kind`; returns it, the training and its summary.

    It goes on until every agent has sent segments, however late a process starts on a busy machine. A system
    of the tests may have a method `ended`: given why the budget ends the training, or None, it returns why
    the training ends.
    """
    monkeypatch.setattr(ga3c_tf.systems.session, "new_model", model)
    monkeypatch.setattr(ga3c_tf.systems.a2c, "LAST_ROUND_SECONDS", PATIENCE)
    config = Config(
        **{
            "env_id": env_id,
            "seed": 3,
            "steps": 3000,
            "gamma": GAMMA,
            "num_agents": 6,
            "agent_processes": 3,
            "min_training_batch": 0,
            "run_dir": str(tmp_path / "run"),
            **settings,
        }
    )
    run = RunFolder(tmp_path / "run", config)

    training = Training(kind, config, describe_environment(config), run, "/CPU:0", print)
    session = training.session
    by_budget = session.ended

    def ended():
        if config.steps is not None and session.memory.steps[: config.num_agents].min() <= 50:
            return None
        return training.system.ended(by_budget()) if hasattr(training.system, "ended") else by_budget()

    session.ended = ended
    (tmp_path / "run").mkdir()
    return session.model, training, training.run()


class KeepingModel(helpers.CheckingModel):
    """Keeps the batches whole, each with the version of the model after its update."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.whole = []

    def update(self, batch, rates):
        result = super().update(batch, rates)
        self.whole.append((batch, result.version))
        return result


def before_updates(monkeypatch, action):
    """Calls `action(model, rates)` before each update of the checking model."""
    original = helpers.CheckingModel.update

    def update(self, batch, rates):
        action(self, rates)
        return original(self, batch, rates)

    monkeypatch.setattr(helpers.CheckingModel, "update", update)


def slow_updates(monkeypatch, seconds):
    """Makes each update of the checking model take so many seconds longer."""
    before_updates(monkeypatch, lambda *_: time.sleep(seconds))


def poisoned(monkeypatch, updates):
    """Makes the checking model skip the updates with these numbers, from 0, as if a loss was not finite."""
    original = helpers.CheckingModel.update
    numbers = itertools.count()

    def update(self, *args):
        number = next(numbers)
        result = original(self, *args)
        if number in updates:
            return result._replace(metrics={**result.metrics, "value_loss": float("nan")}, applied=False)
        return result

    monkeypatch.setattr(helpers.CheckingModel, "update", update)


def update(model, batch, learning_rate, beta):
    """Make one update of a model on a batch; returns its result."""
    [result] = model.train([batch], Rates(learning_rate, beta))
    return result


def batch_of(states, actions, returns, **columns):
    """A training batch with the columns that the paper's loss reads, and others that are given."""
    return Batch(states=states, actions=actions, returns=returns, **columns)


class Killed(GA3C):
    """Kills an agent process every `pause` seconds, `kills` times, and goes on until all agents have stepped
    again.

    It begins after a pause, when all agents have stepped.
    """

    kills = 10
    pause = 0.2

    def start(self):
        super().start()
        self._random = random.Random(0)
        self._killed = 0
        self._next = time.monotonic() + self.pause
        self._after = None

    def poll(self, seconds):
        super().poll(min(seconds, 0.05))
        steps = self.session.memory.steps
        if self._killed < self.kills and time.monotonic() >= self._next:
            stepped = self._killed > 0 or steps[self.agents.all()].min() > 10
            processes = self.agents.processes._processes
            if stepped and self.session.lost.count == self._killed:  # else one could be killed twice
                self._next = time.monotonic() + self.pause
                os.kill(self._random.choice(list(processes.values())).pid, signal.SIGKILL)
                self._killed += 1
        elif self._killed == self.kills and self.all_replaced() and self._after is None:
            self._after = steps.copy()

    def all_replaced(self):
        return self.session.lost.count >= self.kills

    def ended(self, by_budget):
        steps = self.session.memory.steps
        all_again = self._after is not None and (steps - self._after)[self.agents.all()].min() > 100
        return by_budget or ("all again" if all_again else None)


class HeldBack(GA3C):
    """Does no update until its agents have stepped and then have stood still for a second.

    Attributes:
        stood_still: whether they did so before the run ended.
        waiting: number of segments in the training queue then.
    """

    def start(self):
        model = self.session.model
        train = model.train
        begin = threading.Event()

        def wait_and_train(*args):
            begin.wait()
            return train(*args)

        model.train = wait_and_train
        threading.Thread(target=self._watch, args=[begin], daemon=True).start()
        super().start()

    def _watch(self, begin):
        session = self.session
        steps = 0
        changed = time.monotonic()

        def stands_still():
            nonlocal steps, changed
            now = time.monotonic()
            if session.agent_steps != steps:
                steps = session.agent_steps
                changed = now
            waits = len(session.training_queue) > 1  # else some agents may be about to start
            return waits and now > changed + 1 and not session.ended()

        self.stood_still = wait_until(stands_still)
        self.waiting = len(session.training_queue)
        begin.set()


def check_segment(rows, t_max, cut=False):
    """One segment: consecutive steps of one episode, the right actions, and returns with the right bootstrap.

    One that is neither full nor at the end of its episode must have been `cut`.
    """
    (identity, episode, first), _, _ = rows[0]
    assert 1 <= len(rows) <= t_max
    places = [(identity, episode, first + number) for number in range(len(rows))]
    assert [place for place, _, _ in rows] == places
    assert [action for _, action, _ in rows] == [helpers.action_at(*place) for place in places]
    end = first + len(rows)
    if end == helpers.episode_length(identity, episode) and not helpers.is_truncated(identity, episode):
        bootstrap = 0.0
    else:
        assert cut or end == helpers.episode_length(identity, episode) or len(rows) == t_max
        bootstrap = helpers.value_at(identity, episode, end)
    rewards = [max(-1.0, min(1.0, helpers.reward_at(*place))) for place in places]
    expected = [
        sum(GAMMA ** (k - i) * reward for k, reward in enumerate(rewards) if k >= i)
        + GAMMA ** (len(rewards) - i) * bootstrap
        for i in range(len(rewards))
    ]
    assert [value for _, _, value in rows] == pytest.approx(expected, rel=1e-6, abs=1e-5)


def check_nothing_lost_or_repeated(rows, agents):
    """Each environment's steps from its first, each once, without a gap."""
    by_agent = collections.defaultdict(list)
    for place, _, _ in rows:
        by_agent[place[0]].append(place[1:])
    assert len(by_agent) == agents
    for identity, trained in by_agent.items():
        expected = [
            (episode, step)
            for episode in range(max(trained)[0] + 1)
            for step in range(helpers.episode_length(identity, episode))
        ]
        assert sorted(trained) == expected[: expected.index(max(trained)) + 1]


def shared_weights_of(model, agents=1):
    """Shared weights that begin as the model's."""
    objects = {group: found for group, found in model.checkpoint_objects().items() if group != "version"}
    shared = SharedWeights(
        {group: [tuple(v.shape) for v in found] for group, found in objects.items()}, agents
    )
    for group, variables in objects.items():
        for array, variable in zip(shared.groups[group], variables, strict=True):
            array[...] = variable.numpy()
    return shared


def replica_of(model, config, spec):
    """An A3C agent's replica that begins with the model's weights and statistics."""
    return replica(config, spec, shared_weights_of(model), agent=0)


class CheckingReplica(helpers.CheckingModel):
    """Stands in for the replica in an A3C agent's process; leaves its batches in the run folder."""

    def __init__(self, config, spec, shared, agent):
        super().__init__()
        self._shared = shared
        self._agent = agent
        self._file = (Path(config.run_dir) / f"agent-{agent}").open("ab")
        self._copied_version = shared.version

    def predict(self, states):
        prediction = super().predict(states)
        self.chosen.update({helpers.decode(state): self._copied_version for state in states})
        return prediction._replace(version=self._copied_version)

    def update(self, *args):
        super().update(*args)
        rows = self.batches.pop()
        version = self._shared.version + 1
        self._shared.updates[self._agent] += 1
        self._copied_version = self._shared.version
        pickle.dump((rows, [version - 1 - self.chosen[place] for place, _, _ in rows]), self._file)
        self._file.flush()
        return helpers.update_result(version)


def run_checking_agent(*args):
    """The A3C agent process with a checking replica."""
    a3c_process.replica = CheckingReplica
    a3c_process.run_agent(*args)


def batches_of_agents(folder):
    """The batches that checking replicas left in a run folder, and the policy lag of each state of them."""
    found = []
    for path in folder.glob("agent-*"):
        with path.open("rb") as stream, contextlib.suppress(EOFError):
            while True:
                found.append(pickle.load(stream))
    return found


def parent_of(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def descendants(pid: int) -> set[int]:
    children = {int(path.name) for path in Path("/proc").glob("[0-9]*") if parent_of(int(path.name)) == pid}
    return children.union(*(descendants(child) for child in children))


def alive(pids: set[int]) -> set[int]:
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            if ") Z " not in Path(f"/proc/{pid}/stat").read_text():
                found.add(pid)
    return found


def wait_until(condition) -> bool:
    """Wait until `condition()` is true, and return whether it was within `PATIENCE`."""
    deadline = time.monotonic() + PATIENCE
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(0.03)
    return met


def wait_for_the_end_of(children: set[int]) -> None:
    """Wait until these processes have ended, and fail if some are left."""
    assert wait_until(lambda: not alive(children)), f"{len(alive(children))} processes are left"


def group_ended(leader: int) -> bool:
    """Return whether all processes of a group end."""
    return wait_until(lambda: not process_group(leader))


def freeze_agents(server: int, children: set[int]) -> None:
    """Stops the agent processes, so that they do not end when they are asked to."""
    forked = set().union(*(descendants(child) for child in children if parent_of(child) == server))
    assert forked
    for pid in forked:
        os.kill(pid, signal.SIGSTOP)


def send_two_signals(process) -> None:
    """Sends a process SIGINT, and SIGTERM before it has ended: it is stopped until both wait for it.

    They are sent to its main thread: two threads could take them in the other order.
    """
    process.send_signal(signal.SIGSTOP)
    for number in (signal.SIGINT, signal.SIGTERM):
        assert ctypes.CDLL(None).tgkill(process.pid, process.pid, number) == 0
    process.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def start_training(folder, *options, output=subprocess.PIPE):
    """A CartPole training in a process of its own, once it has saved something learned, with all its
    descendants.

    Both its standard output and its standard error go to `output`.
    """
    words = ["train", "CartPole-v1", "--run-dir", folder, *options]
    words += ["--log-seconds", "0.2", "--checkpoint-minutes", "0.01"]
    process = warm.Popen(words, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        while process.poll() is None:  # a test's time limit ends it if nothing else does
            time.sleep(0.1)
            if any(int(path.name) for path in (folder / "checkpoints").glob("0*")):
                break
        children = descendants(process.pid)
        assert len(children) >= 4, process.stdout.read() if process.poll() is not None else "no children"
        yield process, children
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
