"""Figures about policy lag: minimum batches, corrections, and how much lag is too much."""
