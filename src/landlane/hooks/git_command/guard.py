"""Refuse git commands that would affect the work of other sessions in the same checkout."""

from __future__ import annotations

import os

from landlane.claims.check import PathState, check
from landlane.claims.describe import claim_command, describe_holder
from landlane.errors import Held, NotAllowed, PatternError, RepositoryError
from landlane.git.discovery import find_checkout
from landlane.git.run import try_git_output
from landlane.hooks.git_command.verb_rules import GitReach, Reach, judge_git
from landlane.text import list_some
from landlane.values import replace
from landlane.workspaces.other_sessions import others_anywhere, others_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.git.discovery import Checkout
    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.workspaces.other_sessions import OtherSession


_MOST_PATHS = 5  # of one session, in a sentence


def check_git(repo: Repository, session: Session | None, cwd: str, words: Sequence[str]) -> GitReach:
    """Check a git call in a folder; return how far it reaches if it is allowed.

    Raises:
        NotAllowed: it would affect the work of other live sessions.
        Held: another session holds a path that it names.
    """
    found = judge_git(words, lambda verb: try_git_output(repo.checkout, "config", f"alias.{verb}"))
    if found.reach == Reach.SAFE:
        return found
    folder = os.path.join(cwd, *found.folders, found.work_tree)
    there = _checkout_at(folder)
    if there is None or there.home_dir != repo.checkout.home_dir:
        return found  # another repository, which has its own state
    if found.reach != Reach.WHOLE_TREE:
        patterns = _patterns(repo, there, folder, found.paths)
        if all(pattern.text != "." for pattern in patterns):
            _check_paths(repo, session, found, patterns)
            return found
        found = replace(
            found, reach=Reach.WHOLE_TREE, why="it names the entire checkout", scoped_form="name the paths"
        )
    hits_all = found.hits_repository and not there.home  # a clone has refs and objects of its own
    others = others_anywhere(repo, session) if hits_all else others_in(repo, there.root, session)
    if others:
        raise _shared_checkout_error(found, others, hits_all=hits_all)
    return found


def _checkout_at(folder: str) -> Checkout | None:
    try:
        return find_checkout(folder) if os.path.isdir(folder) else None
    except RepositoryError:
        return None


def _patterns(repo: Repository, there: Checkout, folder: str, paths: Sequence[str]) -> list[Pattern]:
    """Return the patterns of a call's paths; git itself refuses those outside the repository."""
    patterns: list[Pattern] = []
    for path in paths:
        is_from_top = path.startswith(":/")
        full = os.path.join(there.root, path[2:]) if is_from_top else os.path.join(folder, path)
        try:
            patterns.append(repo.git.pattern(full, is_literal=True))
        except PatternError:
            continue
    return patterns


def _check_paths(
    repo: Repository, session: Session | None, found: GitReach, patterns: Sequence[Pattern]
) -> None:
    for pattern in patterns:
        path_check = check(repo, session, pattern)
        if path_check.state == PathState.OTHER and path_check.claim is not None:
            claim = path_check.claim
            raise Held(
                f"{describe_holder(repo, pattern.text, claim)}; git {found.verb} would change it",
                code="CLAIM_HELD",
                hint=f"wait in line: {claim_command(pattern)} --wait",
                path=pattern.text,
                holder=claim.agent,
                until_at=claim.until,
            )


def _shared_checkout_error(found: GitReach, others: Sequence[OtherSession], *, hits_all: bool) -> NotAllowed:
    where = "in this repository" if hits_all else "in this checkout"
    named = "; ".join(
        f"{other.session.agent}: {list_some(other.paths, _MOST_PATHS) or 'no claim yet'}" for other in others
    )
    return NotAllowed(
        f"git {found.verb} is refused while others are at work {where}: {found.why} ({named})",
        code="SHARED_CHECKOUT",
        hint=f"instead: {found.scoped_form}",
        others=[{"agent": other.session.agent, "paths": other.paths} for other in others],
        scoped_form=found.scoped_form,
    )
