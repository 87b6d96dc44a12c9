"""Records of measured values, their statistics, the rules for verdicts, and the formatting of numbers."""
