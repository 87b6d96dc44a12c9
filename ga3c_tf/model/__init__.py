"""Networks, losses, the optimizer and the model. The only package that imports TensorFlow."""
