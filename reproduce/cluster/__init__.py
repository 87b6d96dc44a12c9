"""Executes the runs of figures on a Ray cluster."""
