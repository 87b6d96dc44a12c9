"""Searches settings for CartPole with Optuna: trials are pruned, and the study on disk can be continued.

    pip install optuna
    python examples/optuna_search.py --trials 6
    python examples/optuna_search.py --trials 6        # six more

Each trial is a run in `FOLDER/trial-N`; the study is in `FOLDER/study.db`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import optuna

import ga3c_tf
from ga3c_tf.callbacks import OptunaPruning


def score_of(trial: optuna.Trial, folder: Path, steps: int, episodes: int) -> float:
    """Train with the settings of a trial, and return the mean score of an evaluation."""
    run = ga3c_tf.train(
        "CartPole-v1",
        preset="tuned-vector",
        steps=steps,
        seed=trial.number,
        run_dir=folder / f"trial-{trial.number}",
        progress=False,
        callbacks=[OptunaPruning(trial, every=steps // 10)],
        learning_rate=trial.suggest_float("learning_rate", 1e-4, 1e-2, log=True),
        gae_lambda=trial.suggest_float("gae_lambda", 0.9, 1.0),
        epochs=trial.suggest_int("epochs", 1, 10),
    )
    if run.summary["ended"] == "interrupted":  # Ctrl-C ends a training, which is saved
        trial.study.stop()
        raise optuna.TrialPruned("interrupted")
    return run.evaluate(episodes).mean


def main(words: list[str] | None = None) -> optuna.Study:
    """Run trials, and print the best settings so far."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=6)
    parser.add_argument("--steps", type=int, default=50_000, help="agent steps of a trial")
    parser.add_argument("--episodes", type=int, default=20, help="episodes that score a trial")
    parser.add_argument("--folder", type=Path, default=Path("runs/search"))
    given = parser.parse_args(words)
    given.folder.mkdir(parents=True, exist_ok=True)
    study = optuna.create_study(
        study_name="cartpole",
        storage=f"sqlite:///{given.folder}/study.db",
        load_if_exists=True,
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=1),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=2),
    )
    study.optimize(lambda trial: score_of(trial, given.folder, given.steps, given.episodes), given.trials)
    pruned = sum(trial.state == optuna.trial.TrialState.PRUNED for trial in study.trials)
    print(
        f"{len(study.trials)} trials, {pruned} pruned; best {study.best_value:.1f} with {study.best_params}"
    )
    return study


if __name__ == "__main__":
    main()
