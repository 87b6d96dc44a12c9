"""Runs the figures' trainings on a Ray cluster."""
