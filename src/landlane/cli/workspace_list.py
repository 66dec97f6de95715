"""`landlane workspace list`: every workspace and its state."""

from __future__ import annotations

from landlane.app.repair_config import prepare_git
from landlane.errors import LandlaneError
from landlane.store.records import all_of
from landlane.workspaces.recover import mend
from landlane.workspaces.survey import survey
from landlane.workspaces.to_json import surveyed_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command_call import CommandCall
    from landlane.repository import Repository


def settle_landed(repo: Repository) -> None:
    """Close workspaces that have landed in the meantime, perhaps from another machine."""
    landed = repo.store.view(lambda snapshot: all_of(snapshot, "landing", ("landed",)))
    if all(landing.get("is_settled") for landing in landed):
        return
    from landlane.landing.after_landing import clean_up_here  # noqa: PLC0415 - slow to load, rarely needed

    try:
        clean_up_here(repo)
    except LandlaneError as error:
        repo.report(error.message)


def list_all(call: CommandCall, all: bool) -> int:
    """List workspaces with what matters before closing one."""
    repo = call.repo
    call.show_life()
    repo = prepare_git(repo, call.terminal.note)
    for line in mend(repo):
        call.terminal.note(line)
    settle_landed(repo)
    items = [surveyed_json(surveyed) for surveyed in survey(repo, with_closed=all)]
    columns = ["id", "task", "agent", "state", "age", "size", "holder", "base", "path"]
    cells = [[str(item["text"][column]) for column in columns] for item in items]
    for item in items:
        del item["text"]
    title = f"{len(items)} workspace{'' if len(items) == 1 else 's'}"
    call.terminal.answer({"ok": True, "workspaces": items}, call.terminal.table(title, columns, cells))
    return 0
