"""Refuse git commands that would affect the work of other sessions in the same checkout."""

from __future__ import annotations

import os

from landlane.claims.check import check
from landlane.errors import Held, NotAllowed, PatternError, RepositoryError
from landlane.git.discovery import find_checkout
from landlane.git.run import try_git_output
from landlane.hooks.git_command.verb_rules import SAFE, WHOLE_TREE, Verdict, judge_git
from landlane.values import replace
from landlane.workspaces.other_sessions import others_anywhere, others_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.git.discovery import Checkout
    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.workspaces.other_sessions import Other


_MOST_PATHS = 5  # of one session, in a sentence


def check_git(repo: Repository, session: Session | None, cwd: str, words: Sequence[str]) -> Verdict:
    """Check a git call in a folder; return its verdict if it is allowed.

    Raises:
        NotAllowed: it would affect the work of other live sessions.
        Held: another session holds a path that it names.
    """
    verdict = judge_git(words, lambda verb: try_git_output(repo.checkout, "config", f"alias.{verb}"))
    if verdict.kind == SAFE:
        return verdict
    folder = os.path.join(cwd, *verdict.folders, verdict.work_tree)
    there = _checkout_at(folder)
    if there is None or there.home_dir != repo.checkout.home_dir:
        return verdict  # another repository, which has its own state
    if verdict.kind != WHOLE_TREE:
        patterns = _patterns(repo, there, folder, verdict.paths)
        if all(pattern.text != "." for pattern in patterns):
            _check_paths(repo, session, verdict, patterns)
            return verdict
        verdict = replace(
            verdict, kind=WHOLE_TREE, why="it names the whole checkout", scoped_form="name the paths"
        )
    is_for_all = verdict.hits_repository and not there.home  # a clone has refs and objects of its own
    others = others_anywhere(repo, session) if is_for_all else others_in(repo, there.root, session)
    if others:
        raise _shared(verdict, others, is_for_all=is_for_all)
    return verdict


def _checkout_at(folder: str) -> Checkout | None:
    try:
        return find_checkout(folder) if os.path.isdir(folder) else None
    except RepositoryError:
        return None


def _patterns(repo: Repository, there: Checkout, folder: str, paths: Sequence[str]) -> list[Pattern]:
    """Return the patterns of a call's paths; git itself refuses those outside the repository."""
    found: list[Pattern] = []
    for path in paths:
        is_from_top = path.startswith(":/")
        full = os.path.join(there.root, path[2:]) if is_from_top else os.path.join(folder, path)
        try:
            found.append(repo.git.pattern(full, is_literal=True))
        except PatternError:
            continue
    return found


def _check_paths(
    repo: Repository, session: Session | None, verdict: Verdict, patterns: Sequence[Pattern]
) -> None:
    for pattern in patterns:
        coverage = check(repo, session, pattern)
        if coverage.state == "other" and coverage.claim is not None:
            claim = coverage.claim
            raise Held(
                f"{pattern.text} is held by {claim.agent}, and git {verdict.verb} would change it",
                code="CLAIM_HELD",
                hint=f"leave it to {claim.agent}, or wait for it: landlane claim {pattern.text} --wait 10m",
                path=pattern.text,
                holder=claim.agent,
                until_at=claim.until,
            )


def _shared(verdict: Verdict, others: Sequence[Other], *, is_for_all: bool) -> NotAllowed:
    where = "in this repository" if is_for_all else "in this checkout"
    named = "; ".join(_told(other) for other in others)
    return NotAllowed(
        f"git {verdict.verb} is refused while others are at work {where}: {verdict.why} ({named})",
        code="SHARED_CHECKOUT",
        hint=f"instead: {verdict.scoped_form}",
        others=[{"agent": other.session.agent, "paths": other.paths} for other in others],
        scoped_form=verdict.scoped_form,
    )


def _told(other: Other) -> str:
    paths = other.paths
    more = f" and {len(paths) - _MOST_PATHS} more" if len(paths) > _MOST_PATHS else ""
    return f"{other.session.agent}: {', '.join(paths[:_MOST_PATHS]) or 'no claim yet'}{more}"
