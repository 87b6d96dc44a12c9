"""Trains MinAtar's DQN (Young and Tian 2019) in PyTorch, to compare docs/q-learning.md with.

MinAtar's results are curves without numbers, so this program computes what its `examples/dqn.py` computes
(commit 3f078e51 of kenjyoung/MinAtar): network, constants, random actions of the first frames, and PyTorch's
RMSProp, which adds the 0.01 outside the root. It differs in three things: the minimal actions, as in the runs
that are compared; a seed; and the memory, which is in arrays.

Usage, with `pip install torch gymnasium MinAtar`, one core each, five million frames in about two hours:

    python docs/minatar_dqn.py Breakout 1
    python docs/minatar_dqn.py SpaceInvaders 1

It writes docs/data/minatar-dqn-GAME-SEED.json. Frozen before the first run: these two seeds, two measures,
and the rule. The measures are the mean score of the training episodes that ended in the last 100,000 frames,
and that of 100 episodes of the greedy policy with the final weights. The rule: PQN scores at least as much as
MinAtar's DQN on a game if its mean over five seeds, in results/pages/q-learning.md, is at least as high in
both measures.
"""

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import gymnasium
import minatar.gym
import numpy as np
import torch
from torch import nn

FRAMES = 5_000_000
BATCH = 32
MEMORY = 100_000
START = 5_000
TARGET_PERIOD = 1_000
EPSILON_END = 0.1
EPSILON_FRAMES = 100_000
GAMMA = 0.99
PART = 100_000
"""Frames over which the mean score of the training episodes is taken."""
EVALUATION_EPISODES = 100


def network(channels, actions):
    """Return MinAtar's network: float32 states (batch, channels, 10, 10) to values (batch, actions)."""
    return nn.Sequential(
        nn.Conv2d(channels, 16, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(1024, 128),
        nn.ReLU(),
        nn.Linear(128, actions),
    )


class Memory:
    """The newest steps, in a ring of arrays."""

    def __init__(self, channels):
        self.states = torch.zeros((MEMORY, channels, 10, 10), dtype=torch.bool)
        self.next_states = torch.zeros_like(self.states)
        self.actions = torch.zeros(MEMORY, dtype=torch.int64)
        self.rewards = torch.zeros(MEMORY)
        self.goes_on = torch.zeros(MEMORY)
        self.added = 0

    def add(self, state, next_state, action, reward, terminated):
        place = self.added % MEMORY
        self.states[place] = state
        self.next_states[place] = next_state
        self.actions[place] = action
        self.rewards[place] = reward
        self.goes_on[place] = not terminated
        self.added += 1

    def sample(self):
        places = torch.tensor(random.sample(range(min(self.added, MEMORY)), BATCH))
        return (
            self.states[places].float(),
            self.next_states[places].float(),
            self.actions[places],
            self.rewards[places],
            self.goes_on[places],
        )


class Learner:
    """The network that acts and is trained, its target network, and the optimizer."""

    def __init__(self, channels, actions):
        self.policy = network(channels, actions)
        self.target = network(channels, actions)
        self.copy_to_target()
        self.optimizer = torch.optim.RMSprop(
            self.policy.parameters(), lr=0.00025, alpha=0.95, eps=0.01, momentum=0.95, centered=True
        )
        self.step = torch.compile(self.optimizer.step)  # the same sums in one loop: eight times as fast
        self.updates = 0

    def copy_to_target(self):
        self.target.load_state_dict(self.policy.state_dict())

    @torch.no_grad()
    def best_action(self, state):
        return int(self.policy(state[None].float()).argmax())

    def update(self, states, next_states, actions, rewards, goes_on):
        with torch.no_grad():
            targets = rewards + GAMMA * goes_on * self.target(next_states).max(dim=1).values
        values = self.policy(states).gather(1, actions[:, None])[:, 0]
        self.optimizer.zero_grad()
        nn.functional.smooth_l1_loss(values, targets).backward()
        self.step()
        self.updates += 1
        if self.updates % TARGET_PERIOD == 0:
            self.copy_to_target()


def as_tensor(observation):
    """Return MinAtar's (10, 10, channels) as a tensor with the channels first."""
    return torch.from_numpy(np.ascontiguousarray(observation.transpose(2, 0, 1)))


def epsilon(frame):
    """Return the probability of a random action."""
    return 1 + (EPSILON_END - 1) * min(max(frame - START, 0) / EPSILON_FRAMES, 1)


def train(env, learner, memory, seed):
    """Train, and return the frame at which each episode ended, with its score."""
    episodes = []
    score = 0.0
    state = as_tensor(env.reset(seed=seed)[0])
    for frame in range(FRAMES):
        explores = random.random() < epsilon(frame)
        action = random.randrange(env.action_space.n) if explores else learner.best_action(state)
        observation, reward, terminated, _, _ = env.step(action)
        next_state = as_tensor(observation)
        memory.add(state, next_state, action, reward, terminated)
        if frame > START:
            learner.update(*memory.sample())
        score += reward
        state = next_state
        if terminated:
            episodes.append((frame + 1, score))
            state = as_tensor(env.reset()[0])
            score = 0.0
        if (frame + 1) % PART == 0:
            print(frame + 1, means(episodes)[-1], flush=True)
    return episodes


def means(episodes):
    """Return the mean score of the episodes that ended in each 100,000 frames."""
    ends, scores = np.array(episodes).T
    parts = np.ceil(ends / PART)
    return [round(float(scores[parts == part].mean()), 2) for part in np.unique(parts)]


def evaluate(env, learner, seed):
    """Return the scores of whole episodes of the greedy policy."""
    scores = []
    for episode in range(EVALUATION_EPISODES):
        state, _ = env.reset(seed=seed if episode == 0 else None)
        score = 0.0
        terminated = False
        while not terminated:
            state, reward, terminated, _, _ = env.step(learner.best_action(as_tensor(state)))
            score += reward
        scores.append(score)
    return scores


def processor():
    """Return the name of the processor."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(line.partition(": ")[2] for line in lines if line.startswith("model name"))


def main(game, seed):
    minatar.gym.register_envs()
    random.seed(seed)
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True
    ).stdout.strip()
    env = gymnasium.make(f"MinAtar/{game}-v1", disable_env_checker=True).unwrapped
    channels = env.observation_space.shape[2]
    learner = Learner(channels, env.action_space.n)
    begin = time.time()
    episodes = train(env, learner, Memory(channels), seed)
    minutes = (time.time() - begin) / 60
    scores = evaluate(env, learner, seed + 1_000)
    record = {
        "command": f"python docs/minatar_dqn.py {game} {seed}",
        "commit": commit,
        "machine": f"1 core of {processor()}, PyTorch {torch.__version__}",
        "frames": FRAMES,
        "minutes": round(minutes, 1),
        "training_score_of_each_100000_frames": means(episodes),
        "greedy_scores": scores,
        "training_score_at_the_end": means(episodes)[-1],
        "greedy_score": float(np.mean(scores)),
    }
    file = Path(__file__).parent / "data" / f"minatar-dqn-{game}-{seed}.json"
    file.write_text(json.dumps(record) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
