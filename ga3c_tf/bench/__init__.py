"""Measures the speed of each component and of the whole system, and says what limits it."""
