"""Temporary refs under refs/landlane/ that keep submitted and verified commits, also for other machines."""

from __future__ import annotations

from landlane.errors import RepositoryError
from landlane.git.run import run_in, try_git_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.git.discovery import Checkout
    from landlane.git.target import TargetBranch


PUSH_SECONDS = 600.0
_SUBMITTED = "refs/landlane/landing/"

_VERIFIED = "refs/landlane/proved/"


def submitted_ref(commit: str) -> str:
    """Return the ref that keeps a submitted commit even if its branch is deleted."""
    return _SUBMITTED + commit


def verified_ref(commit: str) -> str:
    """Return the ref from which other machines fetch a verified commit until it has landed."""
    return _VERIFIED + commit


def keep_submitted(home: Checkout, target: TargetBranch, commit: str, *, is_shared: bool) -> None:
    """Write the ref of a submitted commit; with a shared store also on the remote, for other machines.

    Raises:
        RepositoryError: the remote refuses it.
    """
    run_in(home, "update-ref", submitted_ref(commit), commit)
    if is_shared and target.remote:
        found = run_in(
            home,
            *("push", "--quiet", "--no-verify", target.remote, f"{commit}:{submitted_ref(commit)}"),
            limit_seconds=PUSH_SECONDS,
        )
        if found.exit_code:
            raise RepositoryError(
                f"{target.remote} does not take the branch: {found.stderr[-300:]}",
                code="PUSH_REFUSED",
                hint="other machines could not see it; mend the connection and land again",
            )


def list_submitted(home: Checkout) -> list[str]:
    """Return the submitted commits that this clone keeps."""
    return try_git_output(home, "for-each-ref", "--format=%(objectname)", _SUBMITTED).splitlines()


def drop_submitted(
    home: Checkout, target: TargetBranch, *commits: str, is_shared: bool, is_over: bool = False
) -> None:
    """Delete the refs of submitted commits; first on the remote, since the local ones are listed for a retry.

    With `is_over`, their refs as verified commits are deleted, too.
    """
    kept = set(list_submitted(home)) if len(commits) > 1 else set(commits)
    gone = [commit for commit in dict.fromkeys(commits) if commit in kept]
    refs = [submitted_ref(commit) for commit in gone]
    if is_over and is_shared and target.remote:
        refs += [verified_ref(commit) for commit in gone]
    _delete_refs(home, target, refs, is_shared=is_shared)


def _delete_refs(home: Checkout, target: TargetBranch, refs: Sequence[str], *, is_shared: bool) -> None:
    if not refs:
        return
    if is_shared and target.remote:
        pushed = run_in(
            home,
            *("push", "--quiet", "--no-verify", target.remote, *(f":{ref}" for ref in refs)),
            limit_seconds=PUSH_SECONDS,
        )
        if pushed.exit_code:  # the local refs of verified commits stay: they are listed for a retry
            refs = [ref for ref in refs if not ref.startswith(_VERIFIED)]
    if not refs:
        return
    if len(refs) == 1:
        run_in(home, "update-ref", "-d", refs[0])
    else:
        run_in(home, "update-ref", "--stdin", stdin="".join(f"delete {ref}\n" for ref in refs).encode())


def share_verified(
    home: Checkout, target: TargetBranch, commit: str, on_tick: Callable[[], None] | None = None
) -> bool:
    """Push a verified commit for other machines, and note that by a local ref; return whether it worked."""
    found = run_in(
        home,
        *("push", "--quiet", "--no-verify", target.remote, f"{commit}:{verified_ref(commit)}"),
        limit_seconds=PUSH_SECONDS,
        on_tick=on_tick,
    )
    if not found.exit_code:
        run_in(home, "update-ref", verified_ref(commit), commit)
    return not found.exit_code


def list_verified(home: Checkout) -> list[str]:
    """Return the verified commits that this clone has shared."""
    return try_git_output(home, "for-each-ref", "--format=%(objectname)", _VERIFIED).splitlines()


def drop_verified(home: Checkout, target: TargetBranch, *commits: str) -> None:
    """Delete the refs of verified commits that no other machine needs any more."""
    _delete_refs(home, target, [verified_ref(commit) for commit in commits], is_shared=True)


def fetch_commit(home: Checkout, target: TargetBranch, commit: str, *, is_submitted: bool = True) -> bool:
    """Return whether a commit is in this clone, after fetching it if necessary.

    A submitted commit has a ref of its own; one that is only verified (not `is_submitted`) may have either.
    git does not collect fetched objects for days, so no local ref is needed.
    """
    for ref in (submitted_ref(commit),) if is_submitted else (verified_ref(commit), submitted_ref(commit)):
        if try_git_output(home, "cat-file", "-t", commit) == "commit":
            return True
        if not target.remote:
            return False
        run_in(
            home,
            *("-c", "transfer.fsckObjects=true", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head"),
            *(target.remote, ref),
            limit_seconds=PUSH_SECONDS,
        )
    return try_git_output(home, "cat-file", "-t", commit) == "commit"
