"""The systems that GA3C is compared with: synchronous A2C, and A3C on the CPU."""
