"""Load the modules in a client's folder: its hooks, its setup, and its adapter as a worker."""

from __future__ import annotations

from landlane.clients.model import ROLE_CLIENTS, WORKER_CLIENTS, check_client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Protocol

    from landlane.clients.model import ClientTools
    from landlane.clients.permissions import Permissions, RoleTools
    from landlane.clients.setup_files import ClientEnvironment, ClientFile, SetupProblem
    from landlane.clients.worker_adapter import WorkerAdapter
    from landlane.protocol.hook_events import HookAnswer, HookEvent, HookOutput

    class HookModule(Protocol):
        """`<client>/hook.py`: reads the payloads of a client's hooks, and writes answers in its form."""

        BEFORE_TOOL: str  # the event before a tool call
        KINDS: Mapping[str, str]  # the kind of each event

        def read(
            self, event_name: str, payload: Mapping[str, Any], environment: Mapping[str, str]
        ) -> HookEvent: ...
        def render(self, event: HookEvent, answer: HookAnswer) -> HookOutput: ...
        def refuse(self, event_name: str, text: str) -> HookOutput: ...
        def is_denial(self, event_name: str, exit_code: int, stdout: str) -> bool: ...

    class SetupModule(Protocol):
        """`<client>/setup.py`: what `init` writes for a client, and what keeps its hooks from working.

        `command` makes the hook's command for an event and whether it guards; `run` starts a program and
        returns its output.
        """

        def wanted_files(self, command: Callable[[str, bool], str]) -> tuple[ClientFile, ...]: ...
        def server_files(self, words: list[str]) -> tuple[ClientFile, ...]: ...
        def hook_files(self, env: ClientEnvironment) -> list[str]: ...
        def find_problems(
            self, env: ClientEnvironment, run: Callable[[list[str]], str]
        ) -> list[SetupProblem]: ...


def hooks_of(name: str) -> HookModule:
    """Load the module that reads and answers a client's hooks."""
    return __import__(f"landlane.clients.{name}.hook", fromlist=["read"])


def tools_of(name: str) -> ClientTools:
    """Load the tools of a client."""
    return __import__(f"landlane.clients.{name}.tools", fromlist=["TOOLS"]).TOOLS


def setup_of(name: str) -> SetupModule:
    """Load the module that knows how a client is set up."""
    return __import__(f"landlane.clients.{name}.setup", fromlist=["find_problems"])


def adapter_of(name: str) -> WorkerAdapter:
    """Load the adapter that runs a client as a worker.

    Raises:
        Malformed: no such client can be a worker.
    """
    problem = f"{name[:40]!r} is no client that can work by itself"
    check_client(name, WORKER_CLIENTS, problem, "; any other command can speak the worker protocol itself")
    return __import__(f"landlane.clients.{name}.worker", fromlist=["ADAPTER"]).ADAPTER


def permissions_for(
    client: str, role: RoleTools, denied: Sequence[str] = (), *, is_sandboxed: bool = True
) -> Permissions:
    """Return what a client is started with in a role; `denied` are patterns that the role may not change.

    `is_sandboxed`: it runs in our sandbox, where no client can make one of its own.

    Raises:
        Malformed: there are no permissions for this client.
    """
    check_client(client, ROLE_CLIENTS, f"there are no permissions for {client[:40]!r}")
    make = adapter_of(client).permissions
    assert make is not None
    return make(role, denied, is_sandboxed)
