"""Trial merges: what the target would be with a branch on it, made as objects, touching no checkout."""

from __future__ import annotations

import os
import tempfile
from functools import lru_cache

from landlane.errors import RepositoryError
from landlane.git.run import git_failed, git_output, resolve_revision, run_in, try_git_output
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from landlane.git.discovery import Checkout

_NULL = "0" * 40
_TREES: dict[str, str] = {}
_MOST_TREES = 10_000
_FALLBACK = {
    "GIT_AUTHOR_NAME": "Landlane",
    "GIT_AUTHOR_EMAIL": "landlane@localhost",
    "GIT_COMMITTER_NAME": "Landlane",
    "GIT_COMMITTER_EMAIL": "landlane@localhost",
}


@value
class Author:
    """Who wrote a commit, and when, as git takes it from its environment."""

    name: str
    mail: str
    date: str


@value
class Committer:
    """What our commits are made with: the environment that says who commits, and whether they are signed."""

    variables: dict[str, str]
    is_signing: bool = False


@value
class MergedTree:
    """A merge that worked: the tree it gives."""

    tree: str
    notes: tuple[str, ...] = ()


@value
class MergeConflict:
    """A merge that did not: the paths that both sides changed, and what is wrong with each."""

    paths: tuple[str, ...]
    reasons: tuple[str, ...] = ()
    tree: str = ""  # what git made of it, with its marks in the files that clash


def try_merge(home: Checkout, ours: str, theirs: str) -> MergedTree | MergeConflict:
    """Merge two commits into a tree.

    Raises:
        RepositoryError: they have nothing in common, or git cannot do it.
    """
    found = run_in(home, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
    parts = found.stdout.split("\0")
    if found.exit_code == 0:
        return MergedTree(tree=parts[0].strip())
    if found.exit_code != 1:
        if "unrelated histories" in found.stderr:
            raise RepositoryError(
                f"{theirs[:12]} has no common ancestor with {ours[:12]}",
                code="NO_COMMON_ANCESTOR",
                hint="begin the branch from the target branch",
            )
        raise git_failed(("merge-tree",), found)
    return MergeConflict(paths=tuple(dict.fromkeys(filter(None, parts[1:]))), tree=parts[0].strip())


@lru_cache(maxsize=1000)  # a commit never changes
def tree_of(home: Checkout, commit: str) -> str:
    """The tree of a commit.

    Raises:
        RepositoryError: there is no such commit.
    """
    tree = _TREES.get(commit) or git_output(home, "rev-parse", "--verify", f"{commit}^{{tree}}")
    _remember_tree(commit, tree)
    return tree


def _remember_tree(commit: str, tree: str) -> None:
    """A commit's full name says which tree it has, for ever."""
    if len(commit) in (40, 64) and len(_TREES) < _MOST_TREES:
        _TREES[commit] = tree


def read_author(home: Checkout, commit: str) -> Author:
    """Who wrote a commit.

    Raises:
        RepositoryError: there is no such commit.
    """
    shown = git_output(home, "show", "-s", "--date=raw", "--format=%an%x00%ae%x00%ad", commit)
    name, mail, date = shown.split("\0")
    return Author(name=name, mail=mail, date=f"@{date}")


def missing_commits(home: Checkout, commits: Sequence[str]) -> set[str]:
    """Which of these commits are not here."""
    if not commits:
        return set()
    asked = "".join(f"{commit}\n" for commit in commits).encode()
    found = git_output(home, "cat-file", "--batch-check=%(objecttype)", stdin=asked).splitlines()
    return {commit for commit, kind in zip(commits, found, strict=True) if kind != "commit"}


def read_blob(home: Checkout, commit: str, path: str) -> bytes | None:
    """The content of a file in a commit; nothing when it is not there or no file."""
    found = run_in(home, "cat-file", "blob", f"{commit}:{path}")
    return None if found.exit_code else found.stdout.encode("utf-8", "surrogateescape")


def replace_files(home: Checkout, tree: str, contents: Mapping[str, bytes | None]) -> str:
    """The tree with these files in it, or without those that are nothing; modes stay as they are.

    Raises:
        RepositoryError: git refuses.
    """
    if not contents:
        return tree
    with tempfile.TemporaryDirectory(prefix="landlane-tree-") as folder:
        variables = {"GIT_INDEX_FILE": os.path.join(folder, "index")}

        def run(*words: str, stdin: bytes | None = None) -> str:
            found = run_in(home, *words, stdin=stdin, variables=variables)
            if found.exit_code:
                raise git_failed(words, found)
            return found.stdout

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
    """Who commits: the user of this repository, or we where git knows nobody; signed if the user signs."""
    asked = ("config", "--get-regexp", r"^(user\.name|user\.email|commit\.gpgsign)$")
    lines = (line.partition(" ") for line in try_git_output(home, *asked).splitlines())
    settings = {key: text for key, _, text in lines}
    has_name = bool(settings.get("user.name") or os.environ.get("GIT_COMMITTER_NAME"))
    has_mail = bool(settings.get("user.email") or os.environ.get("GIT_COMMITTER_EMAIL"))
    is_signing = settings.get("commit.gpgsign", "false").lower() not in ("false", "no", "off", "0")
    return Committer(variables={} if has_name and has_mail else dict(_FALLBACK), is_signing=is_signing)


def create_commit(
    home: Checkout,
    tree: str,
    parents: Sequence[str],
    message: str,
    author: Author | None = None,
    committer: Committer | None = None,
) -> str:
    """A commit of a tree, by another author if one is named.

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
    if author is not None and author.name:  # git refuses a commit by nobody
        names = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE")
        variables |= dict(zip(names, (author.name, author.mail, author.date), strict=True))
    found = run_in(
        home, *words, "-F", "-", stdin=message.encode("utf-8", "surrogateescape"), variables=variables
    )
    if found.exit_code:
        raise git_failed(words, found)
    commit = found.stdout.strip()
    _remember_tree(commit, tree)
    return commit


def list_own_commits(home: Checkout, base: str, head: str) -> list[str]:
    """The commits of a branch's own, oldest first, without merges."""
    return try_git_output(
        home, "rev-list", "--reverse", "--topo-order", "--no-merges", f"{base}..{head}"
    ).splitlines()


def replay(
    home: Checkout,
    tip: str,
    commits: Sequence[str],
    message_of: Callable[[str], str],
    committer: Committer | None = None,
) -> str | MergeConflict:
    """Each of these commits anew on top of a tip; the last of them, or what clashes.

    Raises:
        RepositoryError: git refuses.
    """
    for commit in commits:
        parent = resolve_revision(home, f"{commit}^1")
        tried = _pick(home, parent, tip, commit)
        if isinstance(tried, MergeConflict):
            return tried
        if tried.tree == tree_of(home, tip):
            continue  # it is there already
        tip = create_commit(home, tried.tree, [tip], message_of(commit), read_author(home, commit), committer)
    return tip


def _pick(home: Checkout, base: str, ours: str, theirs: str) -> MergedTree | MergeConflict:
    """A three-way merge with a base of our choice: both sides are told to come from it."""
    if not base:
        return try_merge(home, ours, theirs)
    nobody = Committer(variables=dict(_FALLBACK))  # these are never seen
    sides = [
        create_commit(home, tree_of(home, side), [base], "side", committer=nobody) for side in (ours, theirs)
    ]
    return try_merge(home, sides[0], sides[1])


def read_message(home: Checkout, commit: str) -> str:
    """The whole message of a commit."""
    return try_git_output(home, "show", "-s", "--format=%B", commit)


def list_trailers(home: Checkout, commits: Sequence[str]) -> list[str]:
    """The trailers of these commits, each once, in their order."""
    if not commits:
        return []
    form = "--format=%(trailers:only,unfold)"
    found = try_git_output(home, "show", "-s", form, *commits)
    return list(dict.fromkeys(line for line in found.splitlines() if line.strip()))
