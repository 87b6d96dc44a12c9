"""What agents and the server share: the columns of a trajectory, buffers, queues, segments and batches. NumPy only."""
