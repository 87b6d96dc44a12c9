"""Publication of a trained agent: a folder with its weights, scores, curve, pictures and card."""
