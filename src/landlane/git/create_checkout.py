"""Making checkouts of both kinds: linked worktrees, and clones that borrow the repository's objects.

git's own races sit behind one lock, held only for what is racy: entering a worktree. Writing its files, which
takes nearly all of the time, happens after that, side by side.

A clone is an empty repository that is told where to borrow from. git's own `clone --shared` would give it
refs for every branch at home, and break when one is deleted and pruned there; ours has only what is pinned.
"""

from __future__ import annotations

import os
import shutil
import zlib

from landlane.errors import RepositoryError
from landlane.git.discovery import HOME_POINTER, Checkout
from landlane.git.lock import git_lock
from landlane.git.remove_checkout import is_folder, remove_tree, worktree_git_dir
from landlane.git.run import git_failed, git_output, resolve_revision, run_git, run_in, try_git_output
from landlane.git.target import RACE_MESSAGES, commit_at, scoped_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from landlane.git.run import GitResult

_BASES = "refs/landlane/base/"
_KEPT = "refs/landlane/kept/"
_CHECKOUT_SECONDS = 1800.0
_BROUGHT = "refs/landlane/brought/"  # where a clone's branch was when it was last brought home
_REPLACED = "refs/landlane/replaced/"  # what was committed there beside it, and would be lost
_TRIES = 20
_BRINGING_LOCKS = 16
_HALF_WRITTEN = "commondir"
# What of the repository's own settings a clone must have, too, so that the same bytes come out of it and the
# same person can reach the same remotes.
_CARRIED_SECTIONS = (
    *("user", "author", "committer", "filter", "diff", "merge", "commit", "gpg", "tag", "lfs"),
    *("remote", "url", "credential", "http", "push", "pull", "rebase", "rerere", "i18n"),
)
_CARRIED_CORE = (
    *("autocrlf", "eol", "safecrlf", "ignorecase", "filemode", "symlinks", "attributesfile", "whitespace"),
    *("excludesfile", "sshcommand", "hookspath", "sparsecheckout", "sparsecheckoutcone", "precomposeunicode"),
    *("longpaths", "protecthfs", "protectntfs"),
)
_SHARED_FILES = ("info/exclude", "info/attributes", "info/sparse-checkout", "shallow")


def base_ref(workspace_id: str) -> str:
    """The ref that keeps what a workspace was begun from, whatever else is pruned."""
    return _BASES + workspace_id


def kept_refs(workspace_id: str) -> str:
    """Where the refs lie that keep what else a workspace may borrow."""
    return f"{_KEPT}{workspace_id}/"


def pin_workspace(
    home: Checkout, workspace_id: str, base: str, others: Sequence[str] = (), *, branch: str = ""
) -> None:
    """Keep these commits at home while the workspace is there; with `branch`, also make that at the base.

    Raises:
        RepositoryError: git refuses.
    """
    pins = {base_ref(workspace_id): base}
    pins |= {f"{kept_refs(workspace_id)}{commit}": commit for commit in others if commit and commit != base}
    made = f"create refs/heads/{branch} {base}\n".encode() if branch else b""
    git_output(home, "update-ref", "--stdin", stdin=_updates(pins) + made)


def unpin_workspace(home: Checkout, workspace_id: str, *, branch: str, head: str = "") -> None:
    """Let go of what a workspace kept; with `head`, also delete its branch if it still stands there."""
    brought = _BROUGHT + branch
    wanted = (base_ref(workspace_id), kept_refs(workspace_id), brought)
    listed = try_git_output(home, "for-each-ref", "--format=%(refname)", *wanted)
    ours = (base_ref(workspace_id), brought)
    pins = [ref for ref in listed.splitlines() if ref in ours or ref.startswith(_KEPT)]
    if head:
        delete_branch(home, branch, head)
    if pins:
        run_in(home, "update-ref", "--stdin", stdin="".join(f"delete {ref}\n" for ref in pins).encode())


def add_worktree(home: Checkout, path: str, branch: str) -> None:
    """Enter a worktree on a branch that is there, without its files.

    Raises:
        RepositoryError: git refuses, for instance because the branch is checked out elsewhere.
    """
    # Locked: `git worktree prune` by anybody leaves the entry alone, even while its folder is away.
    words = ("worktree", "add", "--quiet", "--no-checkout", "--lock", path, branch)
    with git_lock(home.common_dir, f"worktree {os.path.basename(path)}"):
        found = run_in(home, *words)
        for _ in range(_TRIES):
            if not found.exit_code or _HALF_WRITTEN not in found.stderr:
                break
            found = run_in(home, *words)  # a `git worktree add` that knows no lock of ours was half way
    if found.exit_code:
        raise _refused_checkout(branch, found.stderr)


def _refused_checkout(branch: str, trouble: str) -> RepositoryError:
    return RepositoryError(
        f"no worktree for {branch}: {trouble[-400:]}",
        code="WORKTREE_REFUSED",
        hint="`git worktree list` shows who stands on it; `landlane doctor --fix` mends old entries",
    )


def add_clone(home: Checkout, path: str, branch: str, start: str, refs: Mapping[str, str]) -> None:
    """Make a clone that borrows the repository's objects, on a branch, without its files.

    `refs` are branches at home that it shall know, with their commits; whoever calls has pinned all of them.

    Raises:
        RepositoryError: the repository cannot be borrowed from, or git refuses.
    """
    clone = _make_borrower(home, path, branch)
    heads = {f"refs/heads/{branch}": start}
    heads |= {f"refs/remotes/home/{name}": commit for name, commit in refs.items()}
    git_output(clone, "update-ref", "--stdin", stdin=_updates(heads))


def _updates(refs: Mapping[str, str]) -> bytes:
    return "".join(f"update {ref} {commit}\n" for ref, commit in refs.items()).encode(
        "utf-8", "surrogateescape"
    )


def add_detached_worktree(home: Checkout, path: str, commit: str) -> None:
    """Enter a worktree at a commit, on no branch, without its files.

    Raises:
        RepositoryError: git refuses.
    """
    with git_lock(home.common_dir, f"worktree {os.path.basename(path)}"):
        git_output(home, "worktree", "add", "--quiet", "--no-checkout", "--detach", path, commit)


def add_detached_clone(home: Checkout, path: str, commit: str, keeps: str) -> None:
    """Make a clone at a commit, or at none, without its files; `keeps` is a ref at home with all of it.

    Raises:
        RepositoryError: git refuses.
    """
    clone = _make_borrower(home, path, "unborn")
    kept = resolve_revision(home, keeps)
    if kept:
        git_output(clone, "update-ref", "refs/home/kept", kept)
    if commit:
        git_output(clone, "update-ref", "--no-deref", "HEAD", commit)


def recreate_git_dir(home: Checkout, path: str, branch: str, base: str, mark: str) -> None:
    """Give a folder that has lost its git directory one of a clone, on its branch as it is at home.

    It is made beside the folder and moved there when it is whole: whoever still writes in the folder cannot
    lead git astray. What stood in its place, a link or a file, is taken away and not followed.

    Raises:
        RepositoryError: there is no commit to stand on, or git refuses.
        OSError: something that is no link or file is in its place.
    """
    start = resolve_revision(home, f"refs/heads/{branch}^{{commit}}") or base
    if not start:
        raise RepositoryError(
            f"{path} has no git directory of its own, and what it was begun from is not known",
            code="GIT_DIR_LOST",
            hint="copy what you need from that folder, then remove it",
        )
    parent, name = os.path.split(path)
    making = os.path.join(parent, f".{name}.{mark}.mending")
    remove_tree(making)
    try:
        os.mkdir(making)
        add_clone(home, making, branch, start, {})
        git_output(clone_at(making), "read-tree", start)
        own = os.path.join(path, ".git")
        if os.path.lexists(own) and not is_folder(own):
            os.unlink(own)
        os.rename(os.path.join(making, ".git"), own)
    finally:
        remove_tree(making)


def clone_at(path: str) -> Checkout:
    """The clone in a folder."""
    git_dir = os.path.join(path, ".git")
    return Checkout(root=path, git_dir=git_dir, common_dir=git_dir)


def _make_borrower(home: Checkout, path: str, branch: str) -> Checkout:
    """An empty repository on a branch to come; it borrows the objects of another, and knows where that is."""
    settings = _own_settings(home)
    if any(key.startswith("remote.") and key.endswith(".promisor") for _, key, _ in settings):
        raise RepositoryError(
            "this repository is a partial clone: its missing objects cannot be borrowed",
            code="PARTIAL_CLONE",
            hint="use --kind worktree, or fetch everything: git fetch --refetch --no-filter",
        )
    form = next((text for _, key, text in settings if key == "extensions.objectformat"), "sha1")
    clone = clone_at(path)
    # First of all: whoever finds half of it sees whose it is.
    _write(os.path.join(clone.git_dir, HOME_POINTER), home.common_dir + "\n")
    words = ("init", "--quiet", "--template=", f"--object-format={form}", f"--initial-branch={branch}")
    made = run_git(
        *words, "--", path, cwd=os.path.dirname(path), variables={"GIT_DEFAULT_REF_FORMAT": "files"}
    )
    if made.exit_code:
        raise git_failed(words, made)
    os.makedirs(os.path.join(clone.git_dir, "info"), exist_ok=True)
    for name in _SHARED_FILES:
        source = os.path.join(home.common_dir, name)
        if os.path.exists(source):
            shutil.copyfile(source, os.path.join(clone.git_dir, name))
    _write(
        os.path.join(clone.git_dir, "objects", "info", "alternates"), _as_line(f"{home.common_dir}/objects")
    )
    with open(os.path.join(clone.git_dir, "config"), "a", encoding="utf-8", errors="surrogateescape") as file:
        file.writelines(_carried(home, settings))
    return clone


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)


def _as_line(path: str) -> str:
    """A path as a line of git's list of alternates, in quotes where it would be misread."""
    if "\n" not in path and not path.startswith(('"', "#")):
        return path + "\n"
    quoted = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{quoted}"\n'


def _own_settings(home: Checkout) -> list[tuple[str, str, str]]:
    """The settings of the repository itself, each with where it stands: `local` or `worktree`."""
    return [one for one in scoped_settings(home) if one[0] in ("local", "worktree")]


def _carried(home: Checkout, settings: Sequence[tuple[str, str, str]]) -> list[str]:
    """The lines that give a clone those settings that change what is written, who writes it, and where to."""
    lines = [
        "[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n",
        setting_line("remote.home.url", home.common_dir),
    ]
    hooks = ""
    for scope, key, text in settings:
        section, _, rest = key.partition(".")
        is_sparse = key.startswith("core.sparsecheckout")
        if key.startswith("remote.home.") or (scope == "worktree" and not is_sparse):
            continue
        if key == "core.hookspath":
            hooks = text
        if rest.endswith((".url", ".pushurl")) and section == "remote":
            lines.append(setting_line(key, _seen_from_home(home, text)))
        elif section in _CARRIED_SECTIONS or (section == "core" and rest in _CARRIED_CORE):
            lines.append(setting_line(key, text))
    own = os.path.join(home.common_dir, "hooks")
    if not hooks and os.path.isdir(own) and any(not name.endswith(".sample") for name in os.listdir(own)):
        lines.append(setting_line("core.hooksPath", own))
    return lines


def _seen_from_home(home: Checkout, url: str) -> str:
    """A URL that means the same from everywhere: a relative path counts from the main checkout."""
    is_path = "://" not in url and ":" not in url.partition("/")[0]
    return os.path.normpath(os.path.join(home.root, url)) if is_path else url


def setting_line(key: str, text: str) -> str:
    """A setting as git writes it into a file; one process each would take longer than the clone itself."""
    section, _, rest = key.partition(".")
    middle, _, name = rest.rpartition(".")
    quoted = middle.replace("\\", "\\\\").replace('"', '\\"')
    heading = f'[{section} "{quoted}"]' if middle else f"[{section}]"
    content = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'{heading}\n\t{name} = "{content}"\n'


def write_files(path: str) -> None:
    """Write the files of a checkout that was entered without them.

    Raises:
        RepositoryError: git cannot, for instance because a filter is missing or the disk is full.
    """
    words = (*_side_by_side(), "reset", "--hard", "--quiet", "--no-recurse-submodules")
    found = run_git(*words, cwd=path, limit_seconds=_CHECKOUT_SECONDS)
    if found.exit_code:
        raise git_failed(words, found)


def _side_by_side() -> tuple[str, ...]:
    """Let git write files by as many processes as there are processors, unless those are busy already.

    On a disk with ten thousand files that took 0.8 s where one process took 1.4 s.
    """
    try:
        is_idle = os.getloadavg()[0] < (os.cpu_count() or 1)
    except OSError:
        is_idle = False
    return ("-c", "checkout.workers=0") if is_idle else ()


def fetch_clone_branch(home: Checkout, path: str, branch: str) -> str:
    """Fetch a clone's branch into the repository, every object hashed anew; tells its head, or nothing.

    Raises:
        RepositoryError: what is there does not hash to what it says.
    """
    ref = f"refs/heads/{branch}"
    if worktree_git_dir(home, path):
        return commit_at(home, ref)  # a worktree's branch is here already
    if not is_folder(os.path.join(path, ".git")):
        return ""  # a link or a file there may lead to anybody's repository
    head = _read_ref(path, ref)
    if not head or head == commit_at(home, ref):
        return head
    # Branches do not get in each other's way here, and many workers end at once: only who brings the same
    # branch has to wait.
    with git_lock(home.common_dir, f"fetch {branch}", name=_bringing(branch)):
        here = commit_at(home, ref)
        if _has_only_more(home, branch, here, head):
            return here
        _keep_replaced(home, branch, here, path, head)
        found = _fetch_branch(home, path, branch)
        if found.exit_code and any(sign in found.stderr for sign in RACE_MESSAGES):
            with git_lock(home.common_dir, f"fetch {branch}"):
                found = _fetch_branch(home, path, branch)
    if "checked out" in found.stderr:
        raise RepositoryError(
            f"{branch} is checked out in the repository itself: what {path} has cannot be brought there",
            code="BRANCH_IN_USE",
            hint=f"stand on another branch there (git switch -), then try again; {path} keeps its work",
        )
    if found.exit_code:
        raise git_failed(("fetch", path), found)
    return commit_at(home, ref)


def _bringing(branch: str) -> str:
    """The lock for bringing a branch; a few for all of them, or each would leave a file behind."""
    return f"bring-{zlib.crc32(branch.encode('utf-8', 'surrogateescape')) % _BRINGING_LOCKS}.lock"


def _fetch_branch(home: Checkout, path: str, branch: str) -> GitResult:
    """Fetch a clone's branch, and note in the same step what it was: it may move here right after."""
    ref = f"refs/heads/{branch}"
    words = ("-c", "transfer.fsckObjects=true", "-c", "gc.auto=0", "-c", "maintenance.auto=false")
    fetch = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
    specs = (f"+{ref}:{ref}", f"+{ref}:{_BROUGHT}{branch}")
    return run_in(home, *words, *fetch, "--", path, *specs, limit_seconds=_CHECKOUT_SECONDS)


def _has_only_more(home: Checkout, branch: str, here: str, head: str) -> bool:
    """Whether the branch has all of the clone's here, and more that was never the clone's: as handed in."""
    if not here or here == commit_at(home, _BROUGHT + branch):
        return False
    return not run_in(home, "merge-base", "--is-ancestor", head, here).exit_code


def _keep_replaced(home: Checkout, branch: str, here: str, path: str, head: str) -> None:
    """Keep what somebody committed on a clone's branch in the repository itself, before it is replaced.

    What was brought from the clone before is the clone's own to amend.
    """
    if not here or here == commit_at(home, _BROUGHT + branch):
        return
    if try_git_output(home, "cat-file", "-t", head) == "commit":
        is_contained = not run_in(home, "merge-base", "--is-ancestor", here, head).exit_code
    else:
        clone = clone_at(path)
        is_contained = not run_in(clone, "merge-base", "--is-ancestor", here, head).exit_code
    if not is_contained:
        git_output(home, "update-ref", f"{_REPLACED}{branch}/{here[:12]}", here)


def _read_ref(path: str, ref: str) -> str:
    """Where a ref of a clone points. Reading refs runs nothing that the clone's settings name."""
    found = run_git(
        *("-c", "core.fsmonitor=false", "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}"),
        cwd=path,
        git_dir=os.path.join(path, ".git"),
    )
    return "" if found.exit_code else found.stdout.strip()


def delete_branch(home: Checkout, branch: str, head: str) -> None:
    """Delete a branch if it still is where it was."""
    with git_lock(home.common_dir, f"delete {branch}"):
        run_in(home, "update-ref", "-d", f"refs/heads/{branch}", head)
