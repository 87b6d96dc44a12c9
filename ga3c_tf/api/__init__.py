"""The public Python functions: train, resume, and load an agent.

```python
import ga3c_tf

run = ga3c_tf.train("CartPole-v1", minutes=2, seed=1)
print(run.evaluate(episodes=20).mean)
```
"""

import sys

if sys.platform == "win32":  # it lacks modules that are imported everywhere, such as fcntl
    raise ImportError("ga3c_tf runs on Linux; on Windows use WSL 2 or Docker (docs/platforms.md)")

from ga3c_tf.api.run import Run, resume, train
from ga3c_tf.trained.agent import Agent, Scores, load_agent

__all__ = ["Agent", "Run", "Scores", "load_agent", "resume", "train"]
