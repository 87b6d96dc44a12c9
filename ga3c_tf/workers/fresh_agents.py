"""Agents of A2C and A3C: after each segment they act with the updated weights. Never imports TensorFlow."""

from __future__ import annotations

from collections.abc import Generator

from ga3c_tf.experience.columns import SegmentEnd
from ga3c_tf.experience.segment import Segment
from ga3c_tf.workers.agent import TrainingAgent


class FreshAgent(TrainingAgent):
    """Requests a new prediction for the last state of a segment, after sending the segment.

    The segment bootstraps from the value of that state under the weights before the update. The next action
    is chosen with the weights after the update, as in A3C (Mnih et al. 2016, algorithm S3) and synchronous
    A2C.
    """

    def _next_segment(self, segment: Segment, end: SegmentEnd) -> Generator[int | None, None, Segment]:
        segment = yield from super()._next_segment(segment, end)
        yield segment.newest
        return segment


class RoundAgent(FreshAgent):
    """Ends a segment after every t_max steps in all, wherever its episodes began, so agents share rounds."""

    def _is_due(self, segment: Segment) -> bool:
        return segment.length > 0 and int(self._memory.steps[self._number]) % self._memory.t_max == 0
