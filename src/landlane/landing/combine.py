"""Merge one entry onto the target branch as git objects, without a checkout."""

from __future__ import annotations

from landlane.git import trial_merge as trials
from landlane.git.commits import merge_base
from landlane.git.trial_merge import Author, Committer, MergeConflict
from landlane.landing.model import REBASE, SQUASH
from landlane.merge.merge_file import merge_file
from landlane.merge.model import Merged, MergeKind, Regenerate
from landlane.values import as_dict, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from landlane.landing.model import Landing
    from landlane.repository import Repository
    from landlane.settings.model import MergeFile, Settings

    # (tree, path, command) → the content that the command generates, or an error text
    Regenerator = Callable[[str, str, str], bytes | str]


@value
class MergeOptions:
    """How the entries of one round are merged."""

    settings: Settings
    committer: Committer
    regenerate: Regenerator


@value
class Candidate:
    """A commit with one entry merged onto `before`."""

    landing: Landing
    before: str
    commit: str
    tree: str
    notes: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the target already contains all of it."""
        return self.commit == self.before


def merge_options(repo: Repository, settings: Settings, regenerate: Regenerator) -> MergeOptions:
    """Return the merge options of a round."""
    return MergeOptions(settings=settings, committer=trials.find_committer(repo.home), regenerate=regenerate)


def merge_rule_for(repo: Repository, settings: Settings, path: str) -> MergeFile | None:
    """Return how a path is merged: by the last pattern that matches; None if it is not mergeable."""
    files = settings.landing.merge.files
    return files.get(repo.git.find_glob(list(files)[::-1], path))


def merge_entry(
    repo: Repository, options: MergeOptions, tip: str, landing: Landing
) -> Candidate | MergeConflict:
    """Merge an entry onto a tip, or return the conflict.

    Raises:
        RepositoryError: the two have no common ancestor, or git fails.
    """
    home = repo.home
    merged = trials.try_merge(home, tip, landing.head)
    files = merge_files_by_kind(repo, options.settings, tip, landing.head, landing.paths)
    if isinstance(merged, MergeConflict):
        clash = files if isinstance(files, MergeConflict) else None
        solved = {} if isinstance(files, MergeConflict) else files.contents
        left = tuple(path for path in merged.paths if path not in solved)
        if left or clash:
            paths = left or (clash.paths if clash else ())
            return MergeConflict(paths=paths, reasons=clash.reasons if clash else ())
    if isinstance(files, MergeConflict):
        return files
    tree = trials.replace_files(home, merged.tree, files.contents)
    for path, command in files.generated.items():
        content = options.regenerate(tree, path, command)
        if isinstance(content, str):
            return MergeConflict(paths=(path,), reasons=(f"{path} cannot be generated: {content}",))
        tree = trials.replace_files(home, tree, {path: content})
    if tree == trials.tree_of(home, tip):
        return Candidate(landing=landing, before=tip, commit=tip, tree=tree, notes=("it is there already",))
    return _commit(repo, options, tip, landing, tree, tuple(files.notes))


@value
class MergedFiles:
    """Mergeable files that both sides changed: their contents, and the commands of generated ones."""

    contents: dict[str, bytes | None]
    generated: dict[str, str]
    notes: list[str]


def merge_files_by_kind(
    repo: Repository, settings: Settings, tip: str, head: str, paths: Sequence[str]
) -> MergedFiles | MergeConflict:
    """Merge the mergeable files that both sides changed; git alone would drop one of two equal changes."""
    contents: dict[str, bytes | None] = {}
    generated: dict[str, str] = {}
    notes: list[str] = []
    mergeable = [(path, rule) for path in paths if (rule := merge_rule_for(repo, settings, path))]
    base = merge_base(repo.home, tip, head) if mergeable else ""
    for path, rule in mergeable:
        before, ours, theirs = (trials.read_blob(repo.home, commit, path) for commit in (base, tip, head))
        kind = MergeKind(rule.kind)
        if before == ours and kind != MergeKind.GENERATED:
            continue
        outcome = merge_file(kind, before, ours, theirs, path, as_dict(rule))
        if isinstance(outcome, Merged):
            contents[path] = outcome.content
            notes += outcome.notes
        elif isinstance(outcome, Regenerate):
            contents[path] = outcome.provisional
            generated[path] = rule.command
        else:
            reasons = (f"{path}: {outcome.reason}", *outcome.details)
            return MergeConflict(paths=(path,), reasons=reasons)
    return MergedFiles(contents=contents, generated=generated, notes=notes)


def _commit(
    repo: Repository, options: MergeOptions, tip: str, landing: Landing, tree: str, notes: tuple[str, ...]
) -> Candidate:
    home, style, committer = repo.home, options.settings.landing.style, options.committer
    if style not in (SQUASH, REBASE):
        message = _with_trailers(f"Land {landing.branch}: {landing.subject}", _own_trailers(landing))
        author = Author(**landing.author) if landing.author else trials.read_author(home, landing.head)
        commit = trials.create_commit(home, tree, [tip, landing.head], message, author, committer)
        return Candidate(landing=landing, before=tip, commit=commit, tree=tree, notes=notes)
    base = merge_base(home, tip, landing.head)
    own = trials.list_own_commits(home, base, landing.head)
    if style == REBASE:
        if base == tip and trials.tree_of(home, landing.head) == tree:
            return Candidate(landing=landing, before=tip, commit=landing.head, tree=tree, notes=notes)
        last = trials.replay(home, tip, own, committer)
        if isinstance(last, str) and trials.tree_of(home, last) == tree:
            return Candidate(landing=landing, before=tip, commit=last, tree=tree, notes=notes)
        notes = (*notes, "its commits could not be replayed one by one, so it landed as one")
    author = trials.read_author(home, landing.head)
    message = _squash_message(repo, landing, own, author)
    commit = trials.create_commit(home, tree, [tip], message, author, committer)
    return Candidate(landing=landing, before=tip, commit=commit, tree=tree, notes=notes)


def _own_trailers(landing: Landing) -> list[str]:
    values = {"Landing": landing.id, "Agent": landing.agent, "Session": landing.session, "Task": landing.task}
    return [f"Landlane-{name}: {text}" for name, text in values.items() if text]


def _squash_message(repo: Repository, landing: Landing, own: list[str], author: Author) -> str:
    """Return one message for all commits of a branch: their messages, co-authors, and each trailer once."""
    home = repo.home
    trailers = [*trials.list_trailers(home, own)]
    others = dict.fromkeys(
        f"Co-authored-by: {other.name} <{other.mail}>"
        for other in (trials.read_author(home, commit) for commit in own)
        if other.mail != author.mail
    )
    trailers += [line for line in (*others, *_own_trailers(landing)) if line not in trailers]
    messages = [_without_trailers(trials.read_message(home, commit), trailers) for commit in own]
    if len(messages) == 1:
        return _with_trailers(messages[0], trailers)
    listed = "\n".join(f"* {message.splitlines()[0]}" for message in messages if message)
    bodies = "\n\n".join(message for message in messages if len(message.splitlines()) > 1)
    text = "\n\n".join(part for part in (landing.subject or landing.branch, listed, bodies) if part)
    return _with_trailers(text, trailers)


def _without_trailers(message: str, trailers: list[str]) -> str:
    lines = message.rstrip().splitlines()
    while lines and (lines[-1] in trailers or not lines[-1].strip()):
        lines.pop()
    return "\n".join(lines)


def _with_trailers(message: str, trailers: list[str]) -> str:
    return message.rstrip() + "\n\n" + "\n".join(trailers) + "\n" if trailers else message.rstrip() + "\n"


def validators_for(repo: Repository, settings: Settings, paths: Sequence[str]) -> Mapping[str, str]:
    """Return the validation commands of the mergeable files among these paths."""
    rules = {path: merge_rule_for(repo, settings, path) for path in dict.fromkeys(paths)}
    return {path: rule.validate for path, rule in rules.items() if rule and rule.validate}
