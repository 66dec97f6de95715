"""Attempts to escape from a sandbox, each judged by its effect and not by its output or exit code.

`escapes.py FOLDER BACKEND SANDBOX` makes all attempts as the current user and prints which of them succeeded.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from landlane.sandbox.guarantees import ABI_LEAST, list_guarantees
from landlane.sandbox.model import Backend, BackendKind, GuaranteeState, Promise, Sandbox
from landlane.sandbox.start import SandboxedChild, choose_backend
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT_SECONDS = 20.0
LEAK = 99  # a descriptor that a careless parent left open
CONTROL = "control"  # no sandbox at all
OLD_LANDLOCK = "landlock of an old kernel"
EXCHANGE = "import ctypes; ctypes.CDLL(None).renameat2(-100, b'e', -100, b'$OUT/file', 2)"
LINK_OUT = (
    "import os, ctypes; fd = os.open('.', os.O_TMPFILE | os.O_RDWR); os.write(fd, b'evil');"
    "ctypes.CDLL(None).linkat(-100, b'/proc/self/fd/%d' % fd, -100, b'$OUT/new', 0x400)"
)
ATTACH = "import ctypes; print('attached' if ctypes.CDLL(None).ptrace(16, $VICTIM, 0, 0) == 0 else 'no')"
MEMORY = "open('/proc/$VICTIM/mem', 'r+b'); print('attached')"
RECEIVE = "git -c receive.denyCurrentBranch=ignore receive-pack"
BY_HANDLE = """
import ctypes, os
class Handle(ctypes.Structure):
    _fields_ = [('size', ctypes.c_uint), ('kind', ctypes.c_int), ('data', ctypes.c_char * 128)]
libc, handle, mount = ctypes.CDLL(None), Handle(128, 0), ctypes.c_int()
libc.name_to_handle_at(-100, b'$OUT/file', ctypes.byref(handle), ctypes.byref(mount), 0)
fd = libc.open_by_handle_at(os.open('$OUT', os.O_RDONLY), ctypes.byref(handle), os.O_WRONLY)
os.write(fd, b'evil')
"""
TALK = "import socket; s = socket.socket({}); s.settimeout(2); s.connect({}); print(s.recv(9).decode())"
FAST_OPEN = (
    "import socket; s = socket.socket();"
    "s.sendto(b'x', 0x20000000, ('127.0.0.1', $PORT)); print(s.recv(9).decode())"
)
SEND = "import socket; socket.socket(2, 2).sendto(b'evil', ('127.0.0.1', $PORT))"
STORE = "import sqlite3; sqlite3.connect('$STORE/store.db').execute('create table evil (x)')"
DISK = "import os; os.mknod('disk', 0o60600, os.makedev(7, 0)); os.open('disk', os.O_RDWR); print('attached')"


READ_BY_MAP = (
    "import mmap, os; f = os.open('$HOUSE/.netrc', 0); print(mmap.mmap(f, 0, prot=mmap.PROT_READ).read())"
)
ATTACH_MEMORY = (
    "import ctypes; c = ctypes.CDLL(None); c.shmat.restype = ctypes.c_void_p;"
    "print(ctypes.string_at(c.shmat(c.shmget($KEY, 0, 0), 0, 0o10000), 6))"
)
KERNEL = "open('/proc/sys/kernel/domainname', 'r+b'); print('attached')"  # opened, and left as it is


@value
class Attempt:
    """One way to escape. `sign` names what changes if it succeeds."""

    name: str
    promise: str
    script: str
    sign: str
    needs_root: bool = False


def attempt(promise: str, sign: str, script: str, name: str, *, needs_root: bool = False) -> Attempt:
    return Attempt(name=name, promise=promise, script=script, sign=sign, needs_root=needs_root)


def python(program: str) -> str:
    return f'"$PYTHON" -I -S -c "{program}"'


ATTEMPTS = [
    attempt(Promise.FILES, "file", "echo evil > $OUT/file", "redirection"),
    attempt(Promise.FILES, "file", "sed -i s/good/evil/ $OUT/file", "sed -i"),
    attempt(Promise.FILES, "file", python("open('$OUT/file', 'w').write('evil')"), "open to write"),
    attempt(Promise.FILES, "file", "cp f $OUT/file; printf ev | dd of=$OUT/file conv=notrunc", "cp and dd"),
    attempt(Promise.FILES, "file", "truncate -s 0 $OUT/file", "truncate by descriptor"),
    attempt(Promise.FILES, "file", python("import os; os.truncate('$OUT/file', 1)"), "truncate by path"),
    attempt(Promise.FILES, "file", "echo evil > e; mv -f e $OUT/file", "rename over"),
    attempt(Promise.FILES, "file", "mv $OUT/file taken", "rename away"),
    attempt(Promise.FILES, "file", "echo evil > e; " + python(EXCHANGE), "rename exchange"),
    attempt(Promise.FILES, "file", "rm -f $OUT/file", "unlink"),
    attempt(Promise.FILES, "file", "ln $OUT/file l && echo evil > l", "hard link in"),
    attempt(Promise.FILES, "new", python(LINK_OUT), "unnamed file linked out"),
    attempt(Promise.FILES, "file", "ln -s $OUT/file s && echo evil > s", "symlink to a file"),
    attempt(Promise.FILES, "new", "ln -s $OUT d && echo evil > d/new", "symlink to a folder"),
    attempt(Promise.FILES, "new", "echo evil > ../outside/new", "dot-dot"),
    attempt(Promise.FILES, "file", "echo evil > /proc/self/root$OUT/file", "/proc/self/root"),
    attempt(Promise.FILES, "file", "exec 5<$OUT/file; echo evil > /proc/self/fd/5", "/proc/self/fd"),
    attempt(
        Promise.FILES,
        "new",
        "mkdir $OUT/new || mkfifo $OUT/new || ln -s x $OUT/new",
        "mkdir, mkfifo, symlink",
    ),
    attempt(Promise.FILES, "file", python(BY_HANDLE), "file handle", needs_root=True),
    attempt(
        Promise.FILES,
        "new",
        "mount -o remount,rw,bind / ; mount -o remount,rw,bind $BASE; mount -o remount,rw,bind $OUT;"
        " umount -l $BASE; echo evil > $OUT/new",
        "remount as root",
        needs_root=True,
    ),
    attempt(
        Promise.FILES,
        "new",
        "unshare -Urm sh -c 'mount -o remount,rw,bind $BASE; umount -l $BASE; echo evil > $OUT/new';"
        " echo evil > $OUT/new",
        "user namespace and mounts",
    ),
    attempt(
        Promise.FILES,
        "new",
        "unshare -Ur chroot / sh -c 'echo evil > $OUT/new' || echo evil > $OUT/new",
        "chroot",
    ),
    attempt(Promise.FILES, "say attached", python(DISK), "a disk made for oneself", needs_root=True),
    attempt(Promise.FILES, "say attached", python(KERNEL), "settings of the kernel", needs_root=True),
    attempt(Promise.FILES, "main tree", "echo evil > $REPO/new; echo evil > $REPO/a", "main worktree"),
    attempt(Promise.FILES, "hook", "echo evil > $REPO/.git/hooks/pre-commit", ".git/hooks"),
    attempt(
        Promise.FILES,
        "config",
        "git -C $REPO config core.evil 1 || echo evil >> $REPO/.git/config",
        ".git/config",
    ),
    attempt(
        Promise.FILES,
        "other index",
        "echo evil > $REPO/.git/worktrees/other/index",
        "index of another worktree",
    ),
    attempt(Promise.FILES, "other tree", "cd $OTHER && git rm -q -f a", "files of another worktree"),
    attempt(Promise.FILES, "main", "git -C $REPO update-ref refs/heads/main $LATER", "update-ref main"),
    attempt(Promise.FILES, "main", "echo $LATER > $REPO/.git/refs/heads/main", "write refs/heads/main"),
    attempt(
        Promise.FILES,
        "main",
        f"git push -q -f --receive-pack='{RECEIVE}' origin HEAD~1:refs/heads/main",
        "push to main",
    ),
    attempt(Promise.FILES, "objects", "rm -rf $REPO/.git/objects/??", "delete objects"),
    attempt(Promise.FILES, "objects", "cp f $REPO/.git/objects/pack/pack-evil.pack", "add a pack"),
    attempt(Promise.FILES, "store", python(STORE), "write the store"),
    attempt(Promise.READING, "say SECRET", "cat $STORE/sessions/ann", "read the secret of another session"),
    attempt(
        Promise.READING, "say SECRET", "cat /proc/self/root$STORE/sessions/ann", "read it by another path"
    ),
    attempt(Promise.READING, "say SECRET", "cat $HOUSE/.ssh/id_key", "read a key in the home"),
    attempt(Promise.READING, "say SECRET", "cp -r $HOUSE copy; cat copy/.netrc", "copy the home"),
    attempt(Promise.READING, "say SECRET", "ln $HOUSE/.netrc key && cat key", "read a hard link to a key"),
    attempt(Promise.READING, "say SECRET", python(READ_BY_MAP), "map a key into memory"),
    attempt(
        Promise.READING,
        "say SECRET",
        "git diff --no-index /dev/null $HOUSE/.netrc",
        "read a key by git",
    ),
    attempt(Promise.SHARED_MEMORY, "say SECRET", "cat $SHM", "read shared memory of another"),
    attempt(Promise.SYSTEM_V, "say SECRET", python(ATTACH_MEMORY), "attach System V memory of another"),
    attempt(Promise.CHMOD, "mode", "chmod 000 $OUT/file", "chmod"),
    attempt(Promise.CHMOD, "times", "touch -d 2001-01-01 $OUT/file", "touch"),
    attempt(Promise.SIGNALS, "victim", "kill -9 $VICTIM", "kill"),
    attempt(Promise.SIGNALS, "victim", "pkill -9 -f landlane-victim-$PORT", "kill by pattern"),
    attempt(Promise.LIMITS, "limits", "prlimit --pid $VICTIM --fsize=1", "limits of another"),
    attempt(Promise.LIMITS, "nice", "renice -n 19 -p $VICTIM", "priority of another"),
    attempt(Promise.TRACE, "say attached", python(ATTACH), "ptrace"),
    attempt(Promise.TRACE, "say attached", python(MEMORY), "write into memory"),
    attempt(
        Promise.ENVIRONMENT, "say SECRET", "tr '\\0' '\\n' < /proc/$VICTIM/environ", "read an environment"
    ),
    attempt(Promise.SOCKETS, "say reached", python(TALK.format("1", "'$OUT/sock'")), "unix socket"),
    attempt(
        Promise.SOCKETS, "say reached", python(TALK.format("1", "'$HIDDEN/sock'")), "unix socket in temp"
    ),
    attempt(
        Promise.ABSTRACT_SOCKETS,
        "say reached",
        python(TALK.format("1", "chr(0) + '$ABSTRACT'")),
        "abstract socket",
    ),
    attempt(Promise.TCP, "say reached", python(TALK.format("", "('127.0.0.1', $PORT)")), "tcp"),
    attempt(
        Promise.TCP, "say reached", python(TALK.format("2, 1, 262", "('127.0.0.1', $PORT)")), "tcp as mptcp"
    ),
    attempt(Promise.TCP, "say reached", python(FAST_OPEN), "tcp fast open"),
    attempt(Promise.UDP, "udp", python(SEND), "udp"),
    attempt(
        Promise.DESCRIPTORS, "file", python("import os; os.write(99, b'evil')"), "a descriptor left open"
    ),
]


def chosen_attempts() -> list[Attempt]:
    """Return the first attempt of each promise with those that only root can make; for `make soak`, all."""
    if os.environ.get("LANDLANE_ESCAPES") == "all":
        return ATTEMPTS
    first: dict[str, Attempt] = {}
    for one in ATTEMPTS:
        first.setdefault(one.promise, one)
    return [one for one in ATTEMPTS if one.needs_root or one is first[one.promise]]


class EscapeTestbed:
    """A repository with worktrees, a worker's clone, and other programs that must not be harmed."""

    def __init__(self, base: Path, hidden: Path) -> None:
        self.base, self.hidden = base, hidden
        self.out, self.repo, self.other = base / "outside", base / "repo", base / "other"
        self.work, self.scratch = base / "work", base / "scratch"
        self.store = self.repo / ".git" / "landlane"
        self.output = ""
        self.is_spoilt = False
        self._template = base.parent / "template"
        self._sockets: list[socket.socket] = []
        self._numbers = itertools.count()
        self._make()

    def _make(self) -> None:
        for folder in (self.out, self.scratch, self.hidden):
            folder.mkdir(parents=True)
        (self.out / "file").write_text("good\n")
        git = ["git", "-c", "user.name=n", "-c", "user.email=n@example.invalid", "-C", str(self.repo)]
        self.repo.mkdir()
        for words in (
            [*git, "init", "-q", "-b", "main", "--template="],
            [*git, "commit", "-q", "--allow-empty", "-m", "0"],
            ["sh", "-c", f"echo a > {self.repo}/a"],
            [*git, "add", "a"],
            [*git, "commit", "-q", "-m", "1"],
            [*git, "worktree", "add", "-q", str(self.other), "-b", "other"],
            ["git", "clone", "-q", "--shared", "--template=", str(self.repo), str(self.work)],
        ):
            subprocess.run(words, check=True, timeout=30)
        (self.repo / ".git" / "hooks").mkdir()
        (self.store / "sessions").mkdir(parents=True)
        (self.store / "sessions" / "ann").write_text("SECRET\n")
        (self.store / "store.db").touch()
        self.house = self.base / "house"  # the home of the user
        (self.house / ".ssh").mkdir(parents=True)
        (self.house / ".ssh" / "id_key").write_text("SECRET\n")
        (self.house / ".netrc").write_text("[a]\nb = SECRET\n")
        self.shared = Path(f"/dev/shm/landlane-escapes-{os.getpid()}")
        self.key = 0x4C4C0000 + os.getpid() % 0x10000
        (self.work / "f").write_text("x\n")
        self.later = subprocess.check_output([*git, "rev-parse", "main~1"], text=True, timeout=30).strip()
        shutil.copytree(self.base, self._template, symlinks=True)

    def set_up(self) -> None:
        """Restore the files, and start a new victim and new listeners."""
        if self.is_spoilt:  # else nothing outside of its workspace has changed
            shutil.rmtree(self.base)
            shutil.copytree(self._template, self.base, symlinks=True)
        for path in (self.out / "sock", self.out / "resident", self.hidden / "sock"):
            path.unlink(missing_ok=True)
        for name in ("d", "disk", "e", "l", "s", "taken", "key"):
            (self.work / name).unlink(missing_ok=True)
        shutil.rmtree(self.work / "copy", ignore_errors=True)
        self.abstract = f"landlane-test-{os.getpid()}-{next(self._numbers)}"
        self.port = self._listen(socket.AF_INET, ("127.0.0.1", 0))
        self._listen(socket.AF_UNIX, "\0" + self.abstract)
        self._listen(socket.AF_UNIX, str(self.out / "sock"))
        self._listen(socket.AF_UNIX, str(self.hidden / "sock"))
        self._listen(socket.AF_UNIX, str(self.out / "resident"))
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", self.port))
        self._udp.setblocking(False)
        self._sockets.append(self._udp)
        name = f"landlane-victim-{self.port}"
        self.victim = subprocess.Popen(
            ["/bin/sh", "-c", "read line", name], stdin=subprocess.PIPE, env={"S": "SECRET"}
        )
        self.shared.write_text("SECRET")
        libc = ctypes.CDLL(None, use_errno=True)
        libc.shmat.restype = ctypes.c_void_p
        self._memory = libc.shmget(self.key, 4096, 0o1666)
        ctypes.memmove(at := libc.shmat(self._memory, None, 0), b"SECRET", 6)
        libc.shmdt(ctypes.c_void_p(at))
        self.leak = os.open(self.out / "file", os.O_WRONLY)

    def _listen(self, family: int, address: object) -> int:
        server = socket.socket(family)
        server.setsockopt(socket.IPPROTO_TCP, 23, 5) if family == socket.AF_INET else None  # Fast Open
        server.bind(address)  # pyright: ignore[reportArgumentType]
        server.listen(8)
        self._sockets.append(server)

        def serve() -> None:
            with suppress(OSError):
                while True:
                    peer, _ = server.accept()
                    peer.sendall(b"reached")
                    peer.close()

        threading.Thread(target=serve, daemon=True).start()
        return server.getsockname()[1] if family == socket.AF_INET else 0

    def tear_down(self) -> None:
        os.close(self.leak)
        self.shared.unlink(missing_ok=True)
        ctypes.CDLL(None).shmctl(self._memory, 0, None)  # IPC_RMID
        self.victim.kill()
        self.victim.communicate()
        for server in self._sockets:
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)  # wakes its thread
            server.close()
        self._sockets.clear()

    def environment(self) -> dict[str, str]:
        return {
            "OUT": str(self.out),
            "BASE": str(self.base),
            "REPO": str(self.repo),
            "OTHER": str(self.other),
            "STORE": str(self.store),
            "HIDDEN": str(self.hidden),
            "LATER": self.later,
            "VICTIM": str(self.victim.pid),
            "PORT": str(self.port),
            "ABSTRACT": self.abstract,
            "HOUSE": str(self.house),
            "SHM": str(self.shared),
            "KEY": str(self.key),
            "PYTHON": sys.executable,
        }

    def look(self, sign: str) -> object:
        """Return the current state of what this sign names."""
        if sign.startswith("say "):
            return sign[4:] in self.output
        if sign == "udp":
            try:
                return self._udp.recv(9)
            except BlockingIOError:
                return b""
        file, git = self.out / "file", self.repo / ".git"
        looks: dict[str, Callable[[], object]] = {
            "file": lambda: file.read_bytes() if file.exists() else None,
            "new": lambda: os.path.lexists(self.out / "new"),
            "main tree": lambda: ((self.repo / "new").exists(), (self.repo / "a").read_text()),
            "hook": (git / "hooks" / "pre-commit").exists,
            "config": (git / "config").read_text,
            "other index": (git / "worktrees" / "other" / "index").read_bytes,
            "other tree": (self.other / "a").exists,
            "main": (git / "refs" / "heads" / "main").read_text,
            "objects": lambda: sorted(str(path) for path in (git / "objects").rglob("*")),
            "store": lambda: (self.store / "store.db").stat().st_size,
            "mode": lambda: file.stat().st_mode,
            "times": lambda: file.stat().st_mtime,
            "victim": self.victim.poll,
            "limits": lambda: Path(f"/proc/{self.victim.pid}/limits").read_text(),
            "nice": lambda: os.getpriority(os.PRIO_PROCESS, self.victim.pid),
        }
        return looks[sign]()


def make_sandbox(name: str, scene: EscapeTestbed) -> Sandbox:
    """Return a sandbox: `worker` has the network and one socket, `ports` one port, `tight` nothing."""
    worker = Sandbox(
        writable=(str(scene.work),),
        scratch=str(scene.scratch),
        readable=(str(scene.base),),
        hidden=(str(scene.store / "sessions"), str(scene.house)),
        sockets_visible=(str(scene.out / "resident"),),
    )
    if name == "worker":
        return worker
    if name == "ports":
        return replace(worker, unix_sockets=True, tcp_connect=(443,), modes=False)
    return replace(worker, sockets_visible=(), tcp_connect=(), tcp_bind=(), udp=False)


def pick_backend(name: str) -> Backend | None:
    """Return the backend of this name, or None if this machine does not have it."""
    found = choose_backend()
    if name in (BackendKind.LANDLOCK, OLD_LANDLOCK) and found.landlock_abi >= ABI_LEAST:
        abi = found.landlock_abi if name == BackendKind.LANDLOCK else ABI_LEAST
        return Backend(name=BackendKind.LANDLOCK, landlock_abi=abi, has_filter=found.has_filter)
    return found if found.name == name else None


def run_unsandboxed(scene: EscapeTestbed, attempt: Attempt) -> str:
    return subprocess.run(
        ["sh", "-c", attempt.script],
        cwd=scene.work,
        env={**os.environ, **scene.environment()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        errors="replace",
        close_fds=False,
        timeout=LIMIT_SECONDS,
    ).stdout


def run_sandboxed(scene: EscapeTestbed, attempt: Attempt, backend: Backend, sandbox: Sandbox) -> str:
    sandbox = replace(sandbox, environment=(*scene.environment().items(), *sandbox.environment))
    child = SandboxedChild(["sh", "-c", attempt.script], sandbox, cwd=str(scene.work), backend=backend)
    return child.wait(LIMIT_SECONDS).stdout


def run_attempt(scene: EscapeTestbed, attempt: Attempt, backend: Backend | None, sandbox: Sandbox) -> bool:
    """Make the attempt and return whether it succeeded."""
    scene.set_up()
    scene.output = ""
    try:
        os.dup2(scene.leak, LEAK, inheritable=True)
        before = scene.look(attempt.sign)
        scene.output = (
            run_unsandboxed(scene, attempt)
            if backend is None
            else run_sandboxed(scene, attempt, backend, sandbox)
        )
        if attempt.sign == "victim":  # a signal arrives at once, but the victim needs a moment to end
            is_held = backend is not None and GuaranteeState.HELD in [
                found.state for found in list_guarantees(backend, sandbox) if found.promise == attempt.promise
            ]
            with suppress(subprocess.TimeoutExpired):
                scene.victim.wait(0.2 if is_held else LIMIT_SECONDS)
        scene.is_spoilt = scene.look(attempt.sign) != before
        return scene.is_spoilt
    finally:
        os.close(LEAK)
        scene.tear_down()


def main(folder: str, backend_name: str, sandbox_name: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    backend = pick_backend(backend_name)
    if backend is None and backend_name != CONTROL:
        reasons = " ".join(choose_backend().reasons) or f"this machine has {choose_backend().name}"
        json.dump({"missing": reasons}, sys.stdout)
        return
    scene = EscapeTestbed(Path(folder, "scene"), Path(folder + "-hidden"))
    sandbox = make_sandbox(sandbox_name, scene)
    results = {
        attempt.name: run_attempt(scene, attempt, backend, sandbox)
        for attempt in chosen_attempts()
        if os.geteuid() == 0 or not attempt.needs_root
    }
    guarantees = list_guarantees(backend or Backend(name=BackendKind.NONE), sandbox)
    promises = {found.promise: (found.state, found.by, found.why) for found in guarantees}
    json.dump({"through": results, "held": promises}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
