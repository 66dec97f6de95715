"""Decide how far a git command reaches: nowhere, the paths it names, or the work of all in the checkout.

Where a word could be a branch or a path, the worse is assumed. No file is read. A verb that is neither one of
git's nor an alias counts as safe.
"""

from __future__ import annotations

from enum import StrEnum

from landlane.hooks.git_command.arguments import (
    VerbArguments,
    fixed_prefix,
    matches_everything,
    parse_arguments,
    parse_globals,
    split_alias,
)
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MOST_ALIASES = 10
_WRITING = """
    add am apply bisect branch checkout checkout-index cherry-pick clean commit config fetch
    filter-branch gc maintenance merge mv notes pack-refs prune pull read-tree rebase reflog remote repack
    replace reset restore revert rm sparse-checkout stage stash submodule switch symbolic-ref tag
    update-index update-ref worktree
"""
_SHARED = "branch config filter-branch filter-repo gc prune push reflog repack stash update-ref worktree"
# Verbs that write where others may write at the same moment: the index, refs, the settings, worktrees.
_RACY_VERBS = frozenset(_WRITING.split())
# Verbs whose whole-tree forms affect all checkouts: they share refs, objects, the stash and settings.
_REPOSITORY_VERBS = frozenset(_SHARED.split())
# Settings that apply to all worktrees at once.
_SHARED_SETTINGS = ("core.bare", "core.worktree", "core.hookspath")


class Reach(StrEnum):
    """How far a git command reaches."""

    SAFE = "safe"
    SCOPED = "scoped"  # only the paths that it names
    WHOLE_TREE = "whole-tree"


@value
class GitReach:
    """How far a git command reaches. The `paths` of a scoped one are relative to `folders` (git's -C)."""

    reach: Reach
    verb: str = ""
    why: str = ""
    scoped_form: str = ""
    paths: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    work_tree: str = ""

    @property
    def is_racy(self) -> bool:
        """Whether two such commands at once can get in each other's way."""
        return self.verb in _RACY_VERBS

    @property
    def hits_repository(self) -> bool:
        """Whether it affects all worktrees of the repository."""
        return self.reach == Reach.WHOLE_TREE and self.verb in _REPOSITORY_VERBS


def judge_git(words: Sequence[str], alias_of: Callable[[str], str] = lambda _: "") -> GitReach:
    """Return how far a git call reaches, by the words after `git`; `alias_of` expands an alias."""
    given = parse_globals(words)
    folders, work_tree, rest = given.folders, given.work_tree, given.rest
    for _ in range(_MOST_ALIASES):
        verb = rest[0] if rest else ""
        if not verb or verb.startswith("-") or verb in _KNOWN_VERBS:
            break
        expansion = given.aliases.get(verb.lower()) or alias_of(verb)
        if not expansion:
            break
        if expansion.startswith("!"):
            why = f"{verb} is an alias for a line of shell, which is not looked into"
            found = _whole(why, "run the git commands of it one by one")
            return replace(found, verb=verb, folders=folders)
        more = parse_globals([*split_alias(expansion), *rest[1:]])
        folders, work_tree, rest = (*folders, *more.folders), more.work_tree or work_tree, more.rest
    verb = rest[0] if rest else ""
    return replace(_judge_verb(verb, rest[1:]), verb=verb, folders=folders, work_tree=work_tree)


def _judge_verb(verb: str, words: list[str]) -> GitReach:
    rule = _RULES.get(verb)
    if rule is None or words[:1] in (["--help"], ["-h"]):
        return _SAFE
    return rule(parse_arguments(words, _VALUE_OPTIONS.get(verb, "")))


_SAFE = GitReach(reach=Reach.SAFE)


def _whole(why: str, scoped_form: str) -> GitReach:
    return GitReach(reach=Reach.WHOLE_TREE, why=why, scoped_form=scoped_form)


def _by_paths(paths: tuple[str, ...], why: str, scoped_form: str) -> GitReach:
    """Return the reach of a verb that is limited to the paths it names, unless one matches everything."""
    if any(matches_everything(path) for path in paths):
        return _whole(why, scoped_form)
    return GitReach(reach=Reach.SCOPED, paths=tuple(fixed_prefix(path) for path in paths))


@value
class _TreeRule:
    """A verb that affects the whole tree, unless its options or its first word show that it does not."""

    why: str
    scoped_form: str
    safe_with: str = ""  # options with which it changes nothing
    safe_words: tuple[str, ...] = ()  # first words with which it changes nothing
    only_with: str = ""  # options without which it is safe

    def __call__(self, call: VerbArguments) -> GitReach:
        is_harmless = bool(self.only_with) and not call.has(self.only_with)
        if is_harmless or call.has(self.safe_with) or call.first in self.safe_words:
            return _SAFE
        return _whole(self.why, self.scoped_form)


@value
class _PathRule:
    """A verb that is limited to the paths it names."""

    why: str
    scoped_form: str
    safe_with: str = ""  # options with which it changes nothing
    whole_with: str = ""  # options with which it affects the whole tree, whatever it names
    needs_paths: bool = False  # without paths it affects the whole tree

    def __call__(self, call: VerbArguments) -> GitReach:
        if call.has(self.safe_with):
            return _SAFE
        if call.has(self.whole_with):
            return _whole(self.why, self.scoped_form)
        if call.paths:
            return _by_paths(call.paths, self.why, self.scoped_form)
        return _whole(self.why, self.scoped_form) if self.needs_paths else _SAFE


_RESTORE = "git restore -- PATH…"
_COMMIT = "landlane commit -m MESSAGE PATH…"
_OWN = "landlane workspace open TASK"
_LAND = "landlane land, or do it in a workspace of your own: landlane workspace open TASK"
_TAKES_BACK = "it reverts the changes of all sessions"
_PRUNING = "it removes objects that others borrow or have not committed yet"


def _judge_checkout(call: VerbArguments) -> GitReach:
    if not call.has("b B t d l orphan detach track pathspec-from-file guess"):
        if call.has_dashes and call.after_dashes:
            return _by_paths(call.after_dashes, _TAKES_BACK, _RESTORE)
        if len(call.plain) > 1:
            return _by_paths(call.plain, _TAKES_BACK, _RESTORE)
        if not call.plain and not call.has("f m p force merge patch"):
            return _SAFE
    why = "it moves the checkout to another commit for all sessions in it"
    return _whole(why, f"for a branch of your own: {_OWN}; for files: {_RESTORE}")


def _judge_reset(call: VerbArguments) -> GitReach:
    why = "it resets the index and the files of all sessions"
    form = f"{_RESTORE}, or git reset -- PATH…"
    paths = call.after_dashes if call.has_dashes else call.plain if len(call.plain) > 1 else ()
    if not paths or call.has("N p hard merge keep soft mixed patch pathspec-from-file"):
        return _whole(why, form)
    return _by_paths(paths, why, form)


def _judge_add(call: VerbArguments) -> GitReach:
    if call.has("n dry-run refresh"):
        return _SAFE
    why = "it stages the changes of all sessions"
    form = f"git add -- PATH…, or {_COMMIT}"
    if call.paths and not call.has("pathspec-from-file"):
        return _by_paths(call.paths, why, form)
    takes_all = call.has("A u i p e all update interactive patch edit pathspec-from-file renormalize")
    return _whole(why, form) if takes_all else _SAFE


def _judge_rm(call: VerbArguments) -> GitReach:
    form = "git rm -- PATH…"
    if call.has("pathspec-from-file") and not call.has("n dry-run"):
        return _whole("the paths are in a file, which is not looked into", form)
    return _PathRule(why="it deletes the files of all sessions", scoped_form=form, safe_with="n dry-run")(
        call
    )


def _judge_apply(call: VerbArguments) -> GitReach:
    if call.has("stat numstat summary check") and not call.has("apply"):
        return _SAFE
    return _whole("the patch says which files it changes, and it is not looked into", _OWN)


def _judge_push(call: VerbArguments) -> GitReach:
    refs = call.paths[1:]
    is_forced = call.has("f force force-with-lease force-if-includes mirror prune")
    if is_forced or any(ref.startswith("+") for ref in refs):
        why = "it takes commits away from a branch that others build on"
        return _whole(why, "git push without force, or landlane land")
    if call.has("d delete") or any(ref.startswith(":") and len(ref) > 1 for ref in refs):
        return _whole("it deletes a branch that others may build on", "git push REMOTE BRANCH")
    return _SAFE


def _judge_branch(call: VerbArguments) -> GitReach:
    if call.has("D f force"):
        why = "it drops commits that may be on no other branch"
        return _whole(why, "git branch -d NAME, which keeps what is unmerged")
    if call.has("m M C move"):
        return _whole("it renames a branch that others may be on", "git branch NEW, or git branch -c OLD NEW")
    return _SAFE


def _judge_worktree(call: VerbArguments) -> GitReach:
    if call.first == "remove" and call.has("f force"):
        return _whole("it deletes a checkout with all changes in it", "landlane workspace close WORKSPACE")
    if call.first == "prune" and not call.has("n dry-run"):
        return _whole("it forgets worktrees whose drive is only away", "landlane doctor --fix")
    return _SAFE


def _judge_repack(call: VerbArguments) -> GitReach:
    drops = call.has("a") and call.has("d") and not call.has("A k keep-unreachable")
    return _whole(_PRUNING, "git repack -A -d") if drops else _SAFE


def _judge_reflog(call: VerbArguments) -> GitReach:
    if call.first in ("expire", "delete") and not call.has("n dry-run"):
        return _whole("it forgets commits by which lost work could be found", "git reflog show")
    return _SAFE


def _judge_update_ref(call: VerbArguments) -> GitReach:
    if call.has("stdin") or call.first == "HEAD" or call.first.startswith("refs/heads/"):
        return _whole("it moves a branch that other sessions are on", f"{_COMMIT}, or landlane land")
    return _SAFE


def _judge_symbolic_ref(call: VerbArguments) -> GitReach:
    is_written = len(call.plain) > 1 or call.has("d delete")
    return _whole("it moves the checkout of all sessions to another branch", _OWN) if is_written else _SAFE


def _judge_index(call: VerbArguments) -> GitReach:
    if call.has("a all stdin index-info"):
        return _whole("it rewrites the index, or the files, of all sessions", _RESTORE)
    return _by_paths(call.paths, "it rewrites the index of all sessions", _RESTORE) if call.paths else _SAFE


def _judge_config(call: VerbArguments) -> GitReach:
    if call.has("l get get-all get-regexp list global system worktree"):
        return _SAFE
    words = call.plain[1:] if call.first in ("set", "unset") else call.plain
    is_written = len(words) > 1 or words != call.plain or call.has("unset unset-all")
    if is_written and words and words[0].lower() in _SHARED_SETTINGS:
        form = f"git -c {words[0]}=VALUE …, for one command"
        return _whole("all worktrees obey this setting at once", form)
    return _SAFE


def _changes_files(*safe_words: str) -> _TreeRule:
    return _TreeRule(why="it changes files all over the checkout", scoped_form=_OWN, safe_words=safe_words)


_MERGE = _TreeRule(
    why="it changes files all over the checkout, and the branch of all sessions in it", scoped_form=_LAND
)
_REWRITE = _TreeRule(why="it rewrites history that others build on", scoped_form=_OWN)

_RULES: dict[str, Callable[[VerbArguments], GitReach]] = {
    "add": _judge_add,
    "stage": _judge_add,
    "checkout": _judge_checkout,
    "switch": _TreeRule(
        why="it moves the checkout to another branch for all sessions in it", scoped_form=_OWN
    ),
    "restore": _PathRule(why=_TAKES_BACK, scoped_form=_RESTORE, whole_with="p patch pathspec-from-file"),
    "reset": _judge_reset,
    "clean": _PathRule(
        why="it deletes the new files of all sessions",
        scoped_form="git clean -f -- PATH…",
        safe_with="n dry-run",
        needs_paths=True,
    ),
    "stash": _TreeRule(
        why="all worktrees share one stash, and it takes the changes of all sessions",
        scoped_form="landlane stash save",
        safe_words=("list", "show", "create"),
    ),
    "commit": _PathRule(
        why="it commits what others have staged or changed, or takes their last commit",
        scoped_form=_COMMIT,
        safe_with="dry-run",
        whole_with="a i p amend all include interactive patch pathspec-from-file",
        needs_paths=True,
    ),
    "rm": _judge_rm,
    "mv": _PathRule(
        why="it moves the files of all sessions", scoped_form="git mv -- PATH TO", safe_with="n dry-run"
    ),
    **dict.fromkeys(("merge", "rebase", "pull", "cherry-pick", "revert", "am"), _MERGE),
    "apply": _judge_apply,
    "push": _judge_push,
    "branch": _judge_branch,
    "worktree": _judge_worktree,
    "gc": _TreeRule(why=_PRUNING, scoped_form="git gc --no-prune", only_with="prune"),
    "prune": _TreeRule(why=_PRUNING, scoped_form="git gc --no-prune", safe_with="n dry-run"),
    "repack": _judge_repack,
    "reflog": _judge_reflog,
    "update-ref": _judge_update_ref,
    "symbolic-ref": _judge_symbolic_ref,
    "read-tree": _TreeRule(
        why="it replaces the index of all sessions", scoped_form=_RESTORE, safe_with="n dry-run index-output"
    ),
    "checkout-index": _judge_index,
    "update-index": _judge_index,
    "filter-branch": _REWRITE,
    "filter-repo": _REWRITE,
    "bisect": _changes_files("log", "view", "visualize", "terms"),
    "submodule": _changes_files("", "status", "summary"),
    "sparse-checkout": _changes_files("list", "check-rules"),
    "config": _judge_config,
}

# The options of these verbs that take the next word, so that it is not read as a path.
_VALUE_OPTIONS = {
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

# An alias cannot replace a verb of git.
_KNOWN_VERBS = (
    _RACY_VERBS
    | frozenset(_RULES)
    | frozenset(("blame", "clone", "diff", "grep", "init", "log", "show", "status"))
)
