"""The commands about keeping up with the target branch and about deploying: sync, deploy, deploy history."""

from __future__ import annotations

from landlane.cli.terminal import in_one_line
from landlane.clock import parse_duration
from landlane.errors import LandlaneError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.main import Desk


def sync(desk: Desk, update: str, no_check: bool) -> int:
    """Tell how far this branch is behind and ahead, or bring it up to date."""
    site = desk.house.site(desk.terminal.note)
    try:
        return _update(desk, site, update, no_check) if update else _look(desk, site)
    except LandlaneError as error:
        return _fail(desk, error)


def _look(desk: Desk, site: Any) -> int:
    from landlane.deploys.sync import behind_error
    from landlane.deploys.sync import sync as look
    from landlane.deploys.to_json import sync_json

    desk.show_life()
    position = look(site)
    if position.behind:
        raise behind_error(site, position, "`landlane sync --update merge` or `--update rebase`")
    answer = sync_json(position)
    desk.terminal.answer(answer, _position_text(answer))
    return 0


def _update(desk: Desk, site: Any, how: str, no_check: bool) -> int:
    from landlane.cli.main import heed_signals
    from landlane.deploys.records import stay_alive
    from landlane.deploys.to_json import update_json
    from landlane.deploys.update import update

    session = desk.session()
    heed_signals()
    done = update(
        site, session, how, is_checked=not no_check, on_tick=lambda: stay_alive(site.context, session)
    )
    answer, code = update_json(done)
    if code and not desk.terminal.is_json:
        desk.terminal.complain(answer["message"], "", answer["code"])
        for check in answer["checks"]:
            if not check["passed"]:
                desk.terminal.note(check["output"].rstrip("\n"))
        desk.terminal.note(f"hint: {answer['hint']}")
    else:
        desk.terminal.answer(answer, _position_text(answer))
    return code


def _position_text(answer: dict[str, Any]) -> str:
    place = f"{answer['remote']}/{answer['target']}" if answer["remote"] else answer["target"]
    branch = answer["branch"] or answer["head"][:12]
    told = f"{branch}: {answer['behind']} behind and {answer['ahead']} ahead of {place}"
    if answer["dirty"]:
        told += ", with changes that are not committed"
    if answer.get("updated"):
        passed = len(answer["checks"])
        told += f", by {answer['updated']}" + (
            f"; {passed} check{'s' * (passed > 1)} passed" if passed else ""
        )
    return in_one_line(told)


def deploy(desk: Desk, target: str, command: tuple[str, ...], wait: str) -> int:
    """Deploy, and tell whether it is live."""
    from landlane.cli.main import heed_signals
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
        return _fail(desk, error)
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


def _fail(desk: Desk, error: LandlaneError) -> int:
    """An error together with what it names: commits, paths, conflicts."""
    if desk.terminal.is_json:
        return desk.terminal.fail(desk.with_calendar(error))
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
