"""Settings of the replay memory, and of the updates that are made from it."""

from __future__ import annotations

from dataclasses import dataclass

from ga3c_tf.config.declaration import DQN, SET, beside, declare
from ga3c_tf.config.declared.learning import VARIABLES
from ga3c_tf.config.declared.workers import MOST


@dataclass(frozen=True)
class ReplaySettings:
    """Deep Q-networks with a replay memory (Mnih et al. 2015)."""

    replay_size: int = declare(
        100_000,
        "algorithm",
        "Number of states in the replay memory, of all agents together. The frame of a state is stored once: "
        "a million states of Atari take 6.6 GiB.",
        low=100,
        high=MOST * 100,
        algorithms=DQN,
    )
    replay_start: int = declare(
        1_000, "algorithm", "Agent steps before the first update.", low=0, high=MOST * 100, algorithms=DQN
    )
    replay_batch: int = declare(
        32, "algorithm", "Number of states in one update.", low=1, high=100_000, algorithms=DQN
    )
    training_intensity: float = declare(
        8.0,
        "algorithm",
        "States that are trained on for each agent step. Agents wait for updates, and updates for agents, so "
        "that it holds.",
        above=0,
        high=1000,
        algorithms=DQN,
    )
    priority_exponent: float = declare(
        0.0,
        "algorithm",
        "Exponent of a state's last error in the probability that it is sampled (Schaul et al. 2016; usual: "
        "0.5 or 0.6). 0 samples uniformly.",
        low=0,
        high=1,
        algorithms=DQN,
    )
    importance_exponent: float = declare(
        0.4,
        "advanced",
        "Exponent of the weights that correct for the probabilities of --priority-exponent.",
        low=0,
        high=1,
        algorithms=DQN,
        read_with=[beside(priority_exponent=SET)],
    )
    n_step: int = declare(
        1, "algorithm", "Most steps of a return before it bootstraps.", low=1, high=100, algorithms=DQN
    )
    target_period: int = declare(
        1_000,
        "algorithm",
        "Updates between two copies of the weights to the target network.",
        low=1,
        high=MOST,
        algorithms=DQN,
    )
    double_q: bool = declare(
        True,
        "algorithm",
        "The network chooses the action whose value the target network gives (van Hasselt et al. 2016).",
        algorithms=DQN,
    )
    rmsprop_centred: bool = declare(
        False,
        "advanced",
        "RMSProp: divide by the gradient's deviation instead of its root mean square.",
        algorithms=DQN,
        read_with=[beside(optimizer="rmsprop")],
        fixed=VARIABLES,
    )
    dueling: bool = declare(
        False,
        "network",
        "Q is the sum of the value of the state and the advantages of its actions (Wang et al. 2016).",
        algorithms=DQN,
        fixed=VARIABLES,
    )
    save_replay: bool = declare(
        False,
        "run",
        "Save the replay memory in the newest checkpoint. Without it a resumed run fills it anew before it "
        "goes on training.",
        algorithms=DQN,
    )
