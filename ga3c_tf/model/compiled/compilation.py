"""Compiles programs in parallel."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from ga3c_tf.host.machine import usable_cores
from ga3c_tf.model.compiled.program import Program
from ga3c_tf.model.tensorflow import tf


class CannotCompile(Exception):
    """A model cannot be compiled. The message is the reason, in one line."""


def compile_all(programs: Iterable[Program]) -> None:
    """Compile programs in parallel. They may be traced as the iterable gives them, in this thread.

    Raises:
        CannotCompile: XLA cannot compile one of them.
    """
    pool = ThreadPoolExecutor(usable_cores())
    try:
        compiling = [pool.submit(program.compile) for program in programs]
        for compiled in compiling:
            compiled.result()
    except tf.errors.OpError as error:
        reason = error.message.strip().splitlines()[0]
        raise CannotCompile(f"XLA cannot do it: {reason.split('_JIT: ', 1)[-1]}") from error
    finally:  # also at Ctrl-C
        pool.shutdown(cancel_futures=True)
