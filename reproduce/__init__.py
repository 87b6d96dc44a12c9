"""Every table and figure of the paper: what to run, what to record of it, how to draw and to judge it."""
