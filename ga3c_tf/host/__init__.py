"""The host machine: its cores, quotas, memory, scheduling and description."""
