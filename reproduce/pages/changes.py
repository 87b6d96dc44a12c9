"""Findings whose verdict has changed because a rule was changed after their runs, in November 2026."""

from __future__ import annotations

from typing import NamedTuple

from ga3c_tf.reproduce.measures.verdicts import INCONCLUSIVE, Claim


class VerdictChange(NamedTuple):
    """A finding, and its verdict by an earlier rule."""

    name: str  # name of the figure, from `frozen.named`
    game: str  # game of the finding; empty if it is about several games
    claim: str  # how the text of the claim begins, without the game
    day: str  # day of the change
    earlier: str  # verdict by the earlier rule
    change: str  # what changed in the rule

    def is_about(self, name: str, claim: Claim) -> bool:
        """Return whether the change is about this claim of this figure."""
        same_game = claim.game in ("", self.game)
        return (
            name == self.name
            and same_game
            and claim.text.removeprefix(f"{self.game}: ").startswith(self.claim)
        )

    @property
    def was_undecided(self) -> bool:
        """Whether the finding was undecided by the earlier rule."""
        return self.earlier.startswith(INCONCLUSIVE)


CHANGES = (
    *(
        VerdictChange(
            "wall-clock",
            game,
            "GA3C reaches a score",
            "28 November",
            f"supported: {earlier}",
            "Calibrations of the two runs of a pair did not have to agree. 1 of the 9 pairs is left.",
        )
        for game, earlier in (
            ("cartpole", "2.89 times [1.06, 7.88], p = 0.045"),
            ("minatar_breakout", "at least 5.58 times [3.29, 9.45], p = 0.01"),
            ("minatar_space_invaders", "5.39 times [4.47, 6.49], p = 0.002"),
        )
    ),
    VerdictChange(
        "speed",
        "minatar_breakout",
        "dynamic adjustment is nearly as good",
        "28 November",
        "not supported: 0.489 times [0.361, 0.663], p = 0.04",
        "Runs of 20 periods counted, in which the search cannot make the 33 moves to the fixed setting.",
    ),
    VerdictChange(
        "environments",
        "",
        "GA3C scores as much as A2C",
        "23 November",
        "undecided",
        "Each game was judged for itself, and the question was whether GA3C scores more.",
    ),
    VerdictChange(
        "pps",
        "pong",
        "without a GPU, GA3C makes more predictions",
        "25 November",
        "undecided: fewer than 3 seeds (1.25 times, 2 seeds)",
        "The speed of copying memory, which is not part of the unit, no longer has to agree.",
    ),
    *(
        VerdictChange(
            "pps, gpu",
            "pong",
            claim,
            "26 November",
            "undecided: runs missing",
            "Calibrations of runs that began within a minute no longer have to agree.",
        )
        for claim in ("with a GPU, GA3C makes more predictions", "the speed-up over A3C grows")
    ),
    VerdictChange(
        "environments, tuned",
        "",
        "GA3C scores as much as A2C",
        "26 November",
        "undecided: +12.5 [-10.7, 35.6], p = 0.054",
        "MinAtar Seaquest was left out: the interval of GA3C's 69, 97 and 17 points includes the random "
        "policy's 0.1.",
    ),
    VerdictChange(
        "learning-curves",
        "pong",
        "GA3C scores more",
        "26 November",
        "undecided: +2.83 [-0.34, 6.01], p = 0.13",
        "Scores after equal time were compared by Welch's test. Now pairs of one seed and machine are.",
    ),
    VerdictChange(
        "tps",
        "pong",
        "without a GPU, TPS is highest",
        "27 November",
        "undecided: 0.986 times [0.961, 1.01], p = 0.54",
        "There was no verdict on equal settings. The margin of 5 % is that of the finding about predictors.",
    ),
    VerdictChange(
        "policy-lag",
        "minatar_breakout",
        "learning rate 0.001, equal steps: a minimum of 20 to 40 scores more",
        "27 November",
        "undecided: -0.145 [-0.252, -0.0384], p = 0.12",
        "There was no verdict on equal scores. It was committed before 18 of the 33 runs that decide.",
    ),
    VerdictChange(
        "utilization, gpu",
        "pong",
        "GPU use rises",
        "27 November",
        "undecided: runs missing",
        "The machine was gone before the last run of seed 5. Four seeds are counted; no share had been read.",
    ),
)
"""All findings on the page that would have another verdict by an earlier rule, in order of the changes."""
