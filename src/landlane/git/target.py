"""The branch that work lands on, fetching it, and the refs that keep submitted and verified commits.

Those refs are under refs/landlane/. With a shared store they are pushed to the remote of the branch, so that
other machines find the commits.
"""

from __future__ import annotations

import os
import time

from landlane.errors import RepositoryError
from landlane.files import read_first_line
from landlane.git.commits import is_ancestor
from landlane.git.lock import FETCH_LOCK, git_lock
from landlane.git.refs import read_refs
from landlane.git.run import run_in, try_git_output
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.git.discovery import Checkout
    from landlane.git.run import GitResult
    from landlane.settings.model import Settings

PUSH_SECONDS = 600.0
_SUBMITTED = "refs/landlane/landing/"
_VERIFIED = "refs/landlane/proved/"
_OWN_PREFIX = "landlane/"
_STAMP = "fetched"
_FETCH_SECONDS = 300.0
# What git prints when another process changed something at the same moment.
RACE_MESSAGES = (
    *("cannot lock ref", "commondir", "unable to update local ref", ".lock': File exists", "bad object"),
)
_NO_SUCH_BRANCH = "couldn't find remote ref"
_SAME_SECONDS = 2.0
_CONFIG_NAMES = ("GIT_CONFIG", "XDG_CONFIG_HOME")
_settings: dict[str, tuple[float, tuple[object, ...], list[tuple[str, str, str]]]] = {}


@value
class TargetBranch:
    """A branch, and the remote whose copy of it counts; without a remote, the local branch does."""

    branch: str
    remote: str = ""

    @property
    def ref(self) -> str:
        return f"refs/heads/{self.branch}"

    @property
    def remote_ref(self) -> str:
        """The last fetched state of the remote's branch."""
        return f"refs/remotes/{self.remote}/{self.branch}" if self.remote else ""


@value
class BaseCommit:
    """The newest commit of the target, and whether it was just fetched."""

    target: TargetBranch
    commit: str
    is_fresh: bool


def find_target(home: Checkout, settings: Settings) -> TargetBranch:
    """Return the target branch: the one in the settings, else a usual one.

    Raises:
        RepositoryError: there is no commit to work on, or no such branch.
    """
    known = git_settings(home)
    branch = settings.landing.target or _usual_branch(home, known)
    if not branch:
        raise RepositoryError(
            "there is no branch to work on yet",
            code="NO_TARGET",
            hint="make a first commit: git add --all && git commit -m 'First commit'",
        )
    target = TargetBranch(branch=branch, remote=_find_remote(known, settings, branch))
    if settings.landing.target and not target.remote and not commits_at(home, [target.ref]):
        raise RepositoryError(
            f"there is no branch {branch}, which work should land on",
            code="NO_TARGET",
            hint="name another under [landing] target in landlane.toml, or create it",
        )
    return target


def git_settings(home: Checkout) -> dict[str, str]:
    """Return git's settings here; of several values the last one counts."""
    return {key: text for _, key, text in scoped_settings(home)}


def scoped_settings(home: Checkout) -> list[tuple[str, str, str]]:
    """Return git's settings here as (scope, key, text).

    They are read several times in a row, so they are cached for a moment, while their files do not change.
    """
    before = _config_marks(home)
    cache_key = f"{home.git_dir}\n{home.common_dir}"
    at, marks, known = _settings.get(cache_key, (0.0, (), []))
    if marks != before or time.monotonic() - at > _SAME_SECONDS:
        listed = run_in(home, "config", "--list", "--show-scope", "-z")
        parts = listed.stdout.split("\0")
        items = ((scope, item.partition("\n")) for scope, item in zip(parts[::2], parts[1::2], strict=False))
        known = [(scope, key, text) for scope, (key, _, text) in items]
        _settings.clear()
        if not listed.exit_code:
            _settings[cache_key] = (time.monotonic(), before, known)
    return known


def _config_marks(home: Checkout) -> tuple[object, ...]:
    """Return marks that differ once git's settings were changed: the state of their files, and variables."""
    own = os.path.expanduser("~")
    files = [os.path.join(home.common_dir, "config"), os.path.join(home.git_dir, "config.worktree")]
    files += [os.path.join(own, ".gitconfig"), os.path.join(own, ".config", "git", "config")]
    marks: list[object] = [item for item in os.environ.copy().items() if item[0].startswith(_CONFIG_NAMES)]
    for file in files:
        try:
            found = os.stat(file)
        except OSError:
            marks.append(None)
        else:
            marks.append((found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))
    return tuple(marks)


def commits_at(home: Checkout, refs: Sequence[str]) -> dict[str, str]:
    """Return the commits of these refs, without missing ones; with at most one git command."""
    known = read_refs(home.common_dir, refs)
    if known is not None:
        return known
    form = "--format=%(refname) %(objectname) %(objecttype) %(*objectname)"
    lines = (line.split(" ") for line in try_git_output(home, "for-each-ref", form, *refs).splitlines())
    return {name: peeled or oid for name, oid, kind, peeled in lines if name in refs and kind != "tree"}


def commit_at(home: Checkout, ref: str) -> str:
    """Return the commit of one ref; empty where there is none."""
    return commits_at(home, [ref]).get(ref, "") if ref else ""


def _usual_branch(home: Checkout, known: dict[str, str]) -> str:
    """Return the remote's default branch, else a usual name, else the branch of the main checkout.

    The main checkout may be on a topic branch, where nothing should land.
    """
    default = read_first_line(os.path.join(home.common_dir, "refs", "remotes", "origin", "HEAD"))
    default = default.removeprefix("ref: refs/remotes/origin/")
    head = _head_branch(home)
    usual = [known.get("init.defaultbranch", ""), "main", "master", "trunk"]
    names = [default, *([head] if head in usual else []), *usual, head]
    names = [name for name in names if name and not name.startswith(_OWN_PREFIX)]
    existing = commits_at(home, [f"refs/heads/{name}" for name in names])
    return next((name for name in names if f"refs/heads/{name}" in existing), default)


def _head_branch(home: Checkout) -> str:
    """Return the branch of the main checkout, read from its file where possible."""
    line = read_first_line(os.path.join(home.common_dir, "HEAD"))
    branch = line.removeprefix("ref: refs/heads/")
    if branch == ".invalid":  # the refs are in tables, which only git can read
        return try_git_output(home, "symbolic-ref", "--quiet", "--short", "HEAD")
    return branch if branch != line else ""


def _find_remote(known: dict[str, str], settings: Settings, branch: str) -> str:
    chosen = settings.landing.remote
    if chosen == "none":
        return ""
    remotes = {key[len("remote.") :].rpartition(".")[0] for key in known if key.startswith("remote.")}
    wanted = chosen or known.get(f"branch.{branch}.remote") or "origin"
    if chosen and wanted not in remotes:
        raise RepositoryError(
            f"there is no remote {wanted!r}, which [landing] remote names",
            code="NO_REMOTE",
            hint=f"git remote add {wanted} URL, or correct [landing] remote in landlane.toml",
        )
    return wanted if wanted in remotes else ""


def fetch_target(home: Checkout, target: TargetBranch, on_tick: Callable[[], None] | None = None) -> str:
    """Fetch the target branch; return an error text, empty on success.

    A fetch of another process while this one waited for it is new enough.
    """
    if not target.remote:
        return ""
    called_at = time.monotonic_ns()
    with git_lock(home.common_dir, f"fetch {target.remote}/{target.branch}", name=FETCH_LOCK):
        if _fetched_at(home, target) >= called_at:
            return ""
        begun_at = time.monotonic_ns()
        result = _fetch(home, target, on_tick)
        if result.exit_code and any(message in result.stderr for message in RACE_MESSAGES):
            # A worktree was being added, or another fetch moved the ref: try again, alone.
            with git_lock(home.common_dir, f"fetch {target.remote}/{target.branch}"):
                result = _fetch(home, target, on_tick)
        if result.exit_code and _NO_SUCH_BRANCH in result.stderr and commits_at(home, [target.ref]):
            # It was never pushed, or was deleted there: only the local branch exists.
            run_in(home, "update-ref", "-d", target.remote_ref)
            return ""
        if result.exit_code:
            # The line in which git says why, without the advice after it.
            lines = result.stderr.splitlines()
            fatal = [line.removeprefix("fatal: ") for line in lines if line.startswith("fatal: ")]
            return (fatal or lines or [f"exit {result.exit_code}"])[0]
        with open(_stamp(home, target), "w", encoding="ascii") as file:
            file.write(str(begun_at))
    return ""


def _fetch(home: Checkout, target: TargetBranch, on_tick: Callable[[], None] | None) -> GitResult:
    return run_in(
        home,
        *("-c", "gc.auto=0", "-c", "maintenance.auto=false", "fetch", "--quiet", "--no-tags"),
        *("--no-write-fetch-head", "--no-recurse-submodules", target.remote),
        f"+{target.ref}:{target.remote_ref}",
        limit_seconds=_FETCH_SECONDS,
        on_tick=on_tick,
    )


def _stamp(home: Checkout, target: TargetBranch) -> str:
    name = f"{_STAMP}-{target.remote}-{target.branch}".replace("/", "%")
    return os.path.join(home.common_dir, "landlane", name)


def _fetched_at(home: Checkout, target: TargetBranch) -> int:
    """Return when the last fetch began, on the monotonic clock; -1 when unknown or before a reboot."""
    try:
        at = int(read_first_line(_stamp(home, target)))
    except ValueError:
        return -1
    return at if at <= time.monotonic_ns() else -1


def target_tip(home: Checkout, target: TargetBranch) -> str:
    """Return the newest commit of the target that is known here: that of the remote, where there is one.

    A local branch that contains the remote's is newer: its commits wait to be pushed.
    """
    known = commits_at(home, [ref for ref in (target.ref, target.remote_ref) if ref])
    here, remote = known.get(target.ref, ""), known.get(target.remote_ref, "")
    if not remote or here == remote or (here and is_ancestor(home, remote, here)):
        return here
    return remote


def find_base(home: Checkout, target: TargetBranch, *, is_offline: bool = False) -> BaseCommit:
    """Return the commit that new work should be based on, freshly fetched unless `is_offline`.

    Raises:
        RepositoryError: the remote cannot be reached, or the target has no commit.
    """
    trouble = "" if is_offline else fetch_target(home, target)
    if trouble:
        raise RepositoryError(
            f"{target.remote} cannot be asked for {target.branch}: {trouble}",
            code="OFFLINE",
            hint="fix the connection, or start from the last fetch with --offline",
        )
    commit = target_tip(home, target)
    if not commit:
        raise RepositoryError(
            f"{target.branch} has no commit yet", code="NO_TARGET", hint="make a first commit there"
        )
    return BaseCommit(target=target, commit=commit, is_fresh=not (is_offline and target.remote))


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
        result = _push(home, target, [f"{commit}:{submitted_ref(commit)}"])
        if result.exit_code:
            raise RepositoryError(
                f"{target.remote} does not take the branch: {result.stderr[-300:]}",
                code="PUSH_REFUSED",
                hint="other machines could not see it; fix the connection and land again",
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
    is_remote = refs and is_shared and target.remote
    if is_remote and _push(home, target, [f":{ref}" for ref in refs]).exit_code:
        # The local refs of verified commits stay: they are listed for a retry.
        refs = [ref for ref in refs if not ref.startswith(_VERIFIED)]
    if refs:
        run_in(home, "update-ref", "--stdin", stdin="".join(f"delete {ref}\n" for ref in refs).encode())


def _push(
    home: Checkout, target: TargetBranch, refspecs: Sequence[str], on_tick: Callable[[], None] | None = None
) -> GitResult:
    words = ("push", "--quiet", "--no-verify", target.remote, *refspecs)
    return run_in(home, *words, limit_seconds=PUSH_SECONDS, on_tick=on_tick)


def share_verified(
    home: Checkout, target: TargetBranch, commit: str, on_tick: Callable[[], None] | None = None
) -> bool:
    """Push a verified commit for other machines, and note that by a local ref; return whether it worked."""
    result = _push(home, target, [f"{commit}:{verified_ref(commit)}"], on_tick)
    if not result.exit_code:
        run_in(home, "update-ref", verified_ref(commit), commit)
    return not result.exit_code


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
