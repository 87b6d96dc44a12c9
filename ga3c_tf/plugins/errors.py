"""Errors of user code, as one line for the user."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ga3c_tf.errors import UserError
from ga3c_tf.host.signals import EndedBySignal


@contextlib.contextmanager
def users_errors(text: str) -> Iterator[None]:
    """Raise a UserError, with `text` and the error in one line, for whatever user code in the block raises.

    User code may also end the program, which would otherwise look like success. UserErrors pass as they are.
    """
    try:
        yield
    except (UserError, EndedBySignal):
        raise
    except (Exception, SystemExit) as error:
        raise UserError(f"{text}: {one_line(error)}") from error


def one_line(error: BaseException) -> str:
    """Format an error's type, and its text if it has one, as one line."""
    return ": ".join(filter(None, (type(error).__name__, " ".join(str(error).split()))))
