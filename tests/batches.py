"""Random batches as the settings of a run make them, and segments with a reference's numbers."""

import itertools
import json
from pathlib import Path

import numpy as np

from ga3c_tf.experience.columns import Batch
from ga3c_tf.workers.minibatches import Minibatches

ACTIONS = 3
SEGMENTS = json.loads((Path(__file__).parent / "data" / "corrections.json").read_text())
"""Segments with the numbers that a reference implementation gives for them."""
PUBLISHED = json.loads((Path(__file__).parent / "data" / "published.json").read_text())
"""A batch, the gradients of its policy loss, summed over the steps, and its measures, by published code."""
SKIPPED = 17
"""Every so many batches one is not finite."""


def batches_of(config, shape, dtype, seed=0):
    """Endless batches as the settings make them, of random steps in segments of 1 to t_max steps."""
    rng = np.random.default_rng(seed)
    for number in itertools.count(1):
        lengths = []
        while sum(lengths) < config.states_per_update:
            lengths.append(int(rng.integers(1, config.t_max + 1)))
        size = sum(lengths)
        states = rng.normal(size=(size, *shape))
        if dtype == "uint8":
            states = np.clip(128 + 40 * states, 0, 255)
        batch = Batch(
            states=states.astype(dtype),
            agents=np.zeros(size, np.int64),
            actions=rng.integers(0, ACTIONS, size).astype(np.int32),
            rewards=rng.normal(size=size).astype(np.float32),
            mu_values=rng.normal(size=size).astype(np.float32),
            mu_log_probabilities=np.log(rng.uniform(0.2, 0.6, size)).astype(np.float32),
            versions=np.zeros(size, np.int64),
            returns=rng.normal(0, 2, size).astype(np.float32),
            lengths=np.array(lengths, np.int32),
            bootstrap_values=rng.normal(size=len(lengths)).astype(np.float32),
        )
        if config.reads("replay_batch"):
            add_samples(batch, rng)
        if number % SKIPPED == 0:
            batch.returns[0] = batch.rewards[-1] = np.nan
        yield batch


def add_samples(batch, rng):
    """Add what only batches from a replay memory have."""
    size = len(batch)
    batch.next_states = batch.states[rng.permutation(size)]
    batch.discounts = rng.choice([0.0, 0.9, 0.81], size).astype(np.float32)
    batch.weights = rng.uniform(0.1, 1, size).astype(np.float32)
    batch.ages = rng.integers(0, 1000, size)


def updates_of(config, model, shape, dtype, seed=0):
    """Endless updates: batches, or the minibatches that the model needs."""
    minibatches = Minibatches(config)
    for batch in batches_of(config, shape, dtype, seed):
        yield from minibatches.of(batch, model.needs_segments)
