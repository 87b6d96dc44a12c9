"""The results folder, the published weights, and the publishing of weights."""
