"""Check the journal's chain against every copy of it."""

from __future__ import annotations

from landlane.journal.git_copy import REF, read_journal_ref
from landlane.journal.read import last_position
from landlane.journal.verify import verify
from landlane.store.mirror import read_journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.app.open import House
    from landlane.store.journal_chain import Verdict


def verify_journal(house: House) -> Verdict:
    """Check the journal's chain, and every copy of it that is here."""
    mirrored = last_position(house.context)
    house.settle(wait_seconds=5.0)
    copies = [("journal.jsonl", read_journal(house.mirror.journal_path))]
    if house.settings.journal.git and house.checkout.common_dir:
        copies.append((REF, read_journal_ref(house.checkout.home_checkout)))
    return verify(house.context, copies, mirrored=mirrored)
