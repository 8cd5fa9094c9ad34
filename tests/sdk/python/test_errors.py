"""Every error class of the SDK, what it tells, and how often the SDK has tried."""

from __future__ import annotations

import anthropic
import pytest

from conftest import IS_CURRENT
from quipu_live import Proxy, Quipu

NOBODY = "011111111111111111111111"


def check(error: anthropic.APIStatusError, status: int, kind: str) -> dict:
    """Checks what every error has, and returns its inner body."""
    assert error.status_code == status
    assert error.body["type"] == "error" and error.body["error"]["type"] == kind
    assert error.body["error"]["message"]
    assert error.request_id.startswith("req_01") and error.body["request_id"] == error.request_id
    if IS_CURRENT:
        assert error.type == kind and error.api_message == error.body["error"]["message"]
    return error.body["error"]


def test_answers_name_their_request_and_workspace(server, stores, store) -> None:
    first, second = stores.retrieve(store), stores.retrieve(store)
    assert first._request_id.startswith("req_01") and first._request_id != second._request_id
    workspace = stores.with_raw_response.retrieve(store).headers["anthropic-workspace-id"]
    assert workspace.startswith("wrkspc_01")
    if IS_CURRENT:
        assert first._workspace_id == workspace
        assert stores.retrieve(store, workspace_id=workspace).id == store
        with pytest.raises(anthropic.PermissionDeniedError) as foreign:
            stores.retrieve(store, workspace_id="wrkspc_" + NOBODY)
        check(foreign.value, 403, "permission_error")


BAD_REQUESTS = {
    "an empty name": lambda stores, store: stores.create(name=""),
    "a long name": lambda stores, store: stores.create(name="n" * 256),
    "a long description": lambda stores, store: stores.create(name="n", description="d" * 1025),
    "much metadata": lambda stores, store: stores.create(name="n", metadata={f"{n}": "" for n in range(17)}),
    "an unknown key": lambda stores, store: stores.create(name="n", extra_body={"color": "green"}),
    "a limit of zero": lambda stores, store: stores.list(limit=0).data,
    "a limit over 100": lambda stores, store: stores.list(limit=101).data,
    "a bad cursor": lambda stores, store: stores.list(page="page_of_nothing").data,
    "a bad time": lambda stores, store: stores.list(created_at_gte="yesterday").data,
    "a relative path": lambda stores, store: stores.memories.create(store, path="a", content=""),
    "a parent path": lambda stores, store: stores.memories.create(store, path="/a/../b", content=""),
    "a path with a final slash": lambda stores, store: stores.memories.create(store, path="/a/", content=""),
    "a path that is not NFC": lambda stores, store: stores.memories.create(store, path="/e\u0301", content=""),
    "21 segments": lambda stores, store: stores.memories.create(store, path="/a" * 21, content=""),
    "a path over 1,024 bytes": lambda stores, store: stores.memories.create(store, path="/" + "a" * 1024, content=""),
    "content over 102,400 bytes": lambda stores, store: stores.memories.create(store, path="/a", content="x" * 102_401),
    "null content": lambda stores, store: stores.memories.create(store, path="/a", content=None),
    "NUL": lambda stores, store: stores.memories.create(store, path="/a", content="\0"),
    "a prefix without a slash": lambda stores, store: stores.memories.list(store, path_prefix="/a").data,
    "depth 2": lambda stores, store: stores.memories.list(store, depth=2).data,
    "an unknown view": lambda stores, store: stores.memories.list(store, view="all").data,
    "an unknown operation": lambda stores, store: stores.memory_versions.list(store, operation="renamed").data,
}


@pytest.mark.parametrize("what", BAD_REQUESTS)
def test_bad_requests(stores, store, what) -> None:
    with pytest.raises(anthropic.BadRequestError) as refused:
        BAD_REQUESTS[what](stores, store)
    check(refused.value, 400, "invalid_request_error")
    assert list(stores.memories.list(store)) == []


def test_bad_updates(stores, store) -> None:
    memory = stores.memories.create(store, path="/a", content="")
    for options in [{}, {"content": None}, {"content": "x", "precondition": {"type": "content_sha256"}},
                    {"content": "x", "precondition": {"type": "content_sha256", "content_sha256": "ABC"}}]:
        with pytest.raises(anthropic.BadRequestError) as refused:
            stores.memories.update(memory.id, memory_store_id=store, **options)
        check(refused.value, 400, "invalid_request_error")
    assert stores.memories.retrieve(memory.id, memory_store_id=store, view="basic") == memory


def test_the_largest_of_everything_is_taken(stores, store) -> None:
    made = stores.create(name="n" * 255, description="d" * 1024,
                         metadata={f"{n:064}": "v" * 512 for n in range(16)})
    assert len(made.metadata) == 16
    assert stores.memories.create(store, path="/a" * 20, content="x" * 102_400).content_size_bytes == 102_400
    assert len(stores.memories.create(store, path="/" + "b" * 1023, content="").path) == 1024


def test_authentication(connect, server, store) -> None:
    revoked = server.quipu.new_key("admin")
    connect(api_key=revoked["secret"]).beta.memory_stores.retrieve(store)
    server.quipu.run("key", "revoke", revoked["id"])
    for key in ["sk-quipu-wrong", revoked["secret"]]:
        with pytest.raises(anthropic.AuthenticationError) as refused:
            connect(api_key=key).beta.memory_stores.retrieve(store)
        check(refused.value, 401, "authentication_error")


def test_permission(connect, server, store, stores) -> None:
    key = server.quipu.new_key("read_only", "--store", store)["secret"]
    reader = connect(api_key=key).beta.memory_stores
    assert reader.retrieve(store).id == store
    assert [each.id for each in reader.list()] == [store], "a key sees only its stores"
    other = stores.create(name="other").id
    for refused in [
        lambda: reader.create(name="x"),
        lambda: reader.archive(store),
        lambda: reader.memories.create(store, path="/a", content=""),
        lambda: reader.retrieve(other),
    ]:
        with pytest.raises(anthropic.PermissionDeniedError) as error:
            refused()
        check(error.value, 403, "permission_error")


def test_not_found(stores, store) -> None:
    for absent in [
        lambda: stores.retrieve("memstore_" + NOBODY),
        lambda: stores.retrieve("no id at all"),
        lambda: stores.delete("memstore_" + NOBODY),
        lambda: stores.memories.list("memstore_" + NOBODY).data,
        lambda: stores.memories.retrieve("mem_" + NOBODY, memory_store_id=store),
        lambda: stores.memories.retrieve("memver_" + NOBODY, memory_store_id=store),
        lambda: stores.memories.update("mem_" + NOBODY, memory_store_id=store, content=""),
        lambda: stores.memories.delete("mem_" + NOBODY, memory_store_id=store),
        lambda: stores.memory_versions.retrieve("memver_" + NOBODY, memory_store_id=store),
        lambda: stores.memory_versions.redact("memver_" + NOBODY, memory_store_id=store),
    ]:
        with pytest.raises(anthropic.NotFoundError) as error:
            absent()
        check(error.value, 404, "not_found_error")


def test_conflicts_say_what_is_in_the_way_and_are_sent_once(connect, proxy, store) -> None:
    memories = connect(base_url=proxy.url, max_retries=2).beta.memory_stores.memories
    there = memories.create(store, path="/notes/todo.md", content="x")
    other = memories.create(store, path="/other", content="x")
    for path in ["/notes/todo.md", "/notes", "/notes/todo.md/deeper"]:
        for conflicting in [
            lambda: memories.create(store, path=path, content=""),
            lambda: memories.update(other.id, memory_store_id=store, path=path),
        ]:
            proxy.seen.clear()
            with pytest.raises(anthropic.ConflictError) as error:
                conflicting()
            inner = check(error.value, 409, "memory_path_conflict_error")
            assert inner["conflicting_memory_id"] == there.id
            assert inner["conflicting_path"] in (path, there.path)
            assert error.value.response.headers["x-should-retry"] == "false"
            assert proxy.statuses == [409]
    wrong = "0" * 64
    precondition = {"type": "content_sha256", "content_sha256": wrong}
    for stale in [
        lambda: memories.update(other.id, memory_store_id=store, content="y", precondition=precondition),
        lambda: memories.delete(other.id, memory_store_id=store, expected_content_sha256=wrong),
    ]:
        proxy.seen.clear()
        with pytest.raises(anthropic.ConflictError) as error:
            stale()
        assert set(check(error.value, 409, "memory_precondition_failed_error")) == {"type", "message"}
        assert proxy.statuses == [409]


@pytest.mark.parametrize("size", [1_000, 8_000_000])
def test_too_large(connect, tmp_path, size) -> None:
    with Quipu(tmp_path).serve(serve_body_size_bytes_max="1000") as small:
        stores = connect(base_url=small.url).beta.memory_stores
        with pytest.raises(anthropic.APIStatusError) as error:
            stores.create(name="n", description="d" * size)
        check(error.value, 413, "request_too_large")
        from anthropic._exceptions import RequestTooLargeError

        assert isinstance(error.value, RequestTooLargeError)
        assert stores.create(name="n").name == "n", "the server lives"


def test_a_strict_server_takes_what_the_sdk_sends_and_refuses_two_betas(connect, tmp_path) -> None:
    with Quipu(tmp_path).serve(serve_strict_headers="true") as strict:
        client = connect(base_url=strict.url)
        store = client.beta.memory_stores.create(name="tea").id
        memory = client.beta.memory_stores.memories.create(store, path="/a", content="x")
        assert list(client.beta.memory_stores.memories.list(store)) == [memory]
        resources = [{"type": "memory_store", "memory_store_id": store}]
        session = client.beta.sessions.create(agent="a", environment_id="e", resources=resources)
        assert [each.id for each in client.beta.sessions.list()] == [session.id]
        for betas in [["agent-memory-2026-07-22", "managed-agents-2026-04-01"], ["no-such-beta"]]:
            with pytest.raises(anthropic.BadRequestError) as refused:
                client.beta.memory_stores.retrieve(store, betas=betas)
            check(refused.value, 400, "invalid_request_error")


def test_other_refusals_are_sent_once(connect, proxy, store) -> None:
    stores = connect(base_url=proxy.url, max_retries=2).beta.memory_stores
    with pytest.raises(anthropic.NotFoundError):
        stores.retrieve("memstore_" + NOBODY)
    with pytest.raises(anthropic.BadRequestError):
        stores.create(name="")
    with pytest.raises(anthropic.AuthenticationError):
        connect(base_url=proxy.url, max_retries=2, api_key="sk-wrong").beta.memory_stores.retrieve(store)
    assert proxy.statuses == [404, 400, 401]


def test_a_rate_limit_is_retried_and_then_raised(connect, tmp_path) -> None:
    with Quipu(tmp_path).serve(serve_requests_per_minute_max="2") as limited:
        proxy = Proxy(limited.url)
        stores = connect(base_url=proxy.url).beta.memory_stores
        stores.list().data, stores.list().data
        with pytest.raises(anthropic.RateLimitError) as error:
            stores.list().data
        check(error.value, 429, "rate_limit_error")
        assert 1 <= int(error.value.response.headers["retry-after"]) <= 30
        # Nobody wants to wait half a minute in a test; how often it is tried stays true.
        proxy.replaced_headers["retry-after"] = "0.01"
        proxy.seen.clear()
        with pytest.raises(anthropic.RateLimitError):
            connect(base_url=proxy.url, max_retries=3).beta.memory_stores.list().data
        assert proxy.statuses == [429] * 4
        assert [seen.headers["x-stainless-retry-count"] for seen in proxy.seen] == ["0", "1", "2", "3"]
        proxy.close()


def test_honoring_retry_after_gets_through_a_rate_limit(connect, tmp_path) -> None:
    with Quipu(tmp_path).serve(serve_requests_per_minute_max="30") as limited:
        proxy = Proxy(limited.url)
        stores = connect(base_url=proxy.url, max_retries=5).beta.memory_stores
        while 429 not in proxy.statuses:
            assert stores.list().data == []
        assert proxy.statuses[-1] == 200
        proxy.close()


@pytest.mark.parametrize("status", [408, 500, 503, 529])
def test_a_faulty_peer_is_tried_again(connect, proxy, store, status) -> None:
    stores = connect(base_url=proxy.url, max_retries=2).beta.memory_stores
    quickly = {"retry-after-ms": "1"}
    proxy.answers = [(status, quickly)] * 2
    assert stores.retrieve(store).id == store
    assert proxy.statuses == [status, status, 200]
    proxy.seen.clear()
    proxy.answers = [(status, quickly)] * 3
    with pytest.raises(anthropic.APIStatusError) as error:
        stores.retrieve(store)
    assert error.value.status_code == status
    if status in (500, 503):  # the old SDK has a class of its own for 529
        assert isinstance(error.value, anthropic.InternalServerError)
    assert proxy.statuses == [status] * 3


def test_retrying_a_create_whose_answer_was_lost_reports_a_conflict(connect, proxy, store) -> None:
    """The server has made the memory, the answer never came, and the SDK tries again."""
    memories = connect(base_url=proxy.url, max_retries=2).beta.memory_stores.memories
    proxy.lose_answers = 1
    with pytest.raises(anthropic.ConflictError) as error:
        memories.create(store, path="/a", content="x")
    inner = check(error.value, 409, "memory_path_conflict_error")
    there = memories.retrieve(inner["conflicting_memory_id"], memory_store_id=store)
    assert (there.path, there.content) == ("/a", "x")
    proxy.lose_answers = 1
    update = {"content": "y", "precondition": {"type": "content_sha256", "content_sha256": there.content_sha256}}
    changed = memories.update(there.id, memory_store_id=store, **update)
    assert changed.content_sha256 != there.content_sha256, "the second try finds what it wants"


def test_a_server_that_is_gone(connect) -> None:
    with pytest.raises(anthropic.APIConnectionError):
        connect(base_url="http://127.0.0.1:9").beta.memory_stores.list().data
