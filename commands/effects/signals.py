"""What asks a driver to stop: signals to its process, and the stop file of its run."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from commands.effects.ports import StopReason


class StopRequests:
    """What asks the driver to stop: a signal to this process, or the stop file of the run.

    The first signal sets a flag that the driver's next tick reads; it cuts a preparation short, which no tick would
    see the end of. The second signal ends this process at once, and the supervisors end their jobs.
    """

    def __init__(self, stop_file: Path) -> None:
        self._stop_file = stop_file
        self._signalled = False
        self._preparing = False

    def install(self, wakeup_fd: int) -> None:
        """Take the signals over; the descriptor is written to when one comes, which ends the driver's sleep."""

        def handle(number: int, frame: FrameType | None) -> None:
            again, self._signalled = self._signalled, True
            if again or self._preparing:
                raise KeyboardInterrupt

        signal.set_wakeup_fd(wakeup_fd, warn_on_full_buffer=False)
        signal.signal(signal.SIGINT, handle)
        signal.signal(signal.SIGTERM, handle)

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """While this lasts, the first signal raises KeyboardInterrupt, because no tick would come to see its flag."""
        self._preparing = True
        try:
            yield
        finally:
            self._preparing = False

    def requested(self) -> StopReason | None:
        """Why to stop, None for going on."""
        if self._signalled:
            return "interrupted"
        return "asked" if self._stop_file.exists() else None

    def answered(self) -> None:
        """The request has been carried out, or there is nothing left to stop."""
        self._stop_file.unlink(missing_ok=True)


class Announced:
    """The answer whether to stop, said aloud when it is first a yes: ending what runs may take a moment."""

    def __init__(self, requested: Callable[[], StopReason | None], note: Callable[[str], None]) -> None:
        self._requested, self._note, self._told = requested, note, False

    def __call__(self) -> "StopReason | None":
        reason = self._requested()
        if reason and not self._told:
            self._told = True
            again = "; interrupt again to leave at once" if reason == "interrupted" else ""
            self._note(f"stopping: what runs is ended, what was measured is kept{again}")
        return reason
