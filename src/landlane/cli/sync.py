"""The command `sync`."""

from __future__ import annotations

from landlane.cli.deploy import fail
from landlane.cli.terminal import in_one_line
from landlane.errors import LandlaneError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command import Desk


def sync(desk: Desk, update: str, no_check: bool) -> int:
    """Tell how far this branch is behind and ahead, or bring it up to date."""
    site = desk.house.site(desk.terminal.note)
    try:
        return _update(desk, site, update, no_check) if update else _look(desk, site)
    except LandlaneError as error:
        return fail(desk, error)


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
    from landlane.cli.command import heed_signals
    from landlane.deploys.to_json import update_json
    from landlane.deploys.update_checkout import update
    from landlane.sessions.leases import stay_alive

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
