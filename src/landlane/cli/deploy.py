"""The commands for deploying: deploy, deploy history."""

from __future__ import annotations

from landlane.app.repair_config import prepare_git
from landlane.cli.command import heed_signals
from landlane.cli.terminal import in_one_line
from landlane.clock import parse_duration
from landlane.deploys.records import list_deploys
from landlane.deploys.to_json import deployed_json, history_json
from landlane.errors import LandlaneError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command_call import CommandCall


def deploy(call: CommandCall, target: str, command: tuple[str, ...], wait: str) -> int:
    """Deploy, and show whether the commit is live."""
    wait_ms = parse_duration(wait, what="--wait")
    repo = prepare_git(call.repo, call.terminal.note)
    session = call.session()
    heed_signals()
    out = 2 if call.terminal.is_json else 1
    try:
        from landlane.deploys.deploy import deploy as run_deploy  # noqa: PLC0415 - the history does not need it

        done = run_deploy(repo, session, target, command, wait_ms=wait_ms, out=out, err=2)
    except LandlaneError as error:
        return fail(call, error)
    answer, code = deployed_json(done)
    if code and not call.terminal.is_json:
        if done.code == "VERIFY_FAILED":
            call.terminal.note(done.output.rstrip("\n"))
        call.terminal.complain(answer["message"], answer["hint"], answer["code"])
    else:
        how = "verified" if done.verified else f"not verified: [deploy.{target}] has no verify command"
        text = f"{done.id}: {done.commit[:12]} is live at {target} ({how})"
        call.terminal.answer(answer, in_one_line(text))
    return code


def fail(call: CommandCall, error: LandlaneError) -> int:
    """Report an error with the commits, paths and conflicts it names."""
    if call.terminal.is_json:
        return call.fail(error)
    call.terminal.complain(error.message, "", error.code)
    for commit in error.facts.get("commits", ()):
        call.terminal.note(f"  {_commit_text(commit)}")
    for path in error.facts.get("paths", ()):
        call.terminal.note(f"  {in_one_line(path)}")
    for conflict in error.facts.get("conflicts", ()):
        call.terminal.note(f"  {in_one_line(conflict['path'])}")
        for commit in conflict["commits"]:
            call.terminal.note(f"    {_commit_text(commit)}")
    if error.hint:
        call.terminal.note(f"hint: {in_one_line(error.hint)}")
    return error.exit_code


def _commit_text(commit: dict[str, str]) -> str:
    by = f"  ({commit['agent']})" if commit["agent"] else ""
    return in_one_line(f"{commit['commit'][:12]} {commit['subject']}{by}")


def history(call: CommandCall, target: str) -> int:
    """List deploys, newest last, and show what is live."""
    call.show_life()
    answer = history_json(list_deploys(call.repo, target))
    columns = ["id", "target", "state", "commit", "agent", "began", "reason"]
    items = [{**item, "commit": item["commit"][:12]} for item in answer["deploys"]]
    cells = [[str(item[column] or "") for column in columns] for item in items]
    title = f"{len(items)} deploy{'' if len(items) == 1 else 's'}"
    call.terminal.answer(answer, call.terminal.table(title, columns, cells))
    return 0
