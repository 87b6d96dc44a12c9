"""What a training prints: where it begins, each row, and what it did."""

from pathlib import Path

from helpers import SUMMARY

from ga3c_tf.config import Config
from ga3c_tf.status import beginning, ending


def test_the_first_line_says_until_when():
    path = Path("runs/pong")
    assert beginning(Config(seed=3), path) == "ga3c-tf: ALE/Pong-v5 in runs/pong, seed 3, until Ctrl-C"
    both = beginning(Config(seed=3, steps=2_000_000, minutes=1.5), path)
    assert both.endswith("until 2,000,000 agent steps or 1.5 minutes")


def test_the_last_lines_say_what_was_done_and_what_can_be_done_next():
    lines = ending(SUMMARY).splitlines()
    assert lines[0] == (
        "budget reached: 241,011 agent steps, 5,912 episodes and 912 updates in 1:02:03, 4,016 steps per second"
    )
    assert lines[1] == "mean score of the last 100 episodes: 8.9"
    assert lines[2].endswith("ga3c-tf evaluate 'runs/my pong'")
    assert lines[3].endswith("ga3c-tf resume 'runs/my pong' --minutes N")


def test_an_interrupted_run_goes_on_to_its_own_budget():
    assert ending(SUMMARY | {"ended": "interrupted"}).endswith("ga3c-tf resume 'runs/my pong'")


def test_troubles_are_counted_where_there_were_any():
    assert "agent processes replaced: 2" in ending(SUMMARY | {"replaced_processes": 2})
    assert "replaced" not in ending(SUMMARY)


def test_fewer_episodes_than_the_window_are_counted():
    assert "mean score of the last 3 episodes: 8.9" in ending(SUMMARY | {"episodes": 3})


def test_the_next_commands_trust_the_code_that_the_run_used():
    lines = ending(SUMMARY, own_code=True).splitlines()
    assert lines[2].endswith("ga3c-tf evaluate 'runs/my pong' --trust-code")
    assert lines[3].endswith("ga3c-tf resume 'runs/my pong' --trust-code --minutes N")
