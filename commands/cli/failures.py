"""The expected failures of the command line itself, and of the machine under it."""

import errno

from ledger.errors import LedgerError

SYSTEM_ERRORS = frozenset(
    {
        errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC,
        errno.EPERM, errno.EROFS,
    }
)  # fmt: skip
"""What a machine refuses without any program being at fault."""


class UsageInvalid(LedgerError):
    """The command line is not one that the program understands."""

    code = "usage-invalid"
    exit_code = 2


class DirectoryGone(LedgerError):
    """The current directory does not exist any more."""

    code = "directory-gone"
    exit_code = 2


class TestUnknown(LedgerError):
    """No test, or more than one, matches what was asked for."""

    __test__ = False
    code = "test-unknown"
    exit_code = 2


class CodeUnknown(LedgerError):
    """No reason and no error has this code."""

    code = "code-unknown"
    exit_code = 2


class OutputFailed(LedgerError):
    """The answer could not be written to where standard output goes."""

    code = "output-failed"
    exit_code = 4


class SystemRefused(LedgerError):
    """The machine refused something: no space, no permission, too many open files."""

    code = "system-refused"
    exit_code = 4

    def __init__(self, error: OSError) -> None:
        where = f": {error.filename}" if error.filename else ""
        super().__init__(f"the system refused: {error.strerror}{where}", "check space, quota and permissions")


class Interrupted(LedgerError):
    """A signal ended the program before it was done."""

    code = "interrupted"
    exit_code = 8

    def __init__(self) -> None:
        super().__init__("interrupted", "`ledger status` says where the run stands; what was measured is kept")


class Bug(LedgerError):
    """The program did what it must never do; a crash report was written."""

    code = "bug"
    exit_code = 70
