"""How the batches of a call lie in its upload, and how the program takes an update's rows from there.

Each update has a fixed number of rows. Those beyond its batch are padding: they repeat a row of the batch, so
that they are finite numbers where the others are, and `Batch.mask` leaves them out of the loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ga3c_tf.config.rates import Rates
from ga3c_tf.experience.columns import Batch, Column
from ga3c_tf.model.compiled.upload import Field
from ga3c_tf.model.tensorflow import tf

INT = np.dtype(np.int32)
FLOAT = np.dtype(np.float32)


class UpdateSize(NamedTuple):
    """What one call of an update program has room for."""

    steps: int  # in all batches together
    updates: int
    rows: int  # steps of one update


class BatchUpload:
    """The rows of the updates lie one after another.

    Args:
        columns: columns of the trajectory that an update reads.
        states: shape and type of a state, as the column of this name.
        size: what a call has room for.

    Attributes:
        fields: the arrays of the upload.
    """

    def __init__(self, columns: Sequence[Column], states: Column, size: UpdateSize):
        self._of_segments = [column.name for column in columns if column.axis == "segment"]
        self._of_steps = [column for column in [*columns, states] if column.axis == "step"]
        self._rows = size.rows
        an_update = (size.updates,)
        self.fields = [Field("count", (), INT), Field("learning_rate", (), FLOAT), Field("beta", (), FLOAT)]
        self.fields.append(Field("sizes", an_update, INT))
        for column in [*columns, states]:
            room = (size.steps,) if column.axis == "step" else (size.updates, size.rows)
            self.fields.append(Field(column.name, (*room, *column.shape), np.dtype(column.dtype)))

    def fill(self, arrays: dict[str, np.ndarray], batches: Sequence[Batch], rates: Rates) -> None:
        """Write the batches of a call, and the rates of all their updates."""
        arrays["count"][...] = len(batches)
        arrays["learning_rate"][...] = rates.learning_rate
        arrays["beta"][...] = rates.beta
        arrays["sizes"][: len(batches)] = [len(batch) for batch in batches]
        self._fill_steps(arrays, batches)
        for number, batch in enumerate(batches):
            for name in self._of_segments:
                _pad(arrays[name][number], getattr(batch, name), -1)
                if name == "lengths":
                    arrays[name][number, len(batch.lengths) :] = 0

    def columns_of(self, arrays: dict[str, tf.Tensor], number: int | tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the columns of one update in the graph of a program, with `mask`, bool [rows]."""
        columns = {column.name: self._steps(arrays, column, number) for column in self._of_steps}
        columns |= {name: arrays[name][number] for name in self._of_segments}
        return columns | {"mask": tf.range(self._rows) < arrays["sizes"][number]}

    def _fill_steps(self, arrays: dict[str, np.ndarray], batches: Sequence[Batch]) -> None:
        for number, batch in enumerate(batches):
            rows = slice(number * self._rows, (number + 1) * self._rows)
            for column in self._of_steps:
                _pad(arrays[column.name][rows], getattr(batch, column.name), 0)

    def _steps(self, arrays: dict[str, tf.Tensor], column: Column, number: int | tf.Tensor) -> tf.Tensor:
        return tf.reshape(arrays[column.name], (-1, self._rows, *column.shape))[number]


class IndexedUpload(BatchUpload):
    """For minibatches: each batch is there once, and the updates have the indices of their rows."""

    def __init__(self, columns: Sequence[Column], states: Column, size: UpdateSize):
        super().__init__(columns, states, size)
        self.fields.insert(0, Field("rows", (size.updates, size.rows), INT))

    def _fill_steps(self, arrays: dict[str, np.ndarray], batches: Sequence[Batch]) -> None:
        starts: dict[int, int] = {}
        end = 0
        for number, batch in enumerate(batches):
            whole = batch.whole
            if id(whole) not in starts:
                starts[id(whole)] = end
                for column in self._of_steps:
                    arrays[column.name][end : end + len(whole)] = getattr(whole, column.name)
                end += len(whole)
            _pad(arrays["rows"][number], starts[id(whole)] + batch.steps, 0)

    def _steps(self, arrays: dict[str, tf.Tensor], column: Column, number: int | tf.Tensor) -> tf.Tensor:
        return tf.gather(arrays[column.name], arrays["rows"][number])


def _pad(room: np.ndarray, values: np.ndarray, repeated: int) -> None:
    """Write values, and repeat one of them to the end of the room."""
    room[: len(values)] = values
    room[len(values) :] = values[repeated]
