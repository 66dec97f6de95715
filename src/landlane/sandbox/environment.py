"""Which variables a sandboxed command does not inherit: secrets, and ways to other programs.

A variable is judged by its name, and by a password in its value if that is an address.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSW(?:OR)?D|PASSPHRASE|CREDENTIAL|COOKIE|APIKEY"
    r"|(?:^|_)(?:KEY|KEYS|PASS|PAT|AUTH|PWD)(?:$|_)",
    re.IGNORECASE,
)
_NOT_SECRET = frozenset(("PWD", "OLDPWD", "SSH_ASKPASS", "GIT_ASKPASS"))
# Sockets of programs outside: agents that sign, buses, displays, terminals, containers.
_OF_OTHERS = frozenset(
    (
        *("SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY", "GPG_AGENT_INFO"),
        *("DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "XAUTHORITY", "ICEAUTHORITY"),
        *("DISPLAY", "WAYLAND_DISPLAY", "SESSION_MANAGER", "PULSE_SERVER", "AT_SPI_BUS_ADDRESS"),
        *("TMUX", "TMUX_PANE", "TMUX_TMPDIR", "STY", "DOCKER_HOST", "DOCKER_CONTEXT", "CONTAINER_HOST"),
        *("PODMAN_HOST", "KUBECONFIG", "VAULT_ADDR", "VSCODE_IPC_HOOK_CLI", "GNOME_KEYRING_CONTROL"),
        *("PGPASSFILE", "PGSERVICEFILE", "NETRC", "NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID"),
    )
)
_PASSWORD_IN_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{0,20}://[^\s/@:]{0,200}:[^\s/@]{1,500}@")


def secret_variables(environment: Mapping[str, str], kept: Iterable[str] = ()) -> list[str]:
    """Return the names of variables that hold a secret or lead to another program.

    `kept` are names that stay, and prefixes of such names if they end in `*`.
    """
    names = tuple(name for name in kept if not name.endswith("*"))
    prefixes = tuple(name[:-1] for name in kept if name.endswith("*"))
    return [
        name
        for name, text in environment.items()
        if _is_secret(name, text) and name not in names and not (prefixes and name.startswith(prefixes))
    ]


def _is_secret(name: str, text: str) -> bool:
    if name in _OF_OTHERS:
        return True
    is_named = name not in _NOT_SECRET and _SECRET_NAME.search(name) is not None
    return is_named or _PASSWORD_IN_ADDRESS.search(text) is not None
