"""Environments and processes that do not end as they should; environments play as `helpers.ShortIsBad`."""

import multiprocessing
import os
import signal
import threading
import time

import gymnasium
from helpers import ShortIsBad

LONG = 600.0
"""Seconds that an environment is in the way of an end: longer than any test waits for it."""


class NeverClosesEnvironment(ShortIsBad):
    """Hangs when it is closed, but only after an episode: the environments that are only looked at close."""

    played = False

    def step(self, action):
        self.played = True
        return super().step(action)

    def close(self):
        if self.played:
            time.sleep(LONG)


class LeavesThreadEnvironment(ShortIsBad):
    """Starts a thread that goes on."""

    def __init__(self):
        threading.Thread(target=time.sleep, args=(LONG,)).start()


class LeavesProcessEnvironment(NeverClosesEnvironment):
    """Starts a process that goes on, and that multiprocessing waits for."""

    def close(self):
        if self.played:
            multiprocessing.current_process().daemon = False  # a daemonic one may start none
            multiprocessing.get_context("fork").Process(target=time.sleep, args=(LONG / 4,)).start()


class RaisesAtCloseEnvironment(ShortIsBad):
    """Raises an error when it is closed."""

    def close(self):
        raise OSError("the simulator has gone")


class InterruptedAtItsStartEnvironment(ShortIsBad):
    """Is made in the sixth process when the user presses Ctrl-C, which reaches the whole process group."""

    def __init__(self):
        if multiprocessing.current_process().name.endswith("-5"):
            os.killpg(0, signal.SIGINT)


class StuckAfterItsEpisodesEnvironment(ShortIsBad):
    """Hangs after one episode, while others still play theirs."""

    begun = 0

    def reset(self, *, seed=None, options=None):
        self.begun += 1
        if self.begun > 1:
            time.sleep(LONG)
        return super().reset(seed=seed, options=options)


class WithoutNumberEnvironment(ShortIsBad):
    """Gives a reward that is not a number."""

    def step(self, action):
        state, _, *ended = super().step(action)
        return state, float("nan"), *ended


def exit_when_told(pipe):
    """Body of a process that ends with the exit code that it gets."""
    os._exit(pipe.recv())


def fork_and_wait(pipe):
    """Body of a process that starts another one, and goes on like it when the server closes the pipe."""
    os.fork()
    time.sleep(LONG)


for kind in [*ShortIsBad.__subclasses__(), LeavesProcessEnvironment]:
    if kind.__module__ == __name__:
        gymnasium.register(f"{kind.__name__.removesuffix('Environment')}-v0", kind)
