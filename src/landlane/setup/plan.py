"""What `init` and its undo plan to do and have done: values, and the lines that describe them."""

from __future__ import annotations

import os

from landlane.managed_files.apply import ChangePlan, ChangeVerb
from landlane.values import value

_BEFORE = "as it was before init"
_QUEUE = "test checkout of the landing queue; it holds no work"


@value
class InitOptions:
    """The request to init: the clients to set up, and whether to make Codex trust our hooks."""

    clients: tuple[str, ...] = ()
    has_clients: bool = True
    has_trust: bool = True


@value
class PlanLine:
    """One step of a plan: what is done with a file or folder, and why."""

    verb: ChangeVerb
    path: str
    why: str
    root: str = ""  # the checkout it is for


@value
class InitResult:
    """The steps that were carried out, the files to commit next, and notes for the user."""

    lines: tuple[PlanLine, ...]
    protected: tuple[str, ...] = ()  # clients whose hooks were written just now
    to_commit: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def changed(self) -> tuple[str, ...]:
        """The paths of what was changed."""
        return tuple(line.path for line in self.lines)


@value
class Remaining:
    """What `init --undo` leaves: the state with its journal, workspaces, branches, saved work, settings."""

    folder: str
    entries: int
    workspaces: tuple[str, ...] = ()  # paths
    branches: tuple[str, ...] = ()  # refs
    saved: int = 0  # refs with saved work
    settings: tuple[str, ...] = ()  # of git, that are ours

    @property
    def is_any(self) -> bool:
        """Whether anything is left."""
        return any((self.folder, self.workspaces, self.branches, self.saved, self.settings))


@value
class Kept:
    """Something that `init --undo --purge` leaves, and why."""

    kind: str
    name: str
    why: str


@value
class Purged:
    """What `init --undo --purge` removed and what it left."""

    removed: tuple[str, ...]
    kept: tuple[Kept, ...]


@value
class InitPlan:
    """The planned steps in order, and what is left unchanged."""

    root: str
    folder: str
    options: InitOptions
    changes: ChangePlan
    clients: tuple[str, ...] = ()
    is_new: bool = False
    trust: str = ""
    git_hooks: str = ""
    is_undo: bool = False
    has_git: bool = True
    branch: str = ""  # the target branch
    consequence: str = ""  # for the target branch
    test_checkouts: tuple[str, ...] = ()  # checkouts of the landing queue, which undo removes
    limits: tuple[str, ...] = ()  # git limits set for workspaces that no longer exist
    unprotected: tuple[tuple[str, str], ...] = ()  # clients that cannot be set up, and the file in the way

    @property
    def is_nothing(self) -> bool:
        """Whether nothing needs to be changed."""
        wanted = (self.changes.steps, self.trust, self.git_hooks, self.test_checkouts, self.limits)
        return not (self.is_new or any(wanted))

    @property
    def lines(self) -> list[PlanLine]:
        """Return the steps: first what the user may commit, last what is in the git directory."""
        steps = [
            PlanLine(verb=step.verb, path=step.path, why=step.why, root=step.entry.root)
            for step in (reversed(self.changes.steps) if self.is_undo else self.changes.steps)
        ]
        own = os.path.dirname(self.folder) + os.sep
        inside = [line for line in steps if line.path.startswith(own)]
        lines = [line for line in steps if line not in inside]
        if self.trust:
            lines.append(PlanLine(verb=ChangeVerb.CHANGE, path=self.trust, why="lets Codex run these hooks"))
        lines += [*inside, *self._git_lines()]
        if self.is_new:
            why = "state of claims, tasks and the journal"
            lines.append(PlanLine(verb=ChangeVerb.CREATE, path=self.folder, why=why))
        return lines

    def _git_lines(self) -> list[PlanLine]:
        config = self.git_hooks or os.path.join(os.path.dirname(self.folder), "config")
        if self.is_undo:
            restored = [config] if self.git_hooks or self.limits else []
            return [
                *(PlanLine(verb=ChangeVerb.RESTORE, path=path, why=_BEFORE) for path in restored),
                *(PlanLine(verb=ChangeVerb.REMOVE, path=path, why=_QUEUE) for path in self.test_checkouts),
            ]
        target = self.branch or "the target branch"
        why = f"git hooks for commits, pushes and {target}; yours still run"
        return [PlanLine(verb=ChangeVerb.CHANGE, path=config, why=why)] if self.git_hooks else []
