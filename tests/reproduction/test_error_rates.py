"""How often the rules of figures are wrong where nothing is to be found, and how often they find what is
there.

The numbers of the runs are drawn. A figure is wrong if any of its findings is, which may happen in 5 % of
repetitions. The corresponding tests of the other figures are beside the tests of their rules.
"""

import functools
import math
from itertools import product

import numpy as np
import pytest
from invented_runs import Drawn

from ga3c_tf.reproduce.figures.learning import learning_curves, sample_efficiency, speed, wall_clock
from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.figures.throughput import fixed_numbers, pps, queues
from ga3c_tf.reproduce.figures.throughput.fixed_numbers import NUMBERS, WorkersAndSeed
from ga3c_tf.reproduce.measures.effects import judged_again, paired_effect, welch_effect
from ga3c_tf.reproduce.measures.judging import effect_verdict
from ga3c_tf.reproduce.measures.random_policy import RandomPolicy
from ga3c_tf.reproduce.measures.verdicts import EQUAL_WIDE, HOLDS, NO_DIFFERENCE, TOO_SHORT
from ga3c_tf.reproduce.runs.specs import ADDED

REPETITIONS = 400
MOST_WRONG = 0.05 + 2 * math.sqrt(0.05 * 0.95 / REPETITIONS)
"""The share of wrong figures a rule with 5 % stays below, but for two standard errors of this simulation."""
REPETITIONS_OF_FINDING = 100
"""Repetitions for the shares that are found: enough, because the shares are far from their bounds.

Those above 0.8 are 0.97 or more, with a standard error of 0.02 at most. A share of 0.8 itself has one of
0.04, so that a rule that finds less than 0.7 fails. The one below 0.2 is 0.04, with a standard error of 0.02,
and the one below 0.05 is 0.01, with one of 0.006.
"""


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def share_wrong(verdicts):
    """The share of repetitions in which any finding is decided, though there is nothing to find."""
    return np.mean([any(each != NO_DIFFERENCE for each in verdicts()) for _ in range(REPETITIONS)])


def share_found(verdicts):
    """The share of findings that are supported."""
    return np.mean([[each == HOLDS for each in verdicts()] for _ in range(REPETITIONS_OF_FINDING)])


def drawn(figure, number, budget="quick"):
    return Drawn(all_specs(figure, budget), number)


@functools.cache
def all_specs(figure, budget):
    return FIGURES[figure].all_specs(budget)


def verdicts_of(found):
    return [finding.verdict for finding in found.values()]


# pps


def speed_ups_drawn(rng, ratio, growth, seeds=5):
    """Verdicts on speed-ups that scatter by 10 %, as those of seeds on one machine."""
    specs = [spec for spec in all_specs("pps", "quick") if spec.seed <= seeds]

    def number(spec, metric):
        place = list(pps.NETWORKS).index(spec.config.network)
        true = ratio * growth**place if spec.system == "ga3c" else 1.0
        return 100 * true * math.exp(0.07 * rng.normal())

    return verdicts_of(pps.findings(Drawn(specs, number)))


def test_systems_of_one_speed_are_seldom_told_apart_and_the_papers_ratios_mostly_found(rng):
    assert share_wrong(lambda: speed_ups_drawn(rng, 1.0, 1.0)) < MOST_WRONG
    assert share_found(lambda: speed_ups_drawn(rng, 4.0, 1.2)) > 0.8


def test_five_seeds_show_a_speed_up_of_1_4_and_three_seldom_do(rng):
    assert share_found(lambda: speed_ups_drawn(rng, 1.4, 1.0)[:1]) > 0.8
    assert share_found(lambda: speed_ups_drawn(rng, 1.4, 1.0, seeds=3)[:1]) < 0.2


# speed


def courses_drawn(rng, gain, nearly):
    """Scores that scatter by 1 point and frames that scatter by 3 %.

    Args:
        gain: points that the setting with the most frames scores above that with the least.
        nearly: frames of dynamic adjustment over those of the best setting.
    """
    frames = {"1/1/1": 1.0, "16/1/1": 3.0, "dynamic from 1/1/1": 4.0 * nearly}

    def number(spec, metric):
        of_setting = frames.get(spec.label[0].removesuffix(ADDED), 4.0)
        if metric == speed.FRAMES:
            return of_setting * math.exp(0.03 * rng.normal())
        return 10 + (gain if of_setting > 2.0 else 0.0) + rng.normal()

    return drawn("speed", number)


def verdicts_on(courses):
    return verdicts_of(speed.findings(courses, speed.groups(courses)))


def test_frames_that_bring_nothing_are_seldom_praised_and_those_that_do_mostly(rng):
    assert share_wrong(lambda: verdicts_on(courses_drawn(rng, 0.0, speed.NEARLY))) < MOST_WRONG
    assert share_found(lambda: verdicts_on(courses_drawn(rng, 6.0, 1.0))) > 0.8


def test_two_judgements_of_frames_without_effect_have_a_verdict_in_one_of_twenty_cases(rng):
    """After three seeds by Welch's test, and after six by pairs, as judged. Without doubling it is 7.7 %."""
    repetitions = 2000
    decided = 0
    for _ in range(repetitions):
        most, fewest = (dict(enumerate(scores)) for scores in rng.normal(size=(2, 6)))
        first = welch_effect([most[seed] for seed in range(3)], [fewest[seed] for seed in range(3)])
        looks = first, judged_again(paired_effect(most, fewest))
        decided += any(effect_verdict(effect, effect.chance) != NO_DIFFERENCE for effect in looks)
    assert decided / repetitions < 0.0534 + 2 * math.sqrt(0.0534 * 0.9466 / repetitions)


# wall-clock


def races_drawn(rng, ratio, latest=math.inf):
    """Verdicts on times that scatter by 15 %, as the published ones on MinAtar; those on CartPole scatter by
    more.

    Args:
        ratio: of A3C's time over GA3C's.
        latest: the time at which a run of A3C ends, as a multiple of GA3C's time, even without the score.
    """

    def number(spec, metric):
        if spec.system == "a3c":
            return min(ratio * math.exp(0.15 * rng.normal()), latest)
        return math.exp(0.15 * rng.normal())

    return verdicts_of(wall_clock.findings(drawn("wall-clock", number)))


def test_systems_that_are_as_soon_are_seldom_told_apart_and_the_sooner_mostly_found(rng):
    assert share_wrong(lambda: races_drawn(rng, 1.0)) < MOST_WRONG
    assert share_found(lambda: races_drawn(rng, 4.0)) > 0.8
    assert share_found(lambda: races_drawn(rng, 1.5, latest=1.0)) < 0.05  # what is not seen does not count


# learning-curves


def scores_drawn(rng, monkeypatch, learned, gain):
    """Verdicts on final scores that scatter by 1 point, as those of the random policy, whose mean is 0.

    Args:
        learned: points of A3C.
        gain: points that GA3C scores above A3C.
    """
    monkeypatch.setattr(learning_curves, "random_of", lambda rates: RandomPolicy(0.0, 10.0, 100))
    monkeypatch.setattr(learning_curves, "fewest_episodes", lambda runs: 100)

    def number(spec, metric):
        return learned + (gain if spec.system == "ga3c" else 0.0) + rng.normal()

    return verdicts_of(learning_curves.findings(drawn("learning-curves", number)))


def test_systems_that_score_the_same_are_seldom_told_apart_and_the_better_mostly_found(rng, monkeypatch):
    assert share_wrong(lambda: scores_drawn(rng, monkeypatch, 10.0, 0.0)) < MOST_WRONG
    assert share_found(lambda: scores_drawn(rng, monkeypatch, 10.0, 9.0)) > 0.8


def test_nothing_is_decided_about_systems_that_play_like_the_random_policy(rng, monkeypatch):
    """One seed passes the random policy's limit in 5 % of cases at most, so three of one system hardly do."""
    verdicts = [verdict for _ in range(REPETITIONS) for verdict in scores_drawn(rng, monkeypatch, 0.0, 0.0)]
    assert np.mean([verdict == TOO_SHORT for verdict in verdicts]) > 0.99


# queues


def queues_drawn(rng, filled, batches):
    """Verdicts on settings whose TPS scatters by 10 %.

    Args:
        filled: mean share of the training queue that is in use.
        batches: power of the TPS that the prediction batches grow with; they scatter by 20 %.
    """
    speeds = {}

    def number(spec, metric):
        speed = speeds.setdefault(spec, math.exp(0.1 * rng.normal()))
        if metric == queues.QUEUE:
            return (filled + 0.1 * rng.normal()) * spec.config.num_agents * spec.config.segments_per_agent
        return speed if metric == "tps" else speed**batches * math.exp(0.2 * rng.normal())

    return verdicts_of(queues.findings(drawn("queues", number)))


def test_queues_at_the_limit_and_batches_of_any_speed_are_seldom_judged_and_others_mostly(rng):
    assert share_wrong(lambda: queues_drawn(rng, queues.FAR_BELOW, 0.0)) < MOST_WRONG
    assert share_found(lambda: queues_drawn(rng, 0.3, 3.0)) > 0.8


# sample-efficiency


def pong_drawn(rng, above):
    """Verdicts on means of three seeds that scatter by 0.5 points, so far above the limits."""
    limits = {(protocol, metric): limit for protocol, metric, limit in sample_efficiency.LIMITS.values()}

    def number(spec, metric):
        return limits[spec.label[0], metric] + above + 0.5 * rng.normal()

    return verdicts_of(sample_efficiency.findings(drawn("sample-efficiency", number, "tuned")))


def test_scores_at_the_limit_are_seldom_judged_and_those_above_mostly(rng):
    assert share_wrong(lambda: pong_drawn(rng, 0.0)) < MOST_WRONG
    assert share_found(lambda: pong_drawn(rng, 3.0)) > 0.8


# adjustment


GAMES = ("boxing", "pong")


def games_drawn(rng, effects, scatter=0.04):
    """Verdict on two games whose TPS scatters; `effects`: factors of more workers of each kind, by game."""
    known = {}
    for game, factors in zip(GAMES, effects, strict=True):
        speeds = {}
        for seed, workers in product((1, 2, 3, 4), product(*NUMBERS)):
            more = [count == large for count, (_, large) in zip(workers, NUMBERS, strict=True)]
            tps = 90 * np.prod(np.where(more, factors, 1.0)) * math.exp(scatter * rng.normal())
            speeds[WorkersAndSeed(workers, seed)] = tps
        known[game] = speeds
    return fixed_numbers.different(known).verdict


def test_games_with_the_same_best_numbers_have_no_large_difference_and_others_are_mostly_found(rng):
    usual = (1.04, 0.9, 1.02)

    def share_of(verdict, effects):
        return np.mean([games_drawn(rng, effects) == verdict for _ in range(REPETITIONS)])

    assert share_of(EQUAL_WIDE, (usual, usual)) > 0.8
    assert share_of(HOLDS, (usual, usual)) < MOST_WRONG
    assert share_of(EQUAL_WIDE, (usual, (1.04 * 1.1, 0.9, 1.02))) < MOST_WRONG  # at the margin
    assert share_of(HOLDS, (usual, (1.0, 0.9, 1.02))) < MOST_WRONG  # fewer agents are no better in any game
    assert share_of(HOLDS, (usual, (1.04, 1.1, 1.02))) > 0.8
