"""Environments: Atari, MinAtar, any registered with Gymnasium, and the user's own."""
