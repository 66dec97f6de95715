"""Check the guards of coding clients: their files, reported problems, and a trial of each hook."""

from __future__ import annotations

import os

from landlane.clients.model import CLIENTS, HOOK_CLIENTS
from landlane.clients.registry import setup_of
from landlane.clients.setup_checks import broken_command, installed_version, is_used
from landlane.clients.setup_files import SetupProblem, environment_at
from landlane.doctor.finding import Finding
from landlane.doctor.try_client_hooks import command_for, commands_in, held_path, stranger
from landlane.errors import LandlaneError
from landlane.managed_files.apply import why_unreadable
from landlane.managed_files.client_files import client_requests
from landlane.managed_files.formats import has_content
from landlane.managed_files.manifest import load_record
from landlane.managed_files.user_files import read_bytes
from landlane.protocol.hook_events import WATCH
from landlane.setup.codex_trust import runner_at
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.clients.setup_files import ClientEnvironment
    from landlane.doctor.try_client_hooks import Stranger, Trial
    from landlane.git.discovery import Checkout
    from landlane.repository import Repository

    Rows = list[tuple[str, Finding]]


_MEND = "run `landlane init` again"
_WAYS = ("edits", "subagents", "shell")
_NO_ANSWER = "did not answer --version"
_CHILD = "canarychild"
_NOWHERE = "/nonexistent/landlane-canary"


@value
class _Client:
    """A client under examination: its setup, its hook commands, and the problems it reports."""

    name: str
    title: str
    version: str
    commands: tuple[str, ...]
    outdated: tuple[str, ...]
    troubles: tuple[SetupProblem, ...]
    is_set_up: bool
    is_silent: bool = False  # its program exists, but does not report its version

    @property
    def open_troubles(self) -> list[SetupProblem]:
        """The problems that leave every call unguarded."""
        return [trouble for trouble in self.troubles if trouble.is_open]

    @property
    def is_here(self) -> bool:
        """Whether its program is on PATH."""
        return bool(self.version) or self.is_silent


def look_at_clients(repo: Repository, checkout: Checkout) -> Rows:
    """Return one row per hook of each client that is set up or in use, or a single row when there is none."""
    env = environment_at(checkout.root)
    recorded = load_record(checkout.state_folder).clients
    used = [name for name in HOOK_CLIENTS if name not in recorded and is_used(env, name)]
    clients = [_look(name, env, is_set_up=True) for name in recorded]
    found = [_look(name, env, is_set_up=False) for name in used]
    clients += [client for client in found if client.commands]
    rows = [row for client in clients for row in _rows(repo, checkout, client)]
    return rows + _not_set_up([client for client in found if not client.commands], has_any=bool(clients))


def _look(name: str, env: ClientEnvironment, *, is_set_up: bool) -> _Client:
    title = CLIENTS[name].title
    asked: dict[str, str] = {}
    run = _asking_once(runner_at(env.root), asked)
    version = installed_version(env, name, run)
    commands: list[str] = []
    outdated: list[str] = []
    unread: list[SetupProblem] = []
    for wish in client_requests([name], env):
        there = _content(wish.path)
        commands += commands_in((there or b"").decode("utf-8", "replace"))
        problem = why_unreadable(wish, there)
        if problem:
            unread.append(SetupProblem(what=f"{os.path.relpath(wish.path, env.root)}: {problem}", hint=_MEND))
        if not has_content(wish.form, wish.content, there):
            outdated.append(os.path.relpath(wish.path, env.root))
    is_silent = bool(asked) and not version
    silent = [_silent(title, next(iter(asked)))] if is_silent else []
    return _Client(
        name=name,
        title=title,
        version=version,
        commands=tuple(commands),
        outdated=tuple(outdated),
        troubles=(
            *unread,
            *silent,
            *(setup_of(name).find_problems(env, run) if commands or is_set_up else ()),
        ),
        is_set_up=is_set_up,
        is_silent=is_silent,
    )


def _asking_once(run: Callable[[list[str]], str], asked: dict[str, str]) -> Callable[[list[str]], str]:
    """Return a runner that asks a slow program for its version only once."""

    def run_once(words: list[str]) -> str:
        if words[1:] != ["--version"]:
            return run(words)
        if words[0] not in asked:
            asked[words[0]] = run(words)
        return asked[words[0]]

    return run_once


def _silent(title: str, program: str) -> SetupProblem:
    what = f"{title} did not answer --version: nobody knows what this release does when a hook fails"
    return SetupProblem(what=what, hint=f"find out what `{program} --version` says", is_open=False)


def _content(path: str) -> bytes | None:
    try:
        return read_bytes(path)
    except LandlaneError:
        return None


def _not_set_up(clients: list[_Client], *, has_any: bool) -> Rows:
    if not clients and has_any:
        return []
    names = ", ".join(client.title for client in clients)
    found = f"in use here, but not set up: {names}" if clients else "no coding client is set up here"
    hint = "`landlane init` sets up the clients that it finds"
    return [("clients", Finding(is_ok=True, is_enforced=False, found=found, hint=hint))]


def _rows(repo: Repository, checkout: Checkout, client: _Client) -> Rows:
    rows = [(client.name, _front(client))]
    root = checkout.root
    is_shared = root == checkout.home_checkout.root
    try:
        with held_path(repo) as path, stranger(repo, root, client.name, path) as one:
            rows += [
                (f"{client.name}: {name}", finding)
                for name, finding in _trials(repo, client, one, is_shared=is_shared)
            ]
    except (LandlaneError, OSError, LookupError) as error:
        hint = error.hint if isinstance(error, LandlaneError) else _MEND
        rows.append((f"{client.name}: edits", _unenforced(client, f"no canary could be sent: {error}", hint)))
    return rows


def _front(client: _Client) -> Finding:
    """Report the client's version and whether its files are correct."""
    where = client.version or (_NO_ANSWER if client.is_silent else "not on the search path")
    if client.outdated:
        found = f"{client.title} ({where}); not as init would write it now: {', '.join(client.outdated)}"
        return Finding(
            is_ok=not client.is_set_up or bool(client.commands), is_enforced=False, found=found, hint=_MEND
        )
    # Without the program nothing is at risk, and its behaviour cannot be tested.
    return Finding(
        is_ok=True, is_enforced=bool(client.version), found=f"{client.title} ({where}), hooks in place"
    )


def _trials(repo: Repository, client: _Client, one: Stranger, *, is_shared: bool) -> Rows:
    if not client.commands or client.open_troubles:
        missing = f"there is no hook of ours in {', '.join(client.outdated) or 'its settings'}"
        worst = [*client.open_troubles, SetupProblem(what=missing, hint=_MEND)][0]
        rows = [(name, _unenforced(client, worst.what, worst.hint)) for name in _WAYS]
        return [*rows, ("fails closed", _fails_closed(client, one))] if client.commands else rows
    guard = _command(client, one.guard_word)
    watched = repo.settings.hooks.policy == WATCH
    return [
        ("edits", _judged(client, one.edit(guard), "an edit of a held file", watched)),
        ("subagents", _judged(client, one.edit(guard, _CHILD), "a subagent's edit of a held file", watched)),
        ("shell", _judge_shell(client, one, is_shared=is_shared, watched=watched)),
        ("fails closed", _fails_closed(client, one)),
    ]


def _command(client: _Client, word: str) -> str:
    return command_for(list(client.commands), client.name, word)


def _judge_shell(client: _Client, one: Stranger, *, is_shared: bool, watched: bool) -> Finding:
    written = one.write(lambda word: _command(client, word))
    if not written.is_denied:
        found = f"a held file was written by the shell, and nothing was told: {written.said}"
        return _unenforced(client, found, _MEND)
    if not written.is_told and not written.is_understood:
        return _refuses_all(written)
    told = "a held file that the shell wrote was told of" if written.is_told else "a write to one was refused"
    if not is_shared:  # a workspace belongs to one session, which may change anything there
        return Finding(is_ok=True, found=told)
    reset = _judged(client, one.reset(_command(client, one.guard_word)), "git reset --hard", watched)
    return replace(reset, found=f"{reset.found}; {told}")


def _judged(client: _Client, trial: Trial, what: str, watched: bool) -> Finding:
    if trial.is_denied and trial.is_understood:
        return Finding(is_ok=True, found=f"{what} was refused")
    if trial.is_denied:
        return _refuses_all(trial)
    if watched:
        hint = 'set `policy = "auto"` under [hooks] in landlane.toml'
        return Finding(
            is_ok=True, is_enforced=False, found=f"{what} is only reported: the policy is watch", hint=hint
        )
    return _unenforced(client, f"{what} was not refused: {trial.said}", _MEND)


def _refuses_all(trial: Trial) -> Finding:
    found = f"everything is refused, not only what is held: {trial.said}"
    return Finding(is_ok=False, found=found, hint=f"mend what it says, or {_MEND}")


def _fails_closed(client: _Client, one: Stranger) -> Finding:
    """Check that an edit is also refused when the hook itself fails."""
    guard = _command(client, one.guard_word)
    if part := broken_command(guard):
        trial = one.edit(guard)
        if trial.is_denied:
            found = f"it does: {part} is not there, so everything is refused"
            return Finding(is_ok=True, is_enforced=False, found=found, hint=_MEND)
        return _unenforced(client, f"{part} is not there, and that lets an edit pass: {trial.said}", _MEND)
    gone = guard.replace(_interpreter(guard), _NOWHERE) if _interpreter(guard) else ""
    for trial, what in ((one.babble(guard), "unreadable input"), (one.edit(gone), "a missing interpreter")):
        if not trial.is_denied:
            return _unenforced(client, f"{what} lets an edit pass: {trial.said}", _MEND)
    left = [trouble for trouble in client.troubles if not trouble.is_open]
    if left:
        what = "; ".join(trouble.what for trouble in left)
        return Finding(is_ok=True, is_enforced=False, found=what, hint=left[0].hint)
    return Finding(is_ok=True, found="unreadable input and a missing interpreter are refused")


def _interpreter(command: str) -> str:
    """Return the program that a hook's command starts: the part before `-I`."""
    before, found, _ = command.partition(" -I ")
    return before.split()[-1].strip("'\"") if found and before.split() else ""


def _unenforced(client: _Client, found: str, hint: str) -> Finding:
    """Require the hooks that were set up to work; other clients are only reported."""
    return Finding(
        is_ok=not client.is_set_up or not client.is_here, is_enforced=False, found=found, hint=hint
    )
