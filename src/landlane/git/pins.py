"""Refs that keep submitted or verified commits, also for other machines."""

from __future__ import annotations

from landlane.errors import RepositoryError
from landlane.git.run import run_in, try_git_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.git.discovery import Checkout
    from landlane.git.target import TargetBranch


PUSH_SECONDS = 600.0
_PINS = "refs/landlane/landing/"

_SHARED = "refs/landlane/proved/"


def pin_ref(commit: str) -> str:
    """The ref that keeps what was submitted, whatever becomes of its branch."""
    return _PINS + commit


def shared_ref(commit: str) -> str:
    """The ref by which other machines have what was proved on one, until it has landed or is over."""
    return _SHARED + commit


def pin_submitted(home: Checkout, target: TargetBranch, commit: str, *, is_shared: bool) -> None:
    """Keep a submitted commit; with several machines, also where the others can fetch it.

    Raises:
        RepositoryError: the remote does not take it.
    """
    run_in(home, "update-ref", pin_ref(commit), commit)
    if is_shared and target.remote:
        found = run_in(
            home,
            *("push", "--quiet", "--no-verify", target.remote, f"{commit}:{pin_ref(commit)}"),
            limit_seconds=PUSH_SECONDS,
        )
        if found.exit_code:
            raise RepositoryError(
                f"{target.remote} does not take the branch: {found.stderr[-300:]}",
                code="PUSH_REFUSED",
                hint="other machines could not see it; mend the connection and land again",
            )


def list_submitted(home: Checkout) -> list[str]:
    """The submitted commits that are kept here."""
    return try_git_output(home, "for-each-ref", "--format=%(objectname)", _PINS).splitlines()


def unpin_submitted(
    home: Checkout, target: TargetBranch, *commits: str, is_shared: bool, is_over: bool = False
) -> None:
    """Let go of submitted commits that have landed or gone back; the remote first, as we find ours again.

    What `is_over` need not be shared as proved, either.
    """
    kept = set(list_submitted(home)) if len(commits) > 1 else set(commits)
    gone = [commit for commit in dict.fromkeys(commits) if commit in kept]
    refs = [pin_ref(commit) for commit in gone]
    if is_over and is_shared and target.remote:
        refs += [shared_ref(commit) for commit in gone]
    _drop(home, target, refs, is_shared=is_shared)


def _drop(home: Checkout, target: TargetBranch, refs: Sequence[str], *, is_shared: bool) -> None:
    if not refs:
        return
    if is_shared and target.remote:
        found = run_in(
            home,
            *("push", "--quiet", "--no-verify", target.remote, *(f":{ref}" for ref in refs)),
            limit_seconds=PUSH_SECONDS,
        )
        if found.exit_code:  # by what is left here of those that are shared, it is tried again
            refs = [ref for ref in refs if not ref.startswith(_SHARED)]
    if not refs:
        return
    if len(refs) == 1:
        run_in(home, "update-ref", "-d", refs[0])
    else:
        run_in(home, "update-ref", "--stdin", stdin="".join(f"delete {ref}\n" for ref in refs).encode())


def share_verified(
    home: Checkout, target: TargetBranch, commit: str, on_tick: Callable[[], None] | None = None
) -> bool:
    """Whether other machines can fetch a commit that was proved here; the ref here says that they can."""
    found = run_in(
        home,
        *("push", "--quiet", "--no-verify", target.remote, f"{commit}:{shared_ref(commit)}"),
        limit_seconds=PUSH_SECONDS,
        on_tick=on_tick,
    )
    if not found.exit_code:
        run_in(home, "update-ref", shared_ref(commit), commit)
    return not found.exit_code


def list_shared(home: Checkout) -> list[str]:
    """The commits that this clone has shared."""
    return try_git_output(home, "for-each-ref", "--format=%(objectname)", _SHARED).splitlines()


def unshare_verified(home: Checkout, target: TargetBranch, *commits: str) -> None:
    """Let go of proved commits that no other machine needs any more."""
    _drop(home, target, [shared_ref(commit) for commit in commits], is_shared=True)


def ensure_commit(home: Checkout, target: TargetBranch, commit: str, *, is_entered: bool = True) -> bool:
    """Whether a commit is here, fetched if need be; git keeps what it fetched for long enough.

    What was submitted has a pin; what was only proved, and is not entered yet, was shared.
    """
    for ref in (pin_ref(commit),) if is_entered else (shared_ref(commit), pin_ref(commit)):
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
