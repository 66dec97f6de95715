"""Report what a role restricts: each capability, whether it is allowed, and the guards that enforce it.

Only guards that are active on this machine and in this repository count: installed client hooks, git hooks,
and the kernel features that were tested.
"""

from __future__ import annotations

import os

from landlane.clients.model import AGENTS, EDIT, NETWORK, SHELL
from landlane.clients.permissions import PATHS
from landlane.clients.registry import permissions_for, setup_of
from landlane.clients.setup_files import environment_at
from landlane.git.hook_pass import hooks_folder
from landlane.git.hooks.scripts import GUARDS
from landlane.roles.model import PROTECTED, VERBS, protected_of, spelled, words_of
from landlane.sandbox.guarantees import list_guarantees
from landlane.sandbox.model import FILES, HELD, NONE, SOCKETS, TCP, UDP, Sandbox
from landlane.sandbox.start import choose_backend
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from landlane.clients.permissions import Permissions
    from landlane.git.discovery import Checkout
    from landlane.roles.model import Role
    from landlane.settings.model import Settings


ALLOWED, FORBIDDEN, PARTLY = "allowed", "forbidden", "in part"
_SETTINGS, _HOOK, _KERNEL, _GIT, _LANDING = (
    "client settings",
    "client hook",
    "kernel",
    "git hooks",
    "landing",
)
_COMMANDS = "landlane's commands"


@value
class Standing:
    """The guards that are active here. `kernel` names the sandbox backend; empty without one."""

    hook: bool
    hook_trouble: str
    git_hooks: bool
    kernel: str
    promises: Mapping[str, bool]  # what the kernel enforces for a command that `exec` runs in this role


@value
class Line:
    """One capability: whether the role has it, the guards that enforce that, and what stays open."""

    capability: str
    verdict: str
    what: str
    guards: tuple[str, ...] = ()
    open: str = ""


def denied_paths(role: Role, settings: Settings) -> tuple[str, ...]:
    """Return the patterns that a role may not change inside the paths it may write."""
    taken = [] if role.may_change_protected else protected_of(settings)
    return tuple(dict.fromkeys([*spelled(role.denies, words_of(settings)), *taken]))


def look_around(checkout: Checkout, home: Checkout, role: Role, client: str) -> Standing:
    """Find out which guards are active here for a client in a role."""
    backend = choose_backend()
    scratch = os.path.join(checkout.root, ".scratch")  # only for the query; never created
    sandbox = Sandbox(
        writable=(checkout.root,),
        scratch=scratch,
        unix_sockets=role.unix_sockets,
        tcp_connect=role.connects,
        udp=role.udp,
    )
    folder = hooks_folder(home.common_dir) if home.common_dir else ""
    trouble = _hook_trouble(checkout.root, client) if client else ""
    return Standing(
        hook=bool(client) and not trouble,
        hook_trouble=trouble,
        git_hooks=bool(folder) and all(os.path.isfile(os.path.join(folder, name)) for name in GUARDS),
        kernel="" if backend.name == NONE else backend.name,
        promises={known.promise: known.state == HELD for known in list_guarantees(backend, sandbox)},
    )


def _hook_trouble(root: str, client: str) -> str:
    """Return why a client's hook is not active; empty when it is."""
    problems = setup_of(client).find_problems(environment_at(root), _says_nothing)
    found = [problem for problem in problems if problem.is_open]
    return str(found[0].what) if found else ""


def _says_nothing(words: list[str]) -> str:
    """Return no output, instead of running the client's program."""
    del words
    return ""


def restrictions(role: Role, settings: Settings, client: str, active: Standing) -> list[Line]:
    """Return what a role restricts for a client; without a client, by the other guards alone."""
    permissions = permissions_for(client, role, denied_paths(role, settings)) if client else None
    lines = [
        _editing(role, permissions, active),
        _paths(role, settings, permissions, active),
        _shell(role, permissions, active),
        _network(role, permissions, active),
        _subagents(role, permissions),
        _outside(active),
    ]
    return [*lines, *(_verb(role, verb, active) for verb in VERBS), _approving()]


def _by_client(permissions: Permissions | None, kind: str) -> list[str]:
    return [_SETTINGS] if permissions is not None and kind in permissions.closed else []


def _opened(permissions: Permissions | None, kind: str) -> str:
    return permissions.open.get(kind, "") if permissions is not None else ""


def _active_guards(active: Standing, *, kernel: bool = False, git: bool = False) -> list[str]:
    found = [_HOOK] if active.hook else []
    found += [f"{_KERNEL} ({active.kernel}, inside exec)"] if kernel and active.promises.get(FILES) else []
    return found + ([_GIT] if git and active.git_hooks else [])


def _editing(role: Role, permissions: Permissions | None, active: Standing) -> Line:
    if EDIT in role.tools and not role.is_read_only:
        return Line(capability="edit", verdict=ALLOWED, what="edit tools, within its paths")
    guards = (*_by_client(permissions, EDIT), *_active_guards(active), _LANDING)
    left = "inside `exec` it writes in a clone that is thrown away" if active.kernel else ""
    return Line(
        capability="edit",
        verdict=FORBIDDEN,
        what="no edit tool",
        guards=guards,
        open=_and(_opened(permissions, EDIT), left),
    )


def _paths(role: Role, settings: Settings, permissions: Permissions | None, active: Standing) -> Line:
    if role.is_read_only:
        guards = (*_active_guards(active, kernel=True, git=True), _COMMANDS, _LANDING)
        return Line(capability="paths", verdict=FORBIDDEN, what="writes nothing but scratch", guards=guards)
    writes, denies = ", ".join(role.writes), ", ".join(role.denies)
    guarded = "" if role.may_change_protected else f"; {len(PROTECTED)} kinds of protected files are nobody's"
    what = f"writes {writes}" + (f", not {denies}" if denies else "") + guarded
    guards = (*_by_client(permissions, PATHS), *_active_guards(active, git=True), _COMMANDS, _LANDING)
    left = (
        "in its own workspace the kernel tells no paths apart: found after a shell call, stopped at landing"
    )
    return Line(
        capability="paths",
        verdict=PARTLY,
        what=what,
        guards=guards,
        open=_and(_opened(permissions, PATHS), left),
    )


def _shell(role: Role, permissions: Permissions | None, active: Standing) -> Line:
    if SHELL in role.tools:
        left = "" if active.kernel else "the kernel holds nothing here"
        return Line(
            capability="shell",
            verdict=ALLOWED,
            what="any command",
            open=_and(_opened(permissions, SHELL), left),
        )
    return Line(
        capability="shell",
        verdict=FORBIDDEN,
        what="no shell",
        guards=tuple(_by_client(permissions, SHELL)),
        open=_opened(permissions, SHELL)
        or ("" if permissions else "whoever starts the client must take the shell away"),
    )


def _network(role: Role, permissions: Permissions | None, active: Standing) -> Line:
    kept = active.promises
    named = {TCP: "TCP", UDP: "UDP", SOCKETS: "unix sockets"}
    held = [word for promise, word in named.items() if kept.get(promise)]
    if NETWORK in role.tools and role.connects is None:
        return Line(capability="network", verdict=ALLOWED, what="any address")
    ports = "any TCP port" if role.connects is None else f"TCP ports {list(role.connects)}"
    guards = (
        *_by_client(permissions, NETWORK),
        *([f"{_KERNEL} ({', '.join(held)}, inside exec)"] if held else []),
    )
    left = ""
    if role.connects is None:
        left = (
            "TCP is open to the shell, since the client must reach its model: `connects = [443]` narrows it"
        )
    elif not kept.get(TCP):
        left = "the kernel here cannot hold TCP ports"
    verdict = PARTLY if NETWORK in role.tools or role.connects != () else FORBIDDEN
    what = f"{ports}; no web tools" if NETWORK not in role.tools else ports
    return Line(
        capability="network",
        verdict=verdict,
        what=what,
        guards=guards,
        open=left or _opened(permissions, NETWORK),
    )


def _subagents(role: Role, permissions: Permissions | None) -> Line:
    if AGENTS in role.tools:
        return Line(capability="subagents", verdict=ALLOWED, what="in its own role")
    return Line(
        capability="subagents",
        verdict=FORBIDDEN,
        what="starts none; one that it starts all the same has its role",
        guards=tuple(_by_client(permissions, AGENTS)),
        open=_opened(permissions, AGENTS) if permissions else "whoever starts the client must take them away",
    )


def _outside(active: Standing) -> Line:
    guards = (f"{_KERNEL} ({active.kernel}, inside exec)",) if active.promises.get(FILES) else ()
    left = "only inside `landlane exec`: a client that you start yourself runs without a sandbox"
    return Line(
        capability="write outside",
        verdict=FORBIDDEN,
        what="nothing beyond its workspace and scratch",
        guards=guards,
        open=left if guards else "nothing holds this here: neither bubblewrap nor Landlock works",
    )


def _verb(role: Role, verb: str, active: Standing) -> Line:
    if verb in role.verbs:
        return Line(capability=verb, verdict=ALLOWED, what=f"landlane {verb}")
    git = [_GIT] if verb == "commit" and active.git_hooks else []
    guards = (_COMMANDS, *git, *([_LANDING] if verb in ("commit", "land") else []))
    left = {
        "commit": "a commit by git's own means is not prevented, but never lands",
        "deploy": "a deploy past landlane is seen by nobody",
    }
    return Line(
        capability=verb,
        verdict=FORBIDDEN,
        what=f"landlane {verb}",
        guards=guards,
        open="" if git else left.get(verb, ""),
    )


def _approving() -> Line:
    return Line(
        capability="approve", verdict=FORBIDDEN, what="no role decides for a person", guards=(_COMMANDS,)
    )


def _and(*texts: str) -> str:
    return "; ".join(text for text in texts if text)
