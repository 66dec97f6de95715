"""At each event, check and report what earlier shell calls of the session changed."""

from __future__ import annotations

from landlane.errors import LandlaneError
from landlane.protocol.hook_events import AFTER, BEFORE, HOLD, PROMPT, SHELL, STOP, HookAnswer
from landlane.sessions.notices import add_notice
from landlane.sessions.tool_calls import open_calls
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.protocol.hook_events import HookEvent
    from landlane.repository import Repository
    from landlane.sessions.model import Session


def settle_earlier(repo: Repository, session: Session, event: HookEvent) -> str:
    """Report changes by calls without an end event or with processes still running.

    Before a tool call the report is kept, and shown with the tool's result. If the check fails now, the event
    goes on and the next event checks again.
    """
    if event.kind not in (BEFORE, AFTER, PROMPT, STOP):
        return ""
    is_looked_for = event.kind in (PROMPT, STOP) or event.tool == SHELL
    if not is_looked_for and not open_calls(repo, session.id):
        return ""
    from landlane.hooks.shell.effects import settle_open  # noqa: PLC0415 - only after shell calls

    try:
        text = settle_open(repo.require_git(), session, event)
    except LandlaneError:
        return ""
    if text and event.kind == BEFORE:
        _leave_word(repo, session.id, text)
    return text


def settle_child(repo: Repository, child: Session, parent: str, event: HookEvent) -> None:
    """Report to the parent what an ending subagent left."""
    text = settle_earlier(repo, child, replace(event, kind=STOP))
    if text and parent:
        _leave_word(repo, parent, f"{child.agent}, your subagent, was told on its way out: {text}")


def hold_for(
    repo: Repository, session: Session, event: HookEvent, answer: HookAnswer, text: str
) -> HookAnswer:
    """Hold the end of a turn once for the report; otherwise show it with the next event."""
    if not text:
        return answer
    if event.is_again or event.is_background or not repo.settings.hooks.remind:
        _leave_word(repo, session.id, text)
        return answer
    return HookAnswer(verdict=HOLD, text="\n\n".join(one for one in (text, answer.text) if one))


def _leave_word(repo: Repository, session: str, text: str) -> None:
    repo.change(lambda tx: add_notice(tx, session, text))
