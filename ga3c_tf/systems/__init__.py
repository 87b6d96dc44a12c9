"""The training systems: GA3C, its single-process version, A2C and A3C."""
