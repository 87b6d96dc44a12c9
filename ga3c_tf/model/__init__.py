"""Networks, losses, optimizers and the model. No other package imports TensorFlow."""
