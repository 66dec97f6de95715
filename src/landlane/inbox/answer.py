"""Answer what waits for a person: a question or a held landing, for every entry point."""

from __future__ import annotations

from landlane.gates.decide import answer_gate
from landlane.gates.model import WAITING
from landlane.gates.records import get_gate
from landlane.gates.subject import check_subject_unchanged
from landlane.git.target import find_target
from landlane.inbox.decisions import note_answered
from landlane.landing.after_landing import delete_entry_ref
from landlane.landing.decide import decide_held_entry
from landlane.resident.start import start_queue_runner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.gates.model import Gate
    from landlane.landing.model import Landing
    from landlane.repository import Repository
    from landlane.sessions.model import Session


def answer_question(
    repo: Repository,
    person: Session,
    id: str,
    *,
    approve: bool,
    head: str = "",
    why: str = "",
    trusted: Repository | None = None,
) -> Gate:
    """Answer a gate; an approval is refused when what it is about has changed.

    `trusted` is the repository that git runs in, if it is not this one.

    Raises:
        Stale: the subject has changed, or is not the one that the person saw.
        NotAllowed: it does not wait, or the session is not a person's.
    """
    gate = get_gate(repo, id)
    checked = trusted or repo
    if approve and gate.state == WAITING and checked.checkout.common_dir:
        check_subject_unchanged(checked, gate)
    answered = answer_gate(repo, person, id, approve=approve, why=why, head=head)
    note_answered(repo, person, id)
    return answered


def answer_held_landing(
    repo: Repository, person: Session, id: str, *, approve: bool, head: str = "", why: str = ""
) -> Landing:
    """Approve a held landing, which is queued then, or reject it.

    Raises:
        Stale: its head is not the one that the person saw.
        NotAllowed: it does not wait, or the session may not decide.
    """
    repo = repo.require_git()
    landing = decide_held_entry(repo, person, id, is_approved=approve, head=head, why=why)
    note_answered(repo, person, id)
    if not approve:
        delete_entry_ref(repo, find_target(repo.home, repo.settings), landing)
    elif repo.settings.landing.resident:
        start_queue_runner(repo)
    return landing
