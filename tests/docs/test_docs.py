"""Every snippet of the README, the tutorial and the how-to pages runs and prints what the page shows.

A page runs in one shell in a scratch repository, from top to bottom. `sh` and `python` blocks must exit with
0. In `console` blocks each `$ ` line is run, and its output is compared with the lines below it: times,
tokens and ids may differ, `…` stands for any text. `<!-- not run: reason -->` above a block leaves it out.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from landlane.cli.table import format_table
from landlane.demo.run import ROWS, TITLES
from landlane.patterns.pattern import overlap, parse
from landlane.testing.repositories import make_repository

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PLAYED = [ROOT / "README.md", ROOT / "docs" / "tutorial.md", *sorted((ROOT / "docs" / "howto").glob("*.md"))]
WRITTEN = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
FILES = {
    "CHANGELOG.md": "# Changes\n",
    "src/api.py": "ROUTES = []\n",
    "src/app.py": "import api\n",
    "docs/index.md": "# Shop\n",
}
DATABASE = "postgresql://db.example/landlane"  # what the pages call the database
# Pages that start commands inside the sandbox.
SANDBOXED = {"read-only-workers.md", "run.md", "sandbox.md", "tutorial.md", "workers.md"}
LIMIT_SECONDS = 90

BLOCK = re.compile(
    r"(?P<skip><!-- not run: [^>]+ -->\s+)?^```(?P<kind>sh|python|console)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
MARK = "\x1e"
MASKS = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (r"before-[\dT-]+Z", "before-TIME"),
    (r"\b\d{10,}\b", "TOKEN"),
    (r"\bs-[a-z0-9]{10}\b", "SESSION"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]+\b", "UUID"),
    (r"\b[0-9a-f]{7,64}\b", "HASH"),
    (r"\b\d+(ms|[smhd])(\d+[smhd])?\b", "SPAN"),
    (r"\bunder 1 s\b|\b\d+ (s|min|h|d)\b( \d+ (s|min|h)\b)?", "SPAN"),
    (r" +", " "),
)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


class DocumentCommand(NamedTuple):
    """One thing to run: a block, or one command of a console with what it should say."""

    text: str
    expected: list[str] | None = None


def with_needs(page: Path) -> object:
    """Return the page as a parameter, marked with what it needs."""
    marks = [pytest.mark.sandbox] if page.name in SANDBOXED else []
    if DATABASE in page.read_text(encoding="utf-8"):
        marks.append(pytest.mark.postgres)
    return pytest.param(page, marks=marks)


@pytest.mark.slow
@pytest.mark.parametrize("page", [with_needs(page) for page in PLAYED], ids=name_of)
def test_a_page_does_what_it_says(page: Path, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if DATABASE in text:
        url = request.getfixturevalue("postgres_server").create_database()
        text = text.replace(DATABASE, url)
    steps = read_steps(text)
    repository = make_repository(tmp_path / "shop", files=FILES)
    said = play(steps, repository, tmp_path / "page.sh")

    for step, (output, code) in zip(steps, said, strict=False):
        if step.expected is None:
            assert code == 0, f"{page.name}: this failed:\n{step.text}\n{output}"
        else:
            expected = "\n".join(step.expected)
            assert is_as_expected(expected, output), (
                f"{page.name}: $ {step.text}\nshould say:\n{expected}\n\nbut says:\n{output}"
            )
    assert len(said) == len(steps), f"{page.name}: nothing came behind:\n{steps[len(said) - 1].text}"


def read_steps(page: str) -> list[DocumentCommand]:
    """Return the steps of a page in order."""
    steps: list[DocumentCommand] = []
    for block in BLOCK.finditer(page):
        kind, text = block["kind"], block["text"]
        if block["skip"]:
            continue
        if kind == "python":
            steps.append(DocumentCommand(f"python - <<'END_OF_SNIPPET'\n{text}END_OF_SNIPPET"))
        elif kind == "sh":
            steps.append(DocumentCommand(text))
        else:
            steps += read_console(text)
    return steps


def read_console(text: str) -> list[DocumentCommand]:
    """Return the commands of a console block, each with the lines that follow it."""
    steps: list[DocumentCommand] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            steps.append(DocumentCommand(line[2:], []))
        elif line.startswith("> ") and steps:
            steps[-1] = DocumentCommand(f"{steps[-1].text}\n{line[2:]}", [])
        else:
            expected = steps[-1].expected
            assert expected is not None
            expected.append(line)
    return steps


def play(steps: list[DocumentCommand], folder: Path, script: Path) -> list[tuple[str, int]]:
    """Run the steps in one shell; return the output and exit code of each, up to where the shell ended."""
    lines = ["exec 2>&1"]
    for step in steps:
        is_strict = step.expected is None
        lines += ["set -e"] if is_strict else []
        # `$?` is given on, so that `echo $?` on the next line of a page shows what a person would see.
        lines += [step.text, f"_code=$?; printf '{MARK}%s{MARK}' $_code; set +e; (exit $_code)"]
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", str(script)],
        cwd=folder,
        env={**os.environ, "PATH": programs, "USER": "pat"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    parts = done.stdout.split(MARK)
    ended = [(output, int(code)) for output, code in zip(parts[::2], parts[1::2], strict=False)]
    return ended if len(ended) == len(steps) else [*ended, (parts[-1], done.returncode or 1)]


def is_as_expected(expected: str, output: str) -> bool:
    """Whether an output is what the page shows, up to what differs from day to day."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "…" else re.escape(line).replace("…", ".*") + r"\n"
        for line in masked(expected)
    )
    pattern = pattern.replace("HASH", "(?:HASH|TOKEN)")  # a hash may happen to have no letter in it
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in masked(output))) is not None


def masked(text: str) -> list[str]:
    for pattern, name in MASKS:
        text = re.sub(pattern, name, text)
    return [line.strip() for line in text.strip("\n").splitlines()]


def test_times_tokens_and_ids_may_differ_but_words_may_not() -> None:
    said = "granted a.py  (exclusive, token 4294967299, until 2026-11-15T23:18:14.696Z)\n"

    assert is_as_expected("granted a.py (exclusive, token 8589934601, until 2027-01-01T00:00:00.000Z)", said)
    assert is_as_expected("granted a.py …", said)
    assert is_as_expected("landed as 0123456789ab", "landed as 748392847562\n")
    assert not is_as_expected("landed as 0123456789ab", "landed as planned\n")
    assert is_as_expected("…", said)
    assert not is_as_expected(
        "granted b.py (exclusive, token 8589934601, until 2027-01-01T00:00:00.000Z)", said
    )
    assert not is_as_expected("", said)


def test_a_failing_block_ends_the_page_there(tmp_path: Path) -> None:
    steps = read_steps("```sh\ntrue\nfalse\n```\n\n```console\n$ echo $?\n0\n```\n")

    assert play(steps, tmp_path, tmp_path / "page.sh") == [("", 1)]


def test_an_exit_code_can_be_shown(tmp_path: Path) -> None:
    steps = read_steps("```console\n$ (exit 3)\n$ echo $?\n3\n```\n")

    assert play(steps, tmp_path, tmp_path / "page.sh") == [("", 3), ("3\n", 0)]


def test_the_table_of_overlaps_is_true() -> None:
    page = (ROOT / "docs" / "explanation" / "overlap.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \| (yes|no) \|$", page, re.MULTILINE)

    assert len(rows) > 10
    for one, other, answer in rows:
        assert overlap(parse(one), parse(other)) == (answer == "yes"), f"{one} and {other}"


def test_the_index_lists_every_page_under_its_own_title() -> None:
    index = DOCS / "README.md"
    listed = re.findall(r"\[([^\]]+)\]\(((?:howto/)?[\w-]+\.md)\)", index.read_text(encoding="utf-8"))
    titles = {path: title for title, path in listed if title != "tutorial"}
    pages = [DOCS / "tutorial.md", *sorted((DOCS / "howto").glob("*.md"))]

    assert set(titles) == {str(page.relative_to(DOCS)) for page in pages}
    for page in pages:
        heading = page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        assert titles[str(page.relative_to(DOCS))] == heading


def test_every_extra_that_a_page_installs_exists() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = set(tomllib.load(file)["project"]["optional-dependencies"])
    for page in WRITTEN:
        for names in re.findall(r"(?:\.|landlane)\[([a-z,]+)\]'", page.read_text(encoding="utf-8")):
            assert set(names.split(",")) <= extras, f"{page.name}: {names}"


def test_the_table_of_the_readme_is_printed_as_the_demo_prints_it() -> None:
    for page in (ROOT / "README.md", DOCS / "howto" / "demo.md"):
        table = re.search(
            r"^ +one checkout.*?^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        )
        assert table is not None
        header, *rows = table[0].removesuffix("\n```").splitlines()
        cells = [re.split(r"  +", row) for row in rows]
        assert [row[0] for row in cells] == list(ROWS.values())
        titles = ["", *TITLES.values()]
        assert "\n".join([header, *rows]) == format_table(titles, cells, right=titles[1:])


def test_the_two_commands_of_the_front_page_are_there() -> None:
    shown = subprocess.run(
        ["make", "--dry-run", "demo", "test"], cwd=ROOT, capture_output=True, text=True, timeout=60
    )

    assert shown.returncode == 0, shown.stderr
    assert "landlane demo" in shown.stdout
    assert "pytest" in shown.stdout


@pytest.mark.slow
def test_every_python_snippet_passes_pyright_in_standard_mode(tmp_path: Path) -> None:
    for page in WRITTEN:
        blocks = re.findall(
            r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
        )
        for number, block in enumerate(blocks, 1):
            if re.search(r"^(from|import) ", block, re.MULTILINE):  # not a signature of the reference
                (tmp_path / f"{page.parent.name}_{page.stem}_{number}.py").write_text(block, encoding="utf-8")
    assert len(list(tmp_path.glob("*.py"))) > 15
    settings = {"typeCheckingMode": "standard", "reportMissingImports": False}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")

    checked = subprocess.run(
        [Path(sys.executable).with_name("basedpyright"), "--pythonpath", sys.executable, "--level", "error"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )

    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        file, _, heading = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        assert path.exists(), f"{page.name} links to {target}"
        assert not heading or heading in headings(path), f"{page.name} links to {target}"


def headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    lines = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in lines}


@pytest.mark.slow
def test_the_picture_of_the_front_page_shows_what_the_product_says() -> None:
    shown = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "picture.py"), "--check"],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )

    assert shown.returncode == 0, shown.stderr
