"""Networks, optimizers, devices, and the contract of the weights. TensorFlow is imported here only."""
