"""Q-learning: networks whose outputs are the values of actions."""
