"""Mean scores of the random policy on the games that the paper does not have, for the pictures."""

RANDOM_SCORES = {
    "cartpole": 22.6,
    "minatar_asterix": 0.483,
    "minatar_breakout": 0.384,
    "minatar_freeway": 0.419,
    "minatar_seaquest": 0.083,
    "minatar_space_invaders": 4.16,
}
"""By game, over 1,000 episodes of uniformly random actions (seed 1), measured on 24 November 2026."""
