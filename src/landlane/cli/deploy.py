"""The commands for deploying: deploy, deploy history."""

from __future__ import annotations

from landlane.app.repair_config import prepare_git
from landlane.cli.arguments import read_versions, read_wait
from landlane.cli.command import stop_on_signals
from landlane.cli.table import empty_text, text_width
from landlane.cli.terminal import in_one_line
from landlane.clock import parse_rfc3339
from landlane.deploys.records import list_deploys
from landlane.deploys.to_json import deployed_json, history_json
from landlane.errors import LandlaneError
from landlane.units import count, exact_duration, time_ago

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.cli.command import CommandCall


def deploy(
    call: CommandCall, target: str, command: tuple[str, ...], wait: str, expect: tuple[str, ...]
) -> int:
    """Deploy, and show whether the commit is live."""
    wait_ms = read_wait(wait)
    repo = prepare_git(call.repo, call.terminal.note)
    session = call.session()
    stop_on_signals()
    out = 2 if call.terminal.is_json else 1
    try:
        from landlane.deploys.deploy import deploy as run_deploy  # noqa: PLC0415 - the history does not need it

        done = run_deploy(
            repo,
            session,
            target,
            command,
            wait_ms=wait_ms,
            out=out,
            err=2,
            expect=read_versions(expect),
        )
    except LandlaneError as error:
        return fail(call, error)
    answer, code = deployed_json(done)
    if code:
        if done.code == "VERIFY_FAILED":
            call.terminal.note(done.output.rstrip("\n"))
        return call.terminal.refuse(answer, code)
    took = exact_duration(round(answer["seconds"] * 1000))
    how = (
        f"verified by {done.verify}" if done.verified else f"not verified: deploy.{target}.verify is not set"
    )
    text = f"✓ {done.id}: {target} runs {done.commit[:8]}, {how} ({took})"
    return call.terminal.answer(answer, in_one_line(text), quiet=done.id)


def fail(call: CommandCall, error: LandlaneError, *, is_outcome: bool = False) -> int:
    """Report an error with the commits, paths and conflicts it names; see `Terminal.refuse` for outcomes."""
    if call.terminal.is_json:
        return call.fail(error)
    call.improve(error)
    now = call.wall_now()
    commits = error.facts.get("commits", ())
    details = _commit_lines(commits[::-1], now)
    more = error.facts["behind"] - len(commits) if error.code == "BEHIND" else 0
    details = [f"  {count(more, 'older commit')} not shown", *details] if more else details
    details += [f"  {in_one_line(path)}" for path in error.facts.get("paths", ())]
    for conflict in error.facts.get("conflicts", ()):
        details.append(f"  {in_one_line(conflict['path'])}")
        details += [f"  {line}" for line in _commit_lines(conflict["commits"], now)]
    exit_code = None if is_outcome else error.exit_code
    call.terminal.print_error(error.message, error.hint, error.code, details, exit_code)
    return error.exit_code


def _commit_lines(commits: Sequence[dict[str, str]], now: int) -> list[str]:
    """Return one line per commit: its id, subject, agent or author, and age."""
    rows = [
        (
            in_one_line(one["subject"]),
            in_one_line(one["agent"] or one["author"]),
            time_ago(parse_rfc3339(one["at"]), now),
        )
        for one in commits
    ]
    wide = max((text_width(subject) for subject, _, _ in rows), default=0)
    agent_width = max((text_width(agent) for _, agent, _ in rows), default=0)
    return [
        f"  {one['commit'][:8]}  {subject}{' ' * (wide - text_width(subject))}  {agent:<{agent_width}}  {age}"
        for one, (subject, agent, age) in zip(commits, rows, strict=True)
    ]


def history(call: CommandCall, target: str) -> int:
    """List deploys, newest first."""
    call.renew_session()
    deploys = list_deploys(call.repo, target)
    answer = history_json(deploys)
    if not deploys:
        return call.terminal.answer(answer, empty_text("deploy"))
    columns = ["deploy", "target", "state", "commit", "agent", "when", "reason"]
    now = call.wall_now()
    rows = [
        [one.id, one.target, one.state, one.commit[:8], one.agent, time_ago(one.began_at, now), one.reason]
        for one in reversed(deploys)
    ]
    return call.terminal.answer(answer, call.terminal.table("", columns, rows, cut="REASON"))
