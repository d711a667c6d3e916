"""The verbs of the command line, each loaded when it is used: to load them all takes as long as many of them do."""

from types import ModuleType

import click

VERBS = (
    "init", "gate", "status", "log", "why", "show", "replay", "diff", "resume", "stop", "config", "explain",
    "release", "approve", "reject", "archives", "mute", "unmute", "mutes", "questions", "answer", "plan", "timing",
    "usage", "read", "report", "query", "schema", "export", "import", "backup", "verify", "recover",
)  # fmt: skip


class Verbs(click.Group):
    """A group whose commands are the verbs."""

    def list_commands(self, context: click.Context) -> list[str]:
        """Their names, in the order of the alphabet."""
        return sorted(VERBS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The command of this name, None when there is none."""
        if name not in VERBS:
            return None
        command: click.Command = getattr(_module_of(name), "import_archive" if name == "import" else name)
        return command


def _module_of(verb: str) -> ModuleType:
    """The module that holds a verb."""
    match verb:
        case "gate" | "stop":
            from commands.cli import gate

            return gate
        case "resume" | "release" | "archives" | "approve" | "reject":
            return _module_of_release(verb)
        case "show" | "replay" | "diff":
            from commands.cli.auditing import past

            return past
        case "init" | "config":
            from commands.cli import setup

            return setup
        case "verify" | "recover":
            from commands.cli.auditing import proof

            return proof
        case "plan":
            from commands.cli import plan

            return plan
        case "timing":
            from commands.cli.measures import timing

            return timing
        case "read":
            from commands.cli.measures import read

            return read
        case "usage":
            from commands.cli.measures import usage

            return usage
        case "mute" | "unmute" | "mutes":
            from commands.cli.people import mutes

            return mutes
        case "questions" | "answer":
            from commands.cli.people import questions

            return questions
        case "explain":
            from commands.cli import explain

            return explain
        case "query":
            from commands.cli.data import query

            return query
        case "report":
            from commands.cli.data import report

            return report
        case "schema":
            from commands.cli.data import schemas

            return schemas
        case "export" | "import" | "backup":
            from commands.cli.data import transfer

            return transfer
    from commands.cli import show

    return show


def _module_of_release(verb: str) -> ModuleType:
    """The module that holds a verb about releases."""
    match verb:
        case "resume":
            from commands.cli.releasing import resume

            return resume
        case "approve" | "reject":
            from commands.cli.releasing import people

            return people
    from commands.cli.releasing import release

    return release
