"""GA3C: agent processes, predictor threads and trainer threads around one model (section 4 of the paper)."""
