"""The command that plans without running: plan."""

from typing import Any, BinaryIO

import click

from commands.cli.common import emit_json, emit_lines, home, json_option, refuse_both, width
from commands.cli.exits import ExitCode


@click.command(short_help="The shards that a commit's tests would be cut into.")
@click.argument("ref", default="HEAD")
@click.option(
    "--usage", type=click.File("rb"), metavar="FILE",
    help="What the targets need: {target: {memory_bytes, seconds}} as JSON, or pytest-split's .test_durations.",
)  # fmt: skip
@click.option("--budget", metavar="SIZE", help="The memory of a shard, such as 2GiB (default: the configured limit).")
@click.option("--shards", type=int, metavar="N", help="Cut into so many shards.")
@click.option("--target-time", metavar="TIME", help="Cut into as few shards as end within this time, such as 10m.")
@json_option
def plan(
    ref: str, usage: BinaryIO | None, budget: str | None, shards: int | None, target_time: str | None, as_json: bool
) -> ExitCode:
    """Plan the tests of the commit REF (default: HEAD) without running or recording anything.

    They are collected in a checkout of their own. Without --usage, what earlier runs measured is known of them.
    Shards fit the memory budget and end as close together as can be;
    the time of the longest is shown beside what no plan can go below. A target without known usage is planned with
    more than most others need, which is said.
    """
    from commands.planning_run import Wishes, plan_commit
    from commands.render.measures.plan import PlanFacts, plan_lines

    refuse_both("--shards", shards, "--target-time", target_time)
    wishes = Wishes(
        usage=None if usage is None else usage.read(),
        budget_bytes=_quantity("--budget", "gate.memory_limit_bytes", budget),
        shards=shards,
        target_seconds=_quantity("--target-time", "gate.time_limit_seconds", target_time),
    )
    answer = plan_commit(home(None), ref, wishes)
    if as_json:
        emit_json(answer)
    else:
        emit_lines(
            plan_lines(
                PlanFacts(
                    answer.candidate,
                    answer.candidate_ref,
                    answer.budget_origin,
                    answer.usage_origin,
                    answer.session_seconds,
                    answer.session_memory_bytes,
                ),
                answer.plan,
                answer.assumptions,
                width(),
            )
        )
    return ExitCode.PASSED


def _quantity(option: str, key: str, text: str | None) -> Any:
    """A size or a time, written as in the configuration. Raises a usage error."""
    from commands.config.keys import RULES, convert

    if text is None:
        return None
    try:
        return convert(key, text)
    except ValueError:
        raise click.UsageError(f"{option} is {text[:80]!r}; allowed: {RULES[key].allowed}") from None
