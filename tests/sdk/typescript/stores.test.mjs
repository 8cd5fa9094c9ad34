/** Stores, memories, versions and sessions with the unmodified SDK: every method, view and filter. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';

import Anthropic, { BadRequestError, ConflictError, NotFoundError, PermissionDeniedError } from '@anthropic-ai/sdk';
import { VERSION } from '@anthropic-ai/sdk/version';

import { all, serve } from './live.mjs';

let server, client, stores, memories, versions, sessions;
before(async () => {
  server = await serve();
  client = new Anthropic({ baseURL: server.url, apiKey: server.key, maxRetries: 0 });
  stores = client.beta.memoryStores;
  ({ memories, memoryVersions: versions } = stores);
  sessions = client.beta.sessions;
});
after(() => server.close());

/** Whether the SDK has today's filters of sessions. */
const isCurrent = !VERSION.startsWith('0.');

const sha256 = (text) => createHash('sha256').update(text).digest('hex');
const ids = (items) => items.map((item) => item.id);
const newStore = async () => (await stores.create({ name: 'tea' })).id;

test('stores: create, retrieve, update, archive, delete', async () => {
  const made = await stores.create({ name: 'Tea', description: 'How we brew', metadata: { keep: '1', drop: '2' } });
  assert.match(made.id, /^memstore_01/);
  assert.deepEqual(Object.keys(made).sort(), [
    'archived_at', 'created_at', 'description', 'id', 'metadata', 'name', 'type', 'updated_at',
  ]);
  assert.deepEqual(await stores.retrieve(made.id), made);
  const changed = await stores.update(made.id, { name: 'New', description: '', metadata: { drop: null, add: '3' } });
  assert.deepEqual([changed.name, changed.description, changed.metadata], ['New', '', { keep: '1', add: '3' }]);
  assert.deepEqual(await stores.update(made.id, {}), changed);
  const archived = await stores.archive(made.id);
  assert.notEqual(archived.archived_at, null);
  assert.deepEqual(await stores.archive(made.id), archived);
  await assert.rejects(stores.update(made.id, { name: 'x' }), BadRequestError);
  assert.ok(!ids(await all(stores.list())).includes(made.id));
  assert.ok(ids(await all(stores.list({ include_archived: true }))).includes(made.id));
  assert.deepEqual({ ...(await stores.delete(made.id)) }, { id: made.id, type: 'memory_store_deleted' });
  await assert.rejects(stores.retrieve(made.id), NotFoundError);
});

test('stores: list by time', async () => {
  const made = [];
  for (const number of [0, 1, 2, 3]) made.push(await stores.create({ name: `timed ${number}` }));
  const span = { 'created_at[gte]': made[1].created_at, 'created_at[lte]': made[2].created_at };
  assert.deepEqual(ids(await all(stores.list(span))), [made[2].id, made[1].id]);
  assert.deepEqual(ids(await all(stores.list({ ...span, limit: 1 }))), [made[2].id, made[1].id]);
});

test('memories: create, retrieve, update, delete, in both views', async () => {
  const store = await newStore();
  const text = 'grün: 80 °C 👩‍🚀\r\n';
  const made = await memories.create(store, { path: '/a b/ü.md', content: text });
  assert.equal(made.content, null);
  assert.equal(made.content_sha256, sha256(text));
  assert.equal(made.content_size_bytes, Buffer.byteLength(text));
  const place = { memory_store_id: store };
  assert.equal((await memories.retrieve(made.id, place)).content, text);
  assert.deepEqual(await memories.retrieve(made.id, { ...place, view: 'basic' }), made);
  const moved = await memories.update(made.id, { ...place, path: '/b', content: '2', view: 'full' });
  assert.deepEqual([moved.id, moved.path, moved.content], [made.id, '/b', '2']);
  const same = await memories.update(made.id, { ...place, path: '/b', content: '2' });
  assert.equal(same.memory_version_id, moved.memory_version_id);
  const condition = (hash) => ({ precondition: { type: 'content_sha256', content_sha256: hash } });
  await assert.rejects(memories.update(made.id, { ...place, content: '3', ...condition(sha256('1')) }), ConflictError);
  const third = await memories.update(made.id, { ...place, content: '3', ...condition(sha256('2')) });
  assert.equal(third.content_sha256, sha256('3'));
  await assert.rejects(memories.delete(made.id, { ...place, expected_content_sha256: sha256('2') }), ConflictError);
  const deleted = await memories.delete(made.id, { ...place, expected_content_sha256: sha256('3') });
  assert.deepEqual({ ...deleted }, { id: made.id, type: 'memory_deleted' });
  await assert.rejects(memories.retrieve(made.id, place), NotFoundError);
});

test('memories: list by prefix, depth and view', async () => {
  const store = await newStore();
  for (const path of ['/a.md', '/notes/b.md', '/notes/deep/c.md', '/notesx']) {
    await memories.create(store, { path, content: path });
  }
  const listed = async (options) => (await all(memories.list(store, options))).map((item) => [item.type, item.path]);
  const memory = (path) => ['memory', path];
  assert.deepEqual(await listed(), ['/a.md', '/notes/b.md', '/notes/deep/c.md', '/notesx'].map(memory));
  assert.deepEqual(await listed({ path_prefix: '/notes/' }), ['/notes/b.md', '/notes/deep/c.md'].map(memory));
  const top = [memory('/a.md'), ['memory_prefix', '/notes/'], memory('/notesx')];
  assert.deepEqual(await listed({ depth: 1 }), top);
  assert.deepEqual(await listed({ depth: 1, limit: 1 }), top);
  const full = await all(memories.list(store, { view: 'full', path_prefix: '/notes/deep/' }));
  assert.deepEqual(full.map((item) => item.content), ['/notes/deep/c.md']);
});

test('versions: list with every filter, retrieve, redact', async () => {
  const store = await newStore();
  const place = { memory_store_id: store };
  const memory = await memories.create(store, { path: '/a', content: 'one' });
  await memories.update(memory.id, { ...place, content: 'two' });
  await memories.delete(memory.id, place);
  await memories.create(store, { path: '/other', content: 'other' });
  const everything = await all(versions.list(store));
  assert.deepEqual(everything.map((version) => version.operation), ['created', 'deleted', 'modified', 'created']);
  const found = async (options) => ids(await all(versions.list(store, options)));
  assert.deepEqual(await found({ memory_id: memory.id }), ids(everything.slice(1)));
  assert.deepEqual(await found({ operation: 'deleted' }), [everything[1].id]);
  assert.deepEqual(await found({ api_key_id: everything[0].created_by.api_key_id }), ids(everything));
  assert.deepEqual(await found({ api_key_id: 'apikey_011111111111111111111111' }), []);
  assert.deepEqual(await found({ session_id: 'sesn_011111111111111111111111' }), []);
  const span = { 'created_at[gte]': everything[2].created_at, 'created_at[lte]': everything[1].created_at };
  assert.deepEqual(await found(span), [everything[1].id, everything[2].id]);
  const full = await all(versions.list(store, { view: 'full' }));
  assert.deepEqual(full.map((version) => version.content), ['other', null, 'two', 'one']);
  const first = everything[3];
  assert.equal((await versions.retrieve(first.id, place)).content, 'one');
  assert.deepEqual(await versions.retrieve(first.id, { ...place, view: 'basic' }), first);
  const redacted = await versions.redact(first.id, place);
  assert.deepEqual([redacted.content, redacted.path, redacted.content_sha256], [null, null, null]);
  assert.deepEqual(redacted.redacted_by, first.created_by);
  assert.deepEqual(await versions.redact(first.id, place), redacted);
  await assert.rejects(versions.redact(everything[0].id, place), BadRequestError);
});

test('sessions: create, retrieve, update, list, archive, delete', async () => {
  const store = await newStore();
  const resources = [{ type: 'memory_store', memory_store_id: store, access: 'read_only', instructions: 'Look.' }];
  const made = await sessions.create({ agent: 'agent_ts', environment_id: 'env', resources, title: 'Tasting' });
  assert.match(made.id, /^sesn_01/);
  const [resource] = made.resources;
  assert.deepEqual([resource.memory_store_id, resource.access, resource.mount_path], [store, 'read_only', '/mnt/memory/tea']);
  assert.deepEqual(await sessions.retrieve(made.id), made);
  assert.equal((await sessions.update(made.id, { title: 'New' })).title, 'New');
  const second = await sessions.create({ agent: { type: 'agent', id: 'agent_ts', version: 2 }, environment_id: 'env' });
  const found = async (options) => ids(await all(sessions.list({ agent_id: 'agent_ts', ...options })));
  assert.deepEqual(await found(), [second.id, made.id]);
  assert.deepEqual(await found({ order: 'asc', limit: 1 }), [made.id, second.id]);
  assert.deepEqual(await found({ agent_version: 2 }), [second.id]);
  assert.deepEqual(await found({ 'created_at[gt]': made.created_at }), [second.id]);
  assert.equal((await sessions.archive(made.id)).status, 'terminated');
  assert.deepEqual(await found(), [second.id]);
  assert.deepEqual(await found({ include_archived: true }), [second.id, made.id]);
  if (isCurrent) {
    assert.deepEqual(await found({ memory_store_id: store, include_archived: true }), [made.id]);
    assert.deepEqual(await found({ statuses: ['terminated'], include_archived: true }), [made.id]);
    assert.deepEqual(await found({ statuses: ['terminated', 'idle'], include_archived: true }), [second.id, made.id]);
  }
  assert.deepEqual({ ...(await sessions.delete(made.id)) }, { id: made.id, type: 'session_deleted' });
  await assert.rejects(sessions.retrieve(made.id), NotFoundError);
});

test('sessions: a token writes as its session, where it may', async () => {
  const [store, locked] = [await newStore(), await newStore()];
  const resources = [
    { type: 'memory_store', memory_store_id: store },
    { type: 'memory_store', memory_store_id: locked, access: 'read_only' },
  ];
  const { data: session, response } = await sessions
    .create({ agent: 'a', environment_id: 'e', resources })
    .withResponse();
  const authToken = response.headers.get('quipu-session-token');
  const own = new Anthropic({ baseURL: server.url, apiKey: null, authToken, maxRetries: 0 }).beta.memoryStores;
  await own.memories.create(store, { path: '/a', content: 'by the agent' });
  const [version] = await all(versions.list(store, { session_id: session.id }));
  assert.deepEqual({ ...version.created_by }, { type: 'session_actor', session_id: session.id });
  await assert.rejects(own.memories.create(locked, { path: '/a', content: '' }), PermissionDeniedError);
});

test('auto-paging goes over hundreds of everything', async () => {
  const count = 230;
  const store = await newStore();
  const made = { paths: [], versions: [], stores: [], sessions: [] };
  for (let number = 0; number < count; number++) {
    const memory = await memories.create(store, { path: `/${String(number).padStart(3, '0')}`, content: `${number}` });
    made.paths.push(memory.path);
    made.versions.unshift(memory.memory_version_id);
    made.stores.unshift((await stores.create({ name: `many ${number}` })).id);
    made.sessions.unshift((await sessions.create({ agent: 'agent_many', environment_id: 'e' })).id);
  }
  for (const options of [{}, { limit: 100 }, { limit: 7 }, { view: 'full', limit: 100 }]) {
    assert.deepEqual((await all(memories.list(store, options))).map((item) => item.path), made.paths);
    assert.deepEqual(ids(await all(versions.list(store, options))), made.versions);
  }
  const since = (await stores.retrieve(made.stores.at(-1))).created_at;
  assert.deepEqual(ids(await all(stores.list({ 'created_at[gte]': since, limit: 100 }))), made.stores);
  assert.deepEqual(ids(await all(sessions.list({ agent_id: 'agent_many' }))), made.sessions);
});
