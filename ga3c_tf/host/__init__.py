"""What the machine offers: cores, quotas, memory, scheduling, and its description."""
