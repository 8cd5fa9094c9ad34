"""Agents, environments, resources, events and threads: every method of the SDK that a recorder serves."""

from __future__ import annotations

from typing import Any

import pytest

from conftest import IS_CURRENT, Connect

pytestmark = pytest.mark.skipif(not IS_CURRENT, reason="older SDKs have other shapes")


@pytest.fixture
def beta(connect: Connect) -> Any:
    return connect().beta


def said(text: str) -> dict[str, Any]:
    return {"type": "user.message", "content": [{"type": "text", "text": text}]}


def test_agents(beta: Any) -> None:
    agent = beta.agents.create(
        name="a", model={"id": "m", "speed": "fast"}, tools=[{"type": "agent_toolset_20260401"}],
        skills=[{"type": "anthropic", "skill_id": "xlsx"}], metadata={"team": "tea"},
    )
    assert (agent.version, agent.model.speed, agent.tools[0].default_config.enabled) == (1, "fast", True)
    changed = beta.agents.update(agent.id, version=1, description="d", metadata={"team": None})
    assert (changed.version, changed.description, changed.metadata) == (2, "d", {})
    assert beta.agents.retrieve(agent.id, version=1).description is None
    assert [it.version for it in beta.agents.versions.list(agent.id, limit=1)] == [2, 1]
    assert agent.id in [it.id for it in beta.agents.list()]
    assert beta.agents.archive(agent.id).archived_at is not None
    assert agent.id not in [it.id for it in beta.agents.list()]
    assert agent.id in [it.id for it in beta.agents.list(include_archived=True)]


def test_environments(beta: Any) -> None:
    made = beta.environments.create(name="e", config={"type": "cloud", "packages": {"pip": ["x"]}})
    assert (made.config.packages.pip, made.config.networking.type) == (["x"], "unrestricted")
    changed = beta.environments.update(made.id, description="d", config={"type": "self_hosted"})
    assert (changed.description, changed.config.type) == ("d", "self_hosted")
    assert beta.environments.retrieve(made.id).name == "e"
    assert made.id in [it.id for it in beta.environments.list()]
    assert beta.environments.archive(made.id).archived_at is not None
    assert beta.environments.delete(made.id).type == "environment_deleted"


def test_resources(beta: Any) -> None:
    repository = {"type": "github_repository", "url": "https://example.org/a/b", "authorization_token": "t"}
    session = beta.sessions.create(agent="a", environment_id="e", resources=[repository])
    resources = beta.sessions.resources
    [kept] = list(resources.list(session.id))
    assert (kept.url, kept.mount_path, kept.mounted) == ("https://example.org/a/b", "/workspace/b", False)
    assert resources.update(kept.id, session_id=session.id, authorization_token="u").id == kept.id
    added = resources.add(session.id, type="file", file_id="file_1")
    assert added.mounted is False
    assert resources.retrieve(added.id, session_id=session.id).file_id == "file_1"
    assert resources.delete(added.id, session_id=session.id).type == "session_resource_deleted"


def test_events_and_threads(beta: Any) -> None:
    agent = beta.agents.create(name="a", model="m")
    session = beta.sessions.create(
        agent={"type": "agent", "id": agent.id, "version": 1}, environment_id="e", initial_events=[said("zero")],
    )
    sent = beta.sessions.events.send(session.id, events=[said("one"), {"type": "user.interrupt"}])
    assert [event.type for event in sent.data] == ["user.message", "user.interrupt"]
    events = list(beta.sessions.events.list(session.id, limit=2))
    assert [event.type for event in events] == ["user.message", "user.message", "user.interrupt"]
    newest = beta.sessions.events.list(session.id, order="desc", created_at_gte=sent.data[0].processed_at)
    assert [event.id for event in newest] == [sent.data[1].id, sent.data[0].id]
    [thread] = list(beta.sessions.threads.list(session.id))
    assert beta.sessions.threads.retrieve(thread.id, session_id=session.id).agent.name == "a"
    assert len(list(beta.sessions.threads.events.list(thread.id, session_id=session.id))) == 3


def test_a_thread_that_a_harness_reports(connect: Connect) -> None:
    client = connect()
    sessions = client.beta.sessions
    session = sessions.create(agent="a", environment_id="e")
    [primary] = list(sessions.threads.list(session.id))
    of = {"session_thread_id": "sthr_2", "agent_name": "helper"}
    answer = {"type": "agent.message", "content": [{"type": "text", "text": "hi"}], **of}

    def report(*events: dict[str, Any]) -> None:
        client.post(f"/quipu/sessions/{session.id}/events", body={"events": events}, cast_to=object)

    report({"type": "session.thread_created", **of})
    streams = [sessions.threads.events.stream(it, session_id=session.id) for it in (primary.id, "sthr_2")]
    sessions.events.send(session.id, events=[said("one")])
    report(answer, {"type": "session.thread_status_running", **of})
    sessions.archive(session.id)
    of_primary, of_second = ([event.type for event in stream] for stream in streams)
    assert of_primary == ["user.message"]
    assert of_second == ["agent.message", "session.thread_status_running"]
    second = sessions.threads.retrieve("sthr_2", session_id=session.id)
    assert (second.parent_thread_id, second.agent.name) == (primary.id, "helper")
    listed = sessions.threads.events.list("sthr_2", session_id=session.id)
    assert [event.type for event in listed] == of_second
    # That there is one is an event of the primary thread.
    listed = sessions.threads.events.list(primary.id, session_id=session.id)
    assert [event.type for event in listed] == ["session.thread_created", *of_primary]
