"""The coding clients: one row each, and the value that lists a client's tools.

To add a client, add a row here and a folder with `hook.py` (its tools and hooks), `setup.py`, and `worker.py`
if it can work without a person.
"""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.settings.model import CLIENT_NAMES
from landlane.text import nearest_word
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

# The kinds of tools that a role can have.
EDIT, SHELL, NETWORK, AGENTS = "edit", "shell", "network", "agents"
TOOL_KINDS = (EDIT, SHELL, NETWORK, AGENTS)

_NO_TOOLS: Mapping[str, str] = {}


@value
class PayloadKeys:
    """The keys of a hook's payload; most clients have these."""

    session: str = "session_id"
    agent: str = "agent_id"
    event: str = "hook_event_name"  # empty if only the hook's command names the event
    tool: str = "tool_name"
    arguments: str = "tool_input"


@value
class ClientTools:
    """The tools of one client, under its own names; mappings name the argument with the path or the patch.

    Hooks, permissions, workers and the setup read it. `scripts/client_tools.py` copies what the quick hook
    needs into `hook_entry/client_fast_path.py`.
    """

    edits: Mapping[str, str]
    patches: Mapping[str, str] = _NO_TOOLS
    reads: Mapping[str, str] = _NO_TOOLS
    shells: tuple[str, ...]
    folder: str = ""  # the argument of a shell that names its working directory
    background: str = ""  # the argument of a shell that lets it run on after the call has ended
    background_shells: tuple[str, ...] = ()  # shells that always do
    network: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    harmless: tuple[str, ...] = ()  # other tools that change no file; the quick hook lets them pass
    keys: PayloadKeys = PayloadKeys()

    @property
    def guarded(self) -> tuple[str, ...]:
        """The tools that can change files."""
        return (*self.edits, *self.patches, *self.shells)

    def of_kind(self, kind: str) -> tuple[str, ...]:
        """Return the names of the tools of a kind."""
        edits = (*self.edits, *self.patches)
        return {EDIT: edits, SHELL: self.shells, NETWORK: self.network, AGENTS: self.agents}[kind]


@value
class Client:
    """A coding client. `traces` are paths that show it is in use here; `~/` is the user's home."""

    name: str
    title: str
    install: str = ""  # a command that installs it
    programs: tuple[str, ...] = ()  # if not named like the client
    traces: tuple[str, ...] = ()
    instructions: str = ""  # the file that it reads instead of AGENTS.md
    variables: tuple[str, ...] = ()  # it sets one of these for the commands that it runs
    project_variable: str = ""  # in which it gives its hooks the project's folder
    has_hooks: bool = True
    is_worker: bool = True


_ROWS = (
    Client(
        name="claude",
        title="Claude Code",
        install="npm install -g @anthropic-ai/claude-code",
        traces=(".claude", "~/.claude", "~/.claude.json"),
        instructions="CLAUDE.md",
        variables=("CLAUDECODE",),
        project_variable="CLAUDE_PROJECT_DIR",
    ),
    Client(
        name="codex",
        title="Codex",
        install="npm install -g @openai/codex",
        traces=(".codex", "~/.codex"),
        variables=("CODEX_SANDBOX", "CODEX_THREAD_ID"),
    ),
    Client(
        name="gemini",
        title="Gemini CLI",
        install="npm install -g @google/gemini-cli",
        traces=(".gemini", "GEMINI.md", "~/.gemini"),
        instructions="GEMINI.md",
        variables=("GEMINI_CLI",),
        project_variable="GEMINI_PROJECT_DIR",
    ),
    Client(
        name="qwen",
        title="Qwen Code",
        install="npm install -g @qwen-code/qwen-code",
        traces=(".qwen", "QWEN.md", "~/.qwen"),
        variables=("QWEN_CODE",),
        project_variable="QWEN_PROJECT_DIR",
    ),
    Client(
        name="copilot",
        title="Copilot CLI",
        install="npm install -g @github/copilot",
        traces=(".github/hooks", ".github/copilot", "~/.copilot"),
        variables=("COPILOT_CLI", "COPILOT_AGENT_SESSION_ID"),
        project_variable="COPILOT_PROJECT_DIR",
    ),
    Client(
        name="opencode",
        title="opencode",
        install="npm install -g opencode-ai",
        traces=(".opencode", "opencode.json", "opencode.jsonc", "~/.config/opencode", "~/.opencode"),
        variables=("OPENCODE",),
    ),
    Client(
        name="cursor",
        title="Cursor",
        programs=("cursor-agent", "cursor"),
        traces=(".cursor", "~/.cursor"),
        variables=("CURSOR_AGENT",),
        project_variable="CURSOR_PROJECT_DIR",
        is_worker=False,
    ),
    Client(name="aider", title="aider", install="pip install aider-chat", has_hooks=False),
    Client(name="gptme", title="gptme", install="pip install gptme", has_hooks=False),
)

CLIENTS = {client.name: client for client in _ROWS}
assert tuple(CLIENTS) == CLIENT_NAMES  # the settings are checked against these names
HOOK_CLIENTS = tuple(client.name for client in _ROWS if client.has_hooks)
WORKER_CLIENTS = tuple(client.name for client in _ROWS if client.is_worker)
# The clients that can be started with the permissions of a role.
ROLE_CLIENTS = tuple(client.name for client in _ROWS if client.has_hooks and client.is_worker)
# A process with one of these in its environment was started by a client.
CLIENT_VARIABLES = tuple(name for client in _ROWS for name in client.variables)
# What the names of the variables that clients set begin with.
VARIABLE_PREFIXES = tuple(name.upper() for name in HOOK_CLIENTS)


def check_client(name: str, known: Collection[str], problem: str, more: str = "") -> None:
    """Refuse a name that is not among the known ones.

    Raises:
        Malformed: it is not; `problem` says why, `more` adds to the hint.
    """
    if name not in known:
        near = nearest_word(name, known)
        meant = {"unknown": name, "meant": near} if near else {}
        raise Malformed(problem, code="UNKNOWN_CLIENT", hint=f"use {' or '.join(known)}{more}", **meant)
