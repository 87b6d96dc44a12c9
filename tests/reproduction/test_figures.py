"""What is special about each figure, on runs whose numbers are drawn or invented."""

import dataclasses
import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from invented_runs import SESSION, drawn, failed, invent, made, played, verdicts_of

from ga3c_tf.errors import UserError
from ga3c_tf.host.calibration import Calibration
from ga3c_tf.reproduce.figures import metrics
from ga3c_tf.reproduce.figures.lag import (
    corrections,
    drop_or_correct,
    lag_boundary,
    lag_measures,
    policy_lag,
    sources_of_lag,
    tolerated_lag,
)
from ga3c_tf.reproduce.figures.learning import speed, table_3, wall_clock
from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.figures.throughput import adjustment, pps, queues, utilization
from ga3c_tf.reproduce.measures.random_policy import RANDOM_POLICY
from ga3c_tf.reproduce.measures.records import Record
from ga3c_tf.reproduce.measures.verdicts import (
    ALIKE,
    BUSY_MACHINE,
    FAILS,
    FEW_AGENTS,
    FEW_PERIODS,
    FEW_SEEDS,
    HOLDS,
    NEEDS_GPU,
    NO_DIFFERENCE,
    RUNS_MISSING,
    SCORED_NOTHING,
    SEVERAL_MACHINES,
    SPEED_CHANGED,
    TOO_SHORT,
    UNPLANNED_LOOK,
)
from ga3c_tf.runs import outcomes

RNG = np.random.default_rng(0)
A3C_ALONE = {"status": "finished", "cpu_utilization": 0.9}


@pytest.fixture(autouse=True)
def _same_numbers():
    """Each test draws the same numbers, whichever tests ran before."""
    RNG.bit_generator.state = np.random.default_rng(0).bit_generator.state


def words(results, name):
    """The verdicts of a figure: the kind of each decided claim, else the reason."""
    return {key: found.reason or found.kind for key, found in verdicts_of(name, results).items()}


def specs(name, budget="quick"):
    """All runs of a figure, with those of added seeds."""
    figure = FIGURES[name]
    added = [spec for game in figure.games[budget] for spec in figure.added_specs(budget, game)]
    return [*figure.all_specs(budget), *added]


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_made_from_smoke_runs(name, folder, svg_only):
    """Its claims, tables and pictures need no run longer than that, and claims have keys of their own."""
    figure = FIGURES[name]
    for spec in figure.all_specs("smoke"):
        evaluation = {"evaluation": played(3.0), "random": played(1.0)} if spec.evaluation_episodes else {}
        invent(folder.runs, spec, scores=(0.0, 9.0), **evaluation)
    results = made(folder, name, budget="smoke")
    claims = figure.verdicts(results)
    assert len({(claim.game, claim.key) for claim in claims}) == len(claims)
    assert not any(claim.finding.decided for claim in claims)
    rows = [
        row for part in figure.parts(results).values() for table in figure.tables for row in table.rows(part)
    ]
    assert rows and all(isinstance(cell, str) for row in rows for cell in row)
    figure.plots(results, folder.path / name)
    assert list(folder.path.glob(f"{name}*.svg"))


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_plans_the_runs_of_any_game_or_refuses_it(name):
    """Also an environment of the user's own; nothing but a UserError refuses."""
    figure = FIGURES[name]
    for budget, defaults in figure.games.items():
        for game in ("boxing", "cartpole", "minatar_freeway", "mine:Pole-v0", *defaults):
            assert figure.takes_games(budget, [game]) or game not in defaults


def test_pps_needs_all_networks_a_gpu_and_all_cores_for_a3c():
    def number(spec):
        place = list(pps.NETWORKS).index(spec.config.network)
        ratio = 2.0 * 1.3**place if spec.system == "ga3c" else 1.0
        return {"pps": 100 * ratio * (1 + 0.02 * RNG.normal())}

    assert words(drawn(specs("pps"), number, result=A3C_ALONE), "pps") == {"faster": HOLDS, "grows": HOLDS}
    cpu = words(drawn(specs("pps"), number, result=A3C_ALONE, on_gpu=False), "pps")
    assert cpu == {"faster": HOLDS}  # whether the speed-up grows is judged at the budget gpu
    busy = {"status": "finished", "cpu_utilization": 0.2}
    assert words(drawn(specs("pps"), number, result=busy), "pps")["faster"] == BUSY_MACHINE
    many = [{**SESSION, "cores": 64}]
    assert words(drawn(specs("pps"), number, sessions=many), "pps")["faster"] == FEW_AGENTS
    results = drawn(specs("pps"), number, result=A3C_ALONE)
    results.runs[0].machine = "a loom"
    assert set(words(results, "pps").values()) == {SEVERAL_MACHINES}
    small = [spec for spec in specs("pps") if spec.config.network == "small"]
    assert words(drawn(small, number), "pps")["faster"] == RUNS_MISSING
    with pytest.raises(UserError, match="do not go with cartpole"):
        FIGURES["pps"].specs("quick", "cartpole", 1)


def test_utilization_is_judged_with_a_gpu_only():
    def number(spec):
        place = list(pps.NETWORKS).index(spec.config.network)
        return {
            name: 0.2 * 1.2 ** (place * sign) * (1 + 0.02 * RNG.normal())
            for name, sign in ((utilization.GPU, 1), (utilization.CPU, -1))
        }

    runs = specs("utilization", "gpu")
    assert words(drawn(runs, number, "gpu"), "utilization") == {"gpu-rises": HOLDS, "cpu-falls": HOLDS}
    without = drawn(runs, lambda spec: {utilization.CPU: 0.5}, "gpu")
    assert set(words(without, "utilization").values()) == {NEEDS_GPU}
    assert words(drawn(specs("utilization"), number, on_gpu=False), "utilization") == {}
    mixed = drawn(runs, number, "gpu")
    mixed.runs[0].on_gpu = False
    assert set(words(mixed, "utilization").values()) == {NEEDS_GPU}


def tps_of(agents=0.0, predictors=0.0):
    def number(spec):
        config = spec.config
        gain = agents * math.log2(config.num_agents) + predictors * math.log2(config.num_predictors)
        return {"tps": 100 * math.exp(gain + 0.01 * RNG.normal())}

    return words(drawn(specs("tps"), number), "tps")


def test_tps_of_most_agents_of_more_predictors_and_of_the_slowest_number():
    assert tps_of() == {"most-agents": ALIKE, "few-predictors": HOLDS, "close-together": HOLDS}
    assert tps_of(agents=0.2) == {"most-agents": HOLDS, "few-predictors": HOLDS, "close-together": FAILS}
    assert tps_of(predictors=0.2)["few-predictors"] == FAILS


def test_queues_compare_settings_with_the_same_scheduling_and_predictors():
    def number(spec):
        speed = math.exp(0.1 * RNG.normal())
        return {"tps": speed, queues.BATCH: 3 * speed**3, queues.QUEUE: 0.1 * spec.config.num_agents}

    found = verdicts_of("queues", drawn(specs("queues"), number))
    assert {key: verdict.kind for key, verdict in found.items()} == {
        "short-queue": HOLDS,
        "large-batch": HOLDS,
    }
    assert found["large-batch"].estimate.n == 8
    assert found["short-queue"].estimate.effect == pytest.approx(0.1 / 2, rel=0.6)
    cpu = drawn(specs("queues"), number, on_gpu=False)
    assert list(words(cpu, "queues")) == ["large-batch"]


def test_adjustment_tells_games_apart_by_opposite_effects():
    def number(spec):
        sign = 1 if spec.game == "pong" else -1
        more = spec.config.num_trainers == adjustment.NUMBERS["trainers"][1]
        return {"tps": 90 * math.exp(0.3 * sign * more + 0.02 * RNG.normal())}

    found = verdicts_of("adjustment", drawn(specs("adjustment"), number))["games-differ"]
    assert found.kind == HOLDS and "trainers in boxing" in found.estimate.what
    same = drawn(specs("adjustment"), lambda spec: {"tps": 90 * math.exp(0.01 * RNG.normal())})
    assert words(same, "adjustment") == {"games-differ": ALIKE}
    alone = [spec for spec in specs("adjustment") if spec.game == "pong"]
    assert words(drawn(alone, number), "adjustment") == {"games-differ": RUNS_MISSING}


def test_speed_compares_the_most_frames_with_the_least_and_needs_a_long_search():
    frames = {"1/1/1": 1e6, "16/1/1": 2e6, "fixed, 32/2/2": 3e6, "dynamic from 1/1/1": 2.9e6}

    def number(spec):
        seen = frames[spec.label[0].removesuffix(", added seeds")]
        return {speed.FRAMES: seen * (1 + 0.01 * RNG.normal()), speed.MEAN: seen / 1e6 + 0.1 * RNG.normal()}

    found = verdicts_of("speed", drawn(specs("speed"), number))
    assert found["more-frames"].kind == found["nearly-best"].kind == HOLDS
    assert found["more-frames"].estimate.n == 6 and found["nearly-best"].estimate.n == 3
    assert found["more-frames"].estimate.looks == 2  # seeds were added after a first judgement
    short = drawn(specs("speed"), number, adjustment={"time_s": range(20)})
    assert words(short, "speed") == {"more-frames": HOLDS, "nearly-best": FEW_PERIODS}


def test_wall_clock_bounds_the_ratio_by_runs_that_miss_the_score(folder):
    """A3C reaches half of the score, so the ratio is a lower bound and can only be in favor of GA3C."""
    for seed in (1, 2, 3):
        for spec in FIGURES["wall-clock"].specs("quick", "cartpole", seed):
            end = (160.0 if spec.system == "ga3c" else 80.0) + seed
            invent(folder.runs, spec, rate=1000.0, scores=(0.0, end, end, end), cpu_utilization=0.9)
    results = made(folder, "wall-clock")
    found = verdicts_of("wall-clock", results)
    assert list(found) == ["cartpole"] and found["cartpole"].kind == HOLDS  # other games were not begun
    assert "lower bound" in found["cartpole"].estimate.note
    for run in results.runs:
        run.result["cpu_utilization"] = 0.1
    assert words(results, "wall-clock") == {"cartpole": BUSY_MACHINE}


def test_wall_clock_counts_from_the_end_of_the_first_episode_of_each_session(folder):
    (spec,) = (spec for spec in FIGURES["wall-clock"].specs("quick", "cartpole", 1) if spec.system == "ga3c")
    sessions = [{**SESSION, "time_s": 0.0}, {**SESSION, "time_s": 30.0}]
    run = invent(folder.runs, spec, rate=1000.0, scores=(0.0, 300.0), sessions=sessions)
    ends = run.curve["time_s"]
    reached = next(time for time, score in zip(ends, run.curve["rolling_score"], strict=True) if score >= 150)
    waited = ends[0] + (ends[ends > 30.0][0] - 30.0) * (reached > 30.0)
    measures = {measure.metric: measure.value for measure in FIGURES["wall-clock"].measures(run)}
    assert measures[wall_clock.TIME] == pytest.approx(reached - waited)


@pytest.mark.parametrize(("score", "verdict"), [(-20.3, TOO_SHORT), (-10.0, HOLDS)])
def test_new_seeds_are_compared_with_the_random_policy_on_record(score, verdict):
    """Only seed 1 plays it; a random policy scores -20.3 on Pong."""
    seeds = FIGURES["learning-curves"].all_specs("quick", 3, ["pong"], 4)
    assert not any(spec.random_play for spec in seeds)

    def number(spec):
        return {"final rolling score": (score if spec.system == "ga3c" else -21.0) + 0.1 * RNG.normal()}

    curve = {"episodes": np.array([100.0]), "rolling_score": np.array([1.0])}
    found = drawn(seeds, number, curve=curve, on_gpu=False, result=A3C_ALONE)
    assert words(found, "learning-curves") == {"pong": verdict}


def end_scores(by_system, **facts):
    def number(spec):
        mean = by_system[spec.system]
        return {"final rolling score": mean + 0.3 * RNG.normal(), metrics.START: 0.4}

    curve = {"episodes": np.array([100.0]), "rolling_score": np.array([1.0])}
    return drawn(specs("environments"), number, curve=curve, on_gpu=False, **facts)


def test_environments_leave_out_games_that_were_not_learned():
    learned = words(end_scores({"ga3c": 200.0, "a3c": 150.0, "a2c": 100.0}), "environments")
    assert learned == {"as-much-as-a3c": HOLDS, "as-much-as-a2c": HOLDS}
    assert set(words(end_scores(dict.fromkeys(("ga3c", "a3c", "a2c"), 0.0)), "environments").values()) == {
        TOO_SHORT
    }
    found = verdicts_of("environments", end_scores({"ga3c": 100.0, "a3c": 200.0, "a2c": 200.0}))
    assert {verdict.kind for verdict in found.values()} == {FAILS}
    assert found["as-much-as-a3c"].estimate.looks == 2 and found["as-much-as-a2c"].estimate.looks == 1


def papers(game, random=0.0, score=100.0):
    values = {"random": random, table_3.PAPERS: score}
    return [
        Record("scores", game, method, "score", value, "points", "", "the paper", "printed")
        for method, value in values.items()
    ]


def boxing(measured, seeds):
    """Results of so many planned seeds, with these scores, where the paper's score is 100."""
    runs = [table_3.training("paper", "boxing", seed) for seed in seeds]
    results = drawn(runs, lambda spec: dict(zip(["score"], measured[spec.seed - 1 :], strict=False)), "paper")
    results.paper.extend(papers("boxing"))
    return results


@pytest.mark.parametrize(
    ("measured", "verdict"),
    [
        ([96.0], RUNS_MISSING),
        ([99.0, 100.0, 101.0], HOLDS),
        ([50.0, 51.0, 52.0], FAILS),
        ([90.0, 95.0, 100.0], NO_DIFFERENCE),
    ],
)
def test_scores_of_three_seeds_are_tested_against_the_papers(measured, verdict):
    assert words(boxing(measured, (1, 2, 3)), "scores") == {"boxing": verdict}


@pytest.mark.parametrize(("score", "reached"), [(96.0, "1 of 1"), (94.0, "0 of 1")])
def test_the_score_of_one_seed_is_no_finding(score, reached):
    results = boxing([score], [1])
    assert words(results, "scores") == {}
    assert FIGURES["scores"].answer(FIGURES["scores"].table(results)).startswith(reached)


def test_other_seeds_are_measured_from_our_score_of_the_random_policy():
    """Only seed 1 plays it, and the paper's scores of it look swapped in two games."""
    results = drawn(FIGURES["scores"].all_specs("tuned", 1, ["ms_pacman"], 4), lambda spec: {"score": 2000.0})
    results.paper.extend(papers("ms_pacman", random=1748.0, score=1978.0))
    assert table_3.percent(FIGURES["scores"].table(results)) == "101 %"


def policy_lags(change=lambda setting, rate: {}):
    """Scores of a figure in which a minimum batch helps, unless `change` says otherwise."""

    def number(spec):
        where = FIGURES["policy-lag"].dimensions(spec)
        good = where["batches"] in policy_lag.GOOD
        usual = {
            policy_lag.SCORE: 10.0 + 5 * good,
            policy_lag.SCORE_AT_STEPS: 10.0 + 5 * good + 5 * (where["batches"] == policy_lag.CONTROL),
            policy_lag.PPS: 1000.0 * (1 + good),
            policy_lag.LOST: 0.2 * (not good),
            metrics.LAG_STATES: 400.0 * (where["batches"] == policy_lag.NO_MINIMUM),
            policy_lag.COLLAPSED: 0.0,
        }
        values = usual | change(where["batches"], where["rate"])
        return {
            name: value * (1 + 0.02 * RNG.normal()) + 0.001 * RNG.normal() for name, value in values.items()
        }

    return drawn(specs("policy-lag"), number)


def test_a_minimum_batch_is_judged_by_eleven_claims_with_their_own_seeds():
    found = verdicts_of("policy-lag", policy_lags())
    assert {verdict.kind for verdict in found.values()} == {HOLDS} and len(found) == 11
    seeds = {key: verdict.estimate.n for key, verdict in found.items()}
    added = {"stabilizes": 9, "without-lag-normal": 9, "better-steps-normal": 11, "better-steps-large": 15}
    assert seeds == dict.fromkeys(found, 5) | added
    assert all(found[key].estimate.looks == 2 for key in added)


def test_equal_scores_over_equal_steps_are_a_verdict():
    same = words(policy_lags(lambda setting, rate: {policy_lag.SCORE_AT_STEPS: 10.0}), "policy-lag")
    assert same["better-steps-normal"] == same["without-lag-normal"] == ALIKE


@pytest.mark.parametrize(("game", "kind"), [("breakout", HOLDS), ("pong", FAILS)])
def test_a_large_rate_harms_a_game_or_not(game, kind, folder):
    for spec in FIGURES["policy-lag"].all_specs("paper", games=[game]):
        if spec.label == ("minimum 0", "large"):
            failed(folder, spec, "losses are not finite", outcomes.DIVERGED)
        else:
            invent(folder.runs, spec, scores=(0.0, 100.0))
    results = made(folder, "policy-lag", [game], budget="paper")
    for run in results.runs:
        vars(run)["random_score"] = 0.0
    found = verdicts_of("policy-lag", results)["large-rate"]
    assert found.kind == kind and found.estimate.note == "3 of 3"


def boundary(tolerated, drop=1.0, seeds=5):
    """Gains of which a lag of 2 ** `tolerated(cell)` updates leaves half."""

    def number(spec):
        where = FIGURES["lag-boundary"].dimensions(spec)
        octaves = math.log2(max(where["lag"], 1))
        left = np.clip(0.5 - drop * (octaves - tolerated(where)) / 8, 0.0, 1.0) if where["lag"] else 1.0
        return {metrics.SCORE: 1 + 5 * left + 0.05 * RNG.normal(), metrics.START: 1.0}

    runs = [spec for spec in specs("lag-boundary") if spec.seed <= seeds]
    return words(drawn(runs, number), "lag-boundary")


def as_predicted(where):
    small_batch = where["agents"] == min(lag_boundary.AGENTS) and where["optimizer"] == lag_boundary.AUTHORS
    return 5 + 2 * small_batch + 2 * (where["rate"] == min(lag_boundary.RATES))


def test_lag_boundary_tells_lag_in_states_from_lag_in_updates():
    predicted = boundary(as_predicted)
    assert predicted == {"states": HOLDS, "updates": HOLDS, "rate": HOLDS, "ten-batches": FAILS}
    assert boundary(lambda where: 5.0)["states"] == FAILS
    assert boundary(as_predicted, drop=0.0)["rate"] == TOO_SHORT
    assert boundary(lambda where: 1.0)["ten-batches"] == HOLDS
    assert boundary(as_predicted, seeds=2)["ten-batches"] == FEW_SEEDS


def test_corrections_compare_pairs_and_the_share_that_is_lost():
    better = dict(zip(corrections.CORRECTIONS, (4.0, 6.0, 8.0, 8.0, 8.0, 8.0), strict=True))

    def number(spec):
        name, lag = (word.removesuffix(", added seeds") for word in spec.label)
        score = better[name] if lag != corrections.WITHOUT_LAG else 9.0
        return {metrics.SCORE: score + 0.1 * RNG.normal(), metrics.START: 1.0}

    found = verdicts_of("corrections", drawn(specs("corrections"), number))
    kinds = {key: verdict.reason or verdict.kind for key, verdict in found.items()}
    assert kinds.pop("v-trace-one-step") == NO_DIFFERENCE and set(kinds.values()) == {HOLDS}
    assert found["off-policy"].estimate.effect == pytest.approx(1 - 3 / 8, abs=0.05)
    assert found["off-policy"].estimate.n == 11 and found["epsilon-none"].estimate.n == 5


def tolerating(powers, learned=400.0):
    """Runs whose corrections keep all of the gain up to 2^power updates, and then less and less."""

    def number(spec):
        name, lag = spec.label[0], int(spec.label[1])
        fall = 0.25 * max(0.0, np.log2(max(lag, 1)) - powers.get(name, 2.0))
        score = 20 + learned * max(0.0, 1 - fall) + RNG.normal()
        return {metrics.SCORE: score, metrics.START: 20.0}

    return drawn(FIGURES["tolerated-lag"].all_specs("quick", games=["cartpole"]), number)


def test_the_tolerated_lag_is_where_half_of_the_gain_is_left():
    powers = {"v-trace": 4.0, "impact": 4.0, "ppo": 4.0, "m2po": 6.0, "icepop": 0.0, "vcpo": 6.0}
    results = tolerating(powers)
    rows = dict(FIGURES["tolerated-lag"].table(results).parts("correction"))
    cells = {name: tolerated_lag.tolerated_lag(part) for name, part in rows.items()}
    # Half is left 2 powers of two behind the one from which on the gain falls.
    assert cells["none"].startswith(("15.", "16 ")) and cells["v-trace"].startswith(("63.", "64"))
    assert cells["m2po"].startswith("25") and cells["icepop"].startswith(("3.9", "4"))
    kinds = words(results, "tolerated-lag")
    assert kinds["v-trace-none"] == kinds["m2po-ppo"] == kinds["vcpo-clipped-is"] == HOLDS
    assert kinds["icepop-none"] == kinds["decoupled-ppo-ppo"] == FAILS
    assert kinds["impact-v-trace"] == NO_DIFFERENCE


def test_nothing_is_judged_of_lag_where_little_is_learned_without_it():
    assert set(words(tolerating({"v-trace": 6.0}, learned=40.0), "tolerated-lag").values()) == {TOO_SHORT}


def lag_measures_of(moved, scored):
    """Verdicts where the measures and scores of a run depend on its lag and on what its correction does."""

    def number(spec):
        octaves = math.log2(1 + int(spec.label[1]))
        correction = tolerated_lag.CORRECTIONS.index(spec.label[0]) * bool(octaves)
        distance = math.exp(octaves + moved * correction + 0.5 * RNG.normal())
        score = 400 - 40 * octaves - scored * correction + 5 * RNG.normal()
        measures = dict.fromkeys(lag_measures.MEASURES, distance) | {metrics.SAMPLE_SIZE: 1 / distance}
        return {metrics.SCORE: score, metrics.START: 20.0, **measures}

    planned = FIGURES["lag-measures"].all_specs("quick", games=["cartpole"])
    return verdicts_of("lag-measures", drawn(planned, number))


def test_measures_of_lag_are_judged_among_runs_of_one_lag_and_by_predictions_for_new_seeds():
    found = lag_measures_of(moved=0.5, scored=20.0)
    assert {key: verdict.kind for key, verdict in found.items()} == {
        "kl-at-equal-lag": HOLDS,
        "sample-size-at-equal-lag": HOLDS,
        "lag-than-kl": FAILS,
    }
    assert found["kl-at-equal-lag"].estimate.n == found["lag-than-kl"].estimate.n == 3
    assert found["kl-at-equal-lag"].estimate.effect > 0.9
    opposite = lag_measures_of(moved=-0.5, scored=20.0)
    assert opposite["sample-size-at-equal-lag"].kind == FAILS
    useless = lag_measures_of(moved=0.5, scored=0.0)
    assert useless["kl-at-equal-lag"].reason == NO_DIFFERENCE
    assert useless["lag-than-kl"].kind == HOLDS


def test_a_measure_of_lag_is_a_mean_over_updates_not_rows():
    rows = {"updates": [900.0, 1000.0, 1000.0], "kl": [1.0, 2.0, 50.0], "m2": [math.nan, 3.0, math.nan]}
    columns = {name: np.array(rows.get(name, [math.nan] * 3)) for name, _ in metrics.COLUMNS.values()}
    run = SimpleNamespace(metrics=columns | {"updates": np.array(rows["updates"])})
    values = {measure.metric: measure.value for measure in lag_measures.moved(run)}
    assert values[metrics.KL] == pytest.approx(1.1) and values[metrics.M2] == 3.0
    assert math.isnan(values[metrics.SAMPLE_SIZE])


def test_kinds_of_lag_are_compared_with_the_constant_one():
    def number(spec):
        more = {"within": 30.0, "uniform": -30.0}
        return {metrics.SCORE: 100 + more.get(spec.label[2], 0.0) + RNG.normal()}

    found = verdicts_of("kinds-of-lag", drawn(specs("kinds-of-lag"), number))
    assert found["within"].kind == found["uniform"].kind == HOLDS  # another score, higher or lower
    assert found["geometric"].reason == NO_DIFFERENCE
    assert found["within"].estimate.effect == pytest.approx(30, abs=5)


def test_sources_of_lag_differ_in_nothing_else():
    runs = {spec.label: spec.config for spec in FIGURES["sources-of-lag"].specs("quick", "cartpole", 51)}
    pairs = [label for label in runs if label[2] == sources_of_lag.REUSED]
    assert len(pairs) == 4
    for correction, lag, reused in pairs:
        one, other = runs[correction, lag, reused], runs[correction, lag, sources_of_lag.COLLECTED]
        updates = one.num_agents * one.t_max // one.minibatch_size  # after a round, of lags 0, 1, 2, ...
        assert np.mean(range(updates)) == other.lag == int(lag) and other.lag_distribution == "uniform"
        assert one.minibatch_size == other.num_agents * other.t_max and not other.minibatch_size
        assert one.lag == 0 and one.epochs == 1 and one.gae_lambda == 0
        assert sources_of_lag.mean_lag(one) == sources_of_lag.mean_lag(other) == int(lag)
        same = {"t_max": 5, "minibatch_size": other.minibatch_size}
        same |= {"lag": other.lag, "lag_distribution": other.lag_distribution}
        assert dataclasses.replace(one, **same) == other


@pytest.mark.parametrize("more", [30.0, -30.0])
def test_sources_of_lag_are_compared_on_both_sides(more):
    def number(spec):
        _, lag, source = spec.label
        shift = more if (lag, source) == ("16", sources_of_lag.REUSED) else 0.0
        return {metrics.SCORE: 100 + shift + RNG.normal(), metrics.START: 20.0}

    found = verdicts_of("sources-of-lag", drawn(specs("sources-of-lag"), number))
    assert found["lag-16"].kind == HOLDS and found["lag-64"].reason == NO_DIFFERENCE
    assert found["lag-16"].estimate.effect == pytest.approx(more, abs=5)


def dropping(dropped, runs=lambda run: None):
    def number(spec):
        minimum, way = spec.label
        more = dropped * (minimum == "minimum 0" and way == "dropped")
        return {drop_or_correct.SCORE: 100 + more + RNG.normal()}

    results = drawn(FIGURES["drop-or-correct"].all_specs("quick", games=["cartpole"]), number)
    for run in results.runs:
        runs(run)
    return words(results, "drop-or-correct")


@pytest.mark.parametrize("more", [50.0, -50.0])
def test_dropping_is_compared_with_correcting_at_each_minimum_batch(more):
    assert dropping(more) == {"minimum-0": HOLDS, "minimum-20": NO_DIFFERENCE}


def test_dropping_is_not_judged_on_a_machine_whose_speed_changed():
    def changed(run):
        corrected = run.spec.label[1] == "corrected"
        run.started_s = 3600.0 * corrected
        run.calibrations = [Calibration(50.0 * (1 + corrected), 10.0, 1000.0 * (1 + corrected))]

    # A difference that is not significant anyway says so.
    assert dropping(50.0, changed) == {"minimum-0": SPEED_CHANGED, "minimum-20": NO_DIFFERENCE}


@pytest.mark.parametrize(("counts", "share"), [([1, 3, 5], 0.05), ([1, 3, 2], 0.05), ([], 0.0)])
def test_the_steps_dropped_are_those_of_all_sessions(counts, share):
    run = SimpleNamespace(metrics={"dropped_steps": np.array(counts)}, agent_steps=100)
    assert drop_or_correct.share_dropped(run) == share


def test_batches_learn_as_much_unless_a_run_scores_nothing():
    def number(spec):
        size = int(spec.label[0])
        return {"mean score of the run": 0.0 if size > 2000 and spec.seed == 1 else 10 + 0.1 * RNG.normal()}

    found = words(drawn(specs("batch-size"), number), "batch-size")
    decided = dict.fromkeys(("batch-80", "batch-320", "batch-1280"), HOLDS)
    assert found == decided | {"batch-2560": SCORED_NOTHING}

    def smallest(spec):
        fails = spec.label[0] == "20" and spec.seed == 1
        return {"mean score of the run": 0.0 if fails else 7 + 0.1 * RNG.normal()}

    assert set(words(drawn(specs("batch-size"), smallest), "batch-size").values()) == {SCORED_NOTHING}


@pytest.mark.parametrize(("seeds", "decides"), [(3, True), (4, False), (6, True), (7, False)])
def test_claims_are_decided_at_the_planned_numbers_of_seeds_only(seeds, decides):
    def number(spec):
        gain = 10 * (spec.label[2] == "rounds of long ago")
        return {metrics.SCORE: 50 + gain + 0.1 * RNG.normal(), metrics.START: 0.0}

    found = words(drawn(FIGURES["sources-of-lag"].all_specs("quick", seeds), number), "sources-of-lag")
    assert (UNPLANNED_LOOK not in found.values()) == decides


def test_seeds_of_several_commands_decide_nothing():
    """Three seeds that did not decide, and three new ones in the same folder, would be a second look."""

    def number(spec):
        return {"final rolling score": (0.0 if spec.system == "ga3c" else -21.0) + 0.1 * RNG.normal()}

    figure = FIGURES["learning-curves"]
    runs = [spec for first in (1, 101) for spec in figure.all_specs("quick", 3, ["pong"], first)]
    curve = {"episodes": np.array([100.0]), "rolling_score": np.array([1.0])}
    results = drawn(runs, number, curve=curve, on_gpu=False, result=A3C_ALONE)
    assert words(results, "learning-curves") == {"pong": UNPLANNED_LOOK}


def test_a_changed_learning_rate_is_named():
    figure = FIGURES["learning-curves"]
    planned = figure.all_specs("quick", 1, ["pong"])
    (spec,) = figure.changed(planned[:1], {"learning_rate": 0.002})
    assert figure.dimensions(spec) == {"label": "GA3C, learning rate 0.002"}


def test_the_smaller_epsilon_is_judged_over_the_games():
    def number(spec):
        score = 50.0 + 10 * (spec.label[0] == "epsilon 1e-4") + RNG.normal()
        return {"score": RANDOM_POLICY[spec.game].mean + score}

    results = drawn(specs("papers-algorithm", "tuned"), number, "tuned")
    for game in FIGURES["papers-algorithm"].games["tuned"]:
        results.paper.extend(papers(game, score=RANDOM_POLICY[game].mean + 100))
    found = verdicts_of("papers-algorithm", results)["smaller-epsilon"]
    assert found.kind == HOLDS and found.estimate.n == 9 and found.estimate.effect == pytest.approx(10, abs=2)


def test_pongs_limits_and_their_looks():
    limits = {"early": 15.0, "ppo": 16.7, "noops": 16.0}

    def number(spec):
        return dict.fromkeys(("score", "training score after 3,000,000 agent steps"), 20 + 0.3 * RNG.normal())

    found = verdicts_of("sample-efficiency", drawn(specs("sample-efficiency", "tuned"), number, "tuned"))
    above = {key: verdict.estimate.effect for key, verdict in found.items()}
    assert above == pytest.approx({key: 20 - limit for key, limit in limits.items()}, abs=0.7)
    assert [verdict.estimate.looks for verdict in found.values()] == [2, 2, 1]
    assert {verdict.kind for verdict in found.values()} == {HOLDS}


def test_rates_of_the_ladder_and_seeds_of_its_last_rung():
    runs = specs("ladder", "tuned")
    assert {spec.seed for spec in runs} == {101, 102, 103}
    later = [spec for spec in runs if spec.seed > 101]
    assert {spec.game for spec in later} == {"pong"} and len({spec.label[0] for spec in later}) == 1
    with pytest.raises(UserError, match="ladder does not go with cartpole"):
        FIGURES["ladder"].specs("tuned", "cartpole", 101)
    rungs = [dict(spec.settings) for spec in runs if spec.game == "pong" and spec.seed == 101]
    assert all(one != other for one, other in itertools.pairwise(rungs))
