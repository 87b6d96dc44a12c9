"""The findings in a results folder: figures at each budget, their claims, and how many have which verdict."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from ga3c_tf.reproduce.figures.figure import Figure
from ga3c_tf.reproduce.figures.measurements import Measurements, Results
from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.measures.verdicts import Claim
from ga3c_tf.reproduce.results.folder import ResultsFolder
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import BUDGETS, is_atari

LEARNING_UNITS = ("points", "1/min")
"""Units of the main number of a figure that is about learning."""
ATARI = "learning an Atari game"
SMALL = "learning CartPole or MinAtar"
SPEED = "speed, queues and use of the machine"
SUBJECTS = (ATARI, SMALL, SPEED)


@dataclass(frozen=True)
class Chapter:
    """A figure at a budget, by the paper's method."""

    figure: Figure
    budget: str
    results: Results

    @property
    def title(self) -> str:
        """Heading of its part of the figure's page."""
        return f"{self.figure.name}, {self.budget} budget"

    @functools.cached_property
    def table(self) -> Measurements:
        """The table of its runs."""
        return self.figure.table(self.results)

    @functools.cached_property
    def claims(self) -> list[Claim]:
        """The claims that its runs are to decide, with their verdicts."""
        return self.figure.verdicts(self.results)

    @property
    def subject(self) -> str:
        """What it is about: one of `SUBJECTS`."""
        if self.figure.main[1] not in LEARNING_UNITS:
            return SPEED
        return ATARI if all(is_atari(run.spec.game) for run in self.results.runs) else SMALL

    @property
    def finished(self) -> list[RecordedRun]:
        """The finished runs."""
        return self.table.finished

    @property
    def on_gpu(self) -> bool:
        """Whether a finished run used a GPU."""
        return any(run.on_gpu for run in self.finished)


def chapters(folder: ResultsFolder) -> list[Chapter]:
    """Return the figures that have been begun, each at its budgets, in the order of the pages."""
    recorded = [
        Chapter(figure, budget, folder.results(figure, budget))
        for figure in FIGURES.values()
        for budget in reversed(BUDGETS)
        if folder.has_records(figure, budget)
    ]
    return [chapter for chapter in recorded if chapter.table.begun]


def papers_claims(chapter: Chapter) -> list[Claim]:
    """Return the claims of the paper that the runs are to decide, without our own questions."""
    if chapter.figure.paper.startswith("not in the paper"):
        return []
    return [claim for claim in chapter.claims if not claim.is_question]
