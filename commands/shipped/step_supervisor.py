"""Runs the command of a release's step: `step_supervisor.py ATTEMPT_DIRECTORY`.

It is the supervisor, except that the command writes into pipes, so that secrets are taken out before anything reaches
the disk: standard output goes to the job's `stdout_file`, errors go to `output.log`. Secrets are variables of the
supervisor itself, `LEDGER_SECRET_NAME`; the command gets them as `NAME`. In `result.json` there is also

- `late_bytes`: how much of standard output came after the command was to be ended.

What the command had printed is in the files also when it or the driver was killed in the middle.
"""

from __future__ import annotations

import contextlib
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # Importing these takes a tenth of the time that a short job costs.
    from typing import Any

if TYPE_CHECKING or __package__:
    from commands.shipped.redaction import Redactor
    from commands.shipped.supervisor import Output, Supervision, main
else:  # Run as a program, it finds its neighbours beside it.
    from redaction import Redactor
    from supervisor import Output, Supervision, main

SECRET_PREFIX = "LEDGER_SECRET_"

TAIL_BYTES = 2 << 20
"""So much of the end of a shortened standard output is kept: the longest result line, and what may stand after it."""

READ_BYTES = 1 << 20
"""At most so much is read at a time; a pipe holds less, so that one reading takes all that a dead command left."""


class Stream:
    """One stream of the command: from its pipe, through the redaction, into its file."""

    def __init__(self, output: Output, secrets: dict[str, bytes]) -> None:
        self.output = output
        self.bytes = 0
        self.error: OSError | None = None
        """Why something could not be written; it is missing in the file, as is everything after it."""
        self._redactor = Redactor(secrets)
        self._pipe = -1

    def connect(self) -> tuple[int, int]:
        """Open the pipe: the end to be read here, without waiting, and the end of the command."""
        self._pipe, writing = os.pipe()
        os.set_blocking(self._pipe, False)
        return self._pipe, writing

    def pump(self) -> bool:
        """Take what is in the pipe, up to a bound; False when nothing will ever come any more."""
        data, ended = bytearray(), False
        with contextlib.suppress(BlockingIOError):
            while len(data) < READ_BYTES and not ended:
                chunk = os.read(self._pipe, READ_BYTES)
                data += chunk
                ended = not chunk
        self._write(self._redactor.take(bytes(data)))
        return not ended

    def end(self) -> None:
        """Take what is left, also what looked like the beginning of a secret. The command is gone."""
        self.pump()
        self._write(self._redactor.take(b"", last=True))
        os.close(self._pipe)

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left and self.error is None:
                left = left[os.write(self.output.handle, left) :]
            self.output.free()
        except OSError as error:
            self.error = error
        self.bytes += len(data)


class StepSupervision(Supervision):
    """The command of one step, from its start to the end of its last process."""

    def __init__(self, directory: str, job: dict[str, Any]) -> None:
        super().__init__(directory, job)
        names = [name for name in os.environ if name.startswith(SECRET_PREFIX)]
        self._secrets = {name[len(SECRET_PREFIX) :]: os.environ[name] for name in names}
        values = {name: os.fsencode(value) for name, value in self._secrets.items()}
        stdout = Output(os.path.join(directory, job["stdout_file"]), TAIL_BYTES)
        self._streams_of_command = (Stream(stdout, values), Stream(self._output, values))
        self._late_bytes = 0

    def run(self) -> dict[str, Any]:
        """Run the command and end all of its processes; the fields of a `JobEnd`, and `late_bytes`."""
        end = super().run()
        with contextlib.suppress(OSError):  # A full disk may cost the tail of the output, but not the result.
            self._streams_of_command[0].output.close()
        return dict(end, late_bytes=self._late_bytes)

    def _environment(self) -> dict[str, str]:
        return {**super()._environment(), **self._secrets}

    def _streams(self, opened: contextlib.ExitStack) -> tuple[int, int]:
        writing = []
        for stream in self._streams_of_command:
            reading, end = stream.connect()
            opened.callback(os.close, end)
            self._driver.attend(reading, stream.pump)
            writing.append(end)
        return writing[0], writing[1]

    def _end_tree(self, command: int, asked: str | None) -> tuple[int | None, str, bool]:
        stdout = self._streams_of_command[0]
        told_bytes = stdout.bytes
        ended = super()._end_tree(command, asked)
        for stream in self._streams_of_command:
            stream.end()
            if stream.error:
                # Without a result the job is lost: what could not be kept must not look as if it had not been said.
                raise stream.error
        self._late_bytes = stdout.bytes - told_bytes if asked else 0
        return ended


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], StepSupervision))
