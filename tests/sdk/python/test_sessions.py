"""Sessions, as far as memory needs them."""

from __future__ import annotations

import anthropic
import pytest

from conftest import IS_CURRENT


@pytest.fixture
def sessions(client):
    return client.beta.sessions


def start(sessions, *resources, **options):
    """Starts a session and returns it with its token."""
    raw = sessions.with_raw_response.create(
        agent="agent_tea", environment_id="env_tea", resources=list(resources), **options
    )
    return raw.parse(), raw.headers["quipu-session-token"]


def attach(store: str, **options) -> dict[str, str]:
    return {"type": "memory_store", "memory_store_id": store, **options}


def test_create_and_retrieve_with_stores(server, stores, sessions) -> None:
    first = stores.create(name="Tea Notes", description="How we brew").id
    second = stores.create(name="Tea notes!").id
    session, token = start(
        sessions,
        attach(first, access="read_only", instructions="Look first."),
        attach(second),
        title="Tasting", metadata={"team": "tea"},
    )
    assert session.id.startswith("sesn_01") and token
    assert (session.title, session.metadata, session.status) == ("Tasting", {"team": "tea"}, "idle")
    assert (session.agent.id, session.environment_id) == ("agent_tea", "env_tea")
    notes, other = session.resources
    assert (notes.type, notes.memory_store_id, notes.access) == ("memory_store", first, "read_only")
    assert (notes.name, notes.description, notes.instructions) == ("Tea Notes", "How we brew", "Look first.")
    assert notes.mount_path.endswith("/mnt/tea-notes") and other.mount_path.endswith("/mnt/tea-notes-2")
    assert (other.access, other.description) == ("read_write", "")
    assert sessions.retrieve(session.id) == session


def test_an_agent_with_its_version(sessions) -> None:
    agent = {"type": "agent", "id": "agent_tea", "version": 7}
    session = sessions.create(agent=agent, environment_id="env_tea")
    assert (session.agent.id, session.agent.version) == ("agent_tea", 7)


def test_update_archive_and_delete(sessions) -> None:
    session, _ = start(sessions, title="old", metadata={"keep": "1", "drop": "2"})
    changed = sessions.update(session.id, title="new", metadata={"drop": None, "add": "3"})
    assert (changed.title, changed.metadata) == ("new", {"keep": "1", "add": "3"})
    archived = sessions.archive(session.id)
    assert archived.archived_at is not None and archived.status == "terminated"
    deleted = sessions.delete(session.id)
    assert (deleted.id, deleted.type) == (session.id, "session_deleted")
    with pytest.raises(anthropic.NotFoundError):
        sessions.retrieve(session.id)


def test_list_with_its_filters(sessions, store) -> None:
    made = [start(sessions, attach(store))[0] for _ in range(2)]
    made += [sessions.create(agent={"type": "agent", "id": "agent_x", "version": 3}, environment_id="e")]
    made += [start(sessions)[0]]
    ids = [session.id for session in made]

    def found(**filters):
        return [session.id for session in sessions.list(created_at_gte=made[0].created_at, **filters)]

    assert found() == ids[::-1]
    assert found(order="asc") == ids
    assert found(order="asc", limit=1) == ids
    assert found(created_at_lte=made[1].created_at) == [ids[1], ids[0]]
    assert found(created_at_gt=made[0].created_at, created_at_lt=made[3].created_at) == [ids[2], ids[1]]
    assert found(agent_id="agent_x") == [ids[2]]
    assert found(agent_id="agent_x", agent_version=3) == [ids[2]]
    assert found(agent_id="agent_x", agent_version=4) == []
    assert found(agent_version=3) == ids[::-1], "a version says nothing without its agent"
    sessions.archive(ids[0])
    assert found() == [ids[3], ids[2], ids[1]]
    assert found(include_archived=True) == ids[::-1]
    if IS_CURRENT:
        assert found(memory_store_id=store) == [ids[1]]
        assert found(memory_store_id=store, include_archived=True) == [ids[1], ids[0]]
        assert found(statuses=["terminated"], include_archived=True) == [ids[0]]
        assert found(statuses=["terminated", "idle"], include_archived=True) == ids[::-1]
        assert found(statuses=["running"]) == []


def test_what_cannot_be_attached(stores, sessions, store) -> None:
    def refused(error, *resources):
        with pytest.raises(error):
            sessions.create(agent="agent_tea", environment_id="env_tea", resources=list(resources))

    refused(anthropic.NotFoundError, attach("memstore_011111111111111111111111"))
    refused(anthropic.BadRequestError, attach(store), attach(store))
    refused(anthropic.BadRequestError, *[attach(stores.create(name=f"{n}").id) for n in range(9)])
    refused(anthropic.BadRequestError, attach(store, access="all"))
    stores.archive(store)
    refused(anthropic.BadRequestError, attach(store))


def test_a_token_writes_as_its_session_and_only_where_it_may(connect, stores, sessions, store) -> None:
    locked, other = stores.create(name="locked").id, stores.create(name="other").id
    session, token = start(sessions, attach(store), attach(locked, access="read_only"))
    own = connect(auth_token=token, api_key=None).beta.memory_stores
    memory = own.memories.create(store, path="/a", content="by the agent")
    version = own.memory_versions.retrieve(memory.memory_version_id, memory_store_id=store)
    assert (version.created_by.type, version.created_by.session_id) == ("session_actor", session.id)
    by_session = list(stores.memory_versions.list(store, session_id=session.id))
    assert [each.id for each in by_session] == [version.id]
    assert list(own.memories.list(locked)) == []
    with pytest.raises(anthropic.PermissionDeniedError):
        own.memories.create(locked, path="/a", content="")
    with pytest.raises(anthropic.PermissionDeniedError):
        own.memories.list(other).data
    with pytest.raises(anthropic.PermissionDeniedError):
        own.memory_versions.redact(version.id, memory_store_id=store)


def test_a_renewed_token_replaces_the_old_one(connect, client, sessions, store) -> None:
    session, old = start(sessions, attach(store))
    new = client.post(f"/quipu/sessions/{session.id}/token", cast_to=object)["token"]
    assert list(connect(auth_token=new, api_key=None).beta.memory_stores.memories.list(store)) == []
    with pytest.raises(anthropic.AuthenticationError):
        connect(auth_token=old, api_key=None).beta.memory_stores.retrieve(store)
