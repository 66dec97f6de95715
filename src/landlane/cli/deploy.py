"""The commands for deploying: deploy, deploy history."""

from __future__ import annotations

from landlane.cli.terminal import in_one_line
from landlane.clock import parse_duration
from landlane.errors import LandlaneError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import Desk


def deploy(desk: Desk, target: str, command: tuple[str, ...], wait: str) -> int:
    """Deploy, and tell whether it is live."""
    from landlane.cli.command import heed_signals
    from landlane.deploys.deploy import deploy as run_deploy
    from landlane.deploys.to_json import deployed_json

    wait_ms = parse_duration(wait, what="--wait")
    site = desk.house.site(desk.terminal.note)
    session = desk.session()
    heed_signals()
    out = 2 if desk.terminal.is_json else 1
    try:
        done = run_deploy(site, session, target, command, wait_ms=wait_ms, out=out, err=2)
    except LandlaneError as error:
        return fail(desk, error)
    answer, code = deployed_json(done)
    if code and not desk.terminal.is_json:
        if done.code == "VERIFY_FAILED":
            desk.terminal.note(done.output.rstrip("\n"))
        desk.terminal.complain(answer["message"], answer["hint"], answer["code"])
    else:
        how = "verified" if done.verified else f"not verified: [deploy.{target}] has no verify command"
        text = f"{done.id}: {done.commit[:12]} is live at {target} ({how})"
        desk.terminal.answer(answer, in_one_line(text))
    return code


def fail(desk: Desk, error: LandlaneError) -> int:
    """An error together with what it names: commits, paths, conflicts."""
    if desk.terminal.is_json:
        return desk.fail(error)
    desk.terminal.complain(error.message, "", error.code)
    for commit in error.facts.get("commits", ()):
        desk.terminal.note(f"  {_commit_text(commit)}")
    for path in error.facts.get("paths", ()):
        desk.terminal.note(f"  {in_one_line(path)}")
    for conflict in error.facts.get("conflicts", ()):
        desk.terminal.note(f"  {in_one_line(conflict['path'])}")
        for commit in conflict["commits"]:
            desk.terminal.note(f"    {_commit_text(commit)}")
    if error.hint:
        desk.terminal.note(f"hint: {in_one_line(error.hint)}")
    return error.exit_code


def _commit_text(commit: dict[str, str]) -> str:
    by = f"  ({commit['agent']})" if commit["agent"] else ""
    return in_one_line(f"{commit['commit'][:12]} {commit['subject']}{by}")


def history(desk: Desk, target: str) -> int:
    """List deploys, the newest last, and what is live."""
    from landlane.deploys.records import list_deploys
    from landlane.deploys.to_json import history_json

    desk.show_life()
    answer = history_json(list_deploys(desk.house.context, target))
    columns = ["id", "target", "state", "commit", "agent", "began", "reason"]
    rows = [{**row, "commit": row["commit"][:12]} for row in answer["deploys"]]
    cells = [[str(row[column] or "") for column in columns] for row in rows]
    title = f"{len(rows)} deploy{'' if len(rows) == 1 else 's'}"
    desk.terminal.answer(answer, desk.terminal.table(title, columns, cells))
    return 0
