"""The folder of a run: settings, logs, statistics, checkpoints and weights."""
