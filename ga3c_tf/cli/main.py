"""The command `ga3c-tf`. Each command imports what it needs inside its function, so that `--help` answers at
once.

Modules that load TensorFlow, which takes seconds, are imported after the checks, so that bad input is
rejected at once too.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback

import rich_click as click
from click.exceptions import Exit, NoArgsIsHelpError

from ga3c_tf import __version__
from ga3c_tf.cli import agents, evaluation, figures, tools, training
from ga3c_tf.cli.options import number_in_words
from ga3c_tf.config.elsewhere import setting_called
from ga3c_tf.console import discard_unwritten, prepare_output, say, warn
from ga3c_tf.errors import UserError
from ga3c_tf.host.processes import exit_not_held_up
from ga3c_tf.host.signals import EndedBySignal

OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of writing output that are no fault of the command, such as a full disk or a closed terminal."""
EXIT_SECONDS = 5.0
"""Seconds that the program may take to end by itself after its command."""


@exit_not_held_up(EXIT_SECONDS, warn)
def program() -> None:
    """Run the command as its own program, which ends soon afterwards whatever user code has left running."""
    main()


def main() -> None:
    """Run the command and exit.

    Exit codes: 0 success, 1 failure, 2 bad input, 128 + n ended by signal n.
    """
    prepare_output()
    try:
        code = cli.main(standalone_mode=False) or 0
        sys.stdout.flush()
        sys.exit(code)
    except Exit as stop:
        sys.exit(stop.exit_code)
    except NoArgsIsHelpError as error:
        print(error.format_message())
        sys.exit(2)
    except click.UsageError as error:
        hint = f" (see {error.ctx.command_path} --help)" if error.ctx else ""
        fail(f"{_explained(error)}{hint}")
    except (click.ClickException, UserError) as error:
        fail(str(error))
    except (click.Abort, KeyboardInterrupt):
        warn("interrupted")
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:  # the reader has closed the output
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        if error.errno not in OUTPUT_ERRORS:
            raise
        warn(f"cannot write the output: {error.strerror}")
        sys.exit(1)
    finally:
        discard_unwritten()


def _explained(error: click.UsageError) -> str:
    """Return the message of an error; for an option that has another name here, such as `--lr`, that name.

    For a number that cannot be read or is out of range, say what it must be.
    """
    if isinstance(error, click.NoSuchOption) and error.ctx:
        meant = setting_called(error.option_name)
        for parameter in error.ctx.command.params:
            if parameter.name == meant:
                here = parameter.opts[0] if isinstance(parameter, click.Option) else "the first argument"
                return f"No such option {error.option_name!r}; it is {here} here"
    if isinstance(error, click.BadParameter) and error.param and (words := number_in_words(error.param.type)):
        value = error.message.rpartition(" is not ")[0]
        return f"{error.param.opts[0]} is {value}; it must be {words}"
    return error.format_message()


def fail(message: str) -> None:
    """Print `message` as one line on standard error and exit with code 2."""
    warn(" ".join(message.split()))
    sys.exit(2)


class Commands(click.RichGroup):
    """The group of all commands. One whose user code, such as an environment, ends the program has failed."""

    def invoke(self, ctx: click.Context) -> int | None:
        """Run the command that was named; return its exit code."""
        try:
            return super().invoke(ctx)
        except EndedBySignal:
            raise
        except SystemExit:
            say(traceback.format_exc().rstrip(), sys.stderr)
            return 1


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="ga3c-tf")
def cli() -> None:
    """GA3C: reinforcement learning through asynchronous advantage actor-critic on a GPU (ICLR 2017)."""
    try:
        os.getcwd()
    except FileNotFoundError:  # no process could be started in it, and nothing written
        raise UserError("the current folder has been removed; change to one that exists") from None


for command in (
    training.train,
    training.resume,
    evaluation.evaluate,
    agents.play,
    agents.publish,
    agents.export,
    figures.plot,
    tools.bench,
    figures.reproduce,
    figures.report,
    figures.pack,
    figures.unpack,
    tools.games,
):
    cli.add_command(command)
