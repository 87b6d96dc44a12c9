"""The updates of a compiled model: one upload of batches, all their updates in order, one result back.

B is the number of rows of an update, some of which may be padding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ga3c_tf.algorithms.actor_critic.gradients import Gradients, Objective
from ga3c_tf.algorithms.actor_critic.sizes import UpdateSize
from ga3c_tf.algorithms.actor_critic.stateless import StatelessNetwork
from ga3c_tf.config.rates import Rates
from ga3c_tf.experience.columns import Batch, Column
from ga3c_tf.model.compiled.program import Program
from ga3c_tf.model.compiled.upload import Field, Upload, packed
from ga3c_tf.model.compiled.weights import VectorState, VectorWeights
from ga3c_tf.model.tensorflow import tf

INT = np.dtype(np.int32)
FLOAT = np.dtype(np.float32)


class UpdateProgram:
    """Makes up to `size.updates` updates in one call. Thread-safe.

    The rows of an update lie one after another. Where updates are on minibatches, there is one copy of their
    batch instead, and each update has the indices of its rows. Rows of padding are masked, and repeat the
    update's first step, so that they are finite numbers where the others are.

    Args:
        network: the network.
        objective: what updates minimize.
        columns: columns of the trajectory that an update reads.
        weights: the weights that are trained.
        size: what a call has room for.
        device: TensorFlow device; None leaves the choice to TensorFlow.

    Attributes:
        program: the compiled function.
    """

    def __init__(
        self,
        network: StatelessNetwork,
        objective: Objective,
        columns: Sequence[Column],
        weights: VectorWeights,
        size: UpdateSize,
        device: str | None,
    ):
        self._network = network
        self._objective = objective
        self._of_steps = [column.name for column in columns if column.axis == "step"] + ["states"]
        self._of_segments = [column.name for column in columns if column.axis == "segment"]
        self._weights = weights
        self._size = size
        steps, updates, rows, _ = size
        fields = [Field("count", (), INT), Field("learning_rate", (), FLOAT), Field("beta", (), FLOAT)]
        fields.append(Field("sizes", (updates,), INT))
        if size.by_index:
            fields.append(Field("rows", (updates, rows), INT))
        for column in columns:
            room = (steps,) if column.axis == "step" else (updates, rows)
            fields.append(Field(column.name, (*room, *column.shape), np.dtype(column.dtype)))
        fields.append(Field("states", (steps, *network.state_shape), network.state_dtype))
        self.program = Program(self._graph, Upload(fields), device)

    # in Python

    def update(self, batches: Sequence[Batch], rates: Rates) -> list[tuple[Gradients, int]]:
        """Make one update on each batch, in this order.

        Args:
            batches: batches, or minibatches of one batch, for which `size` has room.
            rates: rates of all updates.

        Returns:
            For each update what a plain one computes (without the gradients, which stay on the device), and
            the number of updates done after it.
        """
        with self.program.upload.buffer() as buffer:
            self._fill(buffer.arrays, batches, rates)
            with self._weights.changing:
                result = self.program(buffer.tensor())
            rows = result.numpy()
        return [_unpacked(row, len(batch)) for row, batch in zip(rows, batches, strict=False)]

    def _fill(self, arrays: dict[str, np.ndarray], batches: Sequence[Batch], rates: Rates) -> None:
        arrays["count"][...] = len(batches)
        arrays["learning_rate"][...] = rates.learning_rate
        arrays["beta"][...] = rates.beta
        arrays["sizes"][: len(batches)] = [len(batch) for batch in batches]
        if self._size.by_index:
            self._fill_by_index(arrays, batches)
            return
        rows = self._size.rows
        for number, batch in enumerate(batches):
            for name in self._of_steps:
                _pad(arrays[name][number * rows : (number + 1) * rows], getattr(batch, name), 0)
            for name in self._of_segments:
                _pad(arrays[name][number], getattr(batch, name), -1)
                if name == "lengths":
                    arrays[name][number, len(batch.lengths) :] = 0

    def _fill_by_index(self, arrays: dict[str, np.ndarray], batches: Sequence[Batch]) -> None:
        starts: dict[int, int] = {}
        end = 0
        for number, batch in enumerate(batches):
            whole = batch.whole
            if id(whole) not in starts:
                starts[id(whole)] = end
                for name in self._of_steps:
                    arrays[name][end : end + len(whole)] = getattr(whole, name)
                end += len(whole)
            _pad(arrays["rows"][number], starts[id(whole)] + batch.steps, 0)

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
        size = arrays["sizes"][number]
        columns = {name: self._rows(arrays, name, number) for name in self._of_steps}
        columns |= {name: arrays[name][number] for name in self._of_segments}
        mask = tf.range(self._size.rows) < size
        batch = Batch(beta=arrays["beta"], version=state.version, mask=mask, **columns)
        weights = self._weights.parts(state.weights)
        outputs = self._objective.gradients(
            lambda: self._network(weights, batch.states, training=True), weights, batch
        )
        after = self._weights.stepped(state, outputs.gradients, arrays["learning_rate"])
        state = self._weights.chosen(outputs.finite & (size > 0), after, state)
        return state, packed(state.version, outputs.numbers)

    def _rows(self, arrays: dict[str, tf.Tensor], name: str, number: int | tf.Tensor) -> tf.Tensor:
        """Return the rows that an update has of a column of steps."""
        column = arrays[name]
        if self._size.by_index:
            return tf.gather(column, arrays["rows"][number])
        return tf.reshape(column, (self._size.updates, self._size.rows, *column.shape[1:]))[number]


def _pad(room: np.ndarray, values: np.ndarray, repeated: int) -> None:
    """Write values, and repeat one of them to the end of the room."""
    room[: len(values)] = values
    room[len(values) :] = values[repeated]


def _unpacked(row: np.ndarray, states: int) -> tuple[Gradients, int]:
    """Return what a row of the result says of an update on so many states."""
    gradients = Gradients.unpacked((), row[2:].view(FLOAT))
    return gradients._replace(log_pi=gradients.log_pi[:states]), int(row[:2].view(np.int64)[0])
