"""The demo: real processes on a scratch repository, first without coordination, then with it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import time

from interlock.cli.numbers import read_number
from interlock.errors import InterlockError, Malformed
from interlock.git.run import PLACES, run_git
from interlock.runners.process import Child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interlock.cli.main import Desk
    from interlock.runners.process import Ended

_FILES = ("src/registry.txt", "src/routes.txt", "CHANGELOG.md")
_ROUNDS = 12
_LIMIT_SECONDS = 120.0
# The person's own hooks and signatures have no place in the story.
_PLAIN_GIT = tuple(
    word
    for setting in (
        "user.name=demo",
        "user.email=demo@localhost",
        "commit.gpgsign=false",
        "core.hooksPath=/dev/null",
    )
    for word in ("-c", setting)
)


def demo(desk: Desk, agents: str, seed: str, keep: bool) -> int:
    """Tell the story, and end with a table of what was counted."""
    count = read_number(agents, "--agents") or 0
    if not 2 <= count <= 64:
        raise Malformed("the demo needs 2 to 64 agents", code="BAD_NUMBER", hint="interlock demo --agents 6")
    number = read_number(seed, "--seed") or 0
    _forget_surroundings()
    folder = tempfile.mkdtemp(prefix="interlock-demo-")
    try:
        return _Story(desk, folder, count, number).tell()
    finally:
        if keep:
            desk.terminal.note(f"kept: {folder} (try: cd {folder}/with && interlock journal)")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _forget_surroundings() -> None:
    """Keep the story and its agents away from the repository, store and session of whoever started it."""
    for name in list(os.environ):
        if name in PLACES or name.startswith("INTERLOCK_"):
            del os.environ[name]


class _Story:
    """One run of the demo."""

    def __init__(self, desk: Desk, folder: str, agents: int, seed: int) -> None:
        self._say = desk.terminal.note
        self._terminal = desk.terminal
        self._folder = folder
        self._agents = agents
        self._seed = seed

    def tell(self) -> int:
        self._say(f"1. {self._agents} agents race for one file, each a process of its own")
        winners = self._race("with", "src/registry.txt")
        self._say(f"   {winners} got it, {self._agents - winners} were refused and told who holds it\n")
        self._say("2. the same agents change three shared files, without and then with claims")
        naive = self._work("without", is_naive=True)
        ours = self._work("with", is_naive=False)
        self._say("\n3. a holder is stopped, its lease runs out, another takes over, the sleeper wakes up")
        is_fenced = self._sleeper("with")
        self._say("\n4. is the journal whole?")
        verdict = self._interlock("with", "journal", "--verify", "--json")
        told = json.loads(verdict.output)
        self._say(f"   {told['entries']} entries, {'the chain is whole' if told['ok'] else told['message']}")
        return self._sum_up(winners, naive, ours, is_fenced=is_fenced, is_whole=verdict.exit_code == 0)

    def _repository(self, name: str) -> str:
        root = os.path.join(self._folder, name)
        if os.path.isdir(root):
            return root
        os.makedirs(os.path.join(root, "src"))
        for file in _FILES:
            with open(os.path.join(root, file), "w", encoding="utf-8") as target:
                target.write("0\n")
        for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "a scratch repository")):
            done = run_git(*_PLAIN_GIT, *words, cwd=root)
            if done.exit_code:
                raise InterlockError(f"git {words[0]} failed: {done.trouble}", code="GIT_FAILED")
        return root

    def _start(self, root: str, *words: str) -> Child:
        return Child([sys.executable, "-m", *words], cwd=root)

    def _interlock(self, name: str, *words: str) -> Ended:
        return self._start(self._repository(name), "interlock", *words).wait(_LIMIT_SECONDS)

    def _race(self, name: str, path: str) -> int:
        root = self._repository(name)
        racers = [
            self._start(root, "interlock", "claim", path, "--as", f"agent{number}", "--json")
            for number in range(self._agents)
        ]
        answers = [json.loads(racer.wait(_LIMIT_SECONDS).output) for racer in racers]
        for answer in answers:
            if not answer["ok"]:
                refused = answer["refused"][0]
                self._say(
                    f"   refused: {refused['holder']} holds {refused['held']} until {refused['until'][11:19]}"
                )
        winners = [answer["granted"][0]["holder"] for answer in answers if answer["ok"]]
        for winner in winners:
            self._interlock(name, "release", "--all", "--as", winner)
        return len(winners)

    def _work(self, name: str, *, is_naive: bool) -> dict[str, float]:
        root = self._repository(name)
        began = time.monotonic()
        way = "naive" if is_naive else "claims"
        workers = [
            self._start(
                root,
                "interlock.cli.demo_agent",
                way,
                f"agent{number}",
                str(self._seed + number),
                str(_ROUNDS),
            )
            for number in range(self._agents)
        ]
        ends = [worker.wait(_LIMIT_SECONDS) for worker in workers]
        took = time.monotonic() - began
        failed = [end for end in ends if end.exit_code]
        if failed:
            raise InterlockError(
                f"an agent of the demo failed: {failed[0].trouble[-500:]}", code="DEMO_FAILED"
            )
        made = sum(json.loads(end.output)["changes"] for end in ends)
        refusals = sum(json.loads(end.output)["refusals"] for end in ends)
        kept = sum(_read_number(os.path.join(root, file)) for file in _FILES)
        self._say(f"   {way}: {made} changes made, {kept} still there, {made - kept} lost, {took:.1f} s")
        return {"made": made, "lost": made - kept, "refusals": refusals, "seconds": round(took, 1)}

    def _sleeper(self, name: str) -> bool:
        root = self._repository(name)
        sleeper = self._start(root, "interlock.cli.demo_agent", "sleep", "sleeper", str(self._seed), "1")
        self._await_holder(name, "sleeper")
        sleeper.signal(signal.SIGSTOP)
        self._say("   sleeper holds src/routes.txt and is stopped")
        taken = self._interlock(
            name, "claim", "src/routes.txt", "--as", "successor", "--wait", "20s", "--json"
        )
        self._say("   successor takes over" if taken.exit_code == 0 else "   successor does not get it")
        sleeper.signal(signal.SIGCONT)
        end = sleeper.wait(_LIMIT_SECONDS)
        told = json.loads(end.output)
        self._say(f"   sleeper wakes up, wants to release what it held, and is told: {told['code']}")
        return taken.exit_code == 0 and told["code"] in ("LEASE_OVER", "SESSION_OVER")

    def _await_holder(self, name: str, agent: str) -> None:
        for _ in range(200):
            answer = json.loads(self._interlock(name, "claims", "--json").output)
            if any(claim["holder"] == agent for claim in answer["claims"]):
                return
            time.sleep(0.05)
        raise InterlockError("the sleeper of the demo did not claim anything", code="DEMO_FAILED")

    def _sum_up(
        self,
        winners: int,
        naive: dict[str, float],
        ours: dict[str, float],
        *,
        is_fenced: bool,
        is_whole: bool,
    ) -> int:
        rows = [
            ["agents that got the same file at once", "-", str(winners)],
            ["changes made", str(naive["made"]), str(ours["made"])],
            ["changes lost", str(naive["lost"]), str(ours["lost"])],
            ["refusals, each with holder and hint", "-", str(ours["refusals"])],
            ["sleeper refused after its lease", "-", "yes" if is_fenced else "NO"],
            ["journal whole", "-", "yes" if is_whole else "NO"],
            ["seconds", str(naive["seconds"]), str(ours["seconds"])],
        ]
        is_well = winners == 1 and ours["lost"] == 0 and is_fenced and is_whole
        text = self._terminal.table("", ["", "without", "with interlock"], rows)
        answer = {
            "ok": is_well,
            "winners": winners,
            "without": naive,
            "with": ours,
            "fenced": is_fenced,
            "journal_whole": is_whole,
            "seed": self._seed,
        }
        if not is_well:
            answer |= {
                "code": "DEMO_FAILED",
                "message": "a promise did not hold",
                "hint": "run it with --keep",
            }
        self._terminal.answer(answer, text)
        return 0 if is_well else 1


def _read_number(path: str) -> int:
    with open(path, encoding="utf-8") as file:
        return int(file.read())
