"""An agent, an environment, two stores and a session that is followed, with the official SDK.

Quipu runs no agent: the lines between the two rules are what runs yours. `pip install anthropic`, `quipu serve`, then
run this with QUIPU_API_KEY set.
"""

import os

from anthropic import Anthropic

url = os.environ.get("QUIPU_URL", "http://127.0.0.1:8420")
client = Anthropic(base_url=url, api_key=os.environ["QUIPU_API_KEY"])

agent = client.beta.agents.create(name="Tea brewer", model="claude-opus-5-5", system="You brew tea.")
environment = client.beta.environments.create(name="Kitchen", config={"type": "cloud"})
notes = client.beta.memory_stores.create(name="Tea notes", description="How this house brews.")
rules = client.beta.memory_stores.create(name="House rules")
client.beta.memory_stores.memories.create(rules.id, path="/water.md", content="Never boil it twice.")
print(f"agent     {agent.name}, version {agent.version}")

created = client.beta.sessions.with_raw_response.create(
    agent=agent.id,
    environment_id=environment.id,
    title="Morning tea",
    resources=[
        {"type": "memory_store", "memory_store_id": notes.id, "instructions": "Write down what worked."},
        {"type": "memory_store", "memory_store_id": rules.id, "access": "read_only"},
    ],
)
session = created.parse()
for resource in client.beta.sessions.resources.list(session.id):
    print(f"attached  {resource.name} ({resource.access}) at {resource.mount_path}")

with client.beta.sessions.events.stream(session.id) as stream:
    client.beta.sessions.events.send(
        session.id,
        events=[{"type": "user.message", "content": [{"type": "text", "text": "Green tea, please."}]}],
    )

    # ---- What runs the agent acts as the session, with its token, and reports what happens.
    harness = Anthropic(base_url=url, auth_token=created.headers["quipu-session-token"])
    harness.beta.memory_stores.memories.create(notes.id, path="/green.md", content="80 C, 2 min")
    answer = {"type": "agent.message", "content": [{"type": "text", "text": "80 C, two minutes."}]}
    idle = {"type": "session.status_idle", "stop_reason": {"type": "end_turn"}}
    harness.post(f"/quipu/sessions/{session.id}/events", body={"events": [answer, idle]}, cast_to=object)
    # ----

    for event in stream:
        text = event.content[0].text if event.type.endswith(".message") else ""
        print(f"event     {event.type} {text}".rstrip())
        if event.type == "session.status_idle":
            break

for event in client.beta.sessions.events.list(session.id, types=["user.message"]):
    print(f"recorded  {event.content[0].text}")
for version in client.beta.memory_stores.memory_versions.list(notes.id):
    print(f"version   {version.operation} {version.path} by {version.created_by.type}")

changed = client.beta.agents.update(agent.id, version=agent.version, system="You brew tea, never twice.")
kept = client.beta.sessions.retrieve(session.id).agent
print(f"changed   version {changed.version}; the session keeps {kept.version}: {kept.system}")
client.beta.sessions.archive(session.id)
print(f"archived  {client.beta.sessions.retrieve(session.id).status}")
