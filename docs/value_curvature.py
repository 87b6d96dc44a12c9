"""How far a learning rate is from where updates diverge: the curvature of the value loss on batches of real states.

The value loss of a batch is 0.5 * sum (R - V)^2; its curvature along the weights is, but for what the errors add, the
largest eigenvalue of J J^T, J being the gradient of every state's V. Where RMSProp's mean squares are small against
epsilon, a step is learning rate / sqrt(epsilon) times the gradient, and gradient descent on a quadratic diverges where
that times the curvature is above 2.

    python docs/value_curvature.py results/weights/pong
"""

import sys

import numpy as np

from ga3c_tf.environment import make_environment
from ga3c_tf.evaluate import TrainedAgent
from ga3c_tf.quiet_tensorflow import tf

SEGMENTS, BATCHES, STEPS_BETWEEN = 5, 10, 90


def gradients_of_value(network, states: np.ndarray) -> np.ndarray:
    """The gradient of each state's V by all weights it depends on, float64 [B, weights]."""
    rows = []
    for state in states:
        with tf.GradientTape() as tape:
            value = network(state[None])[1][0]
        parts = tape.gradient(value, network.trainable_variables)  # none for the policy's own layer
        rows.append(np.concatenate([np.ravel(part) for part in parts if part is not None]))
    return np.array(rows, np.float64)


def main(folder: str) -> None:
    """Prints the curvature on batches of `SEGMENTS` segments of play, as the trainer would gather them."""
    agent = TrainedAgent(folder, "best", greedy=False, seed=0, device="/CPU:0", warn=print)
    config = agent.config
    games = [make_environment(config) for _ in range(SEGMENTS)]
    states = np.stack([game.reset(seed=number)[0] for number, game in enumerate(games)])
    curvatures = []
    for _ in range(BATCHES):
        segments = []
        for step in range(STEPS_BETWEEN + config.t_max):
            if step >= STEPS_BETWEEN:
                segments.append(states.copy())
            for number, action in enumerate(agent.act(states)):
                state, _, terminated, truncated, _ = games[number].step(int(action))
                states[number] = games[number].reset()[0] if terminated or truncated else state
        gradients = gradients_of_value(agent.model.network, np.concatenate(segments))
        curvatures.append(float(np.linalg.eigvalsh(gradients @ gradients.T)[-1]))
    steps = np.array(curvatures) / np.sqrt(config.rmsprop_epsilon)
    print(f"curvature on {BATCHES} batches of {SEGMENTS * config.t_max} states:", np.round(curvatures))
    for rate in (3e-4, 1e-3, 5e-3):
        print(f"learning rate {rate:g}: step times curvature {rate * steps.min():.2f} to {rate * steps.max():.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
