"""What a forkserver has loaded, whose it is, and when it is changed for another."""

import multiprocessing
import sys
import tempfile
from multiprocessing import connection, forkserver

import pytest

from ga3c_tf import processes
from ga3c_tf.processes import forkserver_with, main_module_left_alone

MODULE = "colorsys"  # of the standard library; nothing else here loads it


@pytest.fixture(autouse=True)
def no_forkserver():
    forkserver._forkserver._stop()
    processes._loaded.clear()
    yield
    forkserver._forkserver._stop()
    processes._loaded.clear()


def tell(writer: connection.Connection, wait: connection.Connection | None = None) -> None:
    """Send whether the module is loaded; with a pipe, stay until it is closed."""
    writer.send(MODULE in sys.modules)
    if wait is not None:
        wait.poll(None)


def loaded_in_a_process(context) -> bool:
    reader, writer = connection.Pipe(duplex=False)
    process = context.Process(target=tell, args=(writer,))
    with main_module_left_alone():
        process.start()
    found = reader.recv()
    process.join()
    return found


def test_a_forkserver_that_lacks_a_module_is_changed_for_one_that_has_it():
    """As of a training of A3C, whose processes need TensorFlow, after one of GA3C."""
    assert not loaded_in_a_process(forkserver_with(["ga3c_tf.errors"]))
    first = forkserver._forkserver._forkserver_pid
    assert loaded_in_a_process(forkserver_with([MODULE, "ga3c_tf.errors"]))
    second = forkserver._forkserver._forkserver_pid
    assert loaded_in_a_process(forkserver_with(["ga3c_tf.errors"]))
    assert forkserver._forkserver._forkserver_pid == second != first


def test_a_temporary_folder_with_a_long_path_has_no_sockets(tmp_path, monkeypatch):
    """A path of a socket has 107 bytes at most."""
    folder = tmp_path / ("long" * 20)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    config = multiprocessing.current_process()._config
    monkeypatch.delitem(config, "tempdir", raising=False)
    assert not loaded_in_a_process(forkserver_with(["ga3c_tf.errors"]))
    assert (
        config["tempdir"].startswith("/tmp/")
        and tempfile.gettempdir() == str(folder)
        and not [*folder.iterdir()]
    )


def test_a_forkserver_with_processes_goes_on():
    context = forkserver_with(["ga3c_tf.errors"])
    reader, writer = connection.Pipe(duplex=False)
    wait, closed = connection.Pipe(duplex=False)
    process = context.Process(target=tell, args=(writer, wait), daemon=True)
    with main_module_left_alone():
        process.start()
    try:
        assert reader.recv() is False
        pid = forkserver._forkserver._forkserver_pid
        assert not loaded_in_a_process(forkserver_with([MODULE]))
        assert forkserver._forkserver._forkserver_pid == pid and process in multiprocessing.active_children()
    finally:
        closed.send(0)
        process.join()
