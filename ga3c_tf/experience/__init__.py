"""What agents and server share: a trajectory's columns, buffers, queues, segments and batches. NumPy only."""
