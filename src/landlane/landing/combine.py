"""Compute the candidate: the target branch with one entry merged into it."""

from __future__ import annotations

from landlane.git import trial_merge as trials
from landlane.git.ancestry import merge_base
from landlane.git.trial_merge import Author, Committer, MergeConflict
from landlane.landing.model import REBASE, SQUASH
from landlane.merge.merge_file import merge_file
from landlane.merge.model import Merged, MergeRule, Regenerate, rule_for
from landlane.patterns.pattern import covers_alternative
from landlane.values import as_dict, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from landlane.landing.model import Landing
    from landlane.repository import Repository
    from landlane.settings.model import Settings

    # What a command makes of a file on a tree: (tree, path, command) → content, or what went wrong.
    Regenerator = Callable[[str, str, str], bytes | str]


@value
class Recipe:
    """By what entries are put onto the target, the same for a whole round."""

    settings: Settings
    classes: list[MergeRule]
    committer: Committer
    regenerate: Regenerator


@value
class Candidate:
    """The target as it would be, with one more entry on it."""

    landing: Landing
    before: str
    commit: str
    tree: str
    notes: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the target has all of it already."""
        return self.commit == self.before


def recipe_for(repo: Repository, settings: Settings, regenerate: Regenerator) -> Recipe:
    """What a round combines by: the target's settings, and who commits here."""
    return Recipe(
        settings=settings,
        classes=merge_rules(settings),
        committer=trials.find_committer(repo.home),
        regenerate=regenerate,
    )


def merge_rules(settings: Settings) -> list[MergeRule]:
    """Return how the settings say that files are merged, in their order."""
    return [
        MergeRule(
            pattern=pattern,
            kind=file.kind,
            options={name: text for name, text in as_dict(file).items() if text and name != "kind"},
        )
        for pattern, file in settings.landing.merge.files.items()
    ]


def merge_rule_for(repo: Repository, classes: list[MergeRule], path: str) -> MergeRule | None:
    """Return how a path is merged; None if it is not mergeable."""
    pattern_of = repo.git.pattern_of

    def is_match(pattern: str, wanted: str) -> bool:
        (branch,) = pattern_of(wanted, "literal").alternatives
        return any(covers_alternative(one, branch) for one in pattern_of(pattern, "glob").alternatives)

    return rule_for(path, classes, is_match) if classes else None


def combine(repo: Repository, recipe: Recipe, tip: str, landing: Landing) -> Candidate | MergeConflict:
    """Put an entry on a tip, or say what clashes.

    Raises:
        RepositoryError: the two have nothing in common, or git cannot do it.
    """
    home = repo.home
    tried = trials.try_merge(home, tip, landing.head)
    contents, generated, notes, clash = merge_files_by_kind(
        repo, recipe.classes, tip, landing.head, landing.paths
    )
    if isinstance(tried, MergeConflict):
        left = [path for path in tried.paths if path not in contents and path not in generated]
        if left or clash:
            return MergeConflict(
                paths=tuple(left) or (clash.paths if clash else ()), reasons=clash.reasons if clash else ()
            )
    elif clash:
        return clash
    tree = trials.replace_files(home, tried.tree, contents)
    for path, command in generated.items():
        made = recipe.regenerate(tree, path, command)
        if isinstance(made, str):
            return MergeConflict(paths=(path,), reasons=(f"{path} cannot be generated: {made}",))
        tree = trials.replace_files(home, tree, {path: made})
    if tree == trials.tree_of(home, tip):
        return Candidate(landing=landing, before=tip, commit=tip, tree=tree, notes=("it is there already",))
    return _commit(repo, recipe, tip, landing, tree, tuple(notes))


def merge_files_by_kind(
    repo: Repository, classes: list[MergeRule], tip: str, head: str, paths: Sequence[str]
) -> tuple[dict[str, bytes | None], dict[str, str], list[str], MergeConflict | None]:
    """What becomes of hot files that both sides changed; git alone would lose one of two equal changes.

    Tells the contents, the commands of those that have to be generated, notes, and what cannot be merged.
    """
    contents: dict[str, bytes | None] = {}
    generated: dict[str, str] = {}
    notes: list[str] = []
    hot = [(path, one) for path in paths if (one := merge_rule_for(repo, classes, path))]
    base = merge_base(repo.home, tip, head) if hot else ""
    for path, one in hot:
        before, ours, theirs = (trials.read_blob(repo.home, commit, path) for commit in (base, tip, head))
        if before == ours and one.kind != "generated":
            continue
        outcome = merge_file(one.kind, before, ours, theirs, path, one.options)
        if isinstance(outcome, Merged):
            contents[path] = outcome.content
            notes += outcome.notes
        elif isinstance(outcome, Regenerate):
            contents[path] = outcome.provisional
            generated[path] = str(one.options["command"])
        else:
            return (
                {},
                {},
                [],
                MergeConflict(paths=(path,), reasons=(f"{path}: {outcome.reason}", *outcome.details)),
            )
    return contents, generated, notes, None


def _commit(
    repo: Repository, recipe: Recipe, tip: str, landing: Landing, tree: str, notes: tuple[str, ...]
) -> Candidate:
    home, style, committer = repo.home, recipe.settings.landing.style, recipe.committer
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
        last = trials.replay(home, tip, own, lambda commit: trials.read_message(home, commit), committer)
        if isinstance(last, str) and trials.tree_of(home, last) == tree:
            return Candidate(landing=landing, before=tip, commit=last, tree=tree, notes=notes)
        notes = (*notes, "its commits could not be replayed one by one, so it landed as one")
    author = trials.read_author(home, landing.head)
    message = _squash_message(repo, landing, own, author)
    commit = trials.create_commit(home, tree, [tip], message, author, committer)
    return Candidate(landing=landing, before=tip, commit=commit, tree=tree, notes=notes)


def _own_trailers(landing: Landing) -> list[str]:
    known = {"Landing": landing.id, "Agent": landing.agent, "Session": landing.session, "Task": landing.task}
    return [f"Landlane-{name}: {text}" for name, text in known.items() if text]


def _squash_message(repo: Repository, landing: Landing, own: list[str], author: Author) -> str:
    """One message for all commits of a branch: what each said, who else wrote it, and every trailer once."""
    home = repo.home
    trailers = [*trials.list_trailers(home, own)]
    others = dict.fromkeys(
        f"Co-authored-by: {one.name} <{one.mail}>"
        for one in (trials.read_author(home, commit) for commit in own)
        if one.mail != author.mail
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


def validators(repo: Repository, classes: list[MergeRule], paths: Sequence[str]) -> Mapping[str, str]:
    """The commands that the settings name for hot files among these paths."""
    wanted = [one for one in classes if "validate" in one.options]
    found = {path: merge_rule_for(repo, classes, path) for path in dict.fromkeys(paths)} if wanted else {}
    return {
        path: str(one.options["validate"]) for path, one in found.items() if one and "validate" in one.options
    }
