"""GA3C on TensorFlow 2: one model on the GPU, many agent processes, predictor and trainer threads."""

__version__ = "0.1.0"
