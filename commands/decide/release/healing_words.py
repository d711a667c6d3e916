"""What the codes of healing mean and what to do next; `commands/causes.py` tells them with others."""

_OWED = "`ledger status` says what is owed, and `ledger log` of the release what was decided."
_MEMBERS = "Add a member to the pool, or resume without `--reroute`."

HEALING: dict[str, tuple[str, str]] = {
    "true-regression": (
        "The gate was measured and found a regression. That is never healed.",
        "Repair the release, or mute the test with a reason.",
    ),
    "shard-death": ("Processes of the gate did not come to their end.", _OWED),
    "timeout": ("Tests of the gate ran into a limit of time.", _OWED),
    "host-down": ("A machine took nothing of the gate, or not all of it.", _OWED),
    "environment": ("What the tests of the gate need was not there, or was not as it has to be.", _OWED),
    "retry-shard": ("What is owed of the gate is run again.", ""),
    "more-memory": ("What is owed is run again, with a limit of memory that is twice as high.", ""),
    "split": ("The gate goes on telling apart the targets of a group in which a process died.", ""),
    "isolate": ("The gate goes on trying targets by themselves in which a process died.", ""),
    "partial-resume": ("Of the gate, only the targets that were disturbed and are owed are run again.", ""),
    "reroute-shard": ("What is owed of a shard is run again on another member of the pool.", ""),
    "host-switch": ("What is owed is run again on the member that the pool chooses.", ""),
    "hitl": (
        "The program does nothing more about the gate by itself; a person decides.",
        "`ledger log` of the release says by which row of docs/autoheal.md. " + _OWED,
    ),
    "nothing-owed": ("Nothing of the gate is left to run, so running it again would change nothing.", ""),
    "signature-cap": ("As much was done about the same trouble as is allowed, and it came again.", _OWED),
    "release-cap": ("As much was healed in this release as is allowed.", _OWED),
    "memory": ("No limit of memory ended an attempt, so more of it would not help.", ""),
    "halves": ("The gate had no group of targets left that it could tell apart.", ""),
    "alone": ("The gate had no target left that it had not tried by itself.", ""),
    "member": ("The pool has no other member.", "Add one to the pool."),
    "may-differ": ("Nothing that went wrong comes out otherwise before something is changed.", _OWED),
    "taken": ("That was done about the same trouble before, as often as it may be.", ""),
}
"""Causes, actions, and why a row of the table does not hold."""

REROUTES: dict[str, tuple[str, str]] = {
    "reroute-not-gate": ("Only shards of a gate that is run again can go to another member.", "Resume from the gate."),
    "reroute-moved-tip": (
        "The branch of the release has moved, and the gate of the new commit has no shards yet.",
        "Resume from the gate without `--reroute`.",
    ),
    "reroute-unknown": ("The gate has no shard of that name.", "The message lists those that it has."),
    "reroute-no-member": ("The pool has no other member that a shard could go to.", _MEMBERS),
}
"""Why a shard does not go elsewhere."""
