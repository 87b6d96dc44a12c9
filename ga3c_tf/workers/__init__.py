"""Agent processes, predictor and trainer threads, and what watches and adjusts them."""
