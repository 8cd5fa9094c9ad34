"""The official Python SDK on your own Quipu: a store, three memories, history, redaction.

    quipu serve                                  # prints an API key on its first start
    QUIPU_API_KEY=… python quickstart.py         # pip install anthropic
"""

import os

from anthropic import Anthropic, ConflictError

client = Anthropic(
    base_url=os.environ.get("QUIPU_URL", "http://127.0.0.1:8420"),
    api_key=os.environ["QUIPU_API_KEY"],
)
stores = client.beta.memory_stores

store = stores.create(name="Tea notes", description="How we brew")
print(f"store     {store.id}")

texts = {"/green.md": "80 C, 2 min", "/black.md": "95 C, 4 min", "/house/password.md": "open sesame"}
made = {path: stores.memories.create(store.id, path=path, content=text) for path, text in texts.items()}
for item in stores.memories.list(store.id, depth=1):
    print(f"listed    {item.path}")

# Two writers: each says what it has read, so that neither overwrites what it has not seen.
green = made["/green.md"]
condition = {"type": "content_sha256", "content_sha256": green.content_sha256}
stores.memories.update(green.id, memory_store_id=store.id, content="75 C, 2 min")
try:
    stores.memories.update(green.id, memory_store_id=store.id, content="70 C", precondition=condition)
except ConflictError as conflict:
    print(f"conflict  {conflict.body['error']['type']}")

fresh = stores.memories.retrieve(green.id, memory_store_id=store.id)
condition["content_sha256"] = fresh.content_sha256
better = fresh.content.replace("2 min", "90 s")
updated = stores.memories.update(
    green.id, memory_store_id=store.id, content=better, precondition=condition, view="full"
)
print(f"updated   {updated.path}: {updated.content}")

for version in stores.memory_versions.list(store.id, memory_id=green.id, view="full"):
    print(f"version   {version.operation} by {version.created_by.type}: {version.content}")

# A password is no memory: delete it, then take its text out of history too.
password = made["/house/password.md"]
stores.memories.delete(password.id, memory_store_id=store.id)
redacted = stores.memory_versions.redact(password.memory_version_id, memory_store_id=store.id)
print(f"redacted  {redacted.operation}, path {redacted.path}, text {redacted.content}")

archived = stores.archive(store.id)
print(f"archived  {archived.name}: {len(stores.memories.list(store.id).data)} memories stay readable")
