"""The `ledger` program: its commands, and what becomes of every error."""

from collections.abc import Sequence
from contextlib import suppress

import click

from commands.cli.common import emit_json, reader_may_go, say
from commands.cli.exits import MEANING, ExitCode
from commands.cli.failures import SYSTEM_ERRORS, Bug, Interrupted, OutputFailed, SystemRefused, UsageInvalid
from commands.cli.verbs import Verbs
from ledger import __version__
from ledger.errors import LedgerError

_EXIT_HELP = "\b\nExit codes:\n" + "\n".join(f"  {code.value:<3} {text}" for code, text in MEANING.items())


@click.group(
    name="ledger",
    cls=Verbs,
    epilog=_EXIT_HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    no_args_is_help=False,
    invoke_without_command=True,
)
@click.version_option(__version__, message="ledger %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """A release gate that keeps a ledger.

    Measures the tests of a candidate commit and of its baseline, and answers passed, failed or unmeasured. Only what
    the candidate broke blocks; what could not be measured is never a pass. Everything is recorded, so that a gate that
    was cut short is resumed, and every answer can be explained.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(ExitCode.USAGE)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code. No traceback for anything that a user can cause."""
    as_json = "--json" in arguments
    code: int = ExitCode.PASSED
    try:
        # Not `cli.main`: it makes exit code 1 of a closed pipe, which would say that the candidate broke something.
        with reader_may_go(), cli.make_context("ledger", list(arguments)) as context:
            code = cli.invoke(context) or code
    except click.exceptions.Exit as ended:
        code = ended.exit_code
    except click.UsageError as error:
        code = _report(_usage(error), as_json)
    except LedgerError as error:
        code = _report(error, as_json)
    except KeyboardInterrupt:
        code = _report(Interrupted(), as_json)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in SYSTEM_ERRORS:
            code = _report(SystemRefused(error), as_json)
        else:
            code = _report(_bug(arguments), as_json)
    return int(code)


def _usage(error: click.UsageError) -> UsageInvalid:
    command = error.ctx.command_path if error.ctx else "ledger"
    return UsageInvalid(error.format_message(), f"see `{command} --help`")


def _bug(arguments: Sequence[str]) -> Bug:
    from commands.cli.crash import report_crash

    return Bug(f"this is a bug in ledger {__version__}", f"please report it with {report_crash(arguments)}")


def _report(error: LedgerError, as_json: bool) -> int:
    """Say what went wrong and what to do next, and give the exit code."""
    if as_json:
        with suppress(OutputFailed), reader_may_go():
            emit_json({"error": {"code": error.code, "message": error.message, "hint": error.hint}})
    say(f"error[{error.code}]: {error.message}")
    if error.hint:
        say(f"  {error.hint}")
    return error.exit_code
