"""What Quipu forwards is to the SDK as if it spoke to the Messages API itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import anthropic
import pytest
from anthropic import Anthropic

from quipu_live import Quipu, Server
from scripted_messages import KEY, ScriptedMessages

ASK: dict[str, Any] = {
    "model": "scripted-1", "max_tokens": 99, "messages": [{"role": "user", "content": "Hello, I am Ada."}],
}


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedMessages]:
    upstream = ScriptedMessages()
    yield upstream
    upstream.close()


@pytest.fixture(scope="module")
def quipu(tmp_path_factory: pytest.TempPathFactory, upstream: ScriptedMessages) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("quipu")
    (folder / "key").write_text(f"{KEY}\n")
    quipu = Quipu(folder / "data")
    settings = {"upstream_base_url": upstream.url, "upstream_api_key_file": str(folder / "key")}
    with quipu.serve(**settings) as server:
        server.key = quipu.new_key("admin", "--name", "app", "--forward")["secret"]
        yield server


@pytest.fixture(params=["direct", "forwarded"])
def client(request: pytest.FixtureRequest, upstream: ScriptedMessages, quipu: Server) -> Iterator[Anthropic]:
    """A client of the API itself, and one of Quipu: both pass every test."""
    upstream.seen.clear()
    is_direct = request.param == "direct"
    url, key = (upstream.url, KEY) if is_direct else (quipu.url, quipu.key)
    with Anthropic(base_url=url, api_key=key, max_retries=2) as client:
        yield client
    sent = repr(upstream.seen)
    assert KEY in sent and quipu.key not in sent


def test_a_message(client: Anthropic) -> None:
    message = client.messages.create(**ASK)
    assert message.content[0].text == "Hello, Ada."
    assert (message.stop_reason, message.usage.output_tokens) == ("end_turn", 5)
    assert message._request_id == "req_upstream_1"


def test_a_stream(client: Anthropic) -> None:
    with client.messages.stream(**ASK) as stream:
        pieces = list(stream.text_stream)
        assert "".join(pieces) == "Hello, Ada." and len(pieces) > 1
        assert stream.get_final_message().stop_reason == "end_turn"
    kinds = [event.type for event in client.messages.create(**ASK, stream=True)]
    assert kinds[0] == "message_start" and kinds[-1] == "message_stop"


def test_counting_tokens(client: Anthropic) -> None:
    request = {name: value for name, value in ASK.items() if name != "max_tokens"}
    assert client.messages.count_tokens(**request).input_tokens == 42


def test_models(client: Anthropic) -> None:
    assert [model.id for model in client.models.list()] == ["scripted-1"]
    assert client.models.retrieve("scripted-1").display_name == "Scripted"


def test_batches(client: Anthropic, upstream: ScriptedMessages) -> None:
    batches = client.messages.batches
    batch = batches.create(requests=[{"custom_id": "a", "params": ASK}])
    assert batches.retrieve(batch.id).processing_status == "ended"
    assert [batch.id for batch in batches.list()] == ["msgbatch_1"]
    # The SDK fetches them from the address that the batch names, with the key that it has.
    assert [entry.custom_id for entry in batches.results(batch.id)] == ["a"]
    assert batches.cancel(batch.id).processing_status == "canceling"
    assert batches.delete(batch.id).id == batch.id
    assert all(KEY in repr(request["headers"]) for request in upstream.seen)


def test_files(client: Anthropic) -> None:
    files = client.beta.files
    file = files.upload(file=("tea.txt", b"green", "text/plain"))
    assert [found.id for found in files.list()] == [file.id]
    assert files.retrieve_metadata(file.id).filename == "tea.txt"
    assert files.download(file.id).read() == b"green"
    assert files.delete(file.id).id == file.id


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
def test_what_the_sdk_retries_is_sent_again(client: Anthropic, upstream: ScriptedMessages, status: int) -> None:
    upstream.faults = [(status, {"retry-after": "0.01"}), (status, {"retry-after-ms": "1"})]
    assert client.messages.create(**ASK).stop_reason == "end_turn"
    assert len(upstream.seen) == 3
    counts = [request["headers"].get("x-stainless-retry-count") for request in upstream.seen]
    assert counts == ["0", "1", "2"]


@pytest.mark.parametrize(
    "status, kind",
    [
        (400, anthropic.BadRequestError), (403, anthropic.PermissionDeniedError),
        (404, anthropic.NotFoundError), (413, anthropic.APIStatusError), (422, anthropic.UnprocessableEntityError),
    ],
)
def test_what_the_sdk_does_not_retry_fails_as_it_should(
    client: Anthropic, upstream: ScriptedMessages, status: int, kind: Any
) -> None:
    upstream.faults = [(status, {})]
    with pytest.raises(kind) as raised:
        client.messages.create(**ASK)
    assert raised.value.status_code == status
    assert raised.value.request_id == "req_upstream_1"
    assert raised.value.response.headers["anthropic-ratelimit-requests-limit"] == "50"
    assert len(upstream.seen) == 1


def test_the_last_error_is_that_of_the_upstream(client: Anthropic, upstream: ScriptedMessages) -> None:
    upstream.faults = [(529, {"retry-after-ms": "1"})] * 3
    with pytest.raises(anthropic.APIStatusError) as raised:
        client.messages.create(**ASK)
    assert raised.value.status_code == 529 and raised.value.message.count("a fault") == 1
    assert len(upstream.seen) == 3


def test_the_sdk_can_forbid_what_it_would_do(client: Anthropic, upstream: ScriptedMessages) -> None:
    upstream.faults = [(500, {"x-should-retry": "false"})]
    with pytest.raises(anthropic.InternalServerError):
        client.messages.create(**ASK)
    assert len(upstream.seen) == 1


@pytest.fixture
def with_memory(upstream: ScriptedMessages, quipu: Server) -> Callable[[str], Anthropic]:
    def with_memory(name: str) -> Anthropic:
        client = Anthropic(base_url=quipu.url, api_key=quipu.key)
        client.beta.memory_stores.create(name=name)
        headers = {"quipu-store": name, "quipu-app": "greeter"}
        return Anthropic(base_url=quipu.url, api_key=quipu.key, default_headers=headers, max_retries=0)

    return with_memory


def remembered(client: Anthropic, name: str) -> list[tuple[str, str]]:
    """Returns what is in a store, and who wrote it."""
    stores = client.beta.memory_stores
    store = next(store.id for store in stores.list() if store.name == name)
    found = []
    for listed in stores.memories.list(store):
        memory = stores.memories.retrieve(listed.id, memory_store_id=store, view="full")
        version = stores.memory_versions.list(store, memory_id=memory.id).data[0]
        found.append((memory.content, version.created_by.type))
    return found


def test_one_header_gives_an_app_memory(with_memory: Callable[[str], Anthropic]) -> None:
    client = with_memory("whole")
    message = client.messages.create(**ASK)
    assert [block.type for block in message.content] == ["text", "text"]
    assert message.content[1].text.startswith("I have noted it: ")
    assert (message.stop_reason, message.usage.input_tokens) == ("end_turn", 20)
    assert remembered(client, "whole") == [("Ada said hello", "session_actor")]


def test_one_header_gives_a_stream_memory(with_memory: Callable[[str], Anthropic]) -> None:
    client = with_memory("streamed")
    with client.messages.stream(**ASK) as stream:
        kinds = [event.type for event in stream if event.type != "text"]
        message = stream.get_final_message()
    assert kinds.count("message_start") == kinds.count("message_stop") == 1
    assert [block.type for block in message.content] == ["text", "text"]
    assert message.content[1].text.startswith("I have noted it: ")
    assert (message.stop_reason, message.usage.output_tokens) == ("end_turn", 10)
    assert remembered(client, "streamed") == [("Ada said hello", "session_actor")]
