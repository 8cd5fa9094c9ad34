"""Versions: every method, view and filter of the SDK."""

from __future__ import annotations

import anthropic
import pytest

from conftest import IS_CURRENT


@pytest.fixture
def versions(stores):
    return stores.memory_versions


@pytest.fixture
def history(stores, store):
    """Returns a memory that was created, modified and deleted, beside one that lives."""
    memory = stores.memories.create(store, path="/a", content="one")
    stores.memories.update(memory.id, memory_store_id=store, content="two", path="/b")
    stores.memories.delete(memory.id, memory_store_id=store)
    stores.memories.create(store, path="/other", content="other")
    return memory


def test_list_in_both_views(versions, store, history) -> None:
    basic = list(versions.list(store))
    assert [version.operation for version in basic] == ["created", "deleted", "modified", "created"]
    _, deleted, modified, created = basic
    assert all(version.type == "memory_version" and version.content is None for version in basic)
    assert all(version.memory_store_id == store for version in basic)
    assert {version.memory_id for version in basic[1:]} == {history.id}
    assert (created.path, modified.path, deleted.path) == ("/a", "/b", "/b")
    assert created.content_size_bytes == 3 and created.content_sha256 == history.content_sha256
    assert deleted.content_sha256 is None and deleted.content_size_bytes is None
    assert created.created_by.type == "api_actor" and created.created_by.api_key_id.startswith("apikey_")
    assert created.redacted_at is None and created.redacted_by is None
    full = [version.content for version in versions.list(store, view="full")]
    assert full == ["other", None, "two", "one"]


def test_every_filter(versions, store, history) -> None:
    everything = list(versions.list(store))
    of_memory = list(versions.list(store, memory_id=history.id))
    assert of_memory == everything[1:], "a deleted memory keeps its history"
    for operation, count in [("created", 2), ("modified", 1), ("deleted", 1)]:
        found = list(versions.list(store, operation=operation))
        assert [version.operation for version in found] == [operation] * count
    key = everything[0].created_by.api_key_id
    assert list(versions.list(store, api_key_id=key)) == everything
    assert list(versions.list(store, api_key_id="apikey_011111111111111111111111")) == []
    assert list(versions.list(store, session_id="sesn_011111111111111111111111")) == []
    if IS_CURRENT:
        assert list(versions.list(store, service_account_id="svac_nobody")) == []
    span = {"created_at_gte": everything[2].created_at, "created_at_lte": everything[1].created_at}
    assert list(versions.list(store, **span)) == everything[1:3]
    combined = versions.list(store, memory_id=history.id, operation="created", api_key_id=key)
    assert list(combined) == [everything[3]]


def test_retrieve_in_both_views(versions, store, history) -> None:
    version = list(versions.list(store))[3]
    by_default = versions.retrieve(version.id, memory_store_id=store)
    assert by_default.content == "one"
    assert versions.retrieve(version.id, memory_store_id=store, view="full") == by_default
    assert versions.retrieve(version.id, memory_store_id=store, view="basic") == version


def test_redact(stores, versions, store, history) -> None:
    version = list(versions.list(store))[3]
    redacted = versions.redact(version.id, memory_store_id=store)
    assert (redacted.content, redacted.path) == (None, None)
    assert (redacted.content_sha256, redacted.content_size_bytes) == (None, None)
    assert redacted.redacted_at is not None and redacted.redacted_by == version.created_by
    assert (redacted.operation, redacted.created_by) == ("created", version.created_by)
    assert versions.redact(version.id, memory_store_id=store) == redacted
    assert versions.retrieve(version.id, memory_store_id=store) == redacted
    stores.archive(store)
    older = list(versions.list(store))[2]
    assert versions.redact(older.id, memory_store_id=store).redacted_at is not None


def test_the_head_of_a_live_memory_is_not_redacted(stores, versions, store) -> None:
    memory = stores.memories.create(store, path="/a", content="secret")
    with pytest.raises(anthropic.BadRequestError, match="write a new version"):
        versions.redact(memory.memory_version_id, memory_store_id=store)
    stores.memories.update(memory.id, memory_store_id=store, content="clean")
    assert versions.redact(memory.memory_version_id, memory_store_id=store).redacted_at is not None
