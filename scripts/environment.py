"""Makes the virtual environment `.venv` agree with the lock file, and does nothing when it already does.

Run by `scripts/lib.sh` with any Python of a supported version; needs nothing but the standard library.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOCK_FILE = ROOT / "requirements-dev.lock"
# The stamps are written last, so an installation that was interrupted is started again from nothing.
REQUIREMENTS_STAMP = VENV / "requirements.stamp"
PROJECT_STAMP = VENV / "project.stamp"


def main() -> int:
    """Set up the environment; two scripts that start together take turns."""
    guard_path = ROOT / ".venv.lock"
    with guard_path.open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        try:
            set_up()
        except subprocess.CalledProcessError as error:
            command = " ".join(str(word) for word in error.cmd)
            print(f"setup failed: `{command}` ended with exit code {error.returncode}", file=sys.stderr)
            return 1
    return 0


def set_up() -> None:
    """Build what is missing: the environment with the locked requirements, then the project itself."""
    requirements_key = digest_of(LOCK_FILE.read_bytes(), sys.version.encode(), str(VENV).encode())
    if read_stamp(REQUIREMENTS_STAMP) != requirements_key:
        print("setup: installing the locked requirements into .venv", file=sys.stderr, flush=True)
        shutil.rmtree(VENV, ignore_errors=True)
        run(sys.executable, "-m", "venv", VENV)
        run(PYTHON, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", LOCK_FILE)
        REQUIREMENTS_STAMP.write_text(requirements_key)
    project_key = digest_of((ROOT / "pyproject.toml").read_bytes())
    if read_stamp(PROJECT_STAMP) != project_key:
        print("setup: installing the project, editable", file=sys.stderr, flush=True)
        run(PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "-e", ROOT)
        PROJECT_STAMP.write_text(project_key)


def digest_of(*parts: bytes) -> str:
    """Return one digest of the digests of the parts, so that no two lists of parts look the same."""
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def read_stamp(path: Path) -> str | None:
    """Return what an earlier setup wrote last, or nothing when it never came to its end."""
    return path.read_text() if path.is_file() else None


def run(*words: str | Path) -> None:
    """Run one command; its output goes to standard error, since the other belongs to the calling script."""
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=environment)


if __name__ == "__main__":
    sys.exit(main())
