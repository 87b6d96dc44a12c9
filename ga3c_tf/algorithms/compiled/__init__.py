"""Models as programs of XLA, for GPUs: padded batches, several updates in one call."""
