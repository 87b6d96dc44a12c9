"""Every correction of policy lag trains in every system that has it."""

import pytest

from ga3c_tf.config import Config
from ga3c_tf.runner import new_training

SETTINGS = {"num_agents": 2, "num_predictors": 1, "num_trainers": 1, "seed": 1, "steps": 400}
SYSTEMS = {"serial": {"serial": True}, "ga3c": {}, "a2c": {"system": "a2c"}, "a3c": {"system": "a3c"}}


CORRECTIONS = ("none", "epsilon", "clipped-is", "one-step", "v-trace", "ppo")
CASES = [("CartPole-v1", correction, system) for correction in CORRECTIONS for system in SYSTEMS]
CASES.remove(("CartPole-v1", "ppo", "a3c"))  # which has no --clip-ratio
CASES += [("MinAtar/Breakout-v1", correction, "ga3c") for correction in CORRECTIONS]


@pytest.mark.parametrize(("env_id", "correction", "system"), CASES)
def test_it_trains(tmp_path, env_id, correction, system):
    settings = SETTINGS | SYSTEMS[system] | {"correction": correction, "clip_ratio": 0.2 * (correction == "ppo")}
    config = Config(env_id=env_id, run_dir=str(tmp_path / "run"), **settings)
    training, run = new_training(config, ["train"], print)
    try:
        summary = training.run(lambda row: None)
    finally:
        run.close()
    assert summary["ended"] == "steps" and summary["updates"] > 10 and summary["skipped_updates"] == 0
