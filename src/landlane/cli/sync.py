"""The command `sync`."""

from __future__ import annotations

from landlane.app.repair_config import prepare_git
from landlane.cli.command import stop_on_signals
from landlane.cli.deploy import fail
from landlane.cli.terminal import in_one_line
from landlane.deploys.sync import behind_error
from landlane.deploys.sync import sync as compare_with_target
from landlane.deploys.to_json import sync_json, update_json
from landlane.errors import LandlaneError
from landlane.sessions.leases import stay_alive
from landlane.units import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.repository import Repository


def sync(call: CommandCall, update: str, no_check: bool) -> int:
    """Show how far this branch is behind and ahead, or update it."""
    repo = prepare_git(call.repo, call.terminal.note)
    try:
        return _update(call, repo, update, no_check) if update else _show_position(call, repo)
    except LandlaneError as error:
        return fail(call, error)


def _show_position(call: CommandCall, repo: Repository) -> int:
    call.renew_session()
    position = compare_with_target(repo)
    if position.behind:
        error = behind_error(repo, position, call.command_text("sync", "--update", "rebase"))
        return fail(call, error, is_outcome=True)
    answer = sync_json(position)
    return call.terminal.answer(answer, _position_text(answer))


def _update(call: CommandCall, repo: Repository, how: str, no_check: bool) -> int:
    from landlane.deploys.update_checkout import update  # noqa: PLC0415 - only to update

    session = call.session()
    stop_on_signals()
    done = update(repo, session, how, is_checked=not no_check, on_tick=lambda: stay_alive(repo, session))
    answer, code = update_json(done)
    if code:
        failed = [check["output"].rstrip("\n") for check in answer["checks"] if not check["passed"]]
        return call.terminal.refuse(answer, code, failed)
    return call.terminal.answer(answer, _position_text(answer))


def _position_text(answer: dict[str, Any]) -> str:
    place = f"{answer['remote']}/{answer['target']}" if answer["remote"] else answer["target"]
    branch = answer["branch"] or answer["head"][:8]
    done = {"merge": f"merged {place} into {branch}", "rebase": f"rebased {branch} onto {place}"}
    text = done.get(answer.get("updated") or "", f"{branch} is up to date with {place}")
    text += f", {count(answer['ahead'], 'commit')} ahead" if answer["ahead"] else ""
    text += ", with uncommitted changes" if answer["dirty"] else ""
    passed = len(answer.get("checks", ()))
    return in_one_line(f"✓ {text}" + (f"; {count(passed, 'check')} passed" if passed else ""))
