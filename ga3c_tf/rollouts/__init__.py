"""Code that agents and the server share: rollout buffers, queues and returns. NumPy only."""
