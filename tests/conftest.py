"""Hypothesis draws the same examples in every run, and has no deadline, which a busy machine would miss."""

from hypothesis import settings

settings.register_profile("tests", derandomize=True, deadline=None)
settings.load_profile("tests")
