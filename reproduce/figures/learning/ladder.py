"""What the options of later actor-critics bring, added one after the other to the paper's settings.

These runs choose settings, so their seeds are 101 and up. The chosen settings are then judged on seeds 1 to
3.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ga3c_tf.reproduce.figures.figure import Figure
from ga3c_tf.reproduce.figures.measurements import Row
from ga3c_tf.reproduce.figures.metrics import END, SCORE, final_score, score_of_run
from ga3c_tf.reproduce.figures.plans import workers
from ga3c_tf.reproduce.figures.tables import MINUTES, means_of
from ga3c_tf.reproduce.runs.specs import run_spec

FIRST_SEED = 101
SEEDS = {"pong": 3, "minatar_breakout": 1, "minatar_asterix": 1}
"""Number of seeds of the last rung by game; the other rungs have one."""
STEPS = 1_500_000
PAPER = "the paper's settings"
PONG_FIRST = "the paper's settings, but a smaller RMSProp epsilon and learning rate"
"""Run *e* of docs/pong.md: the authors' epsilon and default rate learn too slowly on Pong to be compared."""
REUSED = "+ samples reused"
ADVANTAGES = "+ generalized advantages"
LARGER = "+ long segments, large batches"
STANDARDIZED = "+ standardized pixels"
FALLING = "+ falling learning rate"
Settings = dict[str, Any]

# The summed gradient of 128 steps is 128 times their mean gradient. To keep the sizes of updates comparable,
# the reuse of samples comes with mean losses and an optimizer whose steps do not depend on the size of the
# gradient.
REUSE: Settings = {
    **workers(16, 1, 1),
    "minibatch_size": 128,
    "optimizer": "adam",
    "loss_reduction": "mean",
    "value_coefficient": 0.5,
    "grad_clip_global": 0.5,
    "clip_ratio": 0.2,
}
ADDED_LATER: dict[str, Settings] = {
    ADVANTAGES: {"advantage": "gae", "normalize_advantages": True},
    "+ orthogonal weights": {"initialization": "orthogonal", "normalize_images": True},
}
CHANGES: dict[str, dict[str, Settings]] = {
    "pong": {
        PONG_FIRST: {"rmsprop_epsilon": 1e-4},
        REUSED: {**REUSE, "t_max": 16, "min_training_batch": 255, "epochs": 3},
        **ADDED_LATER,
        LARGER: {"t_max": 128, "min_training_batch": 1023},
        "+ RMSProp, which has no momentum": {"optimizer": "rmsprop", "rmsprop_epsilon": 1e-9},
        "+ half of the agents, so less policy lag": {"num_agents": 8},
        STANDARDIZED: {"normalize_images": False, "normalize_observations": True},
        FALLING: {"learning_rate_end": 0.0, "anneal_steps": 4_000_000},
    },
    "minatar": {
        PAPER: {},
        REUSED: {**REUSE, "t_max": 32, "min_training_batch": 511, "epochs": 4},
        **ADDED_LATER,
        FALLING: {"learning_rate_end": 0.0, "anneal_fraction": 1.0},
        LARGER: {"num_agents": 64, "t_max": 128, "min_training_batch": 4095, "minibatch_size": 1024},
    },
}
RATES: dict[str, dict[str, tuple[float, ...]]] = {
    "pong": {PONG_FIRST: (3e-4,), STANDARDIZED: (2e-4, 5e-4), FALLING: (2e-4,)},
    "minatar": {PAPER: (1e-3, 2e-3, 4e-3), LARGER: (5e-3, 1e-2, 2e-2)},
}
OTHER_RATES = {"pong": (5e-4,), "minatar": (3e-4, 1e-3, 3e-3)}
"""Learning rates that a rung is run with: three on MinAtar, where a run takes minutes."""


def rungs(game: str) -> dict[str, Settings]:
    """Return the settings of each rung, by the name of what it changes in the rung before."""
    first, *later = CHANGES[game.split("_")[0]].items()
    ladder = {first[0]: {**workers(32), "min_training_batch": 20, **first[1]}}
    settings: Settings = {}
    for name, changed in later:
        settings = settings | changed
        ladder[name] = settings
    return ladder


class LadderFigure(Figure):
    """All rungs with the first seed, and the last one with the other seeds."""

    name = "ladder"
    games = {"smoke": ("cartpole",), "tuned": tuple(SEEDS)}
    only = tuple(SEEDS)
    first_seed = FIRST_SEED
    smoke = (
        {"called": (PAPER, "rate 0.001")},
        {**ADDED_LATER[ADVANTAGES], "epochs": 2, "clip_ratio": 0.2, "called": (REUSED, "rate 0.001")},
    )
    labels = {"rung": str, "rate": lambda word: float(word.removeprefix("rate "))}
    measured = (final_score, score_of_run)
    main = (END, "points")
    lines = "rung"
    rows = ("game", "rung", "rate")
    columns = {**means_of(END, SCORE), **MINUTES}

    def seeds(self, budget, game):
        return 1 if budget == "smoke" else SEEDS.get(game, 1)

    def planned(self, budget, game, seed):
        kind = game.split("_")[0]
        ladder = rungs(game)
        names = list(ladder) if seed == FIRST_SEED else list(ladder)[-1:]
        usual: dict[str, Any] = {"steps": STEPS, "log_seconds": 30.0}
        return [
            run_spec(game, seed, **ladder[name], learning_rate=rate, **usual).called(name, f"rate {rate:g}")
            for name in names
            for rate in RATES[kind].get(name, OTHER_RATES[kind])
        ]

    def drawn(self, table):
        """Return for each rung the runs at the learning rate with the highest mean score over all steps."""
        rows: list[Row] = []
        for _, part in table.parts("game", "rung"):
            best = part.series(SCORE, ["rate"])
            rows += part.select(rate=best.idxmax()).rows if len(best) else []
        return replace(table, rows=rows)
