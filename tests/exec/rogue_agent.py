"""An agent that tries everything, in its sandboxed clone: `python rogue.py HOW HOME OTHER PATH…`.

HOW is `thorough`, or anything else to leave out what is refused to every role alike. HOME is the main
checkout, OTHER another agent's workspace. It changes each PATH and tries to have that land: by the rules, by
plumbing, and past all of them. What it managed to do it prints, one word on each line.
"""

import os
import subprocess
import sys

HOW, HOME, OTHER, *PATHS = sys.argv[1:]
GIT = os.path.join(HOME, ".git")
MAIN = "refs/heads/main"


def run(*words, stdin=None):
    return subprocess.run(words, input=stdin, capture_output=True, check=False, timeout=50)


def managed(name, *words):
    if run(*words).returncode == 0:
        print(name, flush=True)


def write(name, path):
    try:
        with open(path, "a") as file:
            file.write("rogue\n")
    except OSError:
        return
    print(name, flush=True)


def plumb(path):
    """A commit that no commit hook has seen, on the branch that this clone is on."""
    blob = run("git", "hash-object", "-w", "--stdin", stdin=b"rogue\n").stdout.decode().strip()
    run("git", "update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
    tree = run("git", "write-tree").stdout.decode().strip()
    commit = run("git", "commit-tree", tree, "-p", "HEAD", "-m", "Rogue").stdout.decode().strip()
    run("git", "update-ref", "HEAD", commit)


for path in PATHS:
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    try:
        with open(path, "a") as file:
            file.write("rogue\n")
    except OSError:
        continue
    managed(f"claim:{path}", "landlane", "claim", path)
    managed(f"commit:{path}", "landlane", "commit", "-m", "Rogue", path)
    plumb(path)
managed("land", "landlane", "land", "--wait")
managed("deploy", "landlane", "deploy", "prod")
managed("approve", "landlane", "gate", "approve", "G1")
if HOW == "thorough":
    managed("act-as-other", "landlane", "claim", "other.txt", "--as", "lead")
    managed("join", "landlane", "join", "somebody", "--role", "release")
    managed("nest", "landlane", "exec", "--role", "release", "--", "true")
    managed("doctor-fix", "landlane", "doctor", "--fix")
write("main-checkout", f"{HOME}/src/app.py")
write("main-new-file", f"{HOME}/new.txt")
write("hook", f"{GIT}/hooks/pre-commit")
write("config", f"{GIT}/config")
write("store", f"{GIT}/landlane/store.db")
write("other-workspace", f"{OTHER}/src/app.py")
write("other-index", f"{OTHER}/.git/index")
managed("config-by-git", "git", "-C", HOME, "config", "core.hooksPath", "/nowhere")
managed(
    "move-main",
    "git",
    "-C",
    HOME,
    "update-ref",
    MAIN,
    run("git", "rev-parse", "HEAD").stdout.decode().strip(),
)
managed("push-main", "git", "push", "-q", "-f", GIT, f"HEAD:{MAIN}")
managed("push-branch", "git", "push", "-q", GIT, "HEAD:refs/heads/rogue")
managed("checkout-main", "git", "-C", HOME, "checkout", "-q", "-b", "rogue")
managed("delete-objects", "rm", "-rf", f"{GIT}/objects/pack", f"{GIT}/refs/heads")
managed("kill-resident", "sh", "-c", f"kill -9 $(cat {GIT}/landlane/resident.pid)")
managed("read-secrets", "sh", "-c", f"cat {GIT}/landlane/sessions/*")
