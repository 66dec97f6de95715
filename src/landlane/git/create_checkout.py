"""Create checkouts of both kinds: linked worktrees, and clones that borrow the repository's objects.

`git worktree add` races with itself, so one lock is held while a worktree is registered. Writing its files,
which takes nearly all of the time, happens after that, in parallel.

A clone is an empty repository with the object store of its home as alternate. `git clone --shared` would copy
a ref for every branch at home, and break when one is deleted and pruned there; ours has only pinned commits.

A new checkout gets those submodules that the main checkout has initialised.
"""

from __future__ import annotations

import os
import shutil
import zlib

from landlane.errors import RepositoryError
from landlane.git.commits import is_ancestor
from landlane.git.discovery import HOME_POINTER, Checkout
from landlane.git.lock import git_lock
from landlane.git.remove_checkout import is_folder, remove_tree, worktree_git_dir
from landlane.git.run import (
    GitResult,
    git_failed,
    git_output,
    resolve_revision,
    run_git,
    run_in,
    try_git_output,
)
from landlane.git.target import RACE_MESSAGES, commit_at, scoped_settings
from landlane.git.untrusted_checkout import quote_alternate, setting_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from landlane.git.discovery import Checkout
    from landlane.git.run import GitResult


_BASES = "refs/landlane/base/"
_KEPT = "refs/landlane/kept/"
_CHECKOUT_SECONDS = 1800.0
_FETCHED = "refs/landlane/brought/"  # where a clone's branch was when it was last fetched
_REPLACED = "refs/landlane/replaced/"  # commits on such a branch at home that a fetch would lose
_TRIES = 20
_FETCH_LOCKS = 16
_HALF_WRITTEN = "commondir"
# Settings of the repository that a clone needs, too: they decide which bytes git writes, who commits and how
# remotes are reached.
_COPIED_SECTIONS = (
    *("user", "author", "committer", "filter", "diff", "merge", "commit", "gpg", "tag", "lfs"),
    *("remote", "url", "credential", "http", "push", "pull", "rebase", "rerere", "i18n"),
)
_COPIED_CORE = (
    *("autocrlf", "eol", "safecrlf", "ignorecase", "filemode", "symlinks", "attributesfile", "whitespace"),
    *("excludesfile", "sshcommand", "hookspath", "sparsecheckout", "sparsecheckoutcone", "precomposeunicode"),
    *("longpaths", "protecthfs", "protectntfs"),
)
_SHARED_FILES = ("info/exclude", "info/attributes", "info/sparse-checkout", "shallow")


def base_ref(workspace_id: str) -> str:
    """Return the ref that keeps the base commit of a workspace."""
    return _BASES + workspace_id


def kept_refs(workspace_id: str) -> str:
    """Return the prefix of the refs that keep other commits that a workspace borrows."""
    return f"{_KEPT}{workspace_id}/"


def pin_workspace(
    home: Checkout, workspace_id: str, base: str, others: Sequence[str] = (), *, branch: str = ""
) -> None:
    """Keep these commits at home while the workspace exists; `branch` is created at the base, too.

    Raises:
        RepositoryError: git refuses.
    """
    pins = {base_ref(workspace_id): base}
    pins |= {f"{kept_refs(workspace_id)}{commit}": commit for commit in others if commit and commit != base}
    creation = f"create refs/heads/{branch} {base}\n".encode() if branch else b""
    git_output(home, "update-ref", "--stdin", stdin=_updates(pins) + creation)


def unpin_workspace(home: Checkout, workspace_id: str, *, branch: str, head: str = "") -> None:
    """Delete the refs that kept the commits of a workspace; with `head`, also its branch if it is there."""
    own = (base_ref(workspace_id), _FETCHED + branch)
    listed = try_git_output(home, "for-each-ref", "--format=%(refname)", *own, kept_refs(workspace_id))
    pins = [ref for ref in listed.splitlines() if ref in own or ref.startswith(_KEPT)]
    if head:
        delete_branch(home, branch, head)
    if pins:
        run_in(home, "update-ref", "--stdin", stdin="".join(f"delete {ref}\n" for ref in pins).encode())


def add_worktree(home: Checkout, path: str, branch: str) -> None:
    """Register a worktree on an existing branch, without its files.

    Raises:
        RepositoryError: git refuses, for instance because the branch is checked out elsewhere.
    """
    # Locked, so that `git worktree prune` keeps the entry even while its folder is not mounted.
    words = ("worktree", "add", "--quiet", "--no-checkout", "--lock", path, branch)
    with git_lock(home.common_dir, f"worktree {os.path.basename(path)}"):
        result = run_in(home, *words)
        for _ in range(_TRIES):
            if not result.exit_code or _HALF_WRITTEN not in result.stderr:
                break
            result = run_in(home, *words)  # a `git worktree add` outside of our lock was half done
    if result.exit_code:
        raise RepositoryError(
            f"no worktree for {branch}: {result.stderr[-400:]}",
            code="WORKTREE_REFUSED",
            hint="see who uses it: git worktree list; remove old entries: landlane doctor --fix",
        )


def add_clone(home: Checkout, path: str, branch: str, start: str, refs: Mapping[str, str]) -> None:
    """Create a clone that borrows the repository's objects, on a branch, without its files.

    `refs` are branches at home for its remote `home`, with their commits; the caller has pinned all of them.

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
    """Register a worktree at a commit, on no branch, without its files.

    Raises:
        RepositoryError: git refuses.
    """
    with git_lock(home.common_dir, f"worktree {os.path.basename(path)}"):
        git_output(home, "worktree", "add", "--quiet", "--no-checkout", "--detach", path, commit)


def add_detached_clone(home: Checkout, path: str, commit: str, keeps: str) -> None:
    """Create a clone at a commit, or at none, without its files; the ref `keeps` at home pins its objects.

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
    """Give a folder that has lost its git directory that of a clone, on its branch as it is at home.

    It is made beside the folder and moved there when it is complete, so that a process that still writes in
    the folder cannot interfere. A link or file in its place is removed and not followed.

    Raises:
        RepositoryError: no commit is known, or git refuses.
        OSError: a folder is in its place.
    """
    start = resolve_revision(home, f"refs/heads/{branch}^{{commit}}") or base
    if not start:
        raise RepositoryError(
            f"{path} has no git directory of its own, and what it was begun from is not known",
            code="GIT_DIR_LOST",
            hint="copy what you need from that folder, then remove it",
        )
    parent, name = os.path.split(path)
    temporary = os.path.join(parent, f".{name}.{mark}.mending")
    remove_tree(temporary)
    try:
        os.mkdir(temporary)
        add_clone(home, temporary, branch, start, {})
        git_output(clone_at(temporary), "read-tree", start)
        own = os.path.join(path, ".git")
        if os.path.lexists(own) and not is_folder(own):
            os.unlink(own)
        os.rename(os.path.join(temporary, ".git"), own)
    finally:
        remove_tree(temporary)


def clone_at(path: str) -> Checkout:
    """Return the clone in a folder."""
    git_dir = os.path.join(path, ".git")
    return Checkout(root=path, git_dir=git_dir, common_dir=git_dir)


def _make_borrower(home: Checkout, path: str, branch: str) -> Checkout:
    """Create an empty repository on an unborn branch that borrows the objects of its home."""
    settings = [setting for setting in scoped_settings(home) if setting[0] in ("local", "worktree")]
    if any(key.startswith("remote.") and key.endswith(".promisor") for _, key, _ in settings):
        raise RepositoryError(
            "this repository is a partial clone: its missing objects cannot be borrowed",
            code="PARTIAL_CLONE",
            hint="use --kind worktree, or fetch everything: git fetch --refetch --no-filter",
        )
    form = next((text for _, key, text in settings if key == "extensions.objectformat"), "sha1")
    clone = clone_at(path)
    # Written first, so that an incomplete clone already names its home.
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
    alternates = os.path.join(clone.git_dir, "objects", "info", "alternates")
    _write(alternates, quote_alternate(f"{home.common_dir}/objects") + "\n")
    with open(os.path.join(clone.git_dir, "config"), "a", encoding="utf-8", errors="surrogateescape") as file:
        file.writelines(_copied_settings(home, settings))
    return clone


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)


def _copied_settings(home: Checkout, settings: Sequence[tuple[str, str, str]]) -> list[str]:
    """Return the lines of a clone's config with the settings that it takes over."""
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
            # A relative path counts from the main checkout.
            is_path = "://" not in text and ":" not in text.partition("/")[0]
            url = os.path.normpath(os.path.join(home.root, text)) if is_path else text
            lines.append(setting_line(key, url))
        elif section in _COPIED_SECTIONS or (section == "core" and rest in _COPIED_CORE):
            lines.append(setting_line(key, text))
    own = os.path.join(home.common_dir, "hooks")
    if not hooks and os.path.isdir(own) and any(not name.endswith(".sample") for name in os.listdir(own)):
        lines.append(setting_line("core.hooksPath", own))
    return lines


def write_files(path: str) -> None:
    """Write the files of a checkout that was created without them.

    Raises:
        RepositoryError: git cannot, for instance because a filter is missing or the disk is full.
    """
    try:
        is_idle = os.getloadavg()[0] < (os.cpu_count() or 1)
    except OSError:
        is_idle = False
    # With one process per processor, ten thousand files took 0.8 s where one process took 1.4 s.
    workers = ("-c", "checkout.workers=0") if is_idle else ()
    words = (*workers, "reset", "--hard", "--quiet", "--no-recurse-submodules")
    result = run_git(*words, cwd=path, limit_seconds=_CHECKOUT_SECONDS)
    if result.exit_code:
        raise git_failed(words, result)


def fetch_clone_branch(home: Checkout, path: str, branch: str) -> str:
    """Fetch a clone's branch into the repository and return its head; empty if there is none.

    git checks every object that it fetches.

    Raises:
        RepositoryError: an object is invalid, or the branch is checked out at home.
    """
    ref = f"refs/heads/{branch}"
    if worktree_git_dir(home, path):
        return commit_at(home, ref)  # the branch of a worktree is in the repository itself
    if not is_folder(os.path.join(path, ".git")):
        return ""  # a link or a file may lead to another repository
    head = _read_ref(path, ref)
    if not head or head == commit_at(home, ref):
        return head
    # Many workers may end at once, and only fetches of the same branch race. A few locks serve all branches,
    # since each lock leaves a file behind.
    number = zlib.crc32(branch.encode("utf-8", "surrogateescape")) % _FETCH_LOCKS
    with git_lock(home.common_dir, f"fetch {branch}", name=f"bring-{number}.lock"):
        here = commit_at(home, ref)
        if here and here != commit_at(home, _FETCHED + branch):  # it was changed at home since
            if is_ancestor(home, head, here):
                return here
            _keep_replaced(home, branch, here, path, head)
        result = _fetch_branch(home, path, branch)
        if result.exit_code and any(message in result.stderr for message in RACE_MESSAGES):
            with git_lock(home.common_dir, f"fetch {branch}"):
                result = _fetch_branch(home, path, branch)
    if "checked out" in result.stderr:
        raise RepositoryError(
            f"{branch} is checked out in the repository itself: what {path} has cannot be brought there",
            code="BRANCH_IN_USE",
            hint=f"stand on another branch there (git switch -), then try again; {path} keeps its work",
        )
    if result.exit_code:
        raise git_failed(("fetch", path), result)
    return commit_at(home, ref)


def _fetch_branch(home: Checkout, path: str, branch: str) -> GitResult:
    """Fetch a clone's branch, and in the same step record its commit under another ref."""
    ref = f"refs/heads/{branch}"
    words = ("-c", "transfer.fsckObjects=true", "-c", "gc.auto=0", "-c", "maintenance.auto=false")
    fetch = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
    specs = (f"+{ref}:{ref}", f"+{ref}:{_FETCHED}{branch}")
    return run_in(home, *words, *fetch, "--", path, *specs, limit_seconds=_CHECKOUT_SECONDS)


def _keep_replaced(home: Checkout, branch: str, here: str, path: str, head: str) -> None:
    """Keep the commit of a clone's branch at home under another ref, unless the clone contains it."""
    has_head = try_git_output(home, "cat-file", "-t", head) == "commit"
    if not is_ancestor(home if has_head else clone_at(path), here, head):
        git_output(home, "update-ref", f"{_REPLACED}{branch}/{here[:12]}", here)


def _read_ref(path: str, ref: str) -> str:
    """Return the commit of a clone's ref; no program that the clone's settings name is run."""
    result = run_git(
        *("-c", "core.fsmonitor=false", "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}"),
        cwd=path,
        git_dir=os.path.join(path, ".git"),
    )
    return "" if result.exit_code else result.stdout.strip()


def delete_branch(home: Checkout, branch: str, head: str) -> None:
    """Delete a branch if it still is where it was."""
    with git_lock(home.common_dir, f"delete {branch}"):
        run_in(home, "update-ref", "-d", f"refs/heads/{branch}", head)


_UPDATE_SECONDS = 1800.0
_PREFIX = "submodule."


def fill_submodules(home: Checkout, path: str, *, is_clone: bool) -> list[str]:
    """Initialise the submodules that the main checkout has, too, and return their paths.

    Raises:
        RepositoryError: one of them is not available.
    """
    if not os.path.exists(os.path.join(path, ".gitmodules")):
        return []
    urls = _by_name(try_git_output(home, "config", "-z", "--get-regexp", r"^submodule\..*\.url$"), ".url")
    listed = run_git("config", "-z", "-f", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$", cwd=path)
    paths = {name: inner for name, inner in _by_name(listed.stdout, ".path").items() if name in urls}
    if not paths:
        return []
    if is_clone:  # a worktree shares these settings with the main checkout
        for name in paths:
            run_git("config", f"{_PREFIX}{name}.url", urls[name], cwd=path)
    # git refuses local folders by default, but here the user has configured them.
    is_local = any(urls[name].startswith(("/", ".", "file://")) for name in paths)
    config = ("-c", "protocol.file.allow=always") if is_local else ()
    result = _update(path, config, ("--recursive", "--", *paths.values()))
    if result.exit_code and not _fill_from_home(home, path, paths, urls):
        raise RepositoryError(
            f"submodules cannot be had here: {result.stderr[-300:]}",
            code="SUBMODULE_MISSING",
            hint="fix the submodule's URL, or `git submodule deinit` it in the main checkout",
        )
    return list(paths.values())


def _by_name(text: str, ending: str) -> dict[str, str]:
    """Return the values of settings by the name of their submodule."""
    items = (item.partition("\n") for item in text.split("\0") if item)
    return {key[len(_PREFIX) : -len(ending)]: value for key, _, value in items}


def _update(path: str, config: Sequence[str], words: Sequence[str]) -> GitResult:
    command = ("submodule", "--quiet", "update", "--init")
    return run_git(*config, *command, *words, cwd=path, limit_seconds=_UPDATE_SECONDS)


def _fill_from_home(home: Checkout, path: str, paths: dict[str, str], urls: dict[str, str]) -> bool:
    """Take submodules from the main checkout if remotes are not available; return whether all came."""
    for name, inner in paths.items():
        module = os.path.join(home.common_dir, "modules", name)
        if not os.path.isdir(module):
            return False
        config = ("-c", f"{_PREFIX}{name}.url={module}", "-c", "protocol.file.allow=always")
        if _update(path, config, ("--", inner)).exit_code:
            return False
        run_git("config", "remote.origin.url", urls[name], cwd=os.path.join(path, inner))
    return True
