"""Recovers a ledger in a process of its own that is killed in the middle: `python one_recovery.py DIRECTORY`."""

import os
import sys
from pathlib import Path

from ledger.proof.recover import recover
from tests.ledger.attack.ledgers import stamp
from tests.ledger.attack.one_write import BEGIN_MARK, END_MARK


def main() -> None:
    """Recover between the marks."""
    place = Path(sys.argv[1]) / "ledger.sqlite"
    os.access(BEGIN_MARK, os.F_OK)
    recover(place, stamp("recovery", time="2030-02-01T00:00:00.000000Z"))
    os.access(END_MARK, os.F_OK)


if __name__ == "__main__":
    main()
