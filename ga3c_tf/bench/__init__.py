"""The benchmark: measures the speed of each component and of the whole system, and reports what limits it."""
