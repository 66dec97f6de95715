"""Trial merges: what the target would be with a branch on it, made as objects, without touching any checkout."""

from __future__ import annotations

import os
import tempfile

from interlock.errors import RepositoryError
from interlock.git.run import ask, git_failed, run_in, told
from interlock.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from interlock.git.layout import Checkout

_NULL = "0" * 40
_FALLBACK = {
    "GIT_AUTHOR_NAME": "Interlock",
    "GIT_AUTHOR_EMAIL": "interlock@localhost",
    "GIT_COMMITTER_NAME": "Interlock",
    "GIT_COMMITTER_EMAIL": "interlock@localhost",
}


@value
class Tried:
    """A merge that worked: the tree it gives."""

    tree: str
    notes: tuple[str, ...] = ()


@value
class Clash:
    """A merge that did not: the paths that both sides changed, and what is wrong with each."""

    paths: tuple[str, ...]
    reasons: tuple[str, ...] = ()
    tree: str = ""  # what git made of it, with its marks in the files that clash


def merge_base(home: Checkout, one: str, other: str) -> str:
    """Where two commits parted; empty when they have no common ancestor."""
    return ask(home, "merge-base", one, other).partition("\n")[0]


def try_merge(home: Checkout, ours: str, theirs: str) -> Tried | Clash:
    """Merge two commits into a tree.

    Raises:
        RepositoryError: they have nothing in common, or git cannot do it.
    """
    found = run_in(home, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
    parts = [part for part in found.text.split("\0") if part]
    if found.exit_code == 0:
        return Tried(tree=parts[0].strip())
    if found.exit_code != 1:
        if "unrelated histories" in found.trouble:
            raise RepositoryError(
                f"{theirs[:12]} has no common ancestor with {ours[:12]}",
                code="NO_COMMON_ANCESTOR",
                hint="begin the branch from the target branch",
            )
        raise git_failed(("merge-tree",), found)
    paths = tuple(dict.fromkeys(part.strip("\n") for part in parts[1:]))
    return Clash(paths=paths, tree=parts[0].strip())


def blob_at(home: Checkout, commit: str, path: str) -> bytes | None:
    """The content of a file in a commit; nothing when it is not there or no file."""
    found = run_in(home, "cat-file", "blob", f"{commit}:{path}")
    return None if found.exit_code else found.text.encode("utf-8", "surrogateescape")


def changed_between(home: Checkout, one: str, other: str) -> list[str]:
    """Every path that differs between two commits or trees, both ends of a rename."""
    found = run_in(home, "diff-tree", "-r", "-z", "--name-only", "--no-renames", one, other)
    if found.exit_code:
        raise git_failed(("diff-tree",), found)
    return [path for path in found.text.split("\0") if path]


def with_contents(home: Checkout, tree: str, contents: Mapping[str, bytes | None]) -> str:
    """The tree with these files in it, or without those that are nothing; modes stay as they are.

    Raises:
        RepositoryError: git refuses.
    """
    if not contents:
        return tree
    with tempfile.TemporaryDirectory(prefix="interlock-tree-") as folder:
        variables = {"GIT_INDEX_FILE": os.path.join(folder, "index")}

        def run(*words: str, stdin: bytes | None = None) -> str:
            found = run_in(home, *words, stdin=stdin, variables=variables)
            if found.exit_code:
                raise git_failed(words, found)
            return found.text

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


def commit_of(home: Checkout, tree: str, parents: Sequence[str], message: str, author_of: str = "") -> str:
    """A commit of a tree, by the author of another commit if there is one; signed if the user signs.

    Raises:
        RepositoryError: git refuses.
    """
    words = ["commit-tree", tree]
    for parent in parents:
        words += ["-p", parent]
    if ask(home, "config", "--type=bool", "commit.gpgSign") == "true":
        words.append("-S")
    variables = identity(home)
    if author_of:
        shown = ask(home, "show", "-s", "--format=%an%x00%ae%x00%aI", author_of).split("\0")
        if len(shown) == 3:
            names = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE")
            variables = {**variables, **dict(zip(names, shown, strict=True))}
    found = run_in(
        home, *words, "-F", "-", stdin=message.encode("utf-8", "surrogateescape"), variables=variables
    )
    if found.exit_code:
        raise git_failed(words, found)
    return found.text.strip()


def identity(home: Checkout) -> dict[str, str]:
    """Who commits: the user of this repository, or we where git knows nobody."""
    has_name = bool(ask(home, "config", "user.name") or os.environ.get("GIT_COMMITTER_NAME"))
    has_mail = bool(ask(home, "config", "user.email") or os.environ.get("GIT_COMMITTER_EMAIL"))
    return {} if has_name and has_mail else dict(_FALLBACK)


def own_commits(home: Checkout, base: str, head: str) -> list[str]:
    """The commits of a branch's own, oldest first, without merges."""
    return ask(home, "rev-list", "--reverse", "--topo-order", "--no-merges", f"{base}..{head}").splitlines()


def replay(home: Checkout, tip: str, commits: Sequence[str], message_of: Callable[[str], str]) -> str | Clash:
    """Each of these commits anew on top of a tip; the last of them, or what clashes.

    Raises:
        RepositoryError: git refuses.
    """
    for commit in commits:
        parent = ask(home, "rev-parse", "--verify", "--quiet", f"{commit}^1")
        tried = _pick(home, parent, tip, commit)
        if isinstance(tried, Clash):
            return tried
        if tried.tree == told(home, "rev-parse", f"{tip}^{{tree}}"):
            continue  # it is there already
        tip = commit_of(home, tried.tree, [tip], message_of(commit), author_of=commit)
    return tip


def _pick(home: Checkout, base: str, ours: str, theirs: str) -> Tried | Clash:
    """A three-way merge with a base of our choice: both sides are told to come from it."""
    if not base:
        return try_merge(home, ours, theirs)
    sides = [
        commit_of(home, told(home, "rev-parse", f"{side}^{{tree}}"), [base], "side")
        for side in (ours, theirs)
    ]
    return try_merge(home, sides[0], sides[1])


def message_of(home: Checkout, commit: str) -> str:
    """The whole message of a commit."""
    return ask(home, "show", "-s", "--format=%B", commit)


def trailers_of(home: Checkout, commits: Sequence[str]) -> list[str]:
    """The trailers of these commits, each once, in their order."""
    if not commits:
        return []
    form = "--format=%(trailers:only,unfold)"
    found = ask(home, "show", "-s", form, *commits)
    return list(dict.fromkeys(line for line in found.splitlines() if line.strip()))
