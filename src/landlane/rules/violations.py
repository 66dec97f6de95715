"""Record in the journal that a rule was violated.

`Watched` records a refusal where it is raised, and lets it pass unchanged.
"""

from __future__ import annotations

from landlane.errors import LandlaneError, StoreError
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from landlane.repository import Repository
    from landlane.sessions.model import Session

# The rules that guards enforce, by their short names in RULES.md.
CLAIM_FIRST = "claim before you change"
SYNC_FIRST = "sync before you deploy"
VERIFY_FIRST = "verify before done"
MEMORY_FIRST = "load memory before acting"
STAY_IN_ROLE = "stay in your role"
_MOST_PATHS = 50
# The error codes that count as a violation; an unreachable remote, for example, does not.
CLAIM_CODES = frozenset({"CLAIM_HELD", "NOT_CLAIMED", "OUTSIDE_CLAIMS"})
SYNC_CODES = frozenset({"BEHIND", "NOT_LANDED", "DIRTY", "OLDER_THAN_LIVE"})


def record_violation(
    repo: Repository,
    session: Session | None,
    *,
    rule: str,
    guard: str,
    what: str,
    paths: tuple[str, ...] = (),
) -> None:
    """Record that a guard refused or found a violation: `what` in a few words."""
    who = (session.agent, session.id) if session is not None else ("", "")
    facts: dict[str, object] = {"rule": rule, "guard": guard, "what": what[:200]}
    if paths:
        facts["paths"] = list(paths[:_MOST_PATHS])
    repo.change(lambda tx: tx.record("rule.violated", *who, facts))


@value
class Watched:
    """Context manager that records an error with one of these codes as a violation of the rule."""

    repo: Repository
    session: Session | None
    rule: str
    guard: str
    codes: frozenset[str]

    def __enter__(self) -> Watched:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not isinstance(error, LandlaneError) or error.code not in self.codes:
            return
        named = error.facts.get("paths") or [error.facts.get("path") or ""]
        paths = tuple(_as_text(str(path)) for path in named if path)
        try:
            record_violation(
                self.repo,
                self.session,
                rule=self.rule,
                guard=self.guard,
                what=_as_text(f"{error.code}: {error.message}"),
                paths=paths,
            )
        except StoreError:
            return  # a store failure does not lift the refusal


def _as_text(name: str) -> str:
    """Return a name that every store accepts: bytes that are not valid text are escaped."""
    return name.encode("utf-8", "backslashreplace").decode()
