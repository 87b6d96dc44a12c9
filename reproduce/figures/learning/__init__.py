"""Figures about learning: scores, learning curves, and time or steps to a score."""
