"""What a step is told: a document in a file, whose path is in `LEDGER_CONTEXT`."""

import json

from commands.releasing.parts import Bench, place_of, today
from ledger.steps import Step
from projections.release.standing import valid_waivers
from projections.release.state import StepAttempt, archive_of

PROTOCOL = 1


def context_of(bench: Bench, step: Step, attempt: StepAttempt, archive_directory: str = "") -> bytes:
    """The context of an attempt, as JSON.

    `outputs` holds, by step, the outcome of each that has ended and the free keys that it printed. `waivers` and
    `issues` are what was let pass, with reasons that are fit for the public. `answers` are those to its questions.
    """
    views = bench.views()
    view, begun = views.release, views.run.begun
    archive = archive_of(view)
    document = {
        "protocol": PROTOCOL,
        "ledger": bench.workshop.ledger_id,
        "release": begun.run,
        "version": begun.version,
        "step": step.name,
        "attempt": attempt.number,
        "commit": attempt.commit,
        "baseline": begun.baseline,
        "branch": begun.branch or None,
        # Where it is now, and was looked at: a ledger may have been moved since it was prepared.
        "archive": {"digest": archive.digest, "path": str(place_of(bench, archive.version).path)} if archive else None,
        "archive_directory": archive_directory or None,
        "outputs": _outputs(bench),
        "waivers": [
            {"step": one.waived.step, "reason": one.waived.reason}
            for one in valid_waivers(view, bench.graph, today()).values()
        ],
        "issues": [{"issue": one.accepted.issue, "note": one.accepted.note} for one in view.issues.values()],
        "answers": {
            one.content.key: one.choice or one.text
            for one in views.questions.questions.values()
            if one.content.step == step.name and (one.choice or one.text)
        },
    }
    return json.dumps(document, ensure_ascii=False, sort_keys=True, indent=1).encode()


def _outputs(bench: Bench) -> dict[str, dict[str, object]]:
    found = {}
    for name, state in bench.views().release.steps.items():
        ended = [one for one in state.attempts if one.outcome is not None]
        if ended:
            keys = {key: json.loads(text) for key, text in ended[-1].report.keys.items()}
            found[name] = {**keys, "outcome": ended[-1].outcome, "summary": ended[-1].report.summary}
    return found
