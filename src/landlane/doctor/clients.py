"""Check the guards of coding clients: their files, reported problems, and a trial of each hook."""

from __future__ import annotations

import os

from landlane.clients.model import CLIENTS, HOOK_CLIENTS
from landlane.clients.registry import setup_of
from landlane.clients.setup_checks import broken_command, installed_version, is_used
from landlane.clients.setup_files import SetupProblem, environment_at
from landlane.doctor.check import Check, advisory, failed, passed
from landlane.doctor.try_client_hooks import canary_session, command_for, commands_in, held_path
from landlane.errors import LandlaneError
from landlane.managed_files.apply import why_unreadable
from landlane.managed_files.client_files import client_requests
from landlane.managed_files.formats import has_content
from landlane.managed_files.manifest import load_record
from landlane.managed_files.user_files import read_bytes
from landlane.protocol.hook_events import HookPolicy
from landlane.setup.codex_trust import runner_at
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.clients.setup_files import ClientEnvironment
    from landlane.doctor.try_client_hooks import CanarySession, Trial
    from landlane.repository import Repository


_INIT_AGAIN = "landlane init"
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


def check_clients(repo: Repository) -> list[Check]:
    """Check each hook of each client that is set up or in use; when there is none, report that."""
    checkout = repo.checkout
    env = environment_at(checkout.root)
    recorded = load_record(checkout.state_folder).clients
    used = [name for name in HOOK_CLIENTS if name not in recorded and is_used(env, name)]
    clients = [_inspect(name, env, is_set_up=True) for name in recorded]
    others = [_inspect(name, env, is_set_up=False) for name in used]
    clients += [client for client in others if client.commands]
    checks = [check for client in clients for check in _check_client(repo, client)]
    without = [client.title for client in others if not client.commands]
    if without or not clients:
        found = f"in use here, but not set up: {', '.join(without)}"
        found = found if without else "no coding client is set up here"
        check = advisory(found, "set them up: landlane init")
        checks.append(replace(check, name="clients"))
    return checks


def _inspect(name: str, env: ClientEnvironment, *, is_set_up: bool) -> _Client:
    title = CLIENTS[name].title
    versions: dict[str, str] = {}
    run = _asking_version_once(runner_at(env.root), versions)
    version = installed_version(env, name, run)
    commands: list[str] = []
    outdated: list[str] = []
    unread: list[SetupProblem] = []
    for request in client_requests([name], env):
        path = os.path.relpath(request.path, env.root)
        there = _content(request.path)
        commands += commands_in((there or b"").decode("utf-8", "replace"))
        problem = why_unreadable(request, there)
        if problem:
            unread.append(SetupProblem(what=f"{path}: {problem}", hint=_INIT_AGAIN))
        if not has_content(request.form, request.content, there):
            outdated.append(path)
    is_silent = bool(versions) and not version
    silent = [_silent(title, next(iter(versions)))] if is_silent else []
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


def _asking_version_once(
    run: Callable[[list[str]], str], versions: dict[str, str]
) -> Callable[[list[str]], str]:
    """Return a runner that asks a slow program for its version only once."""

    def run_once(words: list[str]) -> str:
        if words[1:] != ["--version"]:
            return run(words)
        if words[0] not in versions:
            versions[words[0]] = run(words)
        return versions[words[0]]

    return run_once


def _silent(title: str, program: str) -> SetupProblem:
    what = f"{title} did not answer --version: it is unknown what this release does when a hook fails"
    return SetupProblem(what=what, hint=f"{program} --version", is_open=False)


def _content(path: str) -> bytes | None:
    try:
        return read_bytes(path)
    except LandlaneError:
        return None


def _check_client(repo: Repository, client: _Client) -> list[Check]:
    checks = [replace(_check_files(client), name=client.name)]
    root = repo.checkout.root
    is_shared = root == repo.checkout.home_checkout.root
    try:
        # Bound to this process, so that the holder's session ends even if we are killed.
        with (
            held_path(repo, repo.processes.current()) as path,
            canary_session(repo, root, client.name, path) as session,
        ):
            trials = _try_hooks(repo, client, session, is_shared=is_shared)
    except (LandlaneError, OSError, LookupError) as error:
        hint = error.hint if isinstance(error, LandlaneError) else _INIT_AGAIN
        trials = {"edits": _unenforced(client, f"cannot be tried: {error}", hint)}
    return checks + [replace(check, name=f"{client.name}: {name}") for name, check in trials.items()]


def _check_files(client: _Client) -> Check:
    """Report the client's version and whether its files are correct."""
    version = client.version or (_NO_ANSWER if client.is_silent else "not on the search path")
    if client.outdated:
        found = f"{client.title} ({version}); outdated: {', '.join(client.outdated)}"
        is_ok = not client.is_set_up or bool(client.commands)
        return advisory(found, _INIT_AGAIN) if is_ok else failed(found, _INIT_AGAIN)
    # Without the program nothing is at risk, and its behaviour cannot be tested.
    return passed(f"{client.title} ({version}), hooks in place", is_enforced=bool(client.version))


def _try_hooks(
    repo: Repository, client: _Client, session: CanarySession, *, is_shared: bool
) -> dict[str, Check]:
    if not client.commands or client.open_troubles:
        missing = f"no hook of Landlane in {', '.join(client.outdated) or 'its settings'}"
        worst = [*client.open_troubles, SetupProblem(what=missing, hint=_INIT_AGAIN)][0]
        unenforced = _unenforced(client, worst.what, worst.hint)
        trials: dict[str, Check] = dict.fromkeys(_WAYS, unenforced)
        return {**trials, "fails closed": _fails_closed(client, session)} if client.commands else trials
    guard = _command(client, session.guard_word)
    watched = repo.settings.hooks.policy == HookPolicy.WATCH
    edit, child_edit = session.edit(guard), session.edit(guard, _CHILD)
    return {
        "edits": _judge(client, edit, "an edit of a claimed file", watched),
        "subagents": _judge(client, child_edit, "a subagent's edit of a claimed file", watched),
        "shell": _judge_shell(client, session, is_shared=is_shared, watched=watched),
        "fails closed": _fails_closed(client, session),
    }


def _command(client: _Client, word: str) -> str:
    return command_for(list(client.commands), client.name, word)


def _judge_shell(client: _Client, session: CanarySession, *, is_shared: bool, watched: bool) -> Check:
    written = session.write(lambda word: _command(client, word))
    if not written.is_denied:
        found = f"a shell wrote a claimed file, and nothing was reported: {written.output}"
        return _unenforced(client, found, _INIT_AGAIN)
    if not written.is_reported and not written.is_understood:
        return _refuses_all(written)
    reported = "a shell write to a claimed file was reported"
    outcome = reported if written.is_reported else "a shell write to a claimed file was refused"
    if not is_shared:  # a workspace belongs to one session, which may change anything there
        return passed(outcome)
    reset = _judge(client, session.reset(_command(client, session.guard_word)), "git reset --hard", watched)
    return replace(reset, found=f"{reset.found}; {outcome}")


def _judge(client: _Client, trial: Trial, what: str, watched: bool) -> Check:
    if trial.is_denied and trial.is_understood:
        return passed(f"{what} was refused")
    if trial.is_denied:
        return _refuses_all(trial)
    if watched:
        hint = "landlane config set hooks.policy auto"
        return advisory(f"{what} is only reported: the policy is watch", hint)
    return _unenforced(client, f"{what} was not refused: {trial.output}", _INIT_AGAIN)


def _refuses_all(trial: Trial) -> Check:
    found = f"everything is refused, not only claimed files: {trial.output}"
    # It counts as a guard: nothing gets past it.
    return replace(
        failed(found, f"fix what it says, or install the hooks again: {_INIT_AGAIN}"), is_enforced=True
    )


def _fails_closed(client: _Client, session: CanarySession) -> Check:
    """Check that an edit is also refused when the hook itself fails."""
    guard = _command(client, session.guard_word)
    if part := broken_command(guard):
        trial = session.edit(guard)
        if trial.is_denied:
            found = f"it does: {part} does not exist, so everything is refused"
            return advisory(found, _INIT_AGAIN)
        return _unenforced(
            client, f"{part} does not exist, and that lets an edit pass: {trial.output}", _INIT_AGAIN
        )
    gone = guard.replace(_interpreter(guard), _NOWHERE) if _interpreter(guard) else ""
    for trial, what in (
        (session.send_garbage(guard), "unreadable input"),
        (session.edit(gone), "a missing interpreter"),
    ):
        if not trial.is_denied:
            return _unenforced(client, f"{what} lets an edit pass: {trial.output}", _INIT_AGAIN)
    harmless = [trouble for trouble in client.troubles if not trouble.is_open]
    if harmless:
        what = "; ".join(trouble.what for trouble in harmless)
        return advisory(what, harmless[0].hint)
    return passed("unreadable input and a missing interpreter are refused")


def _interpreter(command: str) -> str:
    """Return the program that a hook's command starts: the part before `-I`."""
    before, found, _ = command.partition(" -I ")
    return before.split()[-1].strip("'\"") if found and before.split() else ""


def _unenforced(client: _Client, found: str, hint: str) -> Check:
    """Require the hooks that were set up to work; other clients are only reported."""
    is_required = client.is_set_up and client.is_here
    return failed(found, hint) if is_required else advisory(found, hint)
