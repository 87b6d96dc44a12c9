"""A3C (Mnih et al. 2016) on the CPU: each agent process updates weights in shared memory."""
