"""What is read off a learning curve."""

import math

import numpy as np
import pytest

from ga3c_tf.reproduce.measures.curves import (
    first_reaching,
    mean_score,
    score_at_end,
    score_at_start,
    score_by,
)


def curve(scores, steps=None, episodes=None):
    count = len(scores)
    steps = np.arange(1, count + 1) * 100.0 if steps is None else np.array(steps, float)
    return {
        "time_s": steps / 10,
        "agent_steps": steps,
        "episodes": np.full(count, 100.0) if episodes is None else np.array(episodes, float),
        "rolling_score": np.array(scores, float),
    }


def test_where_a_score_is_first_reached():
    rising = curve([0, 3, 1, 5])
    assert first_reaching(rising, 2, "agent_steps", 100) == 200
    assert first_reaching(rising, 4, "time_s", 100) == 40
    assert math.isnan(first_reaching(rising, 6, "agent_steps", 100))
    assert math.isnan(first_reaching(curve([]), 0, "agent_steps", 100))


def test_a_score_of_a_few_lucky_episodes_does_not_count():
    assert first_reaching(curve([9, 1, 5], episodes=[3, 60, 100]), 4, "agent_steps", 100) == 300


def test_the_score_by_a_number_of_steps_or_seconds():
    assert score_by(curve([0, 3, 1, 5]), 250, "agent_steps") == 1
    assert score_by(curve([0, 3, 1, 5]), 40, "time_s") == 5
    assert math.isnan(score_by(curve([0, 3]), 201, "agent_steps"))
    assert math.isnan(score_by(curve([]), 0, "agent_steps"))


def test_the_mean_score_is_the_area_however_the_points_are_spread():
    assert mean_score(curve([0, 10, 10], steps=[0, 100, 400])) == pytest.approx((500 + 3000) / 400)
    assert mean_score(curve([7])) == 7
    assert math.isnan(mean_score(curve([])))


def test_the_mean_score_of_a_part_of_a_run():
    rising = curve([0, 3, 1, 5])
    assert mean_score(rising, low=200, high=300) == 2
    assert mean_score(rising, "time_s", high=20) == 1.5
    assert math.isnan(mean_score(rising, low=1000))


def test_the_scores_at_the_start_and_at_the_end():
    long = curve(range(20), episodes=range(50, 250, 10))
    assert score_at_start(long, 100) == 5 and score_at_end(long) == 18
    assert math.isnan(score_at_start(long, 1000)) and math.isnan(score_at_end(curve([])))
