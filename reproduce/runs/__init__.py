"""Specifications of runs, their execution, and what they recorded."""
