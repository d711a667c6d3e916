"""The `ledger` program: its commands, and what becomes of every error."""

import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from commands.cli.common import emit_json, say
from commands.cli.exits import MEANING, ExitCode
from commands.cli.gate import gate, resume, stop
from commands.cli.setup import config, init
from commands.cli.show import log, status, why
from ledger import __version__
from ledger.errors import LedgerError

_EXIT_HELP = "\b\nExit codes:\n" + "\n".join(f"  {code.value:<3} {text}" for code, text in MEANING.items())


@click.group(
    name="ledger",
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


for _command in (init, gate, status, log, why, resume, stop, config):
    cli.add_command(_command)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code. No traceback for anything that a user can cause."""
    as_json = "--json" in arguments
    try:
        result: Any = cli.main(args=list(arguments), prog_name="ledger", standalone_mode=False)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.ClickException as error:
        error.show()
        return ExitCode.USAGE
    except click.Abort:
        return ExitCode.INTERRUPTED
    except LedgerError as error:
        _report(error, as_json)
        return error.exit_code
    except BrokenPipeError:
        # The reader of our output has gone (`ledger log | head`); what it wanted, it has.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.PASSED
    except KeyboardInterrupt:
        say("interrupted; what was running has been ended, and `ledger resume --from gate` takes it up again")
        return ExitCode.INTERRUPTED
    except Exception:
        from commands.cli.crash import report_crash

        say(f"this is a bug in ledger {__version__}; please report it with {report_crash(arguments)}")
        return ExitCode.BUG
    return int(result or 0)


def _report(error: LedgerError, as_json: bool) -> None:
    if as_json:
        emit_json({"error": {"code": error.code, "message": error.message, "hint": error.hint}})
    say(f"error[{error.code}]: {error.message}")
    if error.hint:
        say(f"  {error.hint}")
