"""The fast path of client hooks: which patches it may check by itself."""

from __future__ import annotations

import pytest

from landlane.hook_entry import client_fast_path
from landlane.hook_entry.client_fast_path import _CLIENTS, Unsure, _paths_of

pytestmark = pytest.mark.unit

CODEX = _CLIENTS["codex"]


def patch(*headers: str) -> dict[str, str]:
    body = "".join(f"{header}\n@@\n-a\n+b\n" for header in headers)
    return {"command": f"*** Begin Patch\n{body}*** End Patch\n"}


def test_a_patch_of_existing_files_names_their_paths() -> None:
    given = patch("*** Update File: a.py", "*** Update File: /repo/b c.py")

    assert _paths_of(CODEX, "apply_patch", given, "/repo") == ["/repo/a.py", "/repo/b c.py"]


@pytest.mark.parametrize(
    "header",
    [
        "*** Add File: b.py",
        "*** Delete File: b.py",
        "*** Move to: b.py",
        # Codex strips such a line and obeys it, so it must not be missed beside a valid header.
        "\t*** Add File: b.py",
        "  *** Update File: b.py",
        "*** Update File: b.py\u2003",
    ],
)
def test_any_other_patch_takes_the_full_path(header: str) -> None:
    with pytest.raises(Unsure):
        _paths_of(CODEX, "apply_patch", patch("*** Update File: a.py", header), "/repo")


def test_every_client_with_hooks_but_cursor_has_a_fast_path() -> None:
    assert sorted(client_fast_path._CLIENTS) == ["claude", "codex", "copilot", "gemini", "opencode", "qwen"]
