"""What a training prints: where it begins, each row, and what it did."""

import math
import re
import sys
from pathlib import Path

import pytest
from helpers import SUMMARY

from ga3c_tf.config import Config
from ga3c_tf.status import LiveStatus, PlainStatus, beginning, ending, status_for

ROW = {
    "time_s": 600.0,
    "agent_steps": 1234567,
    "episodes": 890,
    "rolling_score": 8.94,
    "pps": 2057.6,
    "tps": 41.2,
    "policy_lag_mean": 3.24,
    "policy_lag_p95": 9.0,
    "policy_lag_max": 27.0,
    "prediction_batch": 12.3,
    "training_batch": 42.1,
    "agents": 32,
    "started": 32,
    "predictors": 2,
    "trainers": 4,
    "entropy": math.nan,
    "progress": 0.25,
}
"""A row of metrics, as `Training.run` reports it."""


def test_the_first_line_says_until_when():
    path = Path("runs/pong")
    first, second = beginning(Config(seed=3), path).splitlines()
    assert first.startswith("ga3c-tf: ALE/Pong-v5 in runs/pong, seed 3, until Ctrl-C (no --minutes, --steps")
    assert second == "ga3c-tf: starting 32 agents of ga3c; the first numbers come after 5 s"
    both, _ = beginning(Config(seed=3, steps=2_000_000, minutes=1.5), path).splitlines()
    assert both.endswith("until 2,000,000 agent steps or 1.5 minutes")
    scored, _ = beginning(Config(seed=3, minutes=5, target_score=18), path).splitlines()
    assert scored.endswith("until 5 minutes or a rolling score of 18")


def test_the_last_lines_say_what_was_done_and_what_can_be_done_next():
    lines = ending(SUMMARY).splitlines()
    assert lines[0] == (
        "budget reached: 241,011 agent steps, 5,912 episodes and 912 updates in 1:02:03, "
        "4,016 steps per second in this session"
    )
    assert lines[1] == "mean score of the last 100 episodes: 8.9"
    beside = ending(SUMMARY, random_score=-20.26).splitlines()[1]
    assert beside == "mean score of the last 100 episodes: 8.9 (random policy: -20.3)"
    assert lines[2].endswith("ga3c-tf evaluate 'runs/my pong'")
    assert lines[3].endswith("ga3c-tf resume 'runs/my pong' --minutes N  (N in total; so far 62.1)")


@pytest.mark.parametrize(("ended", "so_far"), [("steps", "241,011"), ("episodes", "5,912")])
def test_the_next_budget_is_a_total(ended, so_far):
    assert ending(SUMMARY | {"ended": ended}).endswith(f" --{ended} N  (N in total; so far {so_far})")


def test_a_run_that_reached_its_target_score_may_be_given_another():
    lines = ending(SUMMARY | {"ended": "target_score"}).splitlines()
    assert lines[0].startswith("target score reached: 241,011 agent steps")
    assert lines[-1].endswith("ga3c-tf resume 'runs/my pong' --target-score N")


def test_an_interrupted_run_goes_on_to_its_own_budget():
    assert ending(SUMMARY | {"ended": "interrupted"}).endswith("ga3c-tf resume 'runs/my pong'")


def test_troubles_are_counted_where_there_were_any():
    assert "agent processes replaced: 2" in ending(SUMMARY | {"replaced_processes": 2})
    assert "replaced" not in ending(SUMMARY)


def test_the_best_evaluation_is_named_where_there_was_one():
    best = {"best_score": 487.31, "best_evaluated": "runs/my pong/best_evaluated"}
    lines = ending(SUMMARY | best).splitlines()
    assert lines[2] == "best evaluation: 487.3, weights in runs/my pong/best_evaluated"
    assert "best" not in ending(SUMMARY)


def test_fewer_episodes_than_the_window_are_counted():
    assert "mean score of the last 3 episodes: 8.9" in ending(SUMMARY | {"episodes": 3})
    assert ending(SUMMARY | {"episodes": 1}).splitlines()[1] == "score of the only episode: 8.9"
    assert (
        ending(SUMMARY | {"episodes": 0, "rolling_score": math.nan}).splitlines()[1] == "no episode has ended"
    )


def test_one_is_not_many():
    config = Config(seed=3, minutes=1, episodes=1, steps=1)
    first, _ = beginning(config, Path("runs/pong")).splitlines()
    assert first.endswith("until 1 agent step or 1 minute or 1 episode")
    line = ending(SUMMARY | {"episodes": 1, "updates": 1}).splitlines()[0]
    assert "1 episode and 1 update in" in line


def test_the_next_commands_trust_the_code_that_the_run_used():
    lines = ending(SUMMARY, own_code=True).splitlines()
    assert lines[2].endswith("ga3c-tf evaluate 'runs/my pong' --trust-code")
    assert lines[3].endswith(
        "ga3c-tf resume 'runs/my pong' --trust-code --minutes N  (N in total; so far 62.1)"
    )


# while it runs


def shown(capsys, *rows):
    """What a panel shows of these rows at the end, where the output is no terminal."""
    with LiveStatus("Pong-v5  runs/pong") as status:
        for row in rows:
            status.show(row)
    return capsys.readouterr().out


def test_the_panel_shows_the_numbers_of_the_last_row(capsys):
    lines = shown(capsys, {**ROW, "agent_steps": 5}, ROW).splitlines()
    assert "Pong-v5  runs/pong" in lines[0]
    cells = [line.strip("│ ").split("  ") for line in lines[1:7]]
    assert [[cell.strip() for cell in row if cell.strip()] for row in cells] == [
        ["time", "0:10:00", "agent steps", "1,234,567"],
        ["episodes", "890", "rolling score", "8.9"],
        ["agent steps/s (PPS)", "2058", "updates/s (TPS)", "41"],
        ["prediction batch", "12.3", "training batch", "42.1"],
        ["agents, predictors, trainers", "32, 2, 4", "entropy", "-"],
        ["policy lag in updates", "3.2", "95 %, maximum", "9.0, 27.0"],
    ]


def test_lines_are_explained_once_and_count_the_agents_that_have_started(capsys):
    status = PlainStatus()
    for row in ({**ROW, "started": 5}, ROW):
        status.show(row)
    legend, first, second = capsys.readouterr().out.splitlines()
    assert "PPS, TPS: agent steps and updates per second" in legend
    assert first.endswith("[5 of 32 agents have started] [ 25%]") and "started" not in second
    assert re.search("agents that have started +5 ", shown(capsys, {**ROW, "started": 5}))


@pytest.mark.parametrize(
    ("time_s", "progress", "words"),
    [
        (600.0, 0.25, "25% of the budget, about 0:30:00 left"),
        (7200.0, 0.5, "50% of the budget, about 2:00:00 left"),
        (600.0, 1.0, "100% of the budget, about 0:00:00 left"),
    ],
)
def test_the_panel_shows_how_much_of_the_budget_is_used_and_about_how_long_the_rest_takes(
    capsys, time_s, progress, words
):
    assert words in shown(capsys, {**ROW, "time_s": time_s, "progress": progress})


@pytest.mark.parametrize("progress", [None, 0.0])
def test_without_a_budget_or_any_progress_the_panel_shows_no_time_left(capsys, progress):
    text = shown(capsys, {**ROW, "progress": progress})
    assert "1,234,567" in text and "left" not in text


@pytest.mark.parametrize(("terminal", "kind"), [(True, LiveStatus), (False, PlainStatus)])
def test_the_panel_is_for_terminals(monkeypatch, terminal, kind):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    assert type(status_for("Pong")) is kind
