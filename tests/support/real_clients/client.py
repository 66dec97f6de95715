"""What a coding client is to the tests: a program, how to start it without a person, and its words."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.scripted_model.api_formats import Turn
from tests.support.scripted_model.server import marker

if TYPE_CHECKING:
    from tests.support.scripted_model.api_formats import Json

Scripts = Mapping[str, Sequence[Turn]]

# In a script, the folder the client is started in: most clients want absolute paths.
HERE = "{here}"

NODE = "node/node_modules/node/bin"


def clients_folder() -> Path:
    """Where scripts/clients.sh installs: $LANDLANE_CLIENTS, else .clients in this checkout."""
    named = os.environ.get("LANDLANE_CLIENTS")
    return Path(named).resolve() if named else Path(__file__).resolve().parents[3] / ".clients"


def program_of(name: str, folder: Path | None = None) -> Path | None:
    """The installed program of a client, if it is there."""
    program = (folder or clients_folder()) / name / "node_modules" / ".bin" / name
    return program if program.exists() else None


def at(path: str) -> str:
    """A path of the script as most clients want it: absolute, which it may be already."""
    return os.path.join(HERE, path)


def call(tool: str, **given: Any) -> list[Turn]:
    """One turn that calls one tool."""
    return [[{"tool": tool, "input": given}]]


class Client(ABC):
    """One kind of client: its words for a script, and how to start it. Words are lists of turns; add them up.

    Paths are relative to the folder the client is started in, or absolute. In `edit`, old and new text are
    whole lines without the last line's end, because one client replaces lines only.
    """

    name: str

    @abstractmethod
    def edit(self, path: str, old: str, new: str, *, read: bool = True) -> list[Turn]:
        """Replace lines of a file; `read` reads it first where the client insists on that."""

    @abstractmethod
    def write(self, path: str, text: str) -> list[Turn]:
        """Write a new file."""

    @abstractmethod
    def read(self, path: str) -> list[Turn]:
        """Read a file."""

    @abstractmethod
    def shell(self, command: str) -> list[Turn]:
        """Run a command in the shell, and wait for it."""

    @abstractmethod
    def subagent(self, script: str) -> list[Turn]:
        """Start a subagent that follows another script, and wait until it has done its work."""

    @abstractmethod
    def command(self, url: str, prompt: str) -> list[str]:
        """The words after the program's name, for a run without a person."""

    @abstractmethod
    def environment(self, url: str) -> dict[str, str]:
        """What the client needs in its environment, the model's address among it."""

    def home_files(self, here: Path) -> dict[str, str | Json]:
        """Files of a home in which the client has been used in this folder before, text or JSON."""
        del here
        return {}

    def say(self, text: str) -> list[Turn]:
        """Say something; as the last turn it ends the run."""
        return [[{"text": text}]]

    def wait_at(self, gate: str) -> list[Turn]:
        """Do nothing of note until the model's gate is opened."""
        held, *_ = self.shell("true")
        return [[{"gate": gate}, *held]]

    def prompt_for(self, script: str) -> str:
        """A prompt whose conversation follows the script."""
        return f"{marker(script)} go"
