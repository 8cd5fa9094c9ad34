"""The topology of the example: two servers on one database behind a proxy, as plain processes."""

from __future__ import annotations

import re
import socket
import subprocess
import threading
from pathlib import Path

from cluster import Cluster, free_port
from live import Quipu, request

COMPOSE = Path(__file__).parents[2] / "docs/examples/postgres/compose.yaml"
REQUESTS = 200


class Proxy:
    """Passes each connection on to the next server, as the proxy of the example does."""

    def __init__(self, ports: list[int]) -> None:
        self.ports, self.number = ports, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.host = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            for _ in self.ports:
                self.number += 1
                try:
                    server = socket.create_connection(("127.0.0.1", self.ports[self.number % len(self.ports)]))
                    break
                except OSError:
                    continue
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    @staticmethod
    def _pass(one: socket.socket, other: socket.socket) -> None:
        try:
            while chunk := one.recv(65536):
                other.sendall(chunk)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def outline(text: str) -> dict:
    """Reads the part of YAML that the example uses: mappings, by indentation, and lists of texts."""
    root: dict = {}
    stack = [(-1, root)]
    block = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        assert "\t" not in line, f"line {number}: a tab"
        indent, rest = len(line) - len(line.lstrip()), line.strip()
        if block is not None and indent > block:
            continue
        block = indent if rest.endswith(": |") else None
        while stack[-1][0] >= indent:
            stack.pop()
        holder = stack[-1][1]
        if rest.startswith("- "):
            holder.setdefault("-", []).append(rest[2:])
            continue
        key, colon, value = rest.partition(":")
        assert colon and re.fullmatch(r"[A-Za-z0-9_.-]+|<<", key), f"line {number}: {rest}"
        assert key not in holder, f"line {number}: `{key}` twice"
        holder[key] = value.strip() or {}
        if isinstance(holder[key], dict) or value.strip().startswith("&"):
            holder[key] = {} if not isinstance(holder[key], dict) else holder[key]
            stack.append((indent, holder[key]))
    return root


def compose_is_sound() -> None:
    example = outline(COMPOSE.read_text())
    services = example["services"]
    assert {"postgres", "one", "two", "proxy"} <= set(services), services.keys()
    for name, service in services.items():
        assert "image" in service or "build" in service or "<<" in service, name
        for needed in service.get("depends_on", {}):
            assert needed == "-" or needed in services, (name, needed)
    text = COMPOSE.read_text()
    for reference in re.findall(r"\*(\w+)", text):
        assert f"&{reference}" in text, reference
    for file in re.findall(r"- \./([\w./-]+):", text):
        assert (COMPOSE.parent / file).exists(), file
    for secret in re.findall(r"file: \./([\w./-]+)", text):
        assert secret in (COMPOSE.parent / "README.md").read_text(), secret


def check(cluster: Cluster, homes: Path) -> None:
    compose_is_sound()
    cluster.sql("CREATE DATABASE topology")
    ports = [free_port(), free_port()]
    hosts = [Quipu(cluster.url("topology"), homes / f"server-{port}") for port in ports]
    # Both make the schema of an empty database at the same moment.
    servers = [host.serve(f"127.0.0.1:{port}") for host, port in zip(hosts, ports)]
    proxy = Proxy(ports)
    status, store = request(proxy.host, "POST", "/v1/memory_stores", {"name": "notes"})
    assert status == 200, store
    memories = f"/v1/memory_stores/{store['id']}/memories"
    ids = {}
    for number in range(REQUESTS):
        status, made = request(proxy.host, "POST", memories, {"path": f"/{number}.md", "content": f"text {number}"})
        assert status == 200, made
        ids[made["id"]] = f"text {number}"
        if number == REQUESTS // 2:
            # One server ends in order, and nobody notices.
            servers[0].close()
    for made, text in ids.items():
        status, read = request(proxy.host, "GET", f"{memories}/{made}")
        assert (status, read["content"]) == (200, text)
    servers[0] = hosts[0].serve(f"127.0.0.1:{ports[0]}")
    assert hosts[1].json("search", "text", "--limit", "5")["results"]
    for server in servers:
        server.close()
    proxy.listener.close()
    first_key(cluster, homes)


def first_key(cluster: Cluster, homes: Path) -> None:
    """The first server on an empty database makes a key and writes it to its own directory."""
    cluster.sql("CREATE DATABASE first_key")
    host = Quipu(cluster.url("first_key"), homes / "first")
    host.environment["QUIPU_DATA"] = str(host.home / "data")
    del host.environment["QUIPU_ADMIN_KEY"]
    process = host.popen("serve", "--listen", "127.0.0.1:0", "--log-level", "warn", stdout=subprocess.PIPE)
    file = process.stdout.readline().removeprefix("api key file: ").strip()
    assert process.stdout.readline().startswith("listening on ")
    assert Path(file).read_text().startswith("sk-quipu-") and Path(file).stat().st_mode & 0o077 == 0
    process.terminate()
    process.wait(timeout=60)
    process.stdout.close()
