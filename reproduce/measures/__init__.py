"""Records of measured values, the rules of verdicts, and how numbers are written."""
