"""The SDK's own tool runners, against a scripted model and a real Quipu."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from anthropic import Anthropic, AsyncAnthropic
from anthropic.lib.tools import ToolError

from quipu_memory import QuipuAsyncMemoryTool, QuipuMemoryTool, QuipuUnavailable
from scripted_model import (
    MEMORY_SESSION_RESULTS,
    MEMORY_SESSION_TEXT,
    ScriptedModel,
    memory_session,
    say,
    use,
)


def check(quipu, model: ScriptedModel, title: str) -> None:
    """Checks the tool results, the stored text, and the author in the history."""
    results = model.results()
    assert len(results) == len(MEMORY_SESSION_RESULTS)
    for result, (is_error, part) in zip(results, MEMORY_SESSION_RESULTS):
        assert result.get("is_error", False) == is_error, result
        assert part in result["content"], result
    assert quipu.run("-s", "memories", "cat", "/tea.md") == MEMORY_SESSION_TEXT
    assert quipu.run("-s", "memories", "ls") == "/tea.md\n"
    versions = quipu.json("-s", "memories", "log")["data"]
    assert [version["operation"] for version in reversed(versions)] == [
        "created", "modified", "modified", "created", "modified", "deleted",
    ]
    authors = {version["created_by"]["session_id"] for version in versions}
    assert len(authors) == 1
    assert quipu.json("session", "show", authors.pop())["title"] == title


@pytest.fixture(params=["child", "server"])
def reach(request, quipu):
    """Returns the options with which a tool reaches Quipu: as a child process, or by URL and key."""
    if request.param == "child":
        return {"binary": quipu.binary, "data": quipu.data}
    server = request.getfixturevalue("server")
    return {"url": server.url, "api_key": server.key}


def test_the_sync_runner(quipu, reach) -> None:
    model = ScriptedModel(memory_session())
    client = Anthropic(api_key="test", base_url=model.url)
    with QuipuMemoryTool(title="sync test", **reach) as memory:
        runner = client.beta.messages.tool_runner(
            model="scripted", max_tokens=100, tools=[memory],
            messages=[{"role": "user", "content": "Remember how to make tea."}],
        )
        final = runner.until_done()
    assert final.content[0].text == "Noted."
    assert model.requests[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    check(quipu, model, "sync test")
    model.close()


def test_the_async_runner(quipu, reach) -> None:
    async def run(model: ScriptedModel) -> None:
        client = AsyncAnthropic(api_key="test", base_url=model.url)
        async with QuipuAsyncMemoryTool(title="async test", **reach) as memory:
            runner = client.beta.messages.tool_runner(
                model="scripted", max_tokens=100, tools=[memory],
                messages=[{"role": "user", "content": "Remember how to make tea."}],
            )
            await runner.until_done()

    model = ScriptedModel(memory_session())
    asyncio.run(run(model))
    check(quipu, model, "async test")
    model.close()


def test_a_read_only_tool_reports_the_refusal_to_the_model(reach) -> None:
    script = [use(1, command="create", path="/memories/x", file_text="x"), say("Oh.")]
    model = ScriptedModel(script)
    client = Anthropic(api_key="test", base_url=model.url)
    with QuipuMemoryTool(read_only=True, **reach) as memory:
        client.beta.messages.tool_runner(
            model="scripted", max_tokens=100, tools=[memory],
            messages=[{"role": "user", "content": "Write."}],
        ).until_done()
    result = model.results()[0]
    assert result["is_error"] and "read-only" in result["content"]
    model.close()


VIEW = {"command": "view", "path": "/memories/a"}
CREATE = {"command": "create", "path": "/memories/a", "file_text": "x"}


def test_keys_of_every_role_and_a_session_token_reach_a_server(quipu, server) -> None:
    quipu.run("store", "create", "memories")
    writer = quipu.new_key("read_write", "--store", "memories")["secret"]
    with QuipuMemoryTool(url=server.url, api_key=writer) as memory:
        memory.call(CREATE)
    reader = quipu.new_key("read_only", "--store", "memories")["secret"]
    with QuipuMemoryTool(url=server.url, api_key=reader) as memory:
        assert "x" in memory.call(VIEW)
        with pytest.raises(ToolError, match="read-only"):
            memory.call({**CREATE, "path": "/memories/b"})
    with Anthropic(base_url=server.url, api_key=server.key) as client:
        store = client.beta.memory_stores.list().data[0].id
        raw = client.beta.sessions.with_raw_response.create(
            agent="a", environment_id="e", resources=[{"type": "memory_store", "memory_store_id": store}]
        )
    with QuipuMemoryTool(url=server.url, api_key=raw.headers["quipu-session-token"]) as memory:
        memory.call({**CREATE, "path": "/memories/c"})
    author = quipu.json("log")["data"][0]["created_by"]
    assert author == {"type": "session_actor", "session_id": raw.parse().id}


def test_close_archives_the_session_and_a_later_call_creates_another(quipu, server) -> None:
    memory = QuipuMemoryTool(url=server.url, api_key=server.key)
    memory.call(CREATE)
    memory.close()
    session = quipu.json("log")["data"][0]["created_by"]["session_id"]
    with Anthropic(base_url=server.url, api_key=server.key) as client:
        assert client.beta.sessions.retrieve(session).archived_at is not None
    assert "x" in memory.call(VIEW)
    memory.close()


def test_a_server_that_rejects_or_is_down_is_explained(quipu, server) -> None:
    with pytest.raises(QuipuUnavailable, match="401.*authentication_error"):
        QuipuMemoryTool(url=server.url, api_key="sk-quipu-wrong").call(VIEW)
    key = quipu.new_key("read_write")["secret"]
    with pytest.raises(QuipuUnavailable, match="404.*not_found_error"):
        QuipuMemoryTool(url=server.url, api_key=key, store="unknown").call(VIEW)
    with pytest.raises(QuipuUnavailable, match="did not answer"):
        QuipuMemoryTool(url="http://127.0.0.1:9", api_key=server.key).call(VIEW)


def test_the_typed_methods_work_too(quipu) -> None:
    from anthropic.types.beta import BetaMemoryTool20250818CreateCommand as Create

    with QuipuMemoryTool(binary=quipu.binary, data=quipu.data) as memory:
        command = Create(command="create", path="/memories/a", file_text="x")
        assert memory.create(command) == "File created successfully at: /memories/a"
        with pytest.raises(ToolError, match="already exists"):
            memory.create(command)


def test_a_missing_binary_and_an_exited_process_are_explained(quipu) -> None:
    with pytest.raises(QuipuUnavailable, match="cannot start"):
        QuipuMemoryTool(binary="/nonexistent/quipu")
    memory = QuipuMemoryTool(binary=quipu.binary, data=quipu.data)
    memory.close()
    with pytest.raises(QuipuUnavailable, match="has exited"):
        memory.call({"command": "view", "path": "/memories"})


def test_the_example_saves_before_it_forgets(quipu) -> None:
    """The script plays a model that is warned before its context is cleared and saves its findings."""
    script = [
        use(1, command="view", path="/memories"),
        [
            {"type": "text", "text": "My context will be trimmed soon, so I save what I found."},
            *use(2, command="create", path="/memories/teas.md", file_text="- Sencha: grassy\n"),
        ],
        use(3, command="view", path="/memories/teas.md"),
        say("Sencha is done; gyokuro comes next."),
    ]
    model = ScriptedModel(script)
    environment = {
        **os.environ,
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "test",
        "QUIPU_DATA": quipu.data,
    }
    example = Path(__file__).parent.parent / "examples" / "save_before_forgetting.py"
    ran = subprocess.run(
        [sys.executable, str(example), quipu.binary],
        env=environment, capture_output=True, encoding="utf-8", check=True,
    )
    assert "I save what I found" in ran.stdout
    assert quipu.run("cat", "/teas.md") == "- Sencha: grassy\n"
    edit = model.requests[0]["context_management"]["edits"][0]
    assert edit["exclude_tools"] == ["memory"]
    assert "context-management-2025-06-27" in model.headers[0]["anthropic-beta"]
    assert "Look first." in model.requests[0]["system"]
    model.close()
