"""What the options of later actor-critics bring, added one after the other to the paper's settings.

These runs choose settings, so their seeds are 101 and up. The chosen settings are then judged on seeds 1 to
3.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.figures import pictures
from ga3c_tf.reproduce.figures.figure import Figure, Measure, Table, mean_of, minutes, smoke_spec, unfinished
from ga3c_tf.reproduce.figures.learning.learning_curves import FINAL
from ga3c_tf.reproduce.figures.measurements import Measurements, label
from ga3c_tf.reproduce.figures.training import SCORE, final_score, score_of_run
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import RunSpec, run_spec

FIRST_SEED = 101
SEEDS = {"pong": 3, "minatar_breakout": 1, "minatar_asterix": 1}
"""Number of seeds of the last rung by game; the other rungs have one."""
STEPS = {"pong": 1_500_000, "minatar_breakout": 1_500_000, "minatar_asterix": 1_500_000}
PAPER = "the paper's settings"
PONG_FIRST = "the paper's settings, but a smaller RMSProp epsilon and learning rate"
"""Run *e* of docs/pong.md: the authors' epsilon and default rate learn too slowly on Pong to be compared."""
Settings = dict[str, Any]

# The summed gradient of 128 steps is 128 times their mean gradient. To keep the sizes of updates comparable,
# the reuse of samples comes with mean losses and an optimizer whose steps do not depend on the size of the
# gradient.
REUSE: Settings = {
    "num_agents": 16,
    "num_predictors": 1,
    "num_trainers": 1,
    "minibatch_size": 128,
    "optimizer": "adam",
    "loss_reduction": "mean",
    "value_coefficient": 0.5,
    "grad_clip_global": 0.5,
}
PONG_REUSE = REUSE | {"t_max": 16, "min_training_batch": 255, "epochs": 3, "clip_ratio": 0.2}
MINATAR_REUSE = REUSE | {"t_max": 32, "min_training_batch": 511, "epochs": 4, "clip_ratio": 0.2}
ADDED_LATER: dict[str, Settings] = {
    "+ generalized advantages": {"advantage": "gae", "normalize_advantages": True},
    "+ orthogonal weights": {"initialization": "orthogonal", "normalize_images": True},
}
LARGER = "+ long segments, large batches"
STANDARDIZED = "+ standardized pixels"
FALLING = "+ falling learning rate"
ADDED_LAST: dict[str, dict[str, Settings]] = {
    "pong": {
        LARGER: {"t_max": 128, "min_training_batch": 1023},
        "+ RMSProp, which has no momentum": {"optimizer": "rmsprop", "rmsprop_epsilon": 1e-9},
        "+ half of the agents, so less policy lag": {"num_agents": 8},
        STANDARDIZED: {"normalize_images": False, "normalize_observations": True},
        FALLING: {"learning_rate_end": 0.0, "anneal_steps": 4_000_000},
    },
    "minatar": {
        FALLING: {"learning_rate_end": 0.0, "anneal_fraction": 1.0},
        LARGER: {"num_agents": 64, "t_max": 128, "min_training_batch": 4095, "minibatch_size": 1024},
    },
}
PONG_RATES = {PONG_FIRST: (3e-4,), STANDARDIZED: (2e-4, 5e-4), FALLING: (2e-4,)}
PONG_LATER_RATES = (5e-4,)
MINATAR_RATES = {PAPER: (1e-3, 2e-3, 4e-3), LARGER: (5e-3, 1e-2, 2e-2)}
MINATAR_LATER_RATES = (3e-4, 1e-3, 3e-3)


def rungs(game: str) -> dict[str, Settings]:
    """Return the settings of each rung, by the name of what it changes in the rung before."""
    settings: Settings = {"num_agents": 32, "num_predictors": 2, "num_trainers": 2, "min_training_batch": 20}
    ladder = {PONG_FIRST: settings | {"rmsprop_epsilon": 1e-4}} if game == "pong" else {PAPER: settings}
    settings = dict(PONG_REUSE if game == "pong" else MINATAR_REUSE)
    ladder["+ samples reused"] = settings
    for name, changed in (ADDED_LATER | ADDED_LAST[game.split("_")[0]]).items():
        settings = settings | changed
        ladder[name] = settings
    return ladder


def rates(game: str, rung: str) -> tuple[float, ...]:
    """Return the learning rates that a rung is run with: three on MinAtar, where a run takes minutes."""
    if game == "pong":
        return PONG_RATES.get(rung, PONG_LATER_RATES)
    return MINATAR_RATES.get(rung, MINATAR_LATER_RATES)


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return the runs of all rungs for the first seed, and those of the last rung for the other seeds.

    Raises:
        UserError: the game has no rungs.
    """
    if budget == "smoke":
        reused = ADDED_LATER["+ generalized advantages"] | {"epochs": 2, "clip_ratio": 0.2}
        return [
            smoke_spec(game, seed).called(PAPER),
            smoke_spec(game, seed, **reused).called("+ samples reused"),
        ]
    if game not in STEPS:
        raise UserError(f"the figure ladder has no settings for {game}; it has them for {', '.join(STEPS)}")
    ladder = rungs(game)
    names = list(ladder) if seed == FIRST_SEED else list(ladder)[-1:]
    return [
        run_spec(
            game,
            seed,
            **ladder[name],
            learning_rate=rate,
            steps=STEPS[game],
            log_seconds=30.0,
        ).called(name, f"rate {rate:g}")
        for name in names
        for rate in rates(game, name)
    ]


def dimensions(spec: RunSpec) -> dict[str, object]:
    """Return the rung and its learning rate."""
    return {**label(spec), "rung": spec.label[0], "rate": spec.config.learning_rate}


def measures(run: RecordedRun) -> list[Measure]:
    """Return the score over the last tenth of steps, and over the whole run, to tell how soon it learned."""
    return [final_score(run, FINAL, "over the last tenth"), score_of_run(run, "over all agent steps")]


def plot(table: Measurements, stem: Path) -> None:
    """Draw for each rung the runs at the learning rate with the highest mean score over all steps."""
    begun = [game for game, part in table.parts("game") if part.finished]
    ids = []
    for _, part in table.select(game=tuple(begun)).parts("game", "rung"):
        best = part.series(SCORE, ["rate"])
        if len(best):
            ids += list(part.select(rate=best.idxmax()).facts.index)
    pictures.draw(pictures.curves(table.select(id=tuple(ids)), "rung"), stem)


FIGURE = Figure(
    name="ladder",
    place=12,
    paper="not in the paper",
    shows="what options of later actor-critics bring, added one after the other",
    headline="which options of later actor-critics help?",
    games={"smoke": ("cartpole",), "tuned": tuple(STEPS)},
    seeds=lambda budget, game: 1 if budget == "smoke" else SEEDS.get(game, 1),
    specs=specs,
    dimensions=dimensions,
    measures=measures,
    main=(FINAL, "points"),
    tables=[
        Table(
            ("game", "rung", "rate"),
            {
                FINAL: mean_of(FINAL),
                SCORE: mean_of(SCORE),
                "minutes": minutes,
                "not finished": unfinished,
            },
        )
    ],
    plot=plot,
    first_seed=FIRST_SEED,
)
