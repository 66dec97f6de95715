"""The scratch repository of the demo: a small shop in Python with real, fast tests."""

from __future__ import annotations

import os
import sys

from landlane.errors import LandlaneError
from landlane.git.run import run_git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

TARGET = "main"
_CONFIG = {
    "user.name": "demo",
    "user.email": "demo@localhost",
    "commit.gpgsign": "false",
    "gc.auto": "0",  # nothing may go on in the background
    "maintenance.auto": "false",
}
TEST_COMMAND = (sys.executable, "-S", "-B", "check.py")

_CHECK = '''\
"""Runs every test: all functions test_* of tests/test_*.py."""
import importlib
import os
import sys
import traceback

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
red = 0
for file in sorted(os.listdir(os.path.join(here, "tests"))):
    if not file.startswith("test_"):
        continue
    module = importlib.import_module("tests." + file[:-3])
    for name in [name for name in dir(module) if name.startswith("test_")]:
        try:
            getattr(module, name)()
        except Exception:
            red += 1
            print("FAILED", file, name)
            traceback.print_exc()
sys.exit(1 if red else 0)
'''

_TESTS = '''\
"""What holds of the shop at all times."""
import importlib
import os

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def lines(path):
    with open(os.path.join(ROOT, path)) as file:
        return file.read().splitlines()


def test_every_feature_is_registered():
    registered = [line.split(" = ")[0] for line in lines("shop/registry.txt")]
    there = [name[:-3] for name in os.listdir(os.path.join(ROOT, "shop/features")) if name != "__init__.py"]
    assert sorted(registered) == sorted(name for name in there if not name.startswith("__")), registered


def test_every_feature_works():
    for name in sorted(os.listdir(os.path.join(ROOT, "shop/features"))):
        if name.endswith(".py") and name != "__init__.py":
            assert importlib.import_module("shop.features." + name[:-3]).run() > 0, name


def test_routes_are_well_formed():
    from shop.routes import ROUTES

    assert all(path.startswith("/") and page for path, page in ROUTES.items())


def test_no_two_migrations_have_one_number():
    numbers = [name.split("_")[0] for name in os.listdir(os.path.join(ROOT, "migrations"))]
    assert len(numbers) == len(set(numbers)), sorted(numbers)
'''

# A shell worker, the same with and without Landlane: it reads a file, thinks, and writes it back.
_SHELL_WORKER = r"""#!/bin/sh
# usage: notes.sh do KEY THINK     do a task in this checkout: read, think, write back
#        notes.sh                  a worker: reads one assignment, speaks the worker protocol
set -eu

do_task() { # the key of the task, and how long to think
  at=
  case $1 in
  help-page) path=shop/routes.py line='    "/help": "help",  # work[help-page]' at='^}' ;;
  opening-hours) path=CHANGELOG.md line='- Tell the opening hours work[opening-hours]' ;;
  *) path=docs/$1.md line="How it is done. work[$1]" ;;
  esac
  mkdir -p "$(dirname "$path")"
  [ -e "$path" ] || echo "# $1" > "$path"
  changed=$(awk -v line="$line" -v at="$at" '
    at != "" && $0 ~ at { print line }
    { print }
    END { if (at == "") print line }' "$path")
  sleep "$2"
  printf '%s\n' "$changed" > "$path"
}

if [ "${1:-}" = do ]; then
  do_task "$2" "$3"
  exit
fi
read -r assignment
field() { printf '%s' "$assignment" | sed "s/.*\"$1\":\"\([^\"]*\)\".*/\1/"; }
body=$(field body) id=$(field assignment)
do_task "${body%% *}" "${body##* }" >&2
git add --all >&2
git commit --quiet -m "$(field title)" >&2
printf '{"type":"WorkComplete","version":1,"assignment":"%s","summary":"done","commit":"%s"}\n' \
  "$id" "$(git rev-parse HEAD)"
"""

# Takes the commit, builds for a while, and only then goes live: as every deploy does.
_DEPLOY = r"""#!/bin/sh
set -eu
commit=$(git rev-parse HEAD)
sleep "${DEMO_BUILD_SECONDS:-0.8}"
mkdir -p "$DEMO_PLACE/live"
echo "$commit" > "$DEMO_PLACE/live/COMMIT"
now=$(date +%s%3N)
case $now in *N*) now=$(date +%s)000 ;; esac
echo "$now $commit ${DEMO_WHO:-unknown}" >> "$DEMO_PLACE/deploys.log"
"""

_WATCH_TARGET = r"""#!/bin/sh
# Notes when the target moved, from where and to where.
[ "$1" = committed ] || exit 0
while read -r old new ref; do
  if [ "$ref" = refs/heads/main ] && [ "$old" != "$new" ]; then
    now=$(date +%s%3N)
    case $now in *N*) now=$(date +%s)000 ;; esac
    echo "$now $old $new" >> "@LOG@"
  fi
done
"""

_SETTINGS = """\
[landing]
target = "main"
checks = ["{check}"]
gate = ["data/**"]              # a person looks first
resident = false

[run]
workers = {workers}
agent = "python"
role = "code"

[retries]
backoff = "200ms"

[agents.python]
command = ["{python}", "-P", "-m", "landlane.demo.python_worker"]
protocol = "messages"
heartbeat = "30s"

[agents.dreamer]                # given up sooner
command = ["{python}", "-P", "-m", "landlane.demo.python_worker"]
protocol = "messages"
heartbeat = "3s"

[agents.shell]
command = ["sh", "tools/notes.sh"]
protocol = "messages"
heartbeat = "30s"

[landing.merge.files]
"shop/registry.txt" = "sorted-set"
"CHANGELOG.md" = "union"

[numbers.migration]
path = "migrations/{{n}}_*.sql"
width = 4

[deploy.prod]
verify = 'test "$(cat "$DEMO_PLACE/live/COMMIT")" = "$LANDLANE_DEPLOY_COMMIT"'
"""


def _feature(key: str, body: str) -> str:
    return f'"""{key}."""  # work[{key}]\n{body}'


def _files(workers: int) -> dict[str, str]:
    old = ("basket", "invoice", "orders", "stock", "tax")
    files = {
        f"shop/features/{name}.py": _feature(f"old-{name}", "\n\ndef run():\n    return 1\n") for name in old
    }
    files["shop/features/basket.py"] = _feature(
        "old-basket", "from shop.pricing import price\n\n\ndef run():\n    return price(100)\n"
    )
    return files | {
        ".gitignore": "__pycache__/\n",
        "CHANGELOG.md": "# Changes\n\n- The first shop\n",
        "check.py": _CHECK,
        "data/customers.csv": "name,year\nAda,2019\nBob,2024\nCyd,2019\n",
        "landlane.toml": _SETTINGS.format(
            check=" ".join(TEST_COMMAND), python=sys.executable, workers=workers
        ),
        "migrations/0001_begin.sql": "CREATE TABLE orders (id INTEGER);\n",
        "rates/mirror-2.txt": "USD 1.08\nCHF 0.94\n",
        "shop/__init__.py": "",
        "shop/features/__init__.py": "",
        "shop/pricing.py": "def price(net):\n    return net * 119 // 100\n",
        "shop/registry.txt": "".join(f"{name} = work[old-{name}]\n" for name in old),
        "shop/routes.py": 'ROUTES = {\n    "/": "home",\n}\n',
        "tests/__init__.py": "",
        "tests/test_shop.py": _TESTS,
        "tools/deploy.sh": _DEPLOY,
        "tools/notes.sh": _SHELL_WORKER,
    }


def write(path: str, text: str, mode: int = 0o644) -> None:
    """Write a file, creating its parent folders."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


def git(folder: str, *words: str, environment: Mapping[str, str] | None = None) -> str:
    """Run git and return its output.

    Raises:
        LandlaneError: git failed.
    """
    done = run_git(*words, cwd=folder, variables=environment)
    if done.exit_code:
        raise LandlaneError(
            f"git {words[0]} failed: {done.stderr[-400:]}", code="GIT_FAILED", hint="is the disk full?"
        )
    return done.stdout.rstrip("\n")


def make_shop(place: str, workers: int) -> str:
    """Make the repository in `place`, with the log of its target beside it; return its folder."""
    root = os.path.join(place, "shop")
    os.makedirs(root)
    git(root, "init", "--quiet", f"--initial-branch={TARGET}")
    for name, text in _CONFIG.items():
        git(root, "config", name, text)
    for path, text in _files(workers).items():
        write(os.path.join(root, path), text, 0o755 if path.endswith(".sh") else 0o644)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "A small shop")
    log = os.path.join(place, "target.log")
    write(
        os.path.join(root, ".git", "hooks", "reference-transaction"),
        _WATCH_TARGET.replace("@LOG@", log),
        0o755,
    )
    return root
