"""The tools of Cursor, as its documentation and older releases name them."""

from __future__ import annotations

from landlane.clients.model import ClientTools, PayloadKeys

_EDITS = ("Write", "StrReplace", "Edit", "MultiEdit", "EditNotebook", "NotebookEdit", "Delete", "TabWrite")
# Releases name these arguments differently, so all of them are tried.
PATHS = ("file_path", "path", "target_file", "target_notebook", "notebook_path")
CHANGES = ("contents", "content", "old_string", "new_string", "edits", "code_edit")

TOOLS = ClientTools(
    edits=dict.fromkeys(_EDITS, PATHS[0]),
    patches={"ApplyPatch": "patch"},
    reads=dict.fromkeys(("Read", "ReadFile"), PATHS[0]),
    shells=("Shell", "Bash"),
    folder="working_directory",
    keys=PayloadKeys(session="conversation_id"),
)
