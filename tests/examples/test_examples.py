"""Each example does what its README says: played from top to bottom in a copy, up to its own check."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.docs.test_docs import is_as_expected, play, read_steps

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = ("monorepo", "narrator", "orchestrator", "review-board", "scheduled-draft", "two-machines")

LIMIT_SECONDS = 170  # most of it is for machines that do other things as well

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(180)]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.postgres) if name == "two-machines" else name for name in NAMES],
)
@pytest.mark.sandbox
def test_an_example_does_what_it_says(
    name: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.docs.test_docs.LIMIT_SECONDS", LIMIT_SECONDS)
    if name == "two-machines":
        request.getfixturevalue("postgres_server")  # the example starts its own; without one, this skips
    folder = tmp_path / name
    shutil.copytree(EXAMPLES / name, folder, ignore=shutil.ignore_patterns("__pycache__"))
    steps = read_steps((folder / "README.md").read_text(encoding="utf-8"))
    assert "python check.py" in [step.text for step in steps], "the example proves nothing"

    said = play(steps, folder, tmp_path / "page.sh")

    for step, (output, code) in zip(steps, said, strict=False):
        if step.expected is None:
            assert code == 0, f"this failed:\n{step.text}\n{output}"
        else:
            expected = "\n".join(step.expected)
            assert is_as_expected(expected, output), (
                f"$ {step.text}\nshould say:\n{expected}\n\nbut says:\n{output}"
            )
    assert len(said) == len(steps), f"nothing came behind:\n{steps[len(said) - 1].text}"


def test_the_front_page_names_every_example() -> None:
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    folders = {folder.name for folder in EXAMPLES.iterdir() if folder.is_dir()}

    assert set(re.findall(r"^\| \[([\w-]+)\]", page, re.MULTILINE)) == folders


@pytest.mark.parametrize("name", [".", *NAMES])
def test_links_of_an_example_lead_somewhere(name: str) -> None:
    page = EXAMPLES / name / "README.md"
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)

    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        assert (page.parent / target.partition("#")[0]).exists(), target
