// An agent, an environment, two stores and a session that is followed, with the official SDK.
//
// Quipu runs no agent: the lines between the two rules are what runs yours. `npm install @anthropic-ai/sdk`,
// `quipu serve`, then run this with QUIPU_API_KEY set.
import Anthropic from '@anthropic-ai/sdk';

const baseURL = process.env.QUIPU_URL ?? 'http://127.0.0.1:8420';
const client = new Anthropic({ baseURL, apiKey: process.env.QUIPU_API_KEY });
const { agents, environments, memoryStores, sessions } = client.beta;

const agent = await agents.create({ name: 'Tea brewer', model: 'claude-opus-5-5', system: 'You brew tea.' });
const environment = await environments.create({ name: 'Kitchen', config: { type: 'cloud' } });
const notes = await memoryStores.create({ name: 'Tea notes', description: 'How this house brews.' });
const rules = await memoryStores.create({ name: 'House rules' });
await memoryStores.memories.create(rules.id, { path: '/water.md', content: 'Never boil it twice.' });
console.log(`agent     ${agent.name}, version ${agent.version}`);

const { data: session, response } = await sessions
  .create({
    agent: agent.id,
    environment_id: environment.id,
    title: 'Morning tea',
    resources: [
      { type: 'memory_store', memory_store_id: notes.id, instructions: 'Write down what worked.' },
      { type: 'memory_store', memory_store_id: rules.id, access: 'read_only' },
    ],
  })
  .withResponse();
for await (const resource of sessions.resources.list(session.id)) {
  console.log(`attached  ${resource.name} (${resource.access}) at ${resource.mount_path}`);
}

const stream = await sessions.events.stream(session.id);
await sessions.events.send(session.id, {
  events: [{ type: 'user.message', content: [{ type: 'text', text: 'Green tea, please.' }] }],
});

// ---- What runs the agent acts as the session, with its token, and reports what happens.
const authToken = response.headers.get('quipu-session-token');
const harness = new Anthropic({ baseURL, apiKey: null, authToken });
await harness.beta.memoryStores.memories.create(notes.id, { path: '/green.md', content: '80 C, 2 min' });
const answer = { type: 'agent.message', content: [{ type: 'text', text: '80 C, two minutes.' }] };
const idle = { type: 'session.status_idle', stop_reason: { type: 'end_turn' } };
await harness.post(`/quipu/sessions/${session.id}/events`, { body: { events: [answer, idle] } });
// ----

for await (const event of stream) {
  const text = event.type.endsWith('.message') ? event.content[0].text : '';
  console.log(`event     ${event.type} ${text}`.trimEnd());
  if (event.type === 'session.status_idle') break;
}

for await (const event of sessions.events.list(session.id, { types: ['user.message'] })) {
  console.log(`recorded  ${event.content[0].text}`);
}
for await (const version of memoryStores.memoryVersions.list(notes.id)) {
  console.log(`version   ${version.operation} ${version.path} by ${version.created_by.type}`);
}

const changed = await agents.update(agent.id, { version: agent.version, system: 'You brew tea, never twice.' });
const { agent: kept } = await sessions.retrieve(session.id);
console.log(`changed   version ${changed.version}; the session keeps ${kept.version}: ${kept.system}`);
await sessions.archive(session.id);
console.log(`archived  ${(await sessions.retrieve(session.id)).status}`);
