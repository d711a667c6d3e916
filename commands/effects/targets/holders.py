"""What identifies the bytes of a target: those of its file, or of the files of its directory."""

import os
from collections import defaultdict
from collections.abc import Mapping
from hashlib import sha256

from commands.effects.git import Blob

_DIRECTORY_MODE = "040000"


class Holders:
    """The files and directories of a commit. A directory is identified by the files right in it, whatever is below."""

    def __init__(self, blobs: Mapping[str, Blob]) -> None:
        self._blobs = blobs
        self._directories: defaultdict[str, list[str]] = defaultdict(list)
        for path, blob in sorted(blobs.items()):
            directory, name = os.path.split(path)
            self._directories[directory].append(f"{name}\0{blob.mode}\0{blob.oid}")

    def get(self, place: str) -> Blob | None:
        """What identifies the place; None when the commit has neither such a file nor files in such a directory."""
        if place in self._blobs:
            return self._blobs[place]
        if place not in self._directories:
            return None
        listing = "\0\0".join(self._directories[place]).encode("utf-8", "surrogateescape")
        return Blob(_DIRECTORY_MODE, sha256(listing).hexdigest())
