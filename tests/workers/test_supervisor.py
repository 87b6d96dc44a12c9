"""Agent processes that end: which losses are one fault, and which are faults of their own."""

import os
from multiprocessing import connection

import pytest

from ga3c_tf.workers.supervisor import (
    FORKSERVER_DIED,
    STOP_SECONDS,
    AgentSupervisor,
    AlsoLostWithForkserver,
)


def exit_when_told(pipe):
    os._exit(pipe.recv())


@pytest.fixture
def supervisor():
    supervisor = AgentSupervisor(["ga3c_tf.errors"])
    yield supervisor
    supervisor.kill()
    supervisor.join(lambda: None, STOP_SECONDS)


def test_each_process_that_exits_with_255_while_the_others_live_is_a_fault_of_its_own(supervisor):
    """With this exit code, multiprocessing also reports processes whose forkserver has died."""
    writers = []
    for number in range(3):
        reader, writer = connection.Pipe(duplex=False)
        supervisor.start(number, exit_when_told, pipe=reader)
        writers.append(writer)
    for number in range(2):
        [lost] = [sentinel for sentinel, each in supervisor.sentinels().items() if each == number]
        writers[number].send(FORKSERVER_DIED)
        assert connection.wait([lost], 10)
        error = supervisor.error_of(number)
        assert "exit code 255" in str(error) and not isinstance(error, AlsoLostWithForkserver)
