"""The official Python client against the real binary: over stdio and HTTP, old and new revision."""

import asyncio
import contextlib
import subprocess

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from server import BINARY, KEY, data_directory, served

PATIENCE_SECONDS = 60
NOTE = "# Tea shop\n- [decision] Prices in cents #money\n- depends_on [[Payment]]\n"


async def call(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    return result


async def use(client):
    """Uses everything that the server offers."""
    assert "Look first" in client.instructions
    tools = (await client.list_tools()).tools
    assert len(tools) == 15 and all(tool.title for tool in tools)

    path = "/memories/projects/tea-shop.md"
    result = await call(client, "memory", command="create", path=path, file_text=NOTE)
    assert result.content[0].text == f"File created successfully at: {path}"
    failed = await client.call_tool("memory", {"command": "view", "path": "/memories/none"})
    assert failed.is_error

    found = (await call(client, "search_notes", query="price")).structured_content
    assert found["results"][0]["file_path"] == "/projects/tea-shop.md"
    context = (await call(client, "build_context", url="memory://projects/tea-shop")).structured_content
    assert context["results"][0]["related_results"][0]["relation_type"] == "depends_on"
    recent = (await call(client, "recent_activity")).structured_content
    assert recent["results"][0]["operation"] == "created"
    assert recent["results"][0]["actor"]["title"].startswith("mcp")

    resources = (await client.list_resources()).resources
    uri = str(resources[0].uri)
    assert uri == "memory://memories/projects/tea-shop.md"
    assert (await client.read_resource(uri)).contents[0].text == NOTE
    assert len((await client.list_resource_templates()).resource_templates) == 1
    assert len((await client.list_prompts()).prompts) == 4
    prompt = await client.get_prompt("continue_conversation", {"topic": "tea"})
    assert "/projects/tea-shop.md" in prompt.messages[0].content.text

    seen = []
    await client.call_tool("search_notes", {"query": "tea"}, progress_callback=gather(seen))
    assert seen, "no progress was reported"


def gather(seen):
    async def progress(*update):
        seen.append(update)

    return progress


def changed(data):
    """Changes a memory through another door, in another process."""
    command = [BINARY, "--data", data, "--store", "memories", "put", "/projects/tea-shop.md"]
    subprocess.run(command, input=b"changed", check=True, stdout=subprocess.DEVNULL)


async def notified_of_changes(client, data):
    """A subscriber hears of a change that another process makes."""
    uri = "memory://memories/projects/tea-shop.md"
    async with client.listen(resource_subscriptions=[uri]) as events:
        await asyncio.to_thread(changed, data)
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for event in events:
                assert uri in repr(event), event
                return


async def over_stdio(mode):
    with data_directory() as data:
        server = StdioServerParameters(command=BINARY, args=["--data", data, "mcp"])
        async with Client(server, mode=mode) as client:
            await use(client)
            if mode == "auto":
                assert client.protocol_version == "2026-07-28"
                await notified_of_changes(client, data)


async def over_http(mode):
    with data_directory() as data, served(data) as address:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with contextlib.AsyncExitStack() as stack:
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=60))
            transport = streamable_http_client(f"{address}/mcp", http_client=http)
            client = await stack.enter_async_context(Client(transport, mode=mode))
            await use(client)
            if mode == "auto":
                await notified_of_changes(client, data)


for transport in [over_stdio, over_http]:
    for mode in ["auto", "legacy"]:
        asyncio.run(transport(mode))
        print(f"python client, {transport.__name__.replace('_', ' ')}, {mode}: ok")
