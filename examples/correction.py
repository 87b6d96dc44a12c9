"""Compares a correction of policy lag of your own with others: a table of scores on CartPole by lag.

    python examples/correction.py --seeds 3

A2C trains on the batch of as many rounds ago as the lag says, with everything else equal.
"""

from __future__ import annotations

import argparse
import tempfile
from statistics import mean
from typing import Any

import ga3c_tf


def saturating(batch, config):
    """Advantages weighted by 2 r / (1 + r) of the importance ratio r: 1 without lag, and at most 2."""
    import tensorflow as tf

    from ga3c_tf.algorithms.actor_critic import losses

    logarithms = losses.log_policy(batch.logits, log_epsilon=None)
    log_pi = losses.log_taken(logarithms, batch.actions)
    ratio = tf.exp(tf.stop_gradient(log_pi) - batch.mu_log_probabilities)
    weighted = 2 * ratio / (1 + ratio) * (batch.returns - tf.stop_gradient(batch.values))
    entropy = losses.entropy(losses.policy(batch.logits), logarithms)
    policy_loss = -(tf.reduce_sum(log_pi * weighted) + batch.beta * entropy)
    return policy_loss, losses.value_loss(batch.values, batch.returns), entropy


METHODS: dict[str, dict[str, Any]] = {
    "none": {"correction": "none"},
    "one-step": {"correction": "one-step"},
    "ppo": {"correction": "ppo", "clip_ratio": 0.2},
    "saturating": {"loss": saturating},
}


def score(method: str, lag: int, seed: int, steps: int) -> float:
    """Return the mean score of all episodes of a run."""
    with tempfile.TemporaryDirectory() as folder:
        usual: dict[str, Any] = {"system": "a2c", "learning_rate": 4e-3, "progress": False}
        chosen = {"lag": lag} if lag else {}
        run = ga3c_tf.train(
            "CartPole-v1",
            steps=steps + 160 * lag,  # no batch is old enough in the first rounds
            seed=seed,
            run_dir=f"{folder}/run",
            **usual,
            **chosen,
            **METHODS[method],
        )
        if run.summary["ended"] == "interrupted":
            raise KeyboardInterrupt
        return mean(run.episodes()["score"].tolist())


def main(words: list[str] | None = None) -> None:
    """Print the table, a row for each method."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200_000, help="agent steps of a run")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--lags", type=int, nargs="+", default=[0, 4, 16, 64], help="in updates")
    given = parser.parse_args(words)
    print("correction".ljust(12), *(f"lag {lag}".rjust(8) for lag in given.lags))
    for method in METHODS:
        scores = [
            mean(score(method, lag, seed, given.steps) for seed in range(given.seeds)) for lag in given.lags
        ]
        print(method.ljust(12), *(f"{value:8.1f}" for value in scores))


if __name__ == "__main__":
    main()
