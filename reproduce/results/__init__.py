"""The results folder, the published weights, and how weights are published."""
