"""Report what a role restricts: each capability, whether it is allowed, and the guards that enforce it.

Only guards that are active on this machine and in this repository count: installed client hooks, git hooks,
and the kernel features that were tested.
"""

from __future__ import annotations

import os
from enum import StrEnum

from landlane.clients.model import AGENTS, EDIT, NETWORK, SHELL
from landlane.clients.registry import permissions_for, setup_of
from landlane.clients.setup_files import environment_at
from landlane.clients.worker_adapter import PATHS
from landlane.git.hook_pass import hooks_folder
from landlane.git.hooks.scripts import GUARDS
from landlane.roles.model import PROTECTED, VERBS, expand_words, path_words, protected_patterns
from landlane.sandbox.guarantees import list_guarantees
from landlane.sandbox.model import BackendKind, GuaranteeState, Promise, Sandbox
from landlane.sandbox.start import choose_backend
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from landlane.clients.worker_adapter import Permissions
    from landlane.git.discovery import Checkout
    from landlane.roles.model import Role
    from landlane.settings.model import Settings


SETTINGS, HOOK, GIT = "client settings", "client hook", "git hooks"
KERNEL, LANDING, COMMANDS = "kernel", "landing", "landlane's commands"


class RoleVerdict(StrEnum):
    """Whether a role has a capability."""

    ALLOWED = "allowed"
    FORBIDDEN = "forbidden"
    PARTLY = "in part"


@value
class ActiveGuards:
    """The guards that are active here. `kernel` names the sandbox backend; empty without one."""

    hook: bool
    hook_trouble: str
    git_hooks: bool
    kernel: str
    promises: Mapping[str, bool]  # what the kernel enforces for a command that `exec` runs in this role


@value
class Restriction:
    """One capability: whether the role has it, the guards that enforce that, and what stays open."""

    capability: str
    verdict: RoleVerdict
    what: str
    guards: tuple[str, ...] = ()
    open: str = ""


def _allowed(capability: str, what: str, open: str = "") -> Restriction:
    return Restriction(capability=capability, verdict=RoleVerdict.ALLOWED, what=what, open=open)


def _forbidden(capability: str, what: str, guards: Iterable[str], open: str = "") -> Restriction:
    return Restriction(
        capability=capability, verdict=RoleVerdict.FORBIDDEN, what=what, guards=tuple(guards), open=open
    )


def _partly(capability: str, what: str, guards: Iterable[str], open: str = "") -> Restriction:
    return replace(_forbidden(capability, what, guards, open), verdict=RoleVerdict.PARTLY)


def denied_paths(role: Role, settings: Settings) -> tuple[str, ...]:
    """Return the patterns that a role may not change inside the paths it may write."""
    taken = [] if role.may_change_protected else protected_patterns(settings)
    return tuple(dict.fromkeys([*expand_words(role.denies, path_words(settings)), *taken]))


def find_active_guards(checkout: Checkout, home: Checkout, role: Role, client: str) -> ActiveGuards:
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
    return ActiveGuards(
        hook=bool(client) and not trouble,
        hook_trouble=trouble,
        git_hooks=bool(folder) and all(os.path.isfile(os.path.join(folder, name)) for name in GUARDS),
        kernel="" if backend.name == BackendKind.NONE else backend.name,
        promises={
            known.promise: known.state == GuaranteeState.HELD for known in list_guarantees(backend, sandbox)
        },
    )


def _hook_trouble(root: str, client: str) -> str:
    """Return why a client's hook is not active; empty when it is."""
    # The client's program is not run: it would answer with empty output.
    problems = setup_of(client).find_problems(environment_at(root), lambda _: "")
    found = [problem for problem in problems if problem.is_open]
    return str(found[0].what) if found else ""


def list_restrictions(role: Role, settings: Settings, client: str, active: ActiveGuards) -> list[Restriction]:
    """Return what a role restricts for a client; without a client, by the other guards alone."""
    permissions = permissions_for(client, role, denied_paths(role, settings)) if client else None
    return [
        _editing(role, permissions, active),
        _paths(role, permissions, active),
        _shell(role, permissions, active),
        _network(role, permissions, active),
        _subagents(role, permissions),
        _outside(active),
        *(_verb(role, verb, active) for verb in VERBS),
        _forbidden("approve", "no role decides for a person", [COMMANDS]),
    ]


def _by_client(permissions: Permissions | None, kind: str) -> list[str]:
    return [SETTINGS] if permissions is not None and kind in permissions.closed else []


def _opened(permissions: Permissions | None, kind: str) -> str:
    return permissions.open.get(kind, "") if permissions is not None else ""


def _active_guards(active: ActiveGuards, *, kernel: bool = False, git: bool = False) -> list[str]:
    found = [HOOK] if active.hook else []
    found += _kernel(active) if kernel else []
    return found + ([GIT] if git and active.git_hooks else [])


def _kernel(active: ActiveGuards) -> list[str]:
    return [f"{KERNEL} ({active.kernel}, inside exec)"] if active.promises.get(Promise.FILES) else []


def _editing(role: Role, permissions: Permissions | None, active: ActiveGuards) -> Restriction:
    if EDIT in role.tools and not role.is_read_only:
        return _allowed("edit", "edit tools, within its paths")
    guards = (*_by_client(permissions, EDIT), *_active_guards(active), LANDING)
    left = "in `landlane exec` it writes to a clone that is thrown away" if active.kernel else ""
    return _forbidden("edit", "no edit tool", guards, _join(_opened(permissions, EDIT), left))


def _paths(role: Role, permissions: Permissions | None, active: ActiveGuards) -> Restriction:
    if role.is_read_only:
        guards = (*_active_guards(active, kernel=True, git=True), COMMANDS, LANDING)
        return _forbidden("paths", "writes nothing but scratch", guards)
    writes, denies = ", ".join(role.writes), ", ".join(role.denies)
    guarded = "" if role.may_change_protected else f", not {len(PROTECTED)} kinds of protected files"
    what = f"writes {writes}" + (f", not {denies}" if denies else "") + guarded
    guards = (*_by_client(permissions, PATHS), *_active_guards(active, git=True), COMMANDS, LANDING)
    left = (
        "the sandbox does not separate paths inside a workspace: such writes are found later and do not land"
    )
    return _partly("paths", what, guards, _join(_opened(permissions, PATHS), left))


def _shell(role: Role, permissions: Permissions | None, active: ActiveGuards) -> Restriction:
    opened = _opened(permissions, SHELL)
    if SHELL in role.tools:
        left = "" if active.kernel else "no sandbox works here"
        return _allowed("shell", "any command", _join(opened, left))
    left = "" if permissions else "start the client without its shell tool"
    return _forbidden("shell", "no shell", _by_client(permissions, SHELL), opened or left)


def _network(role: Role, permissions: Permissions | None, active: ActiveGuards) -> Restriction:
    has_tools = NETWORK in role.tools
    if has_tools and role.connects is None:
        return _allowed("network", "any address")
    named = {Promise.TCP: "TCP", Promise.UDP: "UDP", Promise.SOCKETS: "unix sockets"}
    held = [word for promise, word in named.items() if active.promises.get(promise)]
    ports = "any TCP port" if role.connects is None else f"TCP ports {list(role.connects)}"
    guards = _by_client(permissions, NETWORK)
    guards += [f"{KERNEL} ({', '.join(held)}, inside exec)"] if held else []
    left = ""
    if role.connects is None:
        left = "the shell can open TCP connections, as the client must reach its model (limit: connects)"
    elif not active.promises.get(Promise.TCP):
        left = "the kernel here cannot restrict TCP ports"
    restrict = _partly if has_tools or role.connects != () else _forbidden
    what = ports if has_tools else f"{ports}; no web tools"
    return restrict("network", what, guards, left or _opened(permissions, NETWORK))


def _subagents(role: Role, permissions: Permissions | None) -> Restriction:
    if AGENTS in role.tools:
        return _allowed("subagents", "in its own role")
    what = "none; one that it starts anyway has its role"
    left = _opened(permissions, AGENTS) if permissions else "start the client without its subagent tool"
    return _forbidden("subagents", what, _by_client(permissions, AGENTS), left)


def _outside(active: ActiveGuards) -> Restriction:
    guards = _kernel(active)
    left = "not enforced here: neither bubblewrap nor Landlock works"
    if guards:
        left = "a client that you start yourself runs without the sandbox of `landlane exec`"
    return _forbidden("write outside", "nothing beyond its workspace and scratch", guards, left)


def _verb(role: Role, verb: str, active: ActiveGuards) -> Restriction:
    if verb in role.verbs:
        return _allowed(verb, f"landlane {verb}")
    git = [GIT] if verb == "commit" and active.git_hooks else []
    guards = (COMMANDS, *git, *([LANDING] if verb in ("commit", "land") else []))
    left = {
        "commit": "git itself can still commit, but such a commit does not land",
        "deploy": "a deploy without Landlane is not noticed",
    }
    return _forbidden(verb, f"landlane {verb}", guards, "" if git else left.get(verb, ""))


def _join(*texts: str) -> str:
    return "; ".join(text for text in texts if text)
