"""Runs `ga3c-tf`, and programs, in processes of their own that need not import TensorFlow, which takes 5 s of
processor time each.

A process that has imported everything, but has started nothing of TensorFlow, is forked for each of them.
What comes of it is a process like any other: with its own arguments, folder, environment and streams, its
exit code, and the signals that it is sent. Only `python -m ga3c_tf` itself, and what depends on when modules
are imported, is not tested by it.
"""

import atexit
import contextlib
import gc
import json
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
import types

PRELOADED = (
    "ga3c_tf.systems.a2c",
    "ga3c_tf.systems.a3c.system",
    "ga3c_tf.bench.run",
    "ga3c_tf.cli.main",
    "ga3c_tf.trained.exporting.metadata",
    "ga3c_tf.trained.exporting.network_files",
    "ga3c_tf.systems.serial",
    "ga3c_tf.systems.ga3c.system",
    "ga3c_tf.reproduce.command",
    "ga3c_tf.trained.publishing.publish",
    "ga3c_tf.reproduce.drawing.run_plots",
)
LARGEST_REQUEST = 2**20
STATUS = struct.Struct("i")


class Popen:
    """A command that runs, with what tests use of `subprocess.Popen`.

    Args:
        arguments: the words after `ga3c-tf`; or "-c" and the text of a program, or the name of its file, and
            the words after it.
        options: as for `subprocess.Popen`; output is text.
    """

    def __init__(
        self,
        arguments,
        *,
        stdin=subprocess.DEVNULL,
        stdout=None,
        stderr=None,
        cwd=None,
        env=None,
        start_new_session=False,
        process_group=None,
        preexec_fn=None,
        text=True,
    ):
        assert text and process_group in (None, 0)
        self.args = list(map(str, arguments))
        self.returncode = None
        with contextlib.ExitStack() as given:
            _, source = _stream(stdin, 0, given)
            self.stdout, output = _stream(stdout, 1, given)
            if stderr == subprocess.STDOUT:
                self.stderr, errors = None, output
            else:
                self.stderr, errors = _stream(stderr, 2, given)
            self._status, status = os.pipe()
            given.callback(os.close, status)
            request = {
                "arguments": self.args,
                "cwd": str(cwd or os.getcwd()),
                "env": {name: str(value) for name, value in (os.environ if env is None else env).items()},
                "session": start_new_session,
                "group": process_group == 0,
            }
            self.pid = _template().fork(request, [source, output, errors, status])

    def poll(self):
        return self._take_status(0)

    def wait(self, timeout=None):
        if self._take_status(timeout) is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self.returncode

    def communicate(self, timeout=None):
        """Output and errors, read to their ends, once the command has ended."""
        deadline = None if timeout is None else time.monotonic() + timeout
        texts = {}
        readers = [
            threading.Thread(
                target=lambda name, stream: texts.update({name: stream.read()}), args=each, daemon=True
            )
            for each in (("stdout", self.stdout), ("stderr", self.stderr))
            if each[1] is not None
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
            if reader.is_alive():
                raise subprocess.TimeoutExpired(self.args, timeout)
        self.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        return texts.get("stdout"), texts.get("stderr")

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def _take_status(self, timeout):
        if self.returncode is None and _readable(self._status, timeout):
            [self.returncode] = STATUS.unpack(os.read(self._status, STATUS.size))
            os.close(self._status)
        return self.returncode


def _readable(descriptor, timeout):
    """Whether there is something to read. `select.select` refuses descriptors from 1024 on."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(None if timeout is None else 1000 * timeout))


def run(
    arguments, *, capture_output=True, check=False, timeout=None, **options
) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run`."""
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = Popen(arguments, **options)
    done = subprocess.CompletedProcess(process.args, None, *process.communicate(timeout))
    done.returncode = process.returncode
    if check:
        done.check_returncode()
    return done


def _stream(wanted, usual, given):
    """What this process reads, if anything, and the file descriptor that the command writes to."""
    if wanted == subprocess.PIPE:
        reader, writer = os.pipe()
        given.callback(os.close, writer)
        return open(reader, encoding="utf-8", errors="replace"), writer
    if wanted == subprocess.DEVNULL:
        return None, given.enter_context(open(os.devnull, "r+")).fileno()
    if wanted is None:
        return None, usual
    return None, wanted if isinstance(wanted, int) else wanted.fileno()


class _Template:
    """The process that is forked. It ends when this one does."""

    def __init__(self):
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        with theirs:
            command = [sys.executable, __file__, str(theirs.fileno())]
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        atexit.register(self._end)

    def _end(self) -> None:
        self._socket.close()
        self._process.wait()

    def fork(self, request: dict, descriptors: list[int]) -> int:
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(request).encode()], descriptors)
            return STATUS.unpack(self._socket.recv(STATUS.size))[0]


_templates: list[_Template] = []


def _template() -> _Template:
    if not _templates:
        _templates.append(_Template())
    return _templates[0]


def _serve(connection: socket.socket) -> dict:
    """Forks at each request; returns the request in the forked process, and never in this one."""
    wake_reader, wake_writer = os.pipe()
    os.set_blocking(wake_writer, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wake_writer)
    statuses: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([connection, wake_reader], [], [])
        if wake_reader in ready:
            os.read(wake_reader, 4096)
            _report(statuses)
        if connection in ready:
            message, descriptors, _, _ = socket.recv_fds(connection, LARGEST_REQUEST, 8)
            if not message:
                os._exit(0)
            process = os.fork()
            if not process:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for descriptor in (connection.detach(), wake_reader, wake_writer, *statuses.values()):
                    os.close(descriptor)
                return {**json.loads(message), "descriptors": descriptors}
            *streams, statuses[process] = descriptors
            for descriptor in streams:
                os.close(descriptor)
            connection.send(STATUS.pack(process))


def _report(statuses: dict[int, int]) -> None:
    """Tells of every process that has ended."""
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            writer = statuses.pop(found[0])
            with contextlib.suppress(BrokenPipeError):
                os.write(writer, STATUS.pack(os.waitstatus_to_exitcode(found[1])))
            os.close(writer)


def _become(request: dict) -> None:
    """Makes this process the command."""
    *streams, _ = request["descriptors"]
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    for descriptor in request["descriptors"]:
        os.close(descriptor)
    if request["session"]:
        os.setsid()
    if request["group"]:
        os.setpgid(0, 0)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    first, *others = request["arguments"]
    if first == "-c":
        program, *words = others
        sys.argv = ["-c", *words]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        _exit(_code_of(lambda: exec(program, vars(main))))
    if first.endswith(".py"):
        sys.argv = [first, *others]
        _exit(_code_of(lambda: runpy.run_path(os.path.abspath(first), run_name="__main__")))
    sys.argv = ["ga3c_tf", first, *others]
    _exit(_code_of(lambda: runpy.run_module("ga3c_tf", run_name="__main__", alter_sys=True)))


def _code_of(command) -> int:
    """The exit code that Python would give the command."""
    try:
        command()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _exit(code: int) -> None:
    """Ends as Python does, but leaves modules as they are: tidying them takes a second, and their memory."""
    threading._shutdown()
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = 120
    os._exit(code)


if __name__ == "__main__":
    for module in PRELOADED:
        __import__(module)
    gc.freeze()
    _become(_serve(socket.socket(fileno=int(sys.argv[1]))))
