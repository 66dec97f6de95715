"""How commits stand to each other: facts that never change, so they are asked of git once."""

from __future__ import annotations

import os

from landlane.git.refs import is_oid
from landlane.git.run import run_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.git.discovery import Checkout

_MOST_KNOWN = 512
_known: dict[tuple[str, str, str, str], str] = {}


def is_ancestor(home: Checkout, older: str, newer: str) -> bool:
    """Whether all of one commit's history is in another's; every commit is in its own."""
    return bool(_fact(home, "--is-ancestor", older, newer))


def merge_base(home: Checkout, one: str, other: str) -> str:
    """The newest commit that two have in common; empty where there is none."""
    return _fact(home, "", one, other)


def _fact(home: Checkout, option: str, one: str, other: str) -> str:
    question = (home.common_dir, option, one, other)
    known = _known.get(question)
    if known is not None:
        return known
    words = [word for word in (option, one, other) if word]
    found = run_in(home, "merge-base", *words)
    said = found.stdout.partition("\n")[0].strip()
    answer = "" if found.exit_code else said or "yes"
    # A name may mean another commit tomorrow, and what is missing in a shallow history may be fetched.
    is_lasting = is_oid(one) and is_oid(other) and found.exit_code in (0, 1)
    if is_lasting and not os.path.exists(os.path.join(home.common_dir, "shallow")):
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[question] = answer
    return answer
