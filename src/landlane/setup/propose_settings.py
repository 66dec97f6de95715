"""Propose settings for `init`, with the test command found in the project's files."""

from __future__ import annotations

import json
import os

from landlane.settings.detect_test_command import find_test_command
from landlane.settings.load import read_settings
from landlane.settings.model import FILE_NAME
from landlane.setup.shared_surface import find_shared_surface

UNKNOWN_ID = "{repository_id}"  # replaced by the id that the repository already has
_CHECKS = "{checks}"
_SHARED = "{shared}"
_TEMPLATE = """\
# Settings of Landlane. Commit this file: every clone and every agent reads it.
# Remove the # of a line to use it. ttl, max_ttl and lease show their defaults.

[repository]
id = "{repository_id}"

[claims]
# ttl = "30m"            # the lease of a claim; activity of its session renews it
# max_ttl = "7d"
# Only the shared surface needs a claim, everything else is free:
# required = {shared}
# free = ["scratch/**"]  # never needs a claim
# shareable = ["CHANGELOG.md"] # may be claimed --shared by many at once

[sessions]
# lease = "30m"          # how long a silent session lives

{checks}

# [run]
# agent = "claude"       # who does tasks that name no agent in `landlane run`
# role = "code"          # what workers may do

[hooks]
# policy = "auto"        # before an edit: auto takes a free path, strict wants a claim, watch only reports

[journal]
# git = true             # also commit the journal to refs/landlane/journal
"""


def settings_text(root: str) -> tuple[str, str]:
    """Return settings for a repository that has none, and a description of the tests found."""
    template = _TEMPLATE.replace(_SHARED, json.dumps(find_shared_surface(root)))
    command, file = find_test_command(root)
    if not command:
        # Without its header, since a section must not be declared twice.
        lines = (
            '# [landing]\n# checks = ["make test"]  # what must pass before anything lands; `[]` for nothing'
        )
        return template.replace(_CHECKS, lines), ""
    lines = (
        "[landing]  # once this is committed, the target branch moves only through the landing queue\n"
        f'checks = ["{command}"]  # what must pass before anything lands, as {file} says\n'
        'placeholders = ["TODO", "TBD", "coming soon"]  # no line that a branch adds may contain one'
    )
    description = f"; lands only what passes `{command}` (from {file})"
    return template.replace(_CHECKS, lines), description


def missing_checks(root: str) -> str:
    """Return what is missing in settings that name no check; empty if they do."""
    if not os.path.exists(os.path.join(root, FILE_NAME)) or read_settings(root).landing.checks is not None:
        return ""
    command = find_test_command(root)[0] or "make test"
    return f"nothing can land before you name a check: landlane config set landing.checks '[\"{command}\"]'"
