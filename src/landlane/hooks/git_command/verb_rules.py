"""How far a git command reaches: nowhere, to the paths it names, or to the work of everybody in the checkout.

Where a word could be a branch or a path, the worse is assumed. No file is asked; a verb that git itself does
not have, and that is no alias, counts as safe.
"""

from __future__ import annotations

from landlane.hooks.git_command.arguments import Call, covers_all, reach, read_call, read_globals, split_line
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SAFE = "safe"
SCOPED = "scoped"
WHOLE_TREE = "whole-tree"

_MOST_ALIASES = 10
_LISTED = """
    add am apply bisect branch checkout checkout-index cherry-pick clean commit config fetch
    filter-branch gc maintenance merge mv notes pack-refs prune pull read-tree rebase reflog remote repack
    replace reset restore revert rm sparse-checkout stage stash submodule switch symbolic-ref tag
    update-index update-ref worktree
"""
_SHARED = "branch config filter-branch filter-repo gc prune push reflog repack stash update-ref worktree"
# Verbs that write where others may write at the same moment: the index, refs, the settings, worktrees.
RACY = frozenset(_LISTED.split())
# Verbs whose whole-tree forms reach beyond one checkout, to all that share refs, objects, stash and settings.
_FOR_ALL = frozenset(_SHARED.split())


@value
class Verdict:
    """How far a git command reaches. `paths` are what a scoped one names, seen from `folders` (git's -C)."""

    kind: str
    verb: str = ""
    why: str = ""
    scoped_form: str = ""
    paths: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    work_tree: str = ""

    @property
    def is_racy(self) -> bool:
        """Whether two of its kind at once can get in each other's way."""
        return self.verb in RACY

    @property
    def hits_repository(self) -> bool:
        """Whether it reaches everybody in the repository, in whatever worktree."""
        return self.kind == WHOLE_TREE and self.verb in _FOR_ALL


def judge_git(words: Sequence[str], alias_of: Callable[[str], str] = lambda _: "") -> Verdict:
    """How far a call of git reaches, by the words behind `git`; `alias_of` tells what a verb stands for."""
    folders, work_tree, own_aliases, rest = read_globals(words)
    for _ in range(_MOST_ALIASES):
        verb = rest[0] if rest else ""
        if not verb or verb.startswith("-") or verb in _KNOWN:
            break
        meant = own_aliases.get(verb.lower()) or alias_of(verb)
        if not meant:
            break
        if meant.startswith("!"):
            why = f"{verb} is an alias for a line of shell, which is not looked into"
            form = "run the git commands of it one by one"
            return Verdict(kind=WHOLE_TREE, verb=verb, why=why, scoped_form=form, folders=folders)
        rest = [*split_line(meant), *rest[1:]]
        more = read_globals(rest)
        folders, work_tree, rest = (*folders, *more[0]), more[1] or work_tree, more[3]
    verb = rest[0] if rest else ""
    kind, why, form, paths = _judge_verb(verb, rest[1:])
    return Verdict(
        kind=kind, verb=verb, why=why, scoped_form=form, paths=paths, folders=folders, work_tree=work_tree
    )


_Judged = tuple[str, str, str, tuple[str, ...]]
_NOTHING: _Judged = (SAFE, "", "", ())


def _whole(why: str, form: str) -> _Judged:
    return WHOLE_TREE, why, form, ()


def _judge_verb(verb: str, words: list[str]) -> _Judged:
    if words[:1] in (["--help"], ["-h"]):
        return _NOTHING
    rule = _RULES.get(verb)
    return rule(read_call(words, _VALUES.get(verb, ""))) if rule else _NOTHING


def _by_paths(paths: tuple[str, ...], why: str, form: str) -> _Judged:
    """Scoped to the paths it names, unless one of them is everything."""
    if any(covers_all(path) for path in paths):
        return _whole(why, form)
    return SCOPED, "", "", tuple(reach(path) for path in paths)


_RESTORE = "git restore -- PATH…"
_COMMIT = "landlane commit -m MESSAGE PATH…"
_OWN = "landlane workspace open TASK, and do it there"
_LAND = "landlane land, or do it in a workspace of your own: landlane workspace open TASK"


def _judge_checkout(call: Call) -> _Judged:
    why = "it moves the whole checkout to another commit, under everybody who works in it"
    form = f"for a branch of your own: {_OWN}; for files: {_RESTORE}"
    if call.has("bBtdl", "orphan", "detach", "track", "pathspec-from-file", "guess"):
        return _whole(why, form)
    if call.has_dashes and call.behind:
        return _by_paths(call.behind, "it takes back the changes of everybody", _RESTORE)
    if len(call.plain) > 1:
        return _by_paths(call.plain, "it takes back the changes of everybody", _RESTORE)
    if not call.plain:
        return _whole(why, form) if call.has("fmp", "force", "merge", "patch") else _NOTHING
    return _whole(why, form)


def _judge_switch(call: Call) -> _Judged:
    return _whole("it moves the whole checkout to another branch, under everybody who works in it", _OWN)


def _judge_restore(call: Call) -> _Judged:
    why = "it takes back the changes of everybody"
    if call.has("p", "patch", "pathspec-from-file"):
        return _whole(why, _RESTORE)
    return _by_paths(call.paths, why, _RESTORE) if call.paths else _NOTHING


def _judge_reset(call: Call) -> _Judged:
    why = "it resets the index and the files of everybody"
    form = f"{_RESTORE}, or git reset -- PATH…"
    if call.has("Np", "hard", "merge", "keep", "soft", "mixed", "patch", "pathspec-from-file"):
        return _whole(why, form)
    paths = call.behind if call.has_dashes else call.plain if len(call.plain) > 1 else ()
    return _by_paths(paths, why, form) if paths else _whole(why, form)


def _judge_clean(call: Call) -> _Judged:
    if call.has("n", "dry-run"):
        return _NOTHING
    why = "it deletes the new files of everybody"
    form = "git clean -f -- PATH…"
    return _by_paths(call.paths, why, form) if call.paths else _whole(why, form)


def _judge_stash(call: Call) -> _Judged:
    verb = call.plain[0] if call.plain else "push"
    if verb in ("list", "show", "create"):
        return _NOTHING
    why = "all worktrees share one stash, and it takes the changes of everybody"
    return _whole(why, "landlane stash save")


def _judge_add(call: Call) -> _Judged:
    if call.has("n", "dry-run", "refresh"):
        return _NOTHING
    why = "it stages the changes of everybody"
    form = f"git add -- PATH…, or {_COMMIT}"
    if call.paths and not call.has("", "pathspec-from-file"):
        return _by_paths(call.paths, why, form)
    takes_all = call.has("Auipe", "all", "update", "interactive", "patch", "edit", "pathspec-from-file")
    return _whole(why, form) if takes_all or call.has("", "renormalize") else _NOTHING


def _judge_commit(call: Call) -> _Judged:
    if call.has("", "dry-run"):
        return _NOTHING
    why = "it commits what others have staged or changed, or takes their last commit"
    takes_more = call.has("aip", "amend", "all", "include", "interactive", "patch", "pathspec-from-file")
    if takes_more or not call.paths:
        return _whole(why, _COMMIT)
    return _by_paths(call.paths, why, _COMMIT)


def _judge_rm(call: Call) -> _Judged:
    if call.has("n", "dry-run"):
        return _NOTHING
    form = "git rm -- PATH…"
    if call.has("", "pathspec-from-file"):
        return _whole("the paths are in a file, which is not looked into", form)
    return _by_paths(call.paths, "it deletes the files of everybody", form) if call.paths else _NOTHING


def _judge_mv(call: Call) -> _Judged:
    if call.has("n", "dry-run") or not call.paths:
        return _NOTHING
    return _by_paths(call.paths, "it moves the files of everybody", "git mv -- PATH TO")


def _judge_merging(call: Call) -> _Judged:
    return _whole("it changes files all over the checkout, and the branch of everybody in it", _LAND)


def _judge_apply(call: Call) -> _Judged:
    if call.has("", "stat", "numstat", "summary", "check") and not call.has("", "apply"):
        return _NOTHING
    return _whole("the patch says which files it changes, and it is not looked into", _OWN)


def _judge_push(call: Call) -> _Judged:
    refs = call.paths[1:]
    is_forced = call.has("f", "force", "force-with-lease", "force-if-includes", "mirror", "prune")
    if is_forced or any(ref.startswith("+") for ref in refs):
        why = "it takes commits away from a branch that others build on"
        return _whole(why, "git push without force, or landlane land")
    if call.has("d", "delete") or any(ref.startswith(":") and len(ref) > 1 for ref in refs):
        return _whole("it deletes a branch that others may build on", "git push REMOTE BRANCH")
    return _NOTHING


def _judge_branch(call: Call) -> _Judged:
    if call.has("Df", "force"):
        why = "it drops commits that may be on no other branch"
        return _whole(why, "git branch -d NAME, which keeps what is unmerged")
    if call.has("mMC", "move"):
        return _whole("it renames a branch that others may be on", "git branch NEW, or git branch -c OLD NEW")
    return _NOTHING


def _judge_worktree(call: Call) -> _Judged:
    verb = call.plain[0] if call.plain else ""
    if verb == "remove" and call.has("f", "force"):
        return _whole("it deletes a checkout with all changes in it", "landlane workspace close WORKSPACE")
    if verb == "prune" and not call.has("n", "dry-run"):
        return _whole("it forgets worktrees whose drive is only away", "landlane doctor --fix")
    return _NOTHING


_PRUNING = "it removes objects that others borrow or have not committed yet"


def _judge_gc(call: Call) -> _Judged:
    return _whole(_PRUNING, "git gc --no-prune") if call.has("", "prune") else _NOTHING


def _judge_prune(call: Call) -> _Judged:
    return _NOTHING if call.has("n", "dry-run") else _whole(_PRUNING, "git gc --no-prune")


def _judge_repack(call: Call) -> _Judged:
    drops = call.has("a") and call.has("d") and not call.has("Ak", "keep-unreachable")
    return _whole(_PRUNING, "git repack -A -d") if drops else _NOTHING


def _judge_reflog(call: Call) -> _Judged:
    if call.plain[:1] in (("expire",), ("delete",)) and not call.has("n", "dry-run"):
        return _whole("it forgets commits by which lost work could be found", "git reflog show")
    return _NOTHING


def _judge_ref(call: Call) -> _Judged:
    name = call.plain[0] if call.plain else ""
    if call.has("", "stdin") or name == "HEAD" or name.startswith("refs/heads/"):
        return _whole("it moves a branch under everybody who is on it", f"{_COMMIT}, or landlane land")
    return _NOTHING


def _judge_symbolic_ref(call: Call) -> _Judged:
    is_written = len(call.plain) > 1 or call.has("d", "delete")
    return _whole("it moves the checkout of everybody to another branch", _OWN) if is_written else _NOTHING


def _judge_read_tree(call: Call) -> _Judged:
    if call.has("n", "dry-run", "index-output"):
        return _NOTHING
    return _whole("it replaces the index of everybody", _RESTORE)


def _judge_index(call: Call) -> _Judged:
    if call.has("a", "all", "stdin", "index-info"):
        return _whole("it rewrites the index, or the files, of everybody", _RESTORE)
    return _by_paths(call.paths, "it rewrites the index of everybody", _RESTORE) if call.paths else _NOTHING


def _judge_rewriting(call: Call) -> _Judged:
    return _whole("it rewrites history that others build on", _OWN)


def _judge_looking(*looks: str) -> Callable[[Call], _Judged]:
    """Verbs that change the whole checkout, unless their first word is one of those that only look."""

    def judge(call: Call) -> _Judged:
        if (call.plain[0] if call.plain else "") in looks:
            return _NOTHING
        return _whole("it changes files all over the checkout", _OWN)

    return judge


# Settings that every worktree obeys at once.
SHARED_SETTINGS = ("core.bare", "core.worktree", "core.hookspath")


def _judge_config(call: Call) -> _Judged:
    if call.has("l", "get", "get-all", "get-regexp", "list", "global", "system", "worktree"):
        return _NOTHING
    words = call.plain[1:] if call.plain[:1] in (("set",), ("unset",)) else call.plain
    is_written = len(words) > 1 or words != call.plain or call.has("", "unset", "unset-all")
    if is_written and words and words[0].lower() in SHARED_SETTINGS:
        form = f"git -c {words[0]}=VALUE …, for one command"
        return _whole("all worktrees obey this setting at once", form)
    return _NOTHING


_RULES: dict[str, Callable[[Call], _Judged]] = {
    "add": _judge_add,
    "stage": _judge_add,
    "checkout": _judge_checkout,
    "switch": _judge_switch,
    "restore": _judge_restore,
    "reset": _judge_reset,
    "clean": _judge_clean,
    "stash": _judge_stash,
    "commit": _judge_commit,
    "rm": _judge_rm,
    "mv": _judge_mv,
    **dict.fromkeys(("merge", "rebase", "pull", "cherry-pick", "revert", "am"), _judge_merging),
    "apply": _judge_apply,
    "push": _judge_push,
    "branch": _judge_branch,
    "worktree": _judge_worktree,
    "gc": _judge_gc,
    "prune": _judge_prune,
    "repack": _judge_repack,
    "reflog": _judge_reflog,
    "update-ref": _judge_ref,
    "symbolic-ref": _judge_symbolic_ref,
    "read-tree": _judge_read_tree,
    "checkout-index": _judge_index,
    "update-index": _judge_index,
    "filter-branch": _judge_rewriting,
    "filter-repo": _judge_rewriting,
    "bisect": _judge_looking("log", "view", "visualize", "terms"),
    "submodule": _judge_looking("", "status", "summary"),
    "sparse-checkout": _judge_looking("list", "check-rules"),
    "config": _judge_config,
}

# The options of these verbs that take the next word, so that it is not read as a path.
_VALUES = {
    "checkout": "-b -B --orphan --conflict --pathspec-from-file",
    "restore": "-s --source --conflict --pathspec-from-file",
    "reset": "--pathspec-from-file",
    "clean": "-e --exclude",
    "stash": "-m --message --pathspec-from-file",
    "add": "--chmod --pathspec-from-file",
    "stage": "--chmod --pathspec-from-file",
    "commit": (
        "-m -F -C -c -t --message --file --author --date --reuse-message --reedit-message --fixup --squash"
        " --template --cleanup --trailer --pathspec-from-file"
    ),
    "rm": "--pathspec-from-file",
    "push": "-o --push-option --repo --receive-pack --exec",
    "branch": "-u --set-upstream-to --sort --format --points-at",
    "worktree": "-b -B --reason --expire",
    "prune": "--expire",
    "reflog": "--expire --expire-unreachable",
    "update-ref": "-m",
    "symbolic-ref": "-m",
    "read-tree": "--prefix --index-output --exclude-per-directory",
    "checkout-index": "--prefix --stage",
    "update-index": "--cacheinfo --chmod --index-version",
    "config": "-f --file --blob --type --default",
}

# An alias cannot stand for a verb that git has.
_KNOWN = (
    RACY | frozenset(_RULES) | frozenset(("blame", "clone", "diff", "grep", "init", "log", "show", "status"))
)
