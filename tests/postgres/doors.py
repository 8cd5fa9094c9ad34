"""Every door, each in a process of its own and as on different hosts, over one database."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from cluster import Cluster, until
from live import Quipu, Server

NOTE = "# Tea shop\n- [decision] Prices in cents #money\n- depends_on [[Payment]]\n"


def lines(process: subprocess.Popen, *messages: dict) -> dict:
    """Sends messages, one object per line, and returns the last answer."""
    for message in messages:
        process.stdin.write(json.dumps(message) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def tool(quipu: Quipu, **command) -> str:
    process = quipu.popen("--store", "notes", "tool", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    answer = lines(process, command)
    process.stdin.close()
    process.stdout.read()
    assert process.wait(timeout=60) == 0
    assert not answer.get("is_error"), answer
    return json.dumps(answer)


def mcp(quipu: Quipu, name: str, arguments: dict) -> dict:
    process = quipu.popen("mcp", "--store", "notes", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    client = {"name": "test", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    lines(process, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    process.stdin.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\n")
    call = {"name": name, "arguments": arguments}
    answer = lines(process, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})
    while answer.get("id") != 2:
        # A notification came first.
        answer = json.loads(process.stdout.readline())
    process.stdin.close()
    process.stdout.read()
    process.wait(timeout=60)
    assert not answer["result"].get("isError"), answer
    return answer["result"]


def can_mount() -> bool:
    return os.getuid() == 0 and Path("/dev/fuse").exists()


def check(cluster: Cluster, homes: Path) -> None:
    cluster.sql("CREATE DATABASE doors")
    hosts = [Quipu(cluster.url("doors"), homes / name) for name in ("one", "two", "three")]
    one, two, three = hosts
    assert "created schema" in one.run("migrate")
    assert "has schema" in two.run("migrate")
    one.run("store", "create", "notes")
    first, second = one.serve(), two.serve()
    try:
        everything(hosts, first, second)
    finally:
        first.close()
        second.close()
    assert three.json("check")["problems"] == []


def everything(hosts: list[Quipu], first: Server, second: Server) -> None:
    one, two, three = hosts
    # REST: what is written through one server is read through the other.
    store = first.request("GET", "/v1/memory_stores")[1]["data"][0]["id"]
    memories = f"/v1/memory_stores/{store}/memories"
    status, made = first.request("POST", memories, {"path": "/shop.md", "content": NOTE})
    assert status == 200, made
    status, read = second.request("GET", f"{memories}/{made['id']}")
    assert (status, read["content"]) == (200, NOTE)
    status, _ = second.request("POST", memories, {"path": "/shop.md", "content": "again"})
    assert status == 409, status
    # The CLI, the memory tool and MCP of a third host; each search waits for its own index.
    three.run("put", "/cli.md", text="written by the command line about saffron")
    assert "saffron" in tool(two, command="view", path="/memories/cli.md")
    tool(one, command="create", path="/memories/tool.md", file_text="written by the tool about cardamom")
    assert "cardamom" in three.run("cat", "/tool.md")
    found = mcp(two, "search_notes", {"query": "saffron"})
    assert "/cli.md" in json.dumps(found), found
    mcp(two, "memory", {"command": "create", "path": "/memories/mcp.md", "file_text": "about turmeric"})
    for host, server in ((one, first), (two, second)):
        assert host.json("search", "turmeric")["results"][0]["path"] == "/mcp.md"
        assert server.request("GET", "/readyz")[0] == 200
    sync(one, three)
    erase(hosts)
    if can_mount():
        mount(one, three)
    else:
        print("SKIPPED: a mount over PostgreSQL: it needs root and /dev/fuse")


def sync(one: Quipu, three: Quipu) -> None:
    folder = one.home / "folder"
    folder.mkdir()
    (folder / "from-folder.md").write_text("written in a folder about sumac\n")
    one.run("sync", str(folder))
    assert (folder / "cli.md").read_text() == "written by the command line about saffron"
    assert "sumac" in three.run("cat", "/from-folder.md")


def erase(hosts: list[Quipu]) -> None:
    """A redaction on one host is seen, and searched, on all; each index forgets it when it is next used."""
    one, _, three = hosts
    three.run("put", "/secret.md", text="the word is xylograph")
    for host in hosts:
        assert host.json("search", "xylograph")["results"]
    answer = one.json("redact", "--matching", "xylograph", "--and-heads", "--yes")
    assert answer["unreachable"], answer
    for host in hosts:
        assert not host.json("search", "xylograph")["results"]


def mount(one: Quipu, three: Quipu) -> None:
    root = one.home / "memory"
    process = one.popen("mount", "--store", "notes", "--root", str(root), stdout=subprocess.DEVNULL)
    try:
        place = root / "notes"
        until("the mount appears", lambda: place.is_mount() or (place / "cli.md").exists())
        assert "saffron" in (place / "cli.md").read_text()
        (place / "mounted.md").write_text("written as a file about fenugreek")
        until("the other host reads it", lambda: "fenugreek" in three.run("cat", "/mounted.md"))
        three.run("put", "/cli.md", text="changed elsewhere")
        until("the mount follows", lambda: (place / "cli.md").read_text() == "changed elsewhere")
    finally:
        process.terminate()
        process.wait(timeout=60)
