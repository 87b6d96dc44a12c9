"""Environments: Atari, MinAtar, others registered with Gymnasium, and user-defined ones."""
