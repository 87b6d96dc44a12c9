"""Agents on other machines: the same promises as for those here, and real Ray nodes that die."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import helpers
import numpy as np
import pytest
from checks import (
    Killed,
    check_nothing_lost_or_repeated,
    check_segment,
    descendants,
    run_counting,
    wait_for_the_end_of,
)

import ga3c_tf
import ga3c_tf.systems.ga3c.agents
from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.experience.buffers import RolloutBuffers
from ga3c_tf.experience.reply_pipes import assigned_processes
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.remote.cluster import environment_of_processes
from ga3c_tf.remote.nodes import NodeRates
from ga3c_tf.runs.csv_rows import EVENT_COLUMNS, NODE_COLUMNS, read_rows
from ga3c_tf.systems.ga3c.system import GA3C

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
HERE_AND_THERE = {"num_agents": 2, "agent_processes": 2, "remote_agents": 5, "agents_per_actor": 3}


class UntilAllAgentsHaveStepped(GA3C):
    def ended(self, by_budget):
        return by_budget if self.session.memory.steps.min() > 50 else None


def check(model, agents=None):
    for rows in model.batches:
        check_segment(rows, 5)
    trained = [row for rows in model.batches for row in rows]
    check_nothing_lost_or_repeated(trained, agents=agents or len({place[0] for place, _, _ in trained}))


# the bridge, with the actor's agents in its own process


@pytest.fixture
def without_ray(monkeypatch):
    monkeypatch.setattr(ga3c_tf.systems.ga3c.agents, "run_bridge", helpers.run_bridge_without_ray)


@pytest.mark.parametrize(
    "settings", [{}, {"max_training_queue": 1}, {"max_training_queue": 60}, {"agents_per_actor": 1}]
)
def test_every_step_of_a_remote_agent_is_trained_on_once(tmp_path, monkeypatch, without_ray, settings):
    settings = {**HERE_AND_THERE, **settings}
    model, training, summary = run_counting(tmp_path, monkeypatch, UntilAllAgentsHaveStepped, **settings)
    check(model, agents=7)
    assert summary["agent_steps"] == training.session.memory.steps.sum() >= 3000
    assert (
        summary["trained_steps"]
        == sum(map(len, model.batches))
        <= summary["sent_steps"]
        <= summary["agent_steps"]
    )
    waiting = 7 * (training.session.config.segments_per_agent + 1) * 5
    assert summary["agent_steps"] <= summary["trained_steps"] + waiting


def test_the_authors_way_to_cut_segments_goes_with_remote_agents(tmp_path, monkeypatch, without_ray):
    """A segment is then cut one step late, and an episode's last step is dropped: states must still fit."""
    settings = {**HERE_AND_THERE, "train_last_transition": False}
    model, _, _ = run_counting(tmp_path, monkeypatch, UntilAllAgentsHaveStepped, **settings)
    seen = set()
    for rows in model.batches:
        (identity, episode, first), _, _ = rows[0]
        places = [(identity, episode, first + number) for number in range(len(rows))]
        assert [place for place, _, _ in rows] == places and not seen & set(places)
        assert [action for _, action, _ in rows] == [helpers.action_at(*place) for place in places]
        seen |= set(places)
    assert len({place[0] for place in seen}) == 7


def test_bridges_that_are_killed_are_replaced_as_agent_processes_are(tmp_path, monkeypatch, without_ray):
    monkeypatch.setattr(Killed, "kills", 5)
    settings = {
        "num_agents": 4,
        "agent_processes": 2,
        "remote_agents": 8,
        "agents_per_actor": 4,
        "steps": None,
    }
    model, training, summary = run_counting(
        tmp_path, monkeypatch, Killed, max_failures=100, max_training_queue=24, **settings
    )
    assert (
        summary["ended"] == "all again"
        and summary["replaced_processes"] == training.session.lost.count == Killed.kills
    )
    check(model)
    assert summary["trained_steps"] == sum(map(len, model.batches))


def test_a_machine_that_takes_all_its_actors_along_is_one_piece_of_bad_luck(
    tmp_path, monkeypatch, without_ray
):
    class AllDie(Killed):
        kills = 6

        def poll(self, seconds):
            GA3C.poll(self, min(seconds, 0.05))
            if not self._killed and self.session.memory.steps.min() > 50:
                self._killed = self.kills
                for number in list(self.agents.processes)[1:]:
                    os.kill(self.agents.processes._processes[number].pid, signal.SIGKILL)
            elif self._killed and self.all_replaced() and self._after is None:
                self._after = self.session.memory.steps.copy()

    settings = {
        "num_agents": 1,
        "agent_processes": 1,
        "remote_agents": 6,
        "agents_per_actor": 1,
        "steps": None,
    }
    model, training, summary = run_counting(tmp_path, monkeypatch, AllDie, max_failures=0, **settings)
    assert summary["ended"] == "all again" and training.session.lost.count == 6
    check(model, agents=1 + 6 + 6)


def test_what_each_machine_did_is_logged(tmp_path, monkeypatch, without_ray):
    settings = {**HERE_AND_THERE, "log_seconds": 0.2, "minutes": 0.05, "steps": None}
    run_counting(tmp_path, monkeypatch, UntilAllAgentsHaveStepped, **settings)
    rows = [
        row for row in read_rows(tmp_path / "run" / "nodes.csv", NODE_COLUMNS) if row["node"] != "connecting"
    ]
    there = [row for row in rows if row["node"] == "there"]
    assert {row["node"]: row["agents"] for row in rows} == {"server": "2", "there": "5"}
    assert all(row["round_trip_ms"] == "" for row in rows if row["node"] == "server")
    assert max(float(row["round_trip_ms"]) for row in there if row["round_trip_ms"]) > 0
    assert max(float(row["pps"]) for row in there) > 0


def test_rates_of_machines_are_of_their_own_agents_and_of_the_time_since_the_last_look():
    config = Config(
        env_id="CartPole-v1", num_agents=3, remote_agents=4, agents_per_actor=2, agent_processes=1
    )
    memory = RolloutBuffers(config, EnvironmentSpec((4,), "float32", 2))
    homes = assigned_processes(config, 1)
    assert homes.tolist() == [0, 0, 0, 1, 1, 2, 2]
    memory.nodes[1] = b"a"
    memory.nodes[2] = b"b"
    memory.steps[:] = 1000
    rates = NodeRates(memory, lambda agent: int(homes[agent]))
    memory.steps[:] += [10, 10, 10, 0, 0, 7, 0]
    memory.round_trips[2] += 0.5, 100
    lags = np.array([4.0, 0, 0, 0, 0, 9, 3])
    trained = np.array([2.0, 0, 0, 0, 0, 3, 1])
    here, a, b = rates.rows(range(7), lags, trained)
    assert (here["node"], here["agents"], here["policy_lag_mean"]) == ("server", 3, 2.0)
    assert (a["node"], a["agents"], a["pps"]) == ("a", 2, 0.0) and np.isnan(
        [a["policy_lag_mean"], a["round_trip_ms"]]
    ).all()
    assert (b["node"], b["policy_lag_mean"]) == ("b", 3.0) and b["round_trip_ms"] == pytest.approx(5.0)
    assert here["pps"] / b["pps"] == pytest.approx(30 / 7)
    assert all(row["pps"] == 0 for row in rates.rows(range(7), lags, trained))


# real Ray


@pytest.fixture(scope="module")
def cluster():
    """A head without CPUs, as the server's machine should be, and two nodes with room for all agents each."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(2):
        cluster.add_node(num_cpus=2)
    yield cluster
    cluster.shutdown()


def train(address, folder, *options):
    words = ["train", "helpers:Paced-v0", "--agents", "2", "--remote-agents", "4", "--agents-per-actor", "2"]
    words += [
        "--adjustment",
        "off",
        "--ray",
        address,
        "--run-dir",
        str(folder),
        "--log-seconds",
        "0.5",
        *options,
    ]
    return subprocess.run(
        [sys.executable, "-m", "ga3c_tf", *words], capture_output=True, text=True, env=ENVIRONMENT
    )


@pytest.mark.slow
def test_a_node_that_dies_loses_no_step_and_its_agents_go_on_elsewhere(tmp_path, monkeypatch, cluster):
    class NodeDies(GA3C):
        """Kills the node of one actor once all agents have stepped, and goes on until they do elsewhere."""

        def __init__(self, session):
            super().__init__(session, ray=cluster.address)
            self.victim = self._elsewhere = None

        def places(self):
            return {self.session.memory.nodes[process].decode()[-8:] for process in (1, 2)}

        def poll(self, seconds):
            super().poll(min(seconds, 0.1))
            if self.victim is None and self.session.memory.steps.min() > 50:
                self.victim = sorted(self.places())[0]
                [node] = [each for each in cluster.worker_nodes if each.node_id.startswith(self.victim)]
                cluster.remove_node(node, allow_graceful=False)
            if (
                self.victim
                and self._elsewhere is None
                and not self.places() & {self.victim, "connecting"[-8:]}
            ):
                self._elsewhere = self.session.memory.steps.copy()

        def ended(self, by_budget):
            steps = self.session.memory.steps
            again = self._elsewhere is not None and (steps - self._elsewhere).min() > 50
            return by_budget or ("all again" if again else None)

    settings = {
        "num_agents": 2,
        "agent_processes": 1,
        "remote_agents": 4,
        "agents_per_actor": 2,
        "steps": None,
    }
    model, training, summary = run_counting(
        tmp_path, monkeypatch, NodeDies, env_id="helpers:Counting-v0", minutes=3.0, **settings
    )
    assert summary["ended"] == "all again" and summary["replaced_processes"] >= 1
    check(model)
    assert summary["trained_steps"] == sum(map(len, model.batches)) <= summary["sent_steps"]
    events = read_rows(tmp_path / "run" / "events.csv", EVENT_COLUMNS)
    assert all(row["event"] == "lost" for row in events) and "agents begin anew" in events[0]["why"]
    assert training.system.victim not in training.system.places()


@pytest.mark.slow
def test_a_run_with_remote_agents_from_the_command_line_and_again(tmp_path, cluster):
    done = train(cluster.address, tmp_path / "run", "--steps", "12000", "--seed", "1")
    assert done.returncode == 0, done.stderr
    rows = read_rows(tmp_path / "run" / "nodes.csv", NODE_COLUMNS)
    assert sum(float(row["pps"]) > 0 for row in rows if row["node"] not in ("server", "connecting")) > 0
    words = [sys.executable, "-m", "ga3c_tf", "resume", str(tmp_path / "run"), "--steps", "14000"]
    words.append("--trust-code")
    refused = subprocess.run(words, capture_output=True, text=True, env=ENVIRONMENT)
    assert (
        refused.returncode == 2
        and "4 remote agents need a Ray cluster: the command's --ray ADDRESS" in refused.stderr
    )
    words += ["--ray", cluster.address]
    resumed = subprocess.run(words, capture_output=True, text=True, env=ENVIRONMENT)
    assert resumed.returncode == 0, resumed.stderr


@pytest.mark.slow
def test_what_the_cluster_can_never_do_is_refused_at_once(tmp_path, cluster):
    done = train(cluster.address, tmp_path / "run", "--remote-agents", "100")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "the remote agents want 50 CPUs" in done.stderr and not (tmp_path / "run").exists()


def test_no_cluster_is_one_clear_line(tmp_path):
    pytest.importorskip("ray")
    done = train("127.0.0.1:1", tmp_path / "run")
    assert done.returncode == 2 and "--ray 127.0.0.1:1: no cluster to use there" in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1 and not (tmp_path / "run").exists()


@pytest.mark.slow
def test_the_server_killed_leaves_no_actor_behind(tmp_path, cluster):
    words = [
        "train",
        "CartPole-v1",
        "--agents",
        "1",
        "--remote-agents",
        "2",
        "--adjustment",
        "off",
        "--seed",
        "1",
    ]
    words += ["--ray", cluster.address, "--run-dir", str(tmp_path / "run"), "--log-seconds", "0.5"]
    process = subprocess.Popen([sys.executable, "-m", "ga3c_tf", *words], stderr=subprocess.DEVNULL)
    actors = set()
    while not actors and process.poll() is None:
        time.sleep(0.2)
        actors = {
            pid
            for node in cluster.list_all_nodes()
            for pid in descendants(os.getpid())
            if _title(pid).startswith("ray::RemoteAgents")
        }
    assert actors
    family = descendants(process.pid) | {process.pid}
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    wait_for_the_end_of(family | actors)


def _title(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as stream:
            return stream.read().replace("\0", " ")
    except OSError:
        return ""


def test_settings_that_do_not_go_together_are_refused():
    with pytest.raises(UserError, match="--remote-agents 2 is for --system ga3c; --system serial requires"):
        Config(system="serial", remote_agents=2)
    with pytest.raises(UserError, match="--remote-agents 2 is for --system ga3c; --system a3c requires"):
        Config(system="a3c", remote_agents=2)


def test_a_file_of_the_users_is_not_taken_for_a_module_of_pythons_own_elsewhere(tmp_path, monkeypatch):
    """What other machines are told of where code is, by a process in a folder with a queue.py."""
    here = tmp_path / "here"
    elsewhere = tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    (here / "queue.py").write_text("raise RuntimeError('this is no module of Python')")
    (here / "only_here.py").write_text("def loss(): pass")
    monkeypatch.chdir(here)
    program = (
        "import queue; from ga3c_tf.plugins import users_function; users_function('only_here:loss', 'loss')"
    )
    environment = {**os.environ, **environment_of_processes()}
    subprocess.run([sys.executable, "-c", program], cwd=elsewhere, env=environment, check=True)


def test_a_checkout_beside_the_folder_of_python_is_found_elsewhere(monkeypatch):
    """Its name may begin as that of Python's own folder does."""
    ours = str(Path(ga3c_tf.__file__).parents[1])
    monkeypatch.setattr(sys, "prefix", ours[:-1])
    monkeypatch.setattr(sys, "base_prefix", ours[:-1])
    places = environment_of_processes()["PYTHONPATH"].split(os.pathsep)
    assert places[0] == ours and not any("site-packages" in place for place in places)
