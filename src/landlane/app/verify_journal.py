"""Check the journal's chain against every copy of it."""

from __future__ import annotations

from landlane.app.plain_files import journal_path, read_journal
from landlane.journal.git_copy import REF, read_journal_ref
from landlane.journal.read import last_position
from landlane.journal.verify import verify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.store.journal_chain import JournalCheck


def verify_journal(repo: Repository) -> JournalCheck:
    """Check the journal's chain, and every copy of it that is here."""
    mirrored = last_position(repo)
    repo.settle(wait_seconds=5.0)
    copies = [("journal.jsonl", read_journal(journal_path(repo)))]
    if repo.settings.journal.git and repo.common_dir:
        copies.append((REF, read_journal_ref(repo.home)))
    return verify(repo, copies, mirrored=mirrored)
