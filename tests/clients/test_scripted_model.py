"""The scripted model: which turn it plays, in each wire format, and when it keeps an answer back."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.scripted_model.server import OVER, ScriptedModel, choose, marker

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration

TOOLS = [{"name": "shell"}]
CALL = {"tool": "shell", "input": {"command": "true"}}
SCRIPTS = {"main": [[CALL], [{"text": "done"}]], "sub": [[{"text": "from the subagent"}]]}
PROMPT = f"{marker('main')} go"

# The same conversation, after one answer of the model, as each format tells it.
ANTHROPIC = {
    "tools": TOOLS,
    "messages": [
        {"role": "user", "content": "before the script"},
        {"role": "assistant", "content": "not counted"},
        {"role": "user", "content": PROMPT},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "tool_use", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "content": "result"}]},
    ],
}
RESPONSES = {
    "tools": TOOLS,
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": PROMPT}]},
        {"type": "reasoning"},
        {"type": "function_call", "name": "shell"},
        {"type": "function_call_output", "output": "result"},
    ],
}
CHAT = {
    "tools": TOOLS,
    "messages": [
        {"role": "user", "content": PROMPT},
        {"role": "assistant", "tool_calls": [{"id": "1"}]},
        {"role": "tool", "content": "result"},
    ],
}
GEMINI = {
    "tools": TOOLS,
    "contents": [
        {"role": "user", "parts": [{"text": PROMPT}]},
        {"role": "model", "parts": [{"functionCall": {"name": "shell"}}]},
        {"role": "user", "parts": [{"functionResponse": {"response": {"output": "result"}}}]},
    ],
}


def ask(model: ScriptedModel, path: str, body: dict[str, Any]) -> str:
    request = urllib.request.Request(model.url + path, json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read().decode()


@pytest.mark.parametrize("body", [ANTHROPIC, RESPONSES, CHAT, GEMINI])
def test_turn_is_the_number_of_answers_since_the_marker(body: dict[str, Any]) -> None:
    assert choose(body, SCRIPTS) == ("main", 1, [{"text": "done"}])


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages", ANTHROPIC),
        ("/v1/messages", {**ANTHROPIC, "stream": True}),
        ("/v1/responses", RESPONSES),
        ("/v1/responses", {**RESPONSES, "stream": True}),
        ("/v1/chat/completions", CHAT),
        ("/v1/chat/completions", {**CHAT, "stream": True}),
        ("/v1beta/models/m:generateContent", GEMINI),
        ("/v1beta/models/m:streamGenerateContent?alt=sse", GEMINI),
    ],
)
def test_every_format_is_answered_at_once_and_as_a_stream(path: str, body: dict[str, Any]) -> None:
    with ScriptedModel(SCRIPTS) as model:
        answer = ask(model, path, body)

    assert "done" in answer
    assert answer.startswith(("event: ", "data: ")) == bool(body.get("stream") or "stream" in path)
    assert [(one.script, one.turn) for one in model.requests] == [("main", 1)]
    assert model.requests[0].contains("result")


def test_script_that_is_over_says_so() -> None:
    again = [*CHAT["messages"], {"role": "assistant", "content": "done"}, {"role": "user", "content": "more"}]

    assert choose({**CHAT, "messages": again}, SCRIPTS) == ("main", 2, [{"text": OVER}])


def test_title_is_asked_for_outside_of_the_script() -> None:
    without_tools = {"messages": [{"role": "user", "content": f"A title for this, please: {PROMPT}"}]}

    assert choose(without_tools, SCRIPTS)[0] == ""


def test_subagent_follows_its_own_script() -> None:
    asked = {"tools": TOOLS, "messages": [{"role": "user", "content": f"{marker('sub')} go"}]}

    assert choose(asked, SCRIPTS) == ("sub", 0, [{"text": "from the subagent"}])


def test_answer_waits_for_its_gate_and_for_another_script() -> None:
    scripts = {"main": [[{"after": "sub"}, {"gate": "go"}, {"text": "done"}]], "sub": SCRIPTS["main"]}
    first = {"tools": TOOLS, "messages": [{"role": "user", "content": PROMPT}]}
    sub = json.loads(json.dumps(CHAT).replace(marker("main"), marker("sub")))
    answers: list[str] = []

    with ScriptedModel(scripts) as model:
        asking = threading.Thread(target=lambda: answers.append(ask(model, "/v1/chat/completions", first)))
        asking.start()
        assert model.wait_for_turn("main", 0)
        assert not model.wait_for_turn("sub", 1, seconds=0)
        ask(model, "/v1/chat/completions", sub)
        assert answers == []
        model.open_gate("go")
        asking.join(30)

    assert "done" in answers[0]


def test_scripted_failure_has_its_status() -> None:
    first = {"tools": TOOLS, "messages": [{"role": "user", "content": PROMPT}]}
    with (
        ScriptedModel({"main": [[{"status": 529}]]}) as model,
        pytest.raises(urllib.error.HTTPError) as caught,
    ):
        ask(model, "/v1/messages", first)
    caught.value.close()

    assert caught.value.code == 529


def test_requests_are_also_kept_in_a_file(tmp_path: Path) -> None:
    log = tmp_path / "model.jsonl"
    with ScriptedModel(SCRIPTS, log=log) as model:
        ask(model, "/v1/chat/completions", CHAT)

    (entry,) = map(json.loads, log.read_text().splitlines())
    assert (entry["script"], entry["turn"], entry["body"]) == ("main", 1, CHAT)
