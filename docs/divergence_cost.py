"""What it costs GA3C to measure its policy lag as a divergence.

python docs/divergence_cost.py [MINUTES], of each setting; prints JSON. In a running training, each update is
drawn at random from three kinds: with the divergence, with what it needs but without it (as most updates
are), or without either. Their processor time in the trainer's thread, divided by that of the whole system for
an update, is the share of the speed that the divergence costs where all cores are busy. Predictions per
second vary too much to show it.
"""

import json
import math
import random
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

from ga3c_tf.config import Config
from ga3c_tf.host.libraries import enable_onednn
from ga3c_tf.host.machine import machine, source_version

WARM_UP = 20.0
KINDS = ("measured", "prepared", "neither")
SETTINGS = {
    "MinAtar Breakout, minimum 20": {"env_id": "MinAtar/Breakout-v1", "min_training_batch": 20},
    "MinAtar Breakout, minimum 0": {"env_id": "MinAtar/Breakout-v1", "min_training_batch": 0},
    "Pong, minimum 20": {"env_id": "ALE/Pong-v5", "min_training_batch": 20},
}


def without_divergence(actor_critic):
    """Compile the gradients again, without the logarithms of the policy that only the divergence reads."""
    from ga3c_tf.model.graph_call import direct_call
    from ga3c_tf.model.tensorflow import tf

    actor_critic._log_taken = lambda logits, actions: tf.zeros((0,))
    return direct_call(actor_critic.trace_gradients())


def processor_seconds() -> float:
    """Return the processor time of this process and its agents."""
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def measure(config: Config, minutes: float) -> dict[str, float]:
    """Train for so long; return milliseconds of updates by kind and of all work, and the cost in percent."""
    from ga3c_tf.experience.divergence import MEASURED_EVERY, UNKNOWN, DivergenceSampler
    from ga3c_tf.runner import new_training
    from ga3c_tf.workers import trainer

    training, folder = new_training(config, sys.argv, print)
    stats = training.session.stats
    model = training.session.model
    network = model._actor_critic
    train = trainer.train
    always = DivergenceSampler(network.loss.bounds, 1).sample
    computed = {
        "measured": network._compute,
        "prepared": network._compute,
        "neither": without_divergence(network),
    }
    times: dict[str, list[float]] = {kind: [] for kind in KINDS}
    total = {}
    turn = threading.Lock()

    def timed(*arguments) -> None:
        with turn:
            kind = random.choice(KINDS)
            network._compute = computed[kind]
            model._divergence.sample = always if kind == "measured" else lambda batch, log_pi: UNKNOWN
            start = time.thread_time()
            train(*arguments)
            times[kind].append(1000 * (time.thread_time() - start))

    def end() -> None:
        while not stats.updates:
            time.sleep(0.1)
        time.sleep(WARM_UP)
        for each in times.values():
            each.clear()
        seconds = processor_seconds()
        updates = stats.updates
        time.sleep(60 * minutes)
        total["ms"] = 1000 * (processor_seconds() - seconds) / (stats.updates - updates)
        training.stop("interrupted")

    trainer.train = timed
    thread = threading.Thread(target=end, daemon=True)
    thread.start()
    training.run()
    thread.join()
    folder.close()
    trainer.train = train

    mean = {kind: statistics.mean(each) for kind, each in times.items()}
    error = {kind: statistics.stdev(each) / math.sqrt(len(each)) for kind, each in times.items()}
    every = MEASURED_EVERY
    cost = mean["measured"] / every + mean["prepared"] * (1 - 1 / every) - mean["neither"]
    scatter = math.hypot(error["measured"] / every, error["prepared"] * (1 - 1 / every), error["neither"])
    return {
        "updates": sum(map(len, times.values())),
        **{f"ms_{kind}": round(value, 4) for kind, value in mean.items()},
        "ms_of_the_system": round(total["ms"], 4),
        "cost_percent": round(100 * cost / total["ms"], 2),
        "interval_95": [round(100 * (cost + sign * 1.96 * scatter) / total["ms"], 2) for sign in (-1, 1)],
    }


def main() -> None:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    enable_onednn()
    found = {}
    for name, settings in SETTINGS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "run")
            config = Config(
                **settings, seed=1, adjustment="off", steps=10**9, run_dir=path, checkpoint_minutes=60
            )
            found[name] = measure(config, minutes)
    command = f"python docs/divergence_cost.py {minutes:g}"
    print(
        json.dumps(
            {"command": command, "machine": machine(), **source_version(), "settings": found}, indent=1
        )
    )


if __name__ == "__main__":
    main()
