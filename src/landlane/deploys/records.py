"""Deploys as the store knows them: begun, verified, live or failed; and what stands in the way of one.

All of it happens under the lease of one process (`runners`), so that there is one deploy to a target at a
time. A deploy that finds one before it under way has the lease of a process that died or fell silent: that
one has failed, whatever it did.
"""

from __future__ import annotations

from landlane.claims.holder_sessions import drop_claims
from landlane.claims.model import ClaimMode, Refused, Request, Taken
from landlane.claims.read import claims_near
from landlane.claims.wait import take_or_wait
from landlane.deploys.model import FAILED, LIVE, RUNNING, SUPERSEDED, UNDER_WAY, VERIFYING, Deploy
from landlane.errors import Held, PatternError
from landlane.landing.model import OPEN as UNLANDED
from landlane.patterns.pattern import areas_of, covers_alternative
from landlane.platform.process_identity import Process
from landlane.sessions.leases import require_live
from landlane.sessions.runner_lease import check_runner, end_runner_in
from landlane.store import records
from landlane.tasks.records import tasks_of
from landlane.values import as_dict, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.deploys.model import DeployTarget
    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.sessions.runner_lease import RunnerLease
    from landlane.store.interface import Snapshot, Transaction


_NOUN = "deploy"
_NOTE = "held by landlane deploy"  # tells the claim of a deploy from one that somebody took by hand
_CHILD = "child"  # in a record that is under way: the process of its command


def deploy_from(document: records.Document) -> Deploy:
    """A deploy from its record."""
    return Deploy(**{key: item for key, item in document.items() if key != _CHILD})


def list_deploys(repo: Repository, target: str = "") -> list[Deploy]:
    """All deploys, or those to one target, in the order in which they began."""

    def look(snapshot: Snapshot) -> list[records.Document]:
        return records.by_key(snapshot, _NOUN, target) if target else records.all_of(snapshot, _NOUN)

    return [deploy_from(document) for document in repo.store.view(look)]


def live_at(repo: Repository, target: str) -> Deploy | None:
    """What is live at a target, as far as is known."""
    found = [deploy for deploy in list_deploys(repo, target) if deploy.state == LIVE]
    return found[-1] if found else None


# ------------------------------------------------------------------------------------------ the lease


def take_claim(
    repo: Repository, session: Session, target: DeployTarget, wait_ms: int, on_wait: Callable[[Refused], None]
) -> Taken | Refused:
    """Take the claim that shows who deploys to a target; somebody may hold it to keep all others off."""
    patterns, ttl_ms = (_pattern(repo, target),), repo.settings.claims.ttl_ms
    request = Request(patterns=patterns, mode=ClaimMode.EXCLUSIVE, ttl_ms=ttl_ms, note=_NOTE)
    return take_or_wait(repo, session, request, wait_ms, on_wait)


def let_go(repo: Repository, session: Session, target: DeployTarget, lease: RunnerLease) -> None:
    """Give the lease back, and the claim with it unless it was taken by hand before."""
    pattern = _pattern(repo, target)

    def work(tx: Transaction) -> None:
        if end_runner_in(tx, lease):
            _drop_claims(tx, pattern, lambda holder: holder == session.id)

    repo.change(work, areas={**areas_of((pattern,)), f"//runner:{lease.name}": True})


def _drop_claims(tx: Transaction, pattern: Pattern, is_meant: Callable[[str], bool]) -> None:
    for claim in claims_near(tx, pattern.alternatives, ""):
        if claim.pattern == pattern.text and claim.note == _NOTE and is_meant(claim.session):
            tx.run("lapsed_drop", agent=claim.agent, pattern=claim.pattern)
            drop_claims(tx, [claim])
            tx.frees = True


def _pattern(repo: Repository, target: DeployTarget) -> Pattern:
    return repo.git.pattern_of(target.lease, "glob")


def left_at(repo: Repository, target: str) -> list[tuple[Deploy, Process | None]]:
    """What others left under way, as whoever holds the lease sees it; each with its command's process."""
    found = repo.store.view(lambda snapshot: records.by_key(snapshot, _NOUN, target))
    return [
        (deploy_from(document), Process(**document[_CHILD]) if _CHILD in document else None)
        for document in found
        if document["state"] in UNDER_WAY
    ]


def settle_left(repo: Repository, session: Session, target: DeployTarget, lease: RunnerLease) -> None:
    """Record as failed what those left behind who did not end it themselves, and drop their claims.

    Raises:
        Stale: somebody took the lease over.
    """
    pattern = _pattern(repo, target)

    def work(tx: Transaction) -> None:
        check_runner(tx, lease)
        _drop_claims(tx, pattern, lambda holder: holder != session.id)
        ended: dict[str, object] = {"state": FAILED, "ended_at": repo.store.wall_of(tx.now)}
        ended |= {"code": "DEPLOY_CRASHED", "reason": "its process ended, or fell silent, before it was done"}
        for document in records.by_key(tx, _NOUN, target.name):
            if document["state"] in UNDER_WAY:
                failed = {key: item for key, item in document.items() if key != _CHILD}
                records.put(tx, _NOUN, failed | ended, "failed", session)

    repo.change(work, areas={**areas_of((pattern,)), f"//runner:{lease.name}": True})


# ------------------------------------------------------------------------------------------ judging


def inside(repo: Repository, paths: Sequence[str]) -> Callable[[str], bool]:
    """Tells of a path whether it belongs to these patterns; without any, every path does.

    Raises:
        PatternError: one of the patterns in the settings makes no sense.
    """
    known = [branch for text in paths for branch in repo.git.pattern_of(text, "glob").alternatives]

    def is_inside(path: str) -> bool:
        if not known:
            return True
        try:
            wanted = repo.git.pattern_of(path, "literal").alternatives
        except PatternError:
            return True  # a name that no pattern can mean: better to look at it than to pass it over
        return all(any(covers_alternative(one, branch) for one in known) for branch in wanted)

    return is_inside


def check_landed(repo: Repository, target: DeployTarget, branch: str) -> None:
    """Refuse while something is on its way to the branch that belongs to the target.

    Raises:
        Held: an entry of the landing queue touches its paths.
    """
    is_inside = inside(repo, target.paths)
    entries = repo.store.view(lambda snapshot: records.all_of(snapshot, "landing", UNLANDED))
    for entry in entries:
        if entry.get("target") not in (None, "", branch):
            continue
        paths = [str(path) for path in entry.get("paths") or ()]
        touched = [path for path in paths if is_inside(path)]
        if touched or not paths:  # an entry that does not say what it changes may change anything
            raise Held(
                f"{entry['id']} of {entry.get('agent') or 'somebody'} is {entry['state']} and touches "
                f"{touched[0] if touched else 'what it does not say'}",
                code="UNLANDED_ENTRY",
                hint="let it land first: `landlane queue run --drain`, then sync and deploy",
                holder=entry.get("agent") or None,
                landing=entry["id"],
                task=entry.get("task") or None,
                paths=touched[:20],
            )


# ------------------------------------------------------------------------------------------ recording


def begin_deploy(
    repo: Repository, session: Session, lease: RunnerLease, target: str, commit: str, command: str
) -> Deploy:
    """Enter a deploy that is about to run.

    Raises:
        Stale: somebody took the lease over, or the session is over.
    """

    def work(tx: Transaction) -> Deploy:
        check_runner(tx, lease)
        require_live(tx, session)
        tasks = tasks_of(tx, session.id)
        made = Deploy(
            id=records.next_id(tx, _NOUN),
            target=target,
            state=RUNNING,
            commit=commit,
            agent=session.agent,
            session=session.id,
            task=tasks[0].id if len(tasks) == 1 else "",
            command=command,
            began_at=repo.store.wall_of(tx.now),
        )
        records.put(tx, _NOUN, as_dict(made), "began", session)
        return made

    return repo.change(work, areas=_areas(lease))


def note_child(repo: Repository, deploy: Deploy, child: Process) -> None:
    """Remember the process of the command, for whoever finds that ours is gone."""

    def work(tx: Transaction) -> None:
        document = records.lock(tx, _NOUN, deploy.id)
        if document is not None and document["state"] in UNDER_WAY:
            records.put_quietly(tx, _NOUN, {**document, _CHILD: as_dict(child)})

    repo.change(work)


def note_verifying(repo: Repository, session: Session, lease: RunnerLease, deploy: Deploy) -> Deploy:
    """The command has ended well; whether it did what it should is being seen.

    Raises:
        Stale: somebody took the lease over.
    """

    def work(tx: Transaction) -> Deploy:
        check_runner(tx, lease)
        found = replace(deploy, state=VERIFYING, exit=0)
        records.put(tx, _NOUN, as_dict(found), "verifying", session)
        return found

    return repo.change(work, areas=_areas(lease))


def end_live(
    repo: Repository, session: Session, lease: RunnerLease, deploy: Deploy, *, is_verified: bool
) -> Deploy:
    """It is live; what was live before is not any more.

    Raises:
        Stale: somebody took the lease over, so that nobody knows what is live.
    """

    def work(tx: Transaction) -> Deploy:
        check_runner(tx, lease)
        for document in records.by_key(tx, _NOUN, deploy.target):
            if document["state"] == LIVE:
                former = {**document, "state": SUPERSEDED, "reason": f"superseded by {deploy.id}"}
                records.put(tx, _NOUN, former, "superseded", session)
        ended_at = repo.store.wall_of(tx.now)
        found = replace(deploy, state=LIVE, ended_at=ended_at, exit=0, verified=is_verified)
        records.put(tx, _NOUN, as_dict(found), "live", session)
        return found

    return repo.change(work, areas=_areas(lease))


def end_failed(
    repo: Repository,
    session: Session,
    deploy: Deploy,
    code: str,
    reason: str,
    *,
    exit: int | None,
    output: str,
) -> Deploy:
    """It is not live; whoever took the lease over may have said so before."""

    def work(tx: Transaction) -> Deploy:
        document = records.lock(tx, _NOUN, deploy.id)
        ended_at = repo.store.wall_of(tx.now)
        found = replace(
            deploy, state=FAILED, ended_at=ended_at, exit=exit, code=code, reason=reason, output=output
        )
        if document is not None and document["state"] in UNDER_WAY:
            records.put(tx, _NOUN, as_dict(found), "failed", session)
        return found

    return repo.change(work, areas={"": False})


def _areas(lease: RunnerLease) -> dict[str, bool]:
    # The root is locked shared, as for claims: who moves the whole store away takes it alone.
    return {"": False, f"//runner:{lease.name}": True}
