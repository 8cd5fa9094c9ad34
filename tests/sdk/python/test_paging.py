"""Auto-paging over hundreds of things: all of them, each once, in order."""

from __future__ import annotations

import pytest

COUNT = 230


@pytest.fixture(scope="session")
def many(server) -> dict[str, list[str]]:
    """Makes hundreds of everything with the plain client, once for all tests."""
    from anthropic import Anthropic

    with Anthropic(base_url=server.url, api_key=server.key) as client:
        stores = client.beta.memory_stores
        first = stores.create(name="many")
        memories = [
            stores.memories.create(first.id, path=f"/{n % 7}/{n:03}.md", content=f"text {n}")
            for n in range(COUNT)
        ]
        made = [stores.create(name=f"many {n}") for n in range(COUNT)]
        resources = [{"type": "memory_store", "memory_store_id": first.id}]
        sessions = [
            client.beta.sessions.create(agent="agent_many", environment_id="e", resources=resources)
            for _ in range(COUNT)
        ]
    return {
        "store": first.id,
        "since": first.created_at.isoformat(),
        "stores": [store.id for store in reversed(made)] + [first.id],
        "paths": sorted(memory.path for memory in memories),
        "versions": [memory.memory_version_id for memory in reversed(memories)],
        "sessions": [session.id for session in reversed(sessions)],
    }


@pytest.mark.parametrize("limit", [None, 1, 37, 100])
def test_memories(stores, many, limit) -> None:
    options = {} if limit is None else {"limit": limit}
    listed = [memory.path for memory in stores.memories.list(many["store"], **options)]
    assert listed == many["paths"]


def test_memories_with_their_texts(stores, many) -> None:
    first = stores.memories.list(many["store"], view="full", limit=100)
    assert len(first.data) == 20, "a page with texts has at most 20"
    listed = list(stores.memories.list(many["store"], view="full", limit=100))
    assert [memory.path for memory in listed] == many["paths"]
    assert all(memory.content == f"text {int(memory.path[3:6])}" for memory in listed)


def test_memories_of_one_directory_level(stores, many) -> None:
    listed = [item.path for item in stores.memories.list(many["store"], depth=1, limit=2)]
    assert listed == [f"/{n}/" for n in range(7)]


@pytest.mark.parametrize("options", [{}, {"limit": 100}, {"view": "full"}])
def test_versions(stores, many, options) -> None:
    listed = [version.id for version in stores.memory_versions.list(many["store"], **options)]
    assert listed == many["versions"]


@pytest.mark.parametrize("limit", [20, 100])
def test_stores(stores, many, limit) -> None:
    mine = set(many["stores"])
    listed = [store.id for store in stores.list(created_at_gte=many["since"], limit=limit)]
    assert [store for store in listed if store in mine] == many["stores"]
    assert len(set(listed)) == len(listed)


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_sessions(client, many, order) -> None:
    pages = client.beta.sessions.list(agent_id="agent_many", order=order, limit=50)
    listed = [session.id for session in pages]
    assert listed == (many["sessions"] if order == "desc" else many["sessions"][::-1])


def test_what_is_written_between_pages_moves_nothing(stores, store) -> None:
    for number in range(10):
        stores.memories.create(store, path=f"/{number}", content="")
    page = stores.memories.list(store, limit=5)
    stores.memories.create(store, path="/00", content="")
    stores.memories.delete(page.data[4].id, memory_store_id=store)
    rest = stores.memories.list(store, limit=5, page=page.next_page)
    assert [memory.path for memory in rest.data] == ["/5", "/6", "/7", "/8", "/9"]
    assert rest.next_page is None
