"""Which files a patch would write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landlane.clients.hook_format import patched_paths
from landlane.errors import Malformed

pytestmark = pytest.mark.unit

MARKS = ("Add File", "Update File", "Delete File", "Move to")


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ("*** Add File: new.py\n+hi\n", ("new.py",)),
        ("*** Update File: calc.py\n@@\n-a\n+b\n", ("calc.py",)),
        ("*** Delete File: old.py\n", ("old.py",)),
        ("*** Update File: a.py\n*** Move to: b/c.py\n@@\n-a\n+b\n", ("a.py", "b/c.py")),
        ("*** Add File: a\n+x\n*** Delete File: b\n*** Add File: a\n+y\n", ("a", "b")),
        ("*** Update File: with space.py \r\n@@\n-a\n+b\n", ("with space.py",)),
        ("  *** Add File: indented.py\n+x\n", ("indented.py",)),
        ("*** Add File: /etc/motd\n+x\n", ("/etc/motd",)),
        ("*** Add File: a\x1c\n+x\n", ("a\x1c",)),  # Codex keeps this one at the end of a name
        ("*** Add File: a\x0cb\n+x\n", ("a\x0cb",)),  # and takes this for no end of a line
        ("*** Add File: doc.md\n+*** Delete File: quoted.py\n", ("doc.md",)),
        ("*** Environment ID: box\n*** Add File: a\n+x\n", ("a",)),
    ],
)
def test_every_file_that_a_patch_writes_is_named(body: str, paths: tuple[str, ...]) -> None:
    assert patched_paths(f"*** Begin Patch\n{body}*** End Patch\n") == paths


def test_a_patch_in_a_here_document_is_read_as_well() -> None:
    patch = "<<'EOF'\n*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\nEOF\n"
    assert patched_paths(patch) == ("a",)


@pytest.mark.parametrize("patch", ["", "hello", "*** Begin Patch\n*** End Patch\n", "*** Add File: \n+x"])
def test_a_patch_that_names_no_file_is_not_let_through(patch: str) -> None:
    with pytest.raises(Malformed) as caught:
        patched_paths(patch)
    assert caught.value.code == "HOOK_INPUT"


@given(
    st.lists(st.tuples(st.sampled_from(MARKS), st.from_regex(r"[a-z/.]{1,9}", fullmatch=True)), min_size=1)
)
def test_no_header_is_overlooked(headers: list[tuple[str, str]]) -> None:
    patch = "\n".join(
        ["*** Begin Patch", *(f"*** {mark}: {path}" for mark, path in headers), "*** End Patch"]
    )
    assert set(patched_paths(patch)) == {path for _, path in headers}
