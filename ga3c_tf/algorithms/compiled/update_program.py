"""The updates of a compiled model: one upload of batches, all their updates in order, one result back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ga3c_tf.algorithms.compiled.batch_program import BatchProgram
from ga3c_tf.algorithms.compiled.batch_upload import FLOAT
from ga3c_tf.config.rates import Rates
from ga3c_tf.experience.columns import Batch
from ga3c_tf.model.compiled.upload import packed
from ga3c_tf.model.compiled.weights import VectorState, VectorWeights
from ga3c_tf.model.tensorflow import tf


class UpdateProgram(BatchProgram):
    """Makes up to `size.updates` updates in one call. Thread-safe; arguments as for `BatchProgram`."""

    _weights: VectorWeights

    # in Python

    def update(self, batches: Sequence[Batch], rates: Rates) -> list[tuple[np.ndarray, int]]:
        """Make one update on each batch, in this order.

        Args:
            batches: batches, or minibatches of batches, for which `size` has room.
            rates: rates of all updates.

        Returns:
            For each update `GraphOutputs.numbers`, and the number of updates done after it.
        """
        with self.program.upload.buffer() as buffer:
            self._batches.fill(buffer.arrays, batches, rates)
            with self._weights.changing:
                result = self.program(buffer.tensor())
            rows = result.numpy()
        return self._unpacked(rows, batches)

    def _unpacked(self, rows: np.ndarray, batches: Sequence[Batch]) -> list[tuple[np.ndarray, int]]:
        """Return what the rows of the result say of each update. Those of its padding are left out."""
        versions = rows[:, :2].copy().view(np.int64)[:, 0].tolist()
        numbers = rows[:, 2:].view(FLOAT)
        summary = numbers.shape[1] - self._size.rows
        return [
            (row[: summary + len(batch)], version)
            for row, version, batch in zip(numbers, versions, batches, strict=False)
        ]

    # in the graph

    def _graph(self, arrays: dict[str, tf.Tensor]) -> tf.Tensor:
        state = self._weights.read()
        if self._size.updates == 1:
            state, row = self._updated(state, arrays, 0)
            rows = row[None]
        else:
            state, rows = self._loop(state, arrays)
        self._weights.write(state)
        return rows

    def _loop(self, state: VectorState, arrays: dict[str, tf.Tensor]) -> tuple[VectorState, tf.Tensor]:
        """Return the state after all updates, and a row of numbers of each."""
        rows = tf.TensorArray(tf.uint32, self._size.updates)

        def update(number, state, rows):
            state, row = self._updated(state, arrays, number)
            return number + 1, state, rows.write(number, row)

        _, state, rows = tf.while_loop(lambda number, *_: number < arrays["count"], update, (0, state, rows))
        return state, rows.stack()

    def _updated(
        self, state: VectorState, arrays: dict[str, tf.Tensor], number: int | tf.Tensor
    ) -> tuple[VectorState, tf.Tensor]:
        """Return the state after one update, and its numbers.

        It is skipped if it is not finite, or has no steps, as in the call that compiles the program.
        """
        weights = self._weights.parts(state.weights)
        outputs = self._outputs(weights, state.version, arrays, number)
        applied = outputs.finite & (arrays["sizes"][number] > 0)
        state = self._weights.stepped(state, outputs.gradients, arrays["learning_rate"], applied)
        return state, packed(state.version, outputs.numbers)
