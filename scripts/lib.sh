# Shared by the scripts next to it; to be sourced. It moves to the repository's root, sets up `.venv` when the
# lock file has changed since the last time, and names the environment's interpreter `$python`.
# Needs nothing but git and Python 3.11 or newer; set PYTHON to choose the interpreter.

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
cd "$root"

fail() {
    echo "$(basename "$0"): $*" >&2
    exit 2
}

# Prints the first interpreter that is new enough, or nothing. Inside an active environment that is the interpreter
# it was made from: `.venv` must not be built again by the very interpreter that it holds.
find_python() {
    local name
    for name in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11) or print(sys._base_executable))' 2>/dev/null; then
            return
        fi
    done
}

set_up() {
    local found
    git --version >/dev/null 2>&1 || fail "git is needed and was not found on PATH"
    found="$(find_python)"
    [ -n "$found" ] || fail "Python 3.11 or newer is needed; ${PYTHON:-python3} is missing or too old (set PYTHON to choose one)"
    "$found" -c 'import venv, ensurepip' >/dev/null 2>&1 \
        || fail "$found cannot make virtual environments: its modules venv and ensurepip are missing (on Debian: apt install python3-venv)"
    "$found" scripts/environment.py || exit 2
    python="$root/.venv/bin/python"
}

set_up
