"""Trial merges: merge branches and make commits as git objects, without changing a checkout."""

from __future__ import annotations

import os
import tempfile

from landlane.errors import RepositoryError
from landlane.git.refs import is_oid
from landlane.git.run import (
    git_failed,
    git_output,
    identity_variables,
    resolve_revision,
    run_in,
    try_git_output,
)
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from landlane.git.discovery import Checkout

_NULL = "0" * 40
_TREES: dict[str, str] = {}
_MOST_TREES = 10_000
_FALLBACK = identity_variables("Landlane")


@value
class Author:
    """Who wrote a commit, and when, as git takes it from its environment."""

    name: str
    mail: str
    date: str


@value
class Committer:
    """Who makes our commits, as variables for git, and whether they are signed."""

    variables: dict[str, str]
    is_signing: bool = False


@value
class MergedTree:
    """The tree of a merge that succeeded."""

    tree: str


@value
class MergeConflict:
    """A merge that failed: the paths that both sides changed, and the reason for each."""

    paths: tuple[str, ...]
    reasons: tuple[str, ...] = ()
    tree: str = ""  # git's result, with conflict markers in the files


def try_merge(home: Checkout, ours: str, theirs: str) -> MergedTree | MergeConflict:
    """Merge two commits into a tree.

    Raises:
        RepositoryError: they have nothing in common, or git cannot do it.
    """
    result = run_in(home, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
    parts = result.stdout.split("\0")
    if result.exit_code == 0:
        return MergedTree(tree=parts[0].strip())
    if result.exit_code != 1:
        if "unrelated histories" in result.stderr:
            raise RepositoryError(
                f"{theirs[:12]} has no common ancestor with {ours[:12]}",
                code="NO_COMMON_ANCESTOR",
                hint="begin the branch from the target branch",
            )
        raise git_failed(("merge-tree",), result)
    return MergeConflict(paths=tuple(dict.fromkeys(filter(None, parts[1:]))), tree=parts[0].strip())


def tree_of(home: Checkout, commit: str) -> str:
    """Return the tree of a commit.

    Raises:
        RepositoryError: there is no such commit.
    """
    tree = _TREES.get(commit) or git_output(home, "rev-parse", "--verify", f"{commit}^{{tree}}")
    _remember_tree(commit, tree)
    return tree


def _remember_tree(commit: str, tree: str) -> None:
    if is_oid(commit) and len(_TREES) < _MOST_TREES:
        _TREES[commit] = tree


def read_author(home: Checkout, commit: str) -> Author:
    """Return who wrote a commit.

    Raises:
        RepositoryError: there is no such commit.
    """
    shown = git_output(home, "show", "-s", "--date=raw", "--format=%an%x00%ae%x00%ad", commit)
    name, mail, date = shown.split("\0")
    return Author(name=name, mail=mail, date=f"@{date}")


def missing_commits(home: Checkout, commits: Sequence[str]) -> set[str]:
    """Return which of these commits this repository does not have."""
    if not commits:
        return set()
    listed = "".join(f"{commit}\n" for commit in commits).encode()
    found = git_output(home, "cat-file", "--batch-check=%(objecttype)", stdin=listed).splitlines()
    return {commit for commit, kind in zip(commits, found, strict=True) if kind != "commit"}


def read_blob(home: Checkout, commit: str, path: str) -> bytes | None:
    """Return the content of a file in a commit; None when there is no such file."""
    result = run_in(home, "cat-file", "blob", f"{commit}:{path}")
    return None if result.exit_code else result.stdout.encode("utf-8", "surrogateescape")


def replace_files(home: Checkout, tree: str, contents: Mapping[str, bytes | None]) -> str:
    """Return a tree with these files replaced, or removed where the content is None; modes are kept.

    Raises:
        RepositoryError: git refuses.
    """
    if not contents:
        return tree
    with tempfile.TemporaryDirectory(prefix="landlane-tree-") as folder:
        variables = {"GIT_INDEX_FILE": os.path.join(folder, "index")}

        def run(*words: str, stdin: bytes | None = None) -> str:
            result = run_in(home, *words, stdin=stdin, variables=variables)
            if result.exit_code:
                raise git_failed(words, result)
            return result.stdout

        run("read-tree", tree)
        lines: list[bytes] = []
        for path, content in contents.items():
            name = path.encode("utf-8", "surrogateescape")
            if content is None:
                lines.append(b"0 " + _NULL.encode() + b"\t" + name)
                continue
            blob = run("hash-object", "-w", "--no-filters", "--stdin", stdin=content).strip()
            staged = run("ls-files", "--stage", "-z", "--", f":(top,literal){path}")
            mode = staged[:6] if staged[:6] in ("100644", "100755") else "100644"
            lines.append(f"{mode} {blob}\t".encode() + name)
        run("update-index", "-z", "--index-info", stdin=b"\0".join(lines) + b"\0")
        return run("write-tree").strip()


def find_committer(home: Checkout) -> Committer:
    """Return the user of this repository as committer, or Landlane if git knows no user."""
    words = ("config", "--get-regexp", r"^(user\.name|user\.email|commit\.gpgsign)$")
    lines = (line.partition(" ") for line in try_git_output(home, *words).splitlines())
    settings = {key: text for key, _, text in lines}
    has_name = bool(settings.get("user.name") or os.environ.get("GIT_COMMITTER_NAME"))
    has_mail = bool(settings.get("user.email") or os.environ.get("GIT_COMMITTER_EMAIL"))
    is_signing = settings.get("commit.gpgsign", "false").lower() not in ("false", "no", "off", "0")
    return Committer(variables={} if has_name and has_mail else _FALLBACK, is_signing=is_signing)


def create_commit(
    home: Checkout,
    tree: str,
    parents: Sequence[str],
    message: str,
    author: Author | None = None,
    committer: Committer | None = None,
) -> str:
    """Make a commit of a tree and return its id; `author` may differ from the committer.

    Raises:
        RepositoryError: git refuses.
    """
    committer = committer or find_committer(home)
    words = ["commit-tree", tree]
    for parent in parents:
        words += ["-p", parent]
    if committer.is_signing:
        words.append("-S")
    variables = dict(committer.variables)
    if author is not None and author.name:  # git refuses an empty name
        names = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE")
        variables |= dict(zip(names, (author.name, author.mail, author.date), strict=True))
    result = run_in(
        home, *words, "-F", "-", stdin=message.encode("utf-8", "surrogateescape"), variables=variables
    )
    if result.exit_code:
        raise git_failed(words, result)
    commit = result.stdout.strip()
    _remember_tree(commit, tree)
    return commit


def list_own_commits(home: Checkout, base: str, head: str) -> list[str]:
    """Return the commits of a branch that the base does not have, oldest first, without merges."""
    return try_git_output(
        home, "rev-list", "--reverse", "--topo-order", "--no-merges", f"{base}..{head}"
    ).splitlines()


def replay(home: Checkout, tip: str, commits: Sequence[str], committer: Committer) -> str | MergeConflict:
    """Repeat these commits on top of a tip, like a rebase; return the last one, or the conflict.

    Raises:
        RepositoryError: git refuses.
    """
    for commit in commits:
        parent = resolve_revision(home, f"{commit}^1")
        tried = _pick(home, parent, tip, commit)
        if isinstance(tried, MergeConflict):
            return tried
        if tried.tree == tree_of(home, tip):
            continue  # the tip contains it already
        message, author = read_message(home, commit), read_author(home, commit)
        tip = create_commit(home, tried.tree, [tip], message, author, committer)
    return tip


def _pick(home: Checkout, base: str, ours: str, theirs: str) -> MergedTree | MergeConflict:
    """Merge with a base of our choice, by making commits of both sides whose parent is that base."""
    if not base:
        return try_merge(home, ours, theirs)
    committer = Committer(variables=_FALLBACK)  # these commits are only used here
    left, right = (
        create_commit(home, tree_of(home, side), [base], "side", committer=committer)
        for side in (ours, theirs)
    )
    return try_merge(home, left, right)


def read_message(home: Checkout, commit: str) -> str:
    """Return the full message of a commit."""
    return try_git_output(home, "show", "-s", "--format=%B", commit)


def list_trailers(home: Checkout, commits: Sequence[str]) -> list[str]:
    """Return the distinct trailers of these commits, in order."""
    if not commits:
        return []
    form = "--format=%(trailers:only,unfold)"
    found = try_git_output(home, "show", "-s", form, *commits)
    return list(dict.fromkeys(line for line in found.splitlines() if line.strip()))
