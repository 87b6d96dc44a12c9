"""The training systems: GA3C, the same in one process, A2C and A3C."""
