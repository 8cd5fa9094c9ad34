"""Memories: every method, view, filter and precondition of the SDK."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor

import anthropic
import pytest

from conftest import IS_CURRENT


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def condition(text: str) -> dict[str, str]:
    return {"type": "content_sha256", "content_sha256": sha256(text)}


@pytest.fixture
def memories(stores):
    return stores.memories


def test_create_and_retrieve_in_both_views(memories, store) -> None:
    text = "grün: 80 °C\n"
    made = memories.create(store, path="/tea/green.md", content=text)
    assert made.id.startswith("mem_01") and made.type == "memory"
    assert made.memory_version_id.startswith("memver_01") and made.memory_store_id == store
    assert (made.path, made.content) == ("/tea/green.md", None), "the default view has no text"
    assert (made.content_size_bytes, made.content_sha256) == (len(text.encode()), sha256(text))
    full = memories.create(store, path="/tea/black.md", content="95 °C", view="full")
    assert full.content == "95 °C"
    by_default = memories.retrieve(made.id, memory_store_id=store)
    assert by_default.content == text
    assert memories.retrieve(made.id, memory_store_id=store, view="full") == by_default
    assert memories.retrieve(made.id, memory_store_id=store, view="basic") == made


def test_texts_come_back_byte_for_byte(memories, store) -> None:
    for number, text in enumerate(["", "\r\n\t\n", "e\u0301 is not \u00e9", "👩‍🚀" * 100, '"\\u0041"']):
        made = memories.create(store, path=f"/{number}", content=text)
        assert memories.retrieve(made.id, memory_store_id=store).content == text


def test_update_text_and_path(memories, store) -> None:
    made = memories.create(store, path="/a", content="1")
    text = memories.update(made.id, memory_store_id=store, content="2")
    assert (text.id, text.path, text.content) == (made.id, "/a", None)
    assert text.memory_version_id != made.memory_version_id
    moved = memories.update(made.id, memory_store_id=store, path="/b/c", view="full")
    assert (moved.id, moved.path, moved.content) == (made.id, "/b/c", "2")
    both = memories.update(made.id, memory_store_id=store, path="/d", content="3", view="full")
    assert (both.path, both.content) == ("/d", "3")
    same = memories.update(made.id, memory_store_id=store, path="/d", content="3")
    assert same.memory_version_id == both.memory_version_id, "nothing differs, so no version"


def test_conditional_update(memories, store) -> None:
    made = memories.create(store, path="/a", content="1")
    with pytest.raises(anthropic.ConflictError) as stale:
        memories.update(made.id, memory_store_id=store, content="2", precondition=condition("0"))
    assert stale.value.body["error"]["type"] == "memory_precondition_failed_error"
    changed = memories.update(made.id, memory_store_id=store, content="2", precondition=condition("1"))
    assert changed.content_sha256 == sha256("2")
    again = memories.update(made.id, memory_store_id=store, content="2", precondition=condition("1"))
    assert again.memory_version_id == changed.memory_version_id, "what is wanted is there already"


def test_of_many_writers_with_one_precondition_one_wins(memories, store) -> None:
    made = memories.create(store, path="/a", content="start")

    def write(number: int) -> str:
        try:
            text = f"writer {number}"
            memories.update(made.id, memory_store_id=store, content=text, precondition=condition("start"))
            return text
        except anthropic.ConflictError:
            return ""

    with ThreadPoolExecutor(16) as pool:
        winners = [text for text in pool.map(write, range(40)) if text]
    assert len(winners) == 1
    assert memories.retrieve(made.id, memory_store_id=store).content == winners[0]


def test_conditional_delete(memories, store) -> None:
    made = memories.create(store, path="/a", content="1")
    with pytest.raises(anthropic.ConflictError):
        memories.delete(made.id, memory_store_id=store, expected_content_sha256=sha256("0"))
    deleted = memories.delete(made.id, memory_store_id=store, expected_content_sha256=sha256("1"))
    assert (deleted.id, deleted.type) == (made.id, "memory_deleted")
    with pytest.raises(anthropic.NotFoundError):
        memories.delete(made.id, memory_store_id=store)
    assert memories.create(store, path="/a", content="1").id != made.id


def test_list_by_prefix_depth_and_view(memories, store) -> None:
    for path in ["/a.md", "/notes/b.md", "/notes/deep/c.md", "/notes/deep/d.md", "/notesx"]:
        memories.create(store, path=path, content=path)
    everything = list(memories.list(store))
    assert [item.path for item in everything] == [
        "/a.md", "/notes/b.md", "/notes/deep/c.md", "/notes/deep/d.md", "/notesx",
    ]
    assert all(item.type == "memory" and item.content is None for item in everything)
    assert list(memories.list(store, depth=0, path_prefix="/")) == everything
    below = [item.path for item in memories.list(store, path_prefix="/notes/")]
    assert below == ["/notes/b.md", "/notes/deep/c.md", "/notes/deep/d.md"]
    top = [(item.type, item.path) for item in memories.list(store, depth=1)]
    assert top == [("memory", "/a.md"), ("memory_prefix", "/notes/"), ("memory", "/notesx")]
    one_by_one = [item.path for item in memories.list(store, depth=1, path_prefix="/notes/", limit=1)]
    assert one_by_one == ["/notes/b.md", "/notes/deep/"]
    full = [item.content for item in memories.list(store, path_prefix="/notes/deep/", view="full")]
    assert full == ["/notes/deep/c.md", "/notes/deep/d.md"]


@pytest.mark.skipif(IS_CURRENT, reason="these options left the SDK")
def test_the_old_options_of_order_are_ignored(memories, store) -> None:
    for path in ["/b", "/a"]:
        memories.create(store, path=path, content="")
    listed = memories.list(store, order_by="created_at", order="desc")
    assert [item.path for item in listed] == ["/a", "/b"]


def test_an_archived_store_is_read_and_emptied_but_not_written(stores, memories, store) -> None:
    made = memories.create(store, path="/a", content="1")
    stores.archive(store)
    with pytest.raises(anthropic.BadRequestError):
        memories.create(store, path="/b", content="")
    with pytest.raises(anthropic.BadRequestError):
        memories.update(made.id, memory_store_id=store, content="2")
    assert memories.retrieve(made.id, memory_store_id=store).content == "1"
    assert memories.delete(made.id, memory_store_id=store).id == made.id
