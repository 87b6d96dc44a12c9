"""What it costs GA3C to measure its policy lag as a divergence: the same training with and without it, in turn.

python docs/divergence_cost.py [MINUTES], of each setting; prints JSON. Every two seconds a running training changes
between the code as it is and an update that computes neither the divergence nor what it needs. A pair is four windows,
with, without, without, with, so that a steady drift of the speed cancels out.
"""

import itertools
import json
import math
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from ga3c_tf.config import Config
from ga3c_tf.host.machine import machine, source_version
from ga3c_tf.host.onednn import enable_onednn
from ga3c_tf.reproduce.measures.effects import paired_ratio

SECONDS = 2.0
SETTLING = 0.3
WARM_UP = 20.0
ORDER = (True, False, False, True)
NEVER = 2**62
SETTINGS = {
    "MinAtar Breakout, minimum 20": {"env_id": "MinAtar/Breakout-v1", "min_training_batch": 20},
    "MinAtar Breakout, minimum 0": {"env_id": "MinAtar/Breakout-v1", "min_training_batch": 0},
    "Pong, minimum 20": {"env_id": "ALE/Pong-v5", "min_training_batch": 20},
}


def without_divergence(actor_critic):
    """Compile the gradients again, without the logarithms of the policy that only the divergence reads."""
    from ga3c_tf.model.actor_critic import COLUMNS
    from ga3c_tf.model.graph_call import direct_call, trace
    from ga3c_tf.model.tensorflow import tf

    actor_critic._log_taken = lambda logits, actions: tf.zeros((0,))
    columns = [tf.TensorSpec((None,), tf.as_dtype(dtype)) for dtype in COLUMNS.values()]
    return direct_call(
        trace(actor_critic._gradient_graph, [actor_critic.states, tf.TensorSpec((), tf.float32), *columns])
    )


def measure(config: Config, minutes: float) -> list[dict[str, float]]:
    """Train for so long, and return the predictions per second of each pair with and without the divergence."""
    from ga3c_tf.model import actor_critic
    from ga3c_tf.runner import new_training

    training, folder = new_training(config, sys.argv, print)
    stats = training.session.stats
    model = training.session.model._actor_critic
    every = actor_critic.MEASURED_EVERY
    computed = {True: model._compute, False: without_divergence(model)}
    speeds: list[tuple[bool, float]] = []

    def alternate() -> None:
        while not stats.updates:
            time.sleep(0.1)
        time.sleep(WARM_UP)
        end = time.monotonic() + 60 * minutes
        for measured in itertools.cycle(ORDER):
            if time.monotonic() > end and len(speeds) % len(ORDER) == 0:
                break
            actor_critic.MEASURED_EVERY = NEVER
            time.sleep(SETTLING)  # until no update is left that would look for what the other one does not compute
            model._compute = computed[measured]
            time.sleep(SETTLING)
            actor_critic.MEASURED_EVERY = every if measured else NEVER
            before, start = stats.predictions, time.monotonic()
            time.sleep(SECONDS)
            speeds.append((measured, (stats.predictions - before) / (time.monotonic() - start)))
        training.stop("interrupted")

    thread = threading.Thread(target=alternate)
    thread.start()
    training.run()
    thread.join()
    folder.close()
    actor_critic.MEASURED_EVERY = every
    return [
        {
            name: statistics.mean(
                speed for is_measured, speed in speeds[first : first + len(ORDER)] if is_measured == measured
            )
            for name, measured in (("with", True), ("without", False))
        }
        for first in range(0, len(speeds), len(ORDER))
    ]


def percent_lost(logarithm: float) -> float:
    return round(100 * (1 - math.exp(logarithm)), 2)


def main() -> None:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    enable_onednn()
    found = {}
    for name, settings in SETTINGS.items():
        with tempfile.TemporaryDirectory() as folder:
            config = Config(
                **settings,
                seed=1,
                adjustment="off",
                steps=10**9,
                run_dir=str(Path(folder) / "run"),
                checkpoint_minutes=60,
            )
            pairs = measure(config, minutes)
        with_it, without = ({number: pair[key] for number, pair in enumerate(pairs)} for key in ("with", "without"))
        ratio = paired_ratio(with_it, without)
        found[name] = {
            "pairs": len(pairs),
            "pps_with": round(statistics.median(with_it.values())),
            "pps_without": round(statistics.median(without.values())),
            "cost_percent": percent_lost(ratio.mean),
            "interval_95": [percent_lost(ratio.high), percent_lost(ratio.low)],
        }
    command = f"python docs/divergence_cost.py {minutes:g}"
    print(json.dumps({"command": command, "machine": machine(), **source_version(), "settings": found}, indent=1))


if __name__ == "__main__":
    main()
