"""Making and removing checkouts of both kinds: linked worktrees, and clones that borrow the repository's objects.

git's own races sit behind one lock, held only for what is racy: entering a worktree. Writing its files, which
takes nearly all of the time, happens after that, side by side.
"""

from __future__ import annotations

import os
import shutil
import stat

from interlock.errors import RepositoryError
from interlock.git.layout import HOME_POINTER, Checkout
from interlock.git.lock import git_lock
from interlock.git.run import ask, git_failed, run_git, run_in, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_BASES = "refs/interlock/base/"
_CHECKOUT_SECONDS = 1800.0
# What of the repository's own settings a clone must have, too, so that the same bytes come out of it.
_CARRIED_SECTIONS = ("user", "author", "committer", "filter", "diff", "merge", "commit", "gpg", "tag", "lfs")
_CARRIED_CORE = (
    "autocrlf",
    "eol",
    "safecrlf",
    "ignorecase",
    "filemode",
    "symlinks",
    "attributesfile",
    "whitespace",
)


def base_ref(workspace_id: str) -> str:
    """The ref that keeps what a workspace was begun from, whatever else is pruned."""
    return _BASES + workspace_id


def add_worktree(home: Checkout, path: str, branch: str, start: str, pin: str) -> None:
    """Enter a worktree on a branch, without its files; the branch is made unless it is there.

    Raises:
        RepositoryError: git refuses, for instance because the branch is checked out elsewhere.
    """
    with git_lock(home.common_dir, f"worktree {os.path.basename(path)}"):
        is_new = not ask(home, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
        way = ("-b", branch, path, start) if is_new else (path, branch)
        words = (
            "worktree",
            "add",
            "--quiet",
            "--no-checkout",
            "--lock",
            *(("--no-track",) if is_new else ()),
            *way,
        )
        found = run_in(home, *words)
        if found.exit_code:
            raise _refused_checkout(branch, found.trouble)
    run_in(home, "update-ref", pin, start)


def _refused_checkout(branch: str, trouble: str) -> RepositoryError:
    return RepositoryError(
        f"no worktree for {branch}: {trouble[-400:]}",
        code="WORKTREE_REFUSED",
        hint="`git worktree list` shows where branches are checked out; `interlock doctor --fix` mends old entries",
    )


def add_clone(home: Checkout, path: str, branch: str, start: str, pin: str) -> None:
    """Make a clone that borrows the repository's objects, on a branch, without its files.

    Raises:
        RepositoryError: the repository cannot be borrowed from, or git refuses.
    """
    if ask(home, "config", "--get-regexp", r"^remote\..*\.promisor$"):
        raise RepositoryError(
            "this repository is a partial clone: its missing objects cannot be borrowed",
            code="PARTIAL_CLONE",
            hint="use --kind worktree, or fetch everything: git fetch --refetch --no-filter",
        )
    told(home, "update-ref", pin, start)  # before anything borrows what it keeps
    words = ("clone", "--quiet", "--shared", "--no-checkout", "--no-tags", "--template=", "--origin", "home")
    made = run_git(
        *words, "--", home.common_dir, path, cwd=os.path.dirname(path), limit_seconds=_CHECKOUT_SECONDS
    )
    if made.exit_code:
        raise git_failed(words, made)
    clone = clone_at(path)
    _carry_settings(home, clone)
    told(clone, "update-ref", f"refs/heads/{branch}", start)
    told(clone, "symbolic-ref", "HEAD", f"refs/heads/{branch}")
    _point_home(home, clone)


def _point_home(home: Checkout, clone: Checkout) -> None:
    """Tell a clone where the state is."""
    with open(
        os.path.join(clone.git_dir, HOME_POINTER), "w", encoding="utf-8", errors="surrogateescape"
    ) as file:
        file.write(home.common_dir + "\n")


def add_detached_worktree(home: Checkout, path: str, commit: str) -> None:
    """Enter a worktree at a commit, on no branch, without its files.

    Raises:
        RepositoryError: git refuses.
    """
    with git_lock(home.common_dir, f"worktree {os.path.basename(path)}"):
        told(home, "worktree", "add", "--quiet", "--no-checkout", "--detach", path, commit)


def add_detached_clone(home: Checkout, path: str, commit: str, keeps: str) -> None:
    """Make a clone at a commit, or at none, on no branch of ours, without its files; `keeps` is a ref with all of it.

    Raises:
        RepositoryError: git refuses.
    """
    words = ("clone", "--quiet", "--shared", "--no-checkout", "--no-tags", "--template=", "--origin", "home")
    made = run_git(
        *words, "--", home.common_dir, path, cwd=os.path.dirname(path), limit_seconds=_CHECKOUT_SECONDS
    )
    if made.exit_code:
        raise git_failed(words, made)
    clone = clone_at(path)
    _carry_settings(home, clone)
    run_in(clone, "update-ref", "refs/home/kept", ask(home, "rev-parse", keeps))
    if commit:
        told(clone, "update-ref", "--no-deref", "HEAD", commit)
    else:
        told(clone, "symbolic-ref", "HEAD", "refs/heads/unborn")
    _point_home(home, clone)


def clone_at(path: str) -> Checkout:
    """The clone in a folder."""
    git_dir = os.path.join(path, ".git")
    return Checkout(root=path, git_dir=git_dir, common_dir=git_dir)


def _carry_settings(home: Checkout, clone: Checkout) -> None:
    """Give the clone those settings of the repository that change what is written and who writes it."""
    found = run_in(home, "config", "--local", "--list", "-z")
    lines = ["[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"]
    for item in found.text.split("\0"):
        key, _, text = item.partition("\n")
        section, _, rest = key.partition(".")
        if section in _CARRIED_SECTIONS or (section == "core" and rest in _CARRIED_CORE):
            lines.append(_setting(key, text))
    origin = ask(home, "config", "remote.origin.url")
    if origin:
        url = (
            origin if "://" in origin or ":" in origin.partition("/")[0] else os.path.join(home.root, origin)
        )
        lines.append(_setting("remote.origin.url", url))
        lines.append(_setting("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"))
    hooks = ask(home, "rev-parse", "--git-path", "hooks")
    if hooks and os.path.isdir(os.path.join(home.root, hooks)):
        lines.append(_setting("core.hooksPath", os.path.realpath(os.path.join(home.root, hooks))))
    with open(os.path.join(clone.git_dir, "config"), "a", encoding="utf-8", errors="surrogateescape") as file:
        file.writelines(lines)


def _setting(key: str, text: str) -> str:
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
    words = ("reset", "--hard", "--quiet", "--no-recurse-submodules")
    found = run_git(*words, cwd=path, limit_seconds=_CHECKOUT_SECONDS)
    if found.exit_code:
        raise git_failed(words, found)


def fill_submodules(home: Checkout, path: str) -> list[str]:
    """Initialise those submodules that the main checkout has, too; tells which.

    Raises:
        RepositoryError: one of them cannot be had.
    """
    if not os.path.exists(os.path.join(path, ".gitmodules")):
        return []
    known = ask(home, "config", "--get-regexp", r"^submodule\..*\.url$").splitlines()
    names = {
        line.partition(" ")[0][len("submodule.") : -len(".url")]: line.partition(" ")[2] for line in known
    }
    if not names:
        return []
    listed = run_git("config", "-f", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$", cwd=path).text
    wanted: list[str] = []
    for line in listed.splitlines():
        key, _, where = line.partition(" ")
        name = key[len("submodule.") : -len(".path")]
        if name in names:
            wanted.append(where)
            run_git("config", f"submodule.{name}.url", names[name], cwd=path)
    # What the user has configured by hand to come from a local folder may come from there.
    local = ("-c", "protocol.file.allow=always") if any(_is_local(names[name]) for name in names) else ()
    words = (*local, "submodule", "--quiet", "update", "--init", "--recursive", "--", *wanted)
    if wanted:
        found = run_git(*words, cwd=path, limit_seconds=_CHECKOUT_SECONDS)
        if found.exit_code:
            raise RepositoryError(
                f"submodules cannot be had here: {found.trouble[-300:]}",
                code="SUBMODULE_MISSING",
                hint="mend the submodule's URL, or `git submodule deinit` it in the main checkout",
            )
    return wanted


def _is_local(url: str) -> bool:
    return url.startswith(("/", ".", "file://"))


def bring_back(home: Checkout, path: str, branch: str) -> str:
    """Fetch a clone's branch into the repository, every object hashed anew; tells its head, or nothing.

    Raises:
        RepositoryError: what is there does not hash to what it says.
    """
    ref = f"refs/heads/{branch}"
    head = _read_ref(path, ref)
    if not head or head == ask(home, "rev-parse", "--verify", "--quiet", ref):
        return head
    words = ("-c", "transfer.fsckObjects=true", "-c", "gc.auto=0", "-c", "maintenance.auto=false")
    with git_lock(home.common_dir, f"fetch {branch}"):
        fetch = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
        found = run_in(home, *words, *fetch, "--", path, f"+{ref}:{ref}", limit_seconds=_CHECKOUT_SECONDS)
    if found.exit_code:
        raise git_failed(("fetch", path), found)
    return ask(home, "rev-parse", "--verify", "--quiet", ref)


def _read_ref(path: str, ref: str) -> str:
    """Where a ref of a clone points. Reading refs runs nothing that the clone's settings name."""
    found = run_git(
        *("-c", "core.fsmonitor=false", "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}"),
        cwd=path,
        git_dir=os.path.join(path, ".git"),
    )
    return "" if found.exit_code else found.text.strip()


def private_git_dir(home: Checkout, path: str) -> str:
    """The git directory that belongs to a checkout alone; empty when it is gone."""
    own = os.path.join(path, ".git")
    if os.path.isdir(own):
        return os.path.realpath(own)
    return next((folder for folder, root in worktree_entries(home) if root == path), "")


def worktree_entries(home: Checkout) -> list[tuple[str, str]]:
    """Every linked worktree as (its git directory, its root), read from the files."""
    folder = os.path.join(home.common_dir, "worktrees")
    found: list[tuple[str, str]] = []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        try:
            with open(
                os.path.join(folder, name, "gitdir"), encoding="utf-8", errors="surrogateescape"
            ) as file:
                found.append((os.path.join(folder, name), os.path.dirname(file.readline().rstrip("\n"))))
        except OSError:
            continue
    return found


def remove_checkout(home: Checkout, path: str) -> None:
    """Remove a checkout and what the repository knows of it. What it links to stays as it is.

    It is renamed first: nobody finds half a checkout, and a second try finds what is left.

    Raises:
        RepositoryError: something in it cannot be removed, and is named.
    """
    going = f"{path}.closing"
    admin = "" if os.path.isdir(os.path.join(path, ".git")) else _entry_of(home, path)
    if os.path.lexists(path):
        remove_tree(going)
        os.rename(path, going)
    if admin:
        with git_lock(home.common_dir, f"remove worktree {os.path.basename(path)}"):
            remove_tree(admin)
    remove_tree(going)


def _entry_of(home: Checkout, path: str) -> str:
    return next((folder for folder, root in worktree_entries(home) if root == path), "")


def remove_tree(path: str) -> None:
    """Delete a folder without following any link out of it, or whatever is mounted in it.

    Raises:
        RepositoryError: something in it is on another device, or cannot be removed.
    """
    if not os.path.lexists(path):
        return
    if os.path.islink(path) or not os.path.isdir(path):
        os.unlink(path)
        return
    mounted = _other_device(path)
    if mounted:
        raise RepositoryError(
            f"{mounted} is mounted inside the checkout and would be emptied",
            code="MOUNTED_INSIDE",
            hint=f"umount {mounted}, then close it again",
        )
    _unlink_links(path)
    shutil.rmtree(path, onerror=_make_writable_and_retry)


def _other_device(path: str) -> str:
    """The first folder below that belongs to another file system."""
    device = os.lstat(path).st_dev
    for folder, names, _ in os.walk(path):
        for name in names:
            full = os.path.join(folder, name)
            found = os.lstat(full)
            if stat.S_ISDIR(found.st_mode) and found.st_dev != device:
                return full
    return ""


def _unlink_links(path: str) -> None:
    """Links go first: no later step, of this or another program, can be led out by one."""
    for folder, names, files in os.walk(path):
        for name in (*names, *files):
            full = os.path.join(folder, name)
            if os.path.islink(full):
                try:
                    os.unlink(full)
                except PermissionError:
                    os.chmod(folder, stat.S_IRWXU)
                    os.unlink(full)


def _make_writable_and_retry(function: object, path: str, info: object) -> None:
    """Caches are often read-only; their owner may remove them all the same."""
    error = info[1] if isinstance(info, tuple) else None  # pyright: ignore[reportUnknownVariableType]
    if isinstance(error, FileNotFoundError):
        return
    try:
        os.chmod(os.path.dirname(path), stat.S_IRWXU)
        if os.path.isdir(path) and not os.path.islink(path):
            os.chmod(path, stat.S_IRWXU)
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)
    except OSError as second:
        raise RepositoryError(
            f"{path} cannot be removed: {second.strerror}",
            code="NOT_REMOVED",
            hint="mend its permissions, then close the workspace again; what was rescued is safe",
        ) from second


def drop_branch(home: Checkout, branch: str, head: str, refs: Sequence[str] = ()) -> None:
    """Delete a branch if it still is where it was, and other refs that end with it."""
    with git_lock(home.common_dir, f"delete {branch}"):
        if branch and head:
            run_in(home, "update-ref", "-d", f"refs/heads/{branch}", head)
        for ref in refs:
            run_in(home, "update-ref", "-d", ref)
