"""What `init` writes and how it is taken back: first a plan that can be shown, then its execution."""

from __future__ import annotations

import os

from interlock.bootstrap import open_house
from interlock.config import FILE_NAME, read_settings
from interlock.errors import RepositoryError
from interlock.git.layout import Checkout, find_checkout
from interlock.ids import digest
from interlock.values import value

_RECORD = "init-record"

_TEMPLATE = """\
# Settings of Interlock. Commit this file: every clone and every agent reads it.
# Take the # away from a line to use it. ttl, max_ttl and lease show what holds without.

[repository]
id = "{repository_id}"

[claims]
# ttl = "30m"            # the lease of a claim; any sign of life of its session renews it
# max_ttl = "7d"
# required = ["src/**"]  # the shared surface: changing it needs a claim
# free = ["scratch/**"]  # never needs a claim
# hot = ["CHANGELOG.md"] # may be claimed --shared by many at once

[sessions]
# lease = "30m"          # how long a silent session lives

[journal]
# git = true             # also commit the journal to refs/interlock/journal
"""


@value
class Step:
    """One file to write or to remove."""

    verb: str
    path: str
    why: str
    content: str = ""


@value
class Plan:
    """What will be done, in order."""

    root: str
    folder: str
    steps: tuple[Step, ...]


def plan_init(cwd: str) -> Plan:
    """What is missing for this repository to be set up."""
    checkout = _checkout_or_folder(cwd)
    steps: list[Step] = []
    if not os.path.isdir(checkout.state_folder):
        steps.append(
            Step(verb="create", path=checkout.state_folder, why="the state, shared by all worktrees")
        )
    path = os.path.join(checkout.root, FILE_NAME)
    if os.path.exists(path):
        read_settings(checkout.root)  # a file that cannot be understood is told now, not later
    else:
        steps.append(Step(verb="create", path=path, why="the settings; commit this file", content=_TEMPLATE))
    return Plan(root=checkout.root, folder=checkout.state_folder, steps=tuple(steps))


def plan_undo(cwd: str) -> Plan:
    """What init wrote and nobody changed since. The state itself stays: it holds other people's history."""
    checkout = find_checkout(cwd)
    path = os.path.join(checkout.root, FILE_NAME)
    steps: list[Step] = []
    written = _read_record(checkout.state_folder)
    if written and os.path.exists(path) and digest(_read(path)) == written:
        steps.append(Step(verb="remove", path=path, why="as init wrote it"))
    return Plan(root=checkout.root, folder=checkout.state_folder, steps=tuple(steps))


def carry_out(plan: Plan) -> list[str]:
    """Do what the plan says; tells what was changed."""
    changed: list[str] = []
    for step in plan.steps:
        if step.verb == "remove":
            os.unlink(step.path)
        elif step.content:
            content = step.content.format(repository_id=_repository_id(plan.root))
            if not _write_new(step.path, content):
                continue
            _write_record(plan.folder, digest(content))
        else:
            os.makedirs(step.path, exist_ok=True)
        changed.append(step.path)
    if not any(step.verb == "remove" for step in plan.steps):
        open_house(plan.root).close()
    return changed


def _checkout_or_folder(cwd: str) -> Checkout:
    try:
        return find_checkout(cwd)
    except RepositoryError as error:
        if error.code != "NO_REPOSITORY":
            raise
        return Checkout(root=os.path.realpath(cwd), git_dir="", common_dir="")


def _repository_id(root: str) -> str:
    """The id this repository already goes by here, so that nothing held is lost when the settings name it."""
    os.makedirs(_checkout_or_folder(root).state_folder, exist_ok=True)
    house = open_house(root)
    try:
        return house.store.repository
    finally:
        house.close()


def _write_new(path: str, content: str) -> bool:
    """Write a file whole; tells whether it did: one that came meanwhile stays as it is."""
    scratch = f"{path}.{os.getpid()}.new"
    with open(scratch, "w", encoding="utf-8") as file:
        file.write(content)
    try:
        os.link(scratch, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(scratch)
    return True


def _write_record(folder: str, record: str) -> None:
    with open(os.path.join(folder, _RECORD), "w", encoding="utf-8") as file:
        file.write(record)


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def _read_record(folder: str) -> str:
    path = os.path.join(folder, _RECORD)
    return _read(path).strip() if os.path.exists(path) else ""
