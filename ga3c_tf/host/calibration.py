"""The current speed of this machine, measured by three kinds of work that do not use the rest of this
package.

Machines with the same name differ in speed, and the speed of a shared machine changes from hour to hour.
Speeds are compared only where the calibrations before and after them agree. They are also stated as multiples
of `Calibration.unit`.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

SECONDS = 2.0
TOLERANCE = 0.15
"""Share by which the fastest calibration may exceed the slowest, in each kind of work compared."""
ROUNDS = 10
MATRIX_SIZE = 512
COPIED_BYTES = 64 * 2**20
FRAMES_A_CALL = 60
UNIT_FRAMES = 4
UNIT_GFLOP = 0.0267
"""GFLOP of a step with the paper's small network: 7.6 MFLOP to predict and 19.1 for its share of updates."""
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Calibration:
    """Holds the speed of one core.

    Attributes:
        gflops: GFLOP/s of NumPy's product of two float32 matrices of 512 x 512.
        copy_gb_s: GB/s of copying 64 MiB, with each byte counted once.
        frames_s: frames per second of the bare emulator, playing Pong without reading its screen.
    """

    gflops: float
    copy_gb_s: float
    frames_s: float

    @property
    def unit(self) -> float:
        """Agent steps/s of a core if a step were only four frames and the arithmetic of the small network."""
        return 1 / (UNIT_FRAMES / self.frames_s + UNIT_GFLOP / self.gflops)


def agree(calibrations: Iterable[Calibration]) -> bool:
    """Return whether calibrations agree within `TOLERANCE`, so that speeds measured with them may be
    compared.

    Only the two kinds of work that make up a `unit` are compared. The speed of copying is not compared: on a
    shared machine it differs by up to 1.4 times between runs, while the speed of runs depends little on it
    (see the rules on the page of figures).
    """
    columns = zip(*((calibration.gflops, calibration.frames_s) for calibration in calibrations), strict=True)
    return all(max(column) <= (1 + TOLERANCE) * min(column) for column in columns)


def mean(calibrations: Iterable[Calibration]) -> Calibration:
    """Return the mean of one or more calibrations, for each kind of work."""
    columns = zip(*map(dataclasses.astuple, calibrations), strict=True)
    return Calibration(*map(statistics.mean, columns))


def calibrate(seconds: float = SECONDS) -> Calibration:
    """Measure the speed of one core for about `seconds`, in a separate process where NumPy has one thread.

    Raises:
        RuntimeError: the process failed.
    """
    words = [sys.executable, "-m", "ga3c_tf.host.calibration", str(seconds)]
    try:
        done = subprocess.run(
            words, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **ONE_THREAD}
        )
    except (subprocess.SubprocessError, OSError) as error:
        raise RuntimeError(f"the machine's speed could not be measured: {error}") from None
    return Calibration(**json.loads(done.stdout))


def measure(seconds: float) -> Calibration:
    """Measure the three kinds of work in this process for about `seconds` and return medians over `ROUNDS`
    rounds.

    They take turns, so that a disturbance affects all of them.
    """
    kinds = (_matrix_product(), _copy(), _frames())
    each_s = seconds / (ROUNDS * len(kinds))
    rounds = [[_rate(call, amount, each_s) for call, amount in kinds] for _ in range(ROUNDS)]
    return Calibration(*map(statistics.median, zip(*rounds, strict=True)))


def _rate(call: Callable[[], object], amount: float, seconds: float) -> float:
    """Return the work per second when `call` is repeated for about `seconds`; one call does `amount`."""
    calls = 0
    start = time.perf_counter()
    while True:
        call()
        calls += 1
        elapsed = time.perf_counter() - start
        if elapsed >= seconds:
            return calls * amount / elapsed


def _matrix_product() -> tuple[Callable[[], object], float]:
    import numpy as np

    left, right = np.random.default_rng(0).random((2, MATRIX_SIZE, MATRIX_SIZE), np.float32)
    product = np.empty_like(left)
    return lambda: np.matmul(left, right, out=product), 2 * MATRIX_SIZE**3 / 1e9


def _copy() -> tuple[Callable[[], object], float]:
    import numpy as np

    source, target = np.zeros((2, COPIED_BYTES), np.uint8)
    return lambda: np.copyto(target, source), COPIED_BYTES / 1e9


def _frames() -> tuple[Callable[[], object], float]:
    import ale_py
    import ale_py.roms

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    game = ale_py.ALEInterface()
    game.setInt("random_seed", 0)
    game.loadROM(cast(Path, ale_py.roms.get_rom_path("pong")))
    up = game.getMinimalActionSet()[2]

    def play() -> None:
        for _ in range(FRAMES_A_CALL):
            game.act(up)
        if game.game_over():
            game.reset_game()

    return play, FRAMES_A_CALL


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends this one
    print(json.dumps(dataclasses.asdict(measure(float(sys.argv[1])))))
