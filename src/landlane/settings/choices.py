"""The fixed words that settings accept: reducers, tools, verbs, event kinds."""

from __future__ import annotations

EVIDENCE = ("commit", "paths", "check", "output")

HOT_CLASSES = ("union", "sorted-set", "keyed-map", "counter", "generated")

EVENT_KINDS = (
    *("commits", "dependencies", "red", "stalled", "paused", "pool", "stale-claim", "dead-session"),
    *("gate-waiting", "gate-reminder", "gate-overdue", "handoff-overdue", "dead-letter", "notify-failed"),
)

REDUCERS = ("append", "union", "max", "min", "sum", "merge")

HANDOFF_KEYS = ("product", "context", "constraints", "next", "blockers", "assumptions")

HANDOFF_TYPES = ("text", "list", "number", "flag")

# What a role may be allowed to use, and to do. Each client's own permissions are made from these words.
ROLE_TOOLS = ("read", "edit", "shell", "network", "agents")

ROLE_VERBS = ("claim", "commit", "land", "deploy")

PATH_WORDS = ("@tests", "@documents", "@releases")

BUILT_IN_ROLES = (
    *("orchestrator", "code", "test", "debug", "review", "verify"),
    *("explore", "document", "refactor", "security", "research", "release"),
)


FILE_NAME = "landlane.toml"

ANY_NAME = "*"  # in the table of what is known: a key that may have any name, each with a section of its own
