"""examples/optuna_search.py: six trials of CartPole, pruned, and continued from the study on disk."""

import runpy
from pathlib import Path

import optuna
import pytest

EXAMPLE = Path(__file__).parents[1] / "examples" / "optuna_search.py"


@pytest.mark.slow  # half a minute
def test_six_trials_are_searched_and_a_second_call_continues_them(tmp_path, capsys):
    main = runpy.run_path(str(EXAMPLE))["main"]
    small = ["--steps", "20000", "--episodes", "2", "--folder", str(tmp_path)]
    study = main(["--trials", "6", *small])
    states = [trial.state for trial in study.trials]
    assert states.count(optuna.trial.TrialState.COMPLETE) + states.count(optuna.trial.TrialState.PRUNED) == 6
    assert all(trial.intermediate_values for trial in study.trials)
    assert {folder.name for folder in tmp_path.glob("trial-*")} == {f"trial-{number}" for number in range(6)}
    assert len(main(["--trials", "1", *small]).trials) == 7
    assert "7 trials, " in capsys.readouterr().out
