"""Load the modules in a client's folder: its hooks, its setup, and its adapter as a worker."""

from __future__ import annotations

from landlane.clients.model import ROLE_CLIENTS, WORKER_CLIENTS, check_client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.clients.client_setup import ClientSetup
    from landlane.clients.hook_format import ClientHooks
    from landlane.clients.worker_adapter import Permissions, RoleTools, WorkerAdapter


def hooks_of(name: str) -> ClientHooks:
    """Load the hooks of a client."""
    return __import__(f"landlane.clients.{name}.hook", fromlist=["HOOKS"]).HOOKS


def setup_of(name: str) -> ClientSetup:
    """Load the setup of a client."""
    return __import__(f"landlane.clients.{name}.setup", fromlist=["SETUP"]).SETUP


def adapter_of(name: str) -> WorkerAdapter:
    """Load the adapter that runs a client as a worker.

    Raises:
        Malformed: no such client can be a worker.
    """
    problem = f"{name[:40]} cannot run as a worker"
    check_client(name, WORKER_CLIENTS, problem, ", or give a command: [agents.NAME] command")
    return __import__(f"landlane.clients.{name}.worker", fromlist=["ADAPTER"]).ADAPTER


def permissions_for(
    client: str, role: RoleTools, denied: Sequence[str] = (), *, is_sandboxed: bool = True
) -> Permissions:
    """Return what a client is started with in a role; `denied` are patterns that the role may not change.

    `is_sandboxed`: it runs in our sandbox, where no client can make one of its own.

    Raises:
        Malformed: there are no permissions for this client.
    """
    check_client(client, ROLE_CLIENTS, f"unknown client {client[:40]}")
    make = adapter_of(client).permissions
    assert make is not None
    return make(role, denied, is_sandboxed)
