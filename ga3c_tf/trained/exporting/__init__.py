"""Export of a trained agent for programs without this package: a file of the network, and its metadata."""
