"""What all tests with the Python SDK need. They run with a current SDK and with an old one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anthropic
import pytest
from anthropic import Anthropic, AsyncAnthropic
from anyio.from_thread import start_blocking_portal

from blocking import Blocking
from quipu_live import Proxy, Quipu, Server

#: The first SDK with today's sessions, error fields and worker.
IS_CURRENT = int(anthropic.__version__.split(".")[0]) >= 2

Connect = Callable[..., Any]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("quipu")
    with Quipu(folder / "data").serve(mount_root=str(folder / "mnt")) as server:
        yield server


@pytest.fixture(scope="session", params=["sync", "async"])
def connect(request: pytest.FixtureRequest, server: Server) -> Iterator[Connect]:
    """Returns a function that gives a client; it takes the SDK's options."""
    clients: dict[str, Any] = {}
    with start_blocking_portal() as portal:

        def connect(**options: Any) -> Any:
            options = {"base_url": server.url, "max_retries": 0, **options}
            if "auth_token" not in options:
                options.setdefault("api_key", server.key)
            # A client takes a while to make, because it reads all root certificates.
            name = repr(options)
            if name not in clients and request.param == "sync":
                clients[name] = Anthropic(_strict_response_validation=True, **options)
            elif name not in clients:
                client = AsyncAnthropic(_strict_response_validation=True, **options)
                clients[name] = Blocking(portal, client)
            return clients[name]

        yield connect
        for client in clients.values():
            client.close()


@pytest.fixture
def client(connect: Connect) -> Any:
    return connect()


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    proxy = Proxy(server.url)
    yield proxy
    proxy.close()


@pytest.fixture
def stores(client: Any) -> Any:
    return client.beta.memory_stores


@pytest.fixture
def store(stores: Any) -> str:
    """Returns the id of a new store."""
    return stores.create(name="tea").id
