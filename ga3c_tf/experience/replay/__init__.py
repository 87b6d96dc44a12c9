"""The replay memory of Q-learning: steps of all agents, from which batches are sampled. NumPy only."""
