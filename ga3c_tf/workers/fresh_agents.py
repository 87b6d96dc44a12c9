"""The agents of the baselines: they act on weights that their own last segment has trained. Free of TensorFlow."""

from __future__ import annotations

from collections.abc import Generator

from ga3c_tf.rollouts.columns import SegmentEnd
from ga3c_tf.rollouts.segment import Segment
from ga3c_tf.workers.agent import Agent


class FreshAgent(Agent):
    """Requests a new prediction of the state that its last segment ended in, once that segment is sent.

    The value of that state, which the segment bootstraps from, came from the weights before the update; the policy of
    the next action comes from those after it, as in A3C (Mnih et al. 2016, algorithm S3) and synchronous A2C.
    """

    def _next_segment(self, segment: Segment, end: SegmentEnd) -> Generator[int | None, None, Segment]:
        segment = yield from super()._next_segment(segment, end)
        yield segment.newest
        return segment


class RoundAgent(FreshAgent):
    """Ends its segment after every t_max of its steps, wherever episodes began, so all agents share rounds."""

    def _is_due(self, segment: Segment) -> bool:
        return segment.length > 0 and int(self._memory.steps[self._number]) % self._memory.t_max == 0
