"""Find the shared surface of a repository: the few files that many tasks depend on.

These are shared scripts, rules, migrations, state documents and configuration. `init` proposes them for
`[claims] required`.
"""

from __future__ import annotations

import os

_SCRIPTS = ("scripts", "bin", "tools", "Makefile", "justfile", "Taskfile.yml", "noxfile.py")
_RULES = ("RULES.md", "AGENTS.md", "CLAUDE.md", "GEMINI.md", "CONTRIBUTING.md")
_MIGRATIONS = frozenset(("migrations", "migrate", "alembic"))
_STATE = ("STATE.md", "TASKS.md", "TODO.md", "DECISIONS.md", "PLAN.md", "state", "memory")
_CONFIGURATION = (
    *("landlane.toml", "pyproject.toml", "setup.cfg", "tox.ini", "package.json", "tsconfig.json"),
    *("Cargo.toml", "go.mod", "pom.xml", "build.gradle", "Dockerfile", "docker-compose.yml", "compose.yaml"),
    *(".github", ".gitlab-ci.yml", ".pre-commit-config.yaml", ".env.example", "config"),
)
_DEPTH = 3
_MOST_FOLDERS = 2_000


def find_shared_surface(root: str) -> list[str]:
    """Return patterns of the shared files that a repository has."""
    names = (*_SCRIPTS, *_RULES)
    found = [pattern for name in names if (pattern := _pattern(root, name))]
    found += _find_migrations(root)
    found += [pattern for name in (*_STATE, *_CONFIGURATION) if (pattern := _pattern(root, name))]
    # `init` writes the rules and these settings.
    return list(dict.fromkeys([*found, "RULES.md", "landlane.toml"]))


def _pattern(root: str, name: str) -> str:
    path = os.path.join(root, name)
    if os.path.islink(path):
        return ""
    return f"{name}/**" if os.path.isdir(path) else name if os.path.isfile(path) else ""


def _find_migrations(root: str) -> list[str]:
    """Return the folders of migrations, also in the parts of a monorepo."""
    found: list[str] = []
    for seen, (folder, folders, _) in enumerate(os.walk(root)):
        inner = os.path.relpath(folder, root)
        depth = 0 if inner == "." else inner.count(os.sep) + 1
        folders[:] = sorted(name for name in folders if name[0] != "." and name != "node_modules")
        found += [
            os.path.normpath(os.path.join(inner, name)).replace(os.sep, "/") + "/**"
            for name in folders
            if name in _MIGRATIONS
        ]
        if depth >= _DEPTH or seen > _MOST_FOLDERS:
            folders.clear()
    return found
