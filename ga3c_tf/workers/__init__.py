"""Agents and their processes, predictor and trainer threads, and the supervision and adjustment of all."""
