"""What `init` writes and how undo removes it: first a plan that can be shown, then its execution.

Settings, rules and instructions are shared and meant to be committed. The clients' hooks name this machine's
interpreter, so they stay out of commits. How files are changed and put back is `flows.installing`.
"""

from __future__ import annotations

import os

from landlane.app.open import ANSWERED, open_repository
from landlane.clients.hook_command import placeholder_command, sdk_release
from landlane.clients.model import CLIENTS
from landlane.clients.registry import setup_of
from landlane.clients.setup_files import environment_at
from landlane.errors import LandlaneError, RepositoryError, StoreError
from landlane.git.discovery import HOME_POINTER, Checkout, find_checkout
from landlane.git.shared_config import list_own_limits, remove_own_limits
from landlane.landing.run_checks import find_test_checkouts, remove_test_checkouts
from landlane.managed_files import apply as installing
from landlane.managed_files.agents_md import AGENTS_TEXT
from landlane.managed_files.apply import ChangePlan, FileChange, FileRequest, SkippedFile
from landlane.managed_files.client_files import (
    check_names,
    client_requests,
    clients_in_use,
    equip,
    keep_out_of_commits,
    main_checkout_requests,
)
from landlane.managed_files.formats import LINE, NEW, TEXT
from landlane.managed_files.manifest import InitRecord, init_lock, load_record
from landlane.managed_files.user_files import fingerprint, read_bytes
from landlane.rules.model import RULES_TEMPLATE
from landlane.settings.load import read_settings
from landlane.settings.model import FILE_NAME
from landlane.setup.codex_trust import install_trust, trust_needed
from landlane.setup.install_git_hooks import (
    git_hooks_installed,
    git_hooks_to_change,
    install_git_hooks,
    remove_git_hooks,
)
from landlane.setup.propose_settings import UNKNOWN_ID, missing_checks, settings_text
from landlane.values import replace, value
from landlane.workspaces.model import OPEN
from landlane.workspaces.records import is_here, list_workspaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.clients.setup_files import ClientEnvironment


_OLD_RECORD = "init-record"  # where earlier releases recorded the settings they wrote
_INSTRUCTIONS = "AGENTS.md"
_IMPORT = f"@{_INSTRUCTIONS}"
_LATER = "; for the other checkouts once this branch has landed"


@value
class Chosen:
    """The request to init: the clients to set up, and whether to make Codex trust our hooks."""

    clients: tuple[str, ...] = ()
    has_clients: bool = True
    has_trust: bool = True


@value
class Done:
    """The changes that were made, and notes for the user."""

    changed: tuple[str, ...]
    notes: tuple[str, ...] = ()


@value
class Plan:
    """The planned steps in order, and what is left unchanged."""

    root: str
    folder: str
    chosen: Chosen
    changes: ChangePlan
    clients: tuple[str, ...] = ()
    is_new: bool = False
    trust: str = ""
    git_hooks: str = ""
    is_undo: bool = False
    benches: tuple[str, ...] = ()  # checkouts of the landing queue, which undo removes
    limits: tuple[str, ...] = ()  # git limits set for workspaces that no longer exist
    unprotected: tuple[tuple[str, str], ...] = ()  # clients that cannot be set up, and why

    @property
    def is_nothing(self) -> bool:
        """Whether nothing needs to be changed."""
        wanted = (self.changes.steps, self.trust, self.git_hooks, self.benches, self.limits)
        return not (self.is_new or any(wanted))

    @property
    def lines(self) -> list[tuple[str, str, str]]:
        """Return each step as verb, path and reason."""
        made = [("create", self.folder, "the state, shared by all worktrees")] if self.is_new else []
        trust = [("change", self.trust, "let Codex run these hooks")] if self.trust else []
        how = (
            ("restore", self.git_hooks, "git runs its own hooks")
            if self.is_undo
            else (
                "change",
                self.git_hooks,
                "git hooks: ours judge commits, pushes and the target branch, then yours run",
            )
        )
        steps = ((step.verb, step.path, step.why) for step in self.changes.steps)
        benches = (("remove", path, "the queue tested here; nobody's work is in it") for path in self.benches)
        config = os.path.join(os.path.dirname(self.folder), "config")
        limits = [("restore", config, f"without {', '.join(self.limits)}")] if self.limits else []
        return [*made, *steps, *trust, *([how] if self.git_hooks else []), *limits, *benches]


def plan_init(cwd: str, chosen: Chosen | None = None) -> Plan:
    """Plan the steps that are missing to set up this repository.

    Raises:
        Malformed: a named client is unknown.
        SettingsError: the existing settings are invalid.
    """
    chosen = chosen or Chosen()
    check_names(chosen.clients)
    checkout = _checkout_or_folder(cwd)
    state = checkout.state_folder
    record = load_record(state)
    path = os.path.join(checkout.root, FILE_NAME)
    if os.path.exists(path):
        read_settings(checkout.root)  # report an invalid file now, not later
    env = environment_at(checkout.root)
    names = _clients_for(chosen, record, clients_in_use(env) if not chosen.clients else [])
    wishes = [*_shared_wishes(checkout, names), *client_requests(names, env)]
    wishes = [*keep_out_of_commits(checkout, wishes), *main_checkout_requests(names, checkout)]
    changes = installing.plan_changes(state, record, wishes)
    if names and not sdk_release():
        why = "the MCP server needs an extra: pip install 'landlane[mcp]', then run init again"
        changes = replace(changes, skipped=(*changes.skipped, SkippedFile(path="landlane mcp", why=why)))
    return Plan(
        root=checkout.root,
        folder=state,
        chosen=chosen,
        changes=changes,
        clients=tuple(names),
        is_new=not os.path.isdir(state),
        trust=_trust_wanted(chosen, names, env, changes),
        git_hooks=git_hooks_to_change(checkout.home_checkout),
        unprotected=tuple(_unprotected(names, checkout.root, changes)),
    )


def _unprotected(names: Sequence[str], root: str, changes: ChangePlan) -> list[tuple[str, str]]:
    """Return the clients that cannot get hooks, each with the conflicting file and the reason."""
    why = {left.path: left.why for left in changes.skipped}
    found: list[tuple[str, str]] = []
    for name in names:
        for wanted in setup_of(name).wanted_files(placeholder_command):
            path = os.path.join(root, wanted.path)
            if path in why:
                found.append((name, f"{path}: {why[path]}"))
    return found


def _clients_for(chosen: Chosen, record: InitRecord, used: Sequence[str]) -> list[str]:
    if not chosen.has_clients:
        return []
    named = chosen.clients or (*record.clients, *used)
    return list(dict.fromkeys(named))


def _trust_wanted(chosen: Chosen, names: Sequence[str], env: ClientEnvironment, changes: ChangePlan) -> str:
    """Return the file in which Codex must record its trust in our hooks, if it should."""
    return trust_needed(env, changes) if chosen.has_trust and "codex" in names else ""


def _shared_wishes(checkout: Checkout, names: Sequence[str]) -> list[FileRequest]:
    """Plan the shared files: settings, rules, and the instructions with the lines that import them.

    In a linked worktree they belong to its branch. The main checkout is left unchanged.
    """
    root = checkout.root
    later = "" if root == checkout.home_checkout.root else _LATER

    def wish(name: str, form: str, content: str, why: str) -> FileRequest:
        return FileRequest(
            path=os.path.join(root, name), root=root, form=form, content=content, why=why + later
        )

    template, found = settings_text(root)
    wishes = [
        wish(FILE_NAME, NEW, template, f"the settings{found}; commit this file"),
        wish("RULES.md", NEW, RULES_TEMPLATE, "the rules that every session reads; commit this file"),
        wish(_INSTRUCTIONS, TEXT, AGENTS_TEXT, "what agents do in a shared checkout; commit this file"),
    ]
    agents = os.path.realpath(os.path.join(root, _INSTRUCTIONS))
    for name in names:
        reader = CLIENTS[name].instructions
        # A symbolic link to AGENTS.md, common in projects, needs no import line.
        if reader and os.path.realpath(os.path.join(root, reader)) != agents:
            title = CLIENTS[name].title
            wishes.append(wish(reader, LINE, _IMPORT, f"{title} reads {_INSTRUCTIONS} through this line"))
    return wishes


def plan_undo(cwd: str) -> Plan:
    """Plan the undo of what init changed. The state stays: it holds the history of others."""
    checkout = find_checkout(cwd)
    state = checkout.state_folder
    changes = installing.plan_undo(state, load_record(state))
    old = _old_step(checkout)
    if old is not None and all(step.path != old.path for step in changes.steps):
        changes = replace(changes, steps=(*changes.steps, old))
    home = checkout.home_checkout
    git_hooks = git_hooks_installed(home)
    return Plan(
        root=checkout.root,
        folder=state,
        chosen=Chosen(),
        changes=changes,
        git_hooks=git_hooks,
        is_undo=True,
        benches=tuple(find_test_checkouts(home)),
        limits=_limits_to_drop(home),
    )


def carry_out(plan: Plan, on_step: Callable[[str], None] = lambda _: None) -> Done:
    """Execute the plan, computed again under the lock; `on_step` is called after each step.

    Raises:
        LandlaneError: a file cannot be written; nothing was changed.
        TimedOut: another init kept running.
    """
    with init_lock(plan.folder):
        if plan.is_undo:
            return _undo(plan, on_step)
        done = _install(plan, on_step)
    try:
        _equip_workspaces(plan.root)
    except LandlaneError as error:
        return replace(done, notes=(*done.notes, f"open workspaces have no hooks yet: {error.message}"))
    return done


def _install(plan: Plan, on_step: Callable[[str], None]) -> Done:
    # The plan that was shown may be outdated: another init may have run meanwhile.
    now = plan_init(plan.root, plan.chosen)
    repo = open_repository(plan.root)
    try:
        steps = tuple(_with_id(step, repo.store.repository) for step in now.changes.steps)
    finally:
        repo.close()
    changes = replace(now.changes, steps=steps)
    installing.carry_out(plan.folder, load_record(plan.folder), changes, now.clients, on_step)
    changed = [*([plan.folder] if plan.is_new else []), *(step.path for step in steps)]
    if now.git_hooks:
        install_git_hooks(find_checkout(plan.root).home_checkout, _clones(plan.root))
        changed.append(now.git_hooks)
    trouble = install_trust(plan.folder, environment_at(plan.root)) if now.trust else ""
    if now.trust and not trouble:
        changed.append(now.trust)
    notes = (trouble, missing_checks(plan.root))
    return Done(changed=tuple(changed), notes=tuple(note for note in notes if note))


def _with_id(step: FileChange, repository_id: str) -> FileChange:
    """Return the step with the id that this repository already has here, so that its claims are kept."""
    if step.after is None or UNKNOWN_ID.encode() not in step.after or step.entry.form != NEW:
        return step
    after = step.after.replace(UNKNOWN_ID.encode(), repository_id.encode())
    entry = replace(step.entry, after=(fingerprint(after),))
    return replace(step, after=after, entry=entry)


def _equip_workspaces(root: str) -> None:
    """Install the same hooks in the open workspaces."""
    repo = open_repository(root)
    try:
        if repo.checkout.common_dir:
            repo = repo.require_git()
            for workspace in list_workspaces(repo):
                is_local = workspace.state == OPEN and is_here(repo, workspace, repo.common_dir)
                if is_local and os.path.isdir(workspace.path):
                    equip(repo, workspace.path)
    finally:
        repo.close()


def _clones(root: str) -> list[str]:
    """Return the open workspaces with their own git config; none when the store cannot be read."""
    found = _open_workspaces(root)
    return [path for path in found if os.path.isfile(os.path.join(path, ".git", HOME_POINTER))]


def _limits_to_drop(home: Checkout) -> tuple[str, ...]:
    """Return the git limits that Landlane set; none while workspaces share objects that gc would remove."""
    found = list_own_limits(home) if home.common_dir else []
    return tuple(found) if found and not _open_workspaces(home.root) else ()


def _open_workspaces(root: str) -> list[str]:
    try:
        repo = open_repository(root)
    except StoreError:
        return []
    try:
        return [workspace.path for workspace in list_workspaces(repo) if workspace.state == OPEN]
    finally:
        repo.close()


def _forget_answers(checkout: Checkout) -> None:
    """Record that no hook is active here any more, so that removing the state means a fresh start."""
    if not checkout.home_dir:
        return
    entries = os.path.join(checkout.home_dir, "worktrees")
    names = os.listdir(entries) if os.path.isdir(entries) else []
    for folder in (checkout.home_dir, *(os.path.join(entries, name) for name in names)):
        try:
            os.unlink(os.path.join(folder, ANSWERED))
        except OSError:
            continue


def _undo(plan: Plan, on_step: Callable[[str], None]) -> Done:
    now = plan_undo(plan.root)
    _forget_answers(find_checkout(plan.root))
    installing.carry_out_undo(plan.folder, load_record(plan.folder), now.changes, on_step)
    _forget_old(plan.folder)
    if now.git_hooks:
        remove_git_hooks(find_checkout(plan.root).home_checkout, _clones(plan.root))
    home = find_checkout(plan.root).home_checkout
    removed = remove_test_checkouts(home)
    if now.limits and remove_own_limits(home) and not now.git_hooks:
        removed.append(os.path.join(home.common_dir, "config"))
    steps = [step.path for step in now.changes.steps]
    return Done(changed=(*steps, *([now.git_hooks] if now.git_hooks else []), *removed))


def _old_step(checkout: Checkout) -> FileChange | None:
    """Return the removal of settings that an earlier release wrote, if they are unchanged."""
    path = os.path.join(checkout.root, FILE_NAME)
    written = (read_bytes(os.path.join(checkout.state_folder, _OLD_RECORD)) or b"").decode().strip()
    there = read_bytes(path)
    if not written or there is None or fingerprint(there) != written:
        return None
    wish = FileRequest(path=path, root=checkout.root, form=NEW, content="", why="as init wrote it")
    return installing.removal(wish, there)


def _forget_old(state: str) -> None:
    path = os.path.join(state, _OLD_RECORD)
    if os.path.exists(path):
        os.unlink(path)


def _checkout_or_folder(cwd: str) -> Checkout:
    try:
        return find_checkout(cwd)
    except RepositoryError as error:
        if error.code != "NO_REPOSITORY":
            raise
        return Checkout(root=os.path.realpath(cwd), git_dir="", common_dir="")
