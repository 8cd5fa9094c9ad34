/** Agents, environments, resources, events and threads: every method of the SDK that a recorder serves. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import Anthropic from '@anthropic-ai/sdk';
import { VERSION } from '@anthropic-ai/sdk/version';

import { all, serve } from './live.mjs';

const skip = VERSION.startsWith('0.') && 'older SDKs have other shapes';

let server, client, agents, environments, sessions;
before(async () => {
  server = await serve();
  client = new Anthropic({ baseURL: server.url, apiKey: server.key, maxRetries: 0 });
  ({ agents, environments, sessions } = client.beta);
});
after(() => server.close());

const ids = (items) => items.map((item) => item.id);
const types = (items) => items.map((item) => item.type);
const said = (text) => ({ type: 'user.message', content: [{ type: 'text', text }] });

test('agents', { skip }, async () => {
  const agent = await agents.create({
    name: 'a',
    model: { id: 'm', speed: 'fast' },
    tools: [{ type: 'agent_toolset_20260401' }],
    skills: [{ type: 'anthropic', skill_id: 'xlsx' }],
    metadata: { team: 'tea' },
  });
  assert.deepEqual([agent.version, agent.model.speed, agent.tools[0].default_config.enabled], [1, 'fast', true]);
  const changed = await agents.update(agent.id, { version: 1, description: 'd', metadata: { team: null } });
  assert.deepEqual([changed.version, changed.description, changed.metadata], [2, 'd', {}]);
  assert.equal((await agents.retrieve(agent.id, { version: 1 })).description, null);
  const versions = await all(agents.versions.list(agent.id, { limit: 1 }));
  assert.deepEqual(versions.map((it) => it.version), [2, 1]);
  assert.ok(ids(await all(agents.list())).includes(agent.id));
  assert.notEqual((await agents.archive(agent.id)).archived_at, null);
  assert.ok(!ids(await all(agents.list())).includes(agent.id));
  assert.ok(ids(await all(agents.list({ include_archived: true }))).includes(agent.id));
});

test('environments', { skip }, async () => {
  const made = await environments.create({ name: 'e', config: { type: 'cloud', packages: { pip: ['x'] } } });
  assert.deepEqual([made.config.packages.pip, made.config.networking.type], [['x'], 'unrestricted']);
  const changed = await environments.update(made.id, { description: 'd', config: { type: 'self_hosted' } });
  assert.deepEqual([changed.description, changed.config.type], ['d', 'self_hosted']);
  assert.equal((await environments.retrieve(made.id)).name, 'e');
  assert.ok(ids(await all(environments.list())).includes(made.id));
  assert.notEqual((await environments.archive(made.id)).archived_at, null);
  assert.equal((await environments.delete(made.id)).type, 'environment_deleted');
});

test('sessions', { skip }, async () => {
  const session = await sessions.create({ agent: 'a', environment_id: 'e', title: 'one' });
  assert.equal((await sessions.retrieve(session.id)).title, 'one');
  assert.equal((await sessions.update(session.id, { title: 'two' })).title, 'two');
  assert.ok(ids(await all(sessions.list())).includes(session.id));
  assert.equal((await sessions.archive(session.id)).status, 'terminated');
  assert.equal((await sessions.delete(session.id)).type, 'session_deleted');
});

test('resources', { skip }, async () => {
  const repository = { type: 'github_repository', url: 'https://example.org/a/b', authorization_token: 't' };
  const session = await sessions.create({ agent: 'a', environment_id: 'e', resources: [repository] });
  const { resources } = sessions;
  const [kept] = await all(resources.list(session.id));
  assert.deepEqual([kept.url, kept.mount_path, kept.mounted], ['https://example.org/a/b', '/workspace/b', false]);
  const update = { session_id: session.id, authorization_token: 'u' };
  assert.equal((await resources.update(kept.id, update)).id, kept.id);
  const added = await resources.add(session.id, { type: 'file', file_id: 'file_1' });
  assert.equal(added.mounted, false);
  assert.equal((await resources.retrieve(added.id, { session_id: session.id })).file_id, 'file_1');
  const deleted = await resources.delete(added.id, { session_id: session.id });
  assert.equal(deleted.type, 'session_resource_deleted');
});

test('events', { skip }, async () => {
  const agent = await agents.create({ name: 'a', model: 'm' });
  const session = await sessions.create({
    agent: { type: 'agent', id: agent.id, version: 1 },
    environment_id: 'e',
    initial_events: [said('zero')],
  });
  const stream = await sessions.events.stream(session.id);
  const sent = await sessions.events.send(session.id, { events: [said('one'), { type: 'user.interrupt' }] });
  assert.deepEqual(types(sent.data), ['user.message', 'user.interrupt']);
  const events = await all(sessions.events.list(session.id, { limit: 2 }));
  assert.deepEqual(types(events), ['user.message', 'user.message', 'user.interrupt']);
  const since = { order: 'desc', 'created_at[gte]': sent.data[0].processed_at };
  assert.deepEqual(ids(await all(sessions.events.list(session.id, since))), ids(sent.data).reverse());
  await sessions.archive(session.id);
  assert.deepEqual(ids(await all(stream)), ids(sent.data));
});

test('threads', { skip }, async () => {
  const session = await sessions.create({ agent: 'a', environment_id: 'e' });
  const { threads } = sessions;
  const [primary] = await all(threads.list(session.id));
  const of = { session_thread_id: 'sthr_2', agent_name: 'helper' };
  const answer = { type: 'agent.message', content: [{ type: 'text', text: 'hi' }], ...of };
  const report = (...events) => client.post(`/quipu/sessions/${session.id}/events`, { body: { events } });

  await report({ type: 'session.thread_created', ...of });
  const follow = (thread) => threads.events.stream(thread, { session_id: session.id });
  const [first, second] = [await follow(primary.id), await follow('sthr_2')];
  await sessions.events.send(session.id, { events: [said('one')] });
  await report(answer, { type: 'session.thread_status_running', ...of });
  await sessions.archive(session.id);
  assert.deepEqual(types(await all(first)), ['user.message']);
  assert.deepEqual(types(await all(second)), ['agent.message', 'session.thread_status_running']);
  const kept = await threads.retrieve('sthr_2', { session_id: session.id });
  assert.deepEqual([kept.parent_thread_id, kept.agent.name], [primary.id, 'helper']);
  const listed = await all(threads.events.list('sthr_2', { session_id: session.id }));
  assert.deepEqual(types(listed), ['agent.message', 'session.thread_status_running']);
});
