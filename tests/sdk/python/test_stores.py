"""Stores: every method and every filter of the SDK."""

from __future__ import annotations

import anthropic
import pytest


def test_create_with_everything_and_retrieve(stores) -> None:
    made = stores.create(name="Tea notes", description="How we brew", metadata={"team": "tea"})
    assert made.id.startswith("memstore_01") and made.type == "memory_store"
    assert (made.name, made.description, made.metadata) == ("Tea notes", "How we brew", {"team": "tea"})
    assert made.archived_at is None and made.created_at == made.updated_at
    assert stores.retrieve(made.id) == made


def test_a_bare_store_has_every_field(stores) -> None:
    made = stores.create(name="bare")
    assert (made.description, made.metadata, made.archived_at) == ("", {}, None)


def test_update_patches(stores) -> None:
    made = stores.create(name="old", description="d", metadata={"keep": "1", "drop": "2"})
    changed = stores.update(made.id, name="new", description="", metadata={"drop": None, "add": "3"})
    assert (changed.name, changed.description) == ("new", "")
    assert changed.metadata == {"keep": "1", "add": "3"}
    assert changed.updated_at > made.updated_at and changed.created_at == made.created_at
    assert stores.update(made.id) == changed, "an update of nothing changes nothing"
    assert stores.update(made.id, name=None, description=None, metadata=None) == changed


def test_archive_is_one_way_and_hides(stores) -> None:
    made = stores.create(name="archived")
    archived = stores.archive(made.id)
    assert archived.archived_at is not None and archived.updated_at > made.updated_at
    assert stores.archive(made.id) == archived
    assert stores.retrieve(made.id) == archived
    with pytest.raises(anthropic.BadRequestError):
        stores.update(made.id, name="x")
    since = {"created_at_gte": made.created_at}
    assert made.id not in [each.id for each in stores.list(**since)]
    assert made.id in [each.id for each in stores.list(include_archived=True, **since)]


def test_delete(stores) -> None:
    made = stores.create(name="gone")
    deleted = stores.delete(made.id)
    assert (deleted.id, deleted.type) == (made.id, "memory_store_deleted")
    with pytest.raises(anthropic.NotFoundError):
        stores.retrieve(made.id)


def test_list_by_time_is_inclusive_and_newest_first(stores) -> None:
    made = [stores.create(name=f"timed {number}") for number in range(4)]
    first, last = made[1].created_at, made[2].created_at
    listed = stores.list(created_at_gte=first, created_at_lte=last)
    assert [each.id for each in listed] == [made[2].id, made[1].id]
    naive = stores.list(created_at_gte=first.replace(tzinfo=None), created_at_lte=last)
    assert [each.id for each in naive] == [made[2].id, made[1].id], "no offset means UTC"
    text = stores.list(created_at_gte=first.isoformat(), created_at_lte=last.isoformat())
    assert [each.id for each in text] == [made[2].id, made[1].id]


def test_pages_follow_each_other(stores) -> None:
    made = [stores.create(name=f"page {number}") for number in range(5)]
    page = stores.list(created_at_gte=made[0].created_at, limit=2)
    assert [each.id for each in page.data] == [made[4].id, made[3].id]
    second = stores.list(created_at_gte=made[0].created_at, limit=2, page=page.next_page)
    assert [each.id for each in second.data] == [made[2].id, made[1].id]
