"""Cursor: tool names."""

from __future__ import annotations

EDITS = ("Write", "StrReplace", "Edit", "MultiEdit", "EditNotebook", "NotebookEdit", "Delete", "TabWrite")

SHELLS = ("Shell", "Bash")

READS = ("Read", "ReadFile")

PATHS = ("file_path", "path", "target_file", "target_notebook", "notebook_path")

CHANGES = ("contents", "content", "old_string", "new_string", "edits", "code_edit")
