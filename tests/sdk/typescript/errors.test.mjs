/** Every error class of the SDK, what it tells, and how often the SDK has tried. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';

import Anthropic, {
  APIConnectionError,
  APIError,
  AuthenticationError,
  BadRequestError,
  ConflictError,
  InternalServerError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
} from '@anthropic-ai/sdk';

import { countingProxy, serve } from './live.mjs';

const absentId = '011111111111111111111111';
let server, proxy, stores, store;
before(async () => {
  server = await serve();
  proxy = await countingProxy(server.url);
  stores = connect({}).beta.memoryStores;
  store = (await stores.create({ name: 'tea' })).id;
});
beforeEach(() => proxy.statuses.splice(0));
after(() => {
  proxy.close();
  return server.close();
});

function connect(options) {
  return new Anthropic({ baseURL: proxy.url, apiKey: server.key, maxRetries: 2, ...options });
}

/** Checks that a call fails as it should and was sent so often, and returns the inner error. */
async function fails(call, errorClass, type, statuses) {
  proxy.statuses.splice(0);
  const error = await Promise.resolve(call()).then(assert.fail, (error) => error);
  assert.ok(error instanceof errorClass, `${error.constructor.name}: ${error.message}`);
  assert.deepEqual(proxy.statuses, statuses);
  assert.equal(error.status, statuses.at(-1));
  assert.equal(error.error.type, 'error');
  assert.equal(error.error.error.type, type);
  assert.equal(error.type, type);
  assert.match(error.requestID, /^req_01/);
  assert.equal(error.error.request_id, error.requestID);
  return error.error.error;
}

test('answers name their request and workspace', async () => {
  const { data, response, request_id: id } = await stores.retrieve(store).withResponse();
  assert.match(id, /^req_01/);
  assert.equal(data._request_id, id);
  assert.match(response.headers.get('anthropic-workspace-id'), /^wrkspc_01/);
});

test('refusals are sent once', async () => {
  const key = JSON.parse(server.quipu('--json', 'key', 'create', '--role', 'read_only')).secret;
  const reader = connect({ apiKey: key }).beta.memoryStores;
  const stranger = connect({ apiKey: 'sk-quipu-wrong' }).beta.memoryStores;
  const bad = 'invalid_request_error';
  await fails(() => stores.create({ name: '' }), BadRequestError, bad, [400]);
  await fails(() => stores.memories.create(store, { path: 'a', content: '' }), BadRequestError, bad, [400]);
  await fails(() => stores.memories.create(store, { path: '/a', content: null }), BadRequestError, bad, [400]);
  await fails(() => stores.memories.create(store, { path: '/a', content: '\ud800' }), BadRequestError, bad, [400]);
  await fails(() => stores.memories.list(store, { depth: 2 }), BadRequestError, bad, [400]);
  await fails(() => stores.list({ limit: 101 }), BadRequestError, bad, [400]);
  await fails(() => stores.list({ page: 'x' }), BadRequestError, bad, [400]);
  await fails(() => stranger.list(), AuthenticationError, 'authentication_error', [401]);
  await fails(() => reader.create({ name: 'x' }), PermissionDeniedError, 'permission_error', [403]);
  const absent = `memstore_${absentId}`;
  await fails(() => stores.retrieve(absent), NotFoundError, 'not_found_error', [404]);
  await fails(() => stores.retrieve('no id at all'), NotFoundError, 'not_found_error', [404]);
  const place = { memory_store_id: store };
  await fails(() => stores.memories.retrieve(`mem_${absentId}`, place), NotFoundError, 'not_found_error', [404]);
});

test('memory conflicts are sent once and say what is in the way', async () => {
  const there = await stores.memories.create(store, { path: '/notes/todo.md', content: 'x' });
  for (const path of ['/notes/todo.md', '/notes', '/notes/todo.md/deeper']) {
    const create = () => stores.memories.create(store, { path, content: '' });
    const error = await fails(create, ConflictError, 'memory_path_conflict_error', [409]);
    assert.equal(error.conflicting_memory_id, there.id);
    assert.ok([path, there.path].includes(error.conflicting_path));
  }
  const wrong = '0'.repeat(64);
  const precondition = { type: 'content_sha256', content_sha256: wrong };
  const update = () => stores.memories.update(there.id, { memory_store_id: store, content: 'y', precondition });
  await fails(update, ConflictError, 'memory_precondition_failed_error', [409]);
  const options = { memory_store_id: store, expected_content_sha256: wrong };
  const remove = () => stores.memories.delete(there.id, options);
  await fails(remove, ConflictError, 'memory_precondition_failed_error', [409]);
});

test('a strict server takes what the SDK sends', async () => {
  const strict = await serve({ serve_strict_headers: 'true' });
  const { memoryStores, sessions } = new Anthropic({ baseURL: strict.url, apiKey: strict.key, maxRetries: 0 }).beta;
  const { id } = await memoryStores.create({ name: 'tea' });
  await memoryStores.memories.create(id, { path: '/a', content: 'x' });
  const resources = [{ type: 'memory_store', memory_store_id: id }];
  await sessions.create({ agent: 'a', environment_id: 'e', resources });
  const betas = ['agent-memory-2026-07-22', 'managed-agents-2026-04-01'];
  await assert.rejects(memoryStores.retrieve(id, { betas }), BadRequestError);
  await strict.close();
});

test('a body that is too large', async () => {
  const small = await serve({ serve_body_size_bytes_max: '1000' });
  const { memoryStores } = new Anthropic({ baseURL: small.url, apiKey: small.key, maxRetries: 0 }).beta;
  for (const size of [1_000, 8_000_000, 8_000_000, 8_000_000]) {
    const error = await memoryStores.create({ name: 'n', description: 'd'.repeat(size) }).catch((error) => error);
    assert.ok(error instanceof APIError && !(error instanceof APIConnectionError), String(error));
    assert.deepEqual([error.status, error.error.error.type], [413, 'request_too_large']);
  }
  assert.equal((await memoryStores.create({ name: 'n' })).name, 'n', 'the server lives');
  await small.close();
});

test('a rate limit is retried and then thrown', async () => {
  const limited = await serve({ serve_requests_per_minute_max: '2' });
  const proxied = await countingProxy(limited.url);
  const client = (maxRetries) => new Anthropic({ baseURL: proxied.url, apiKey: limited.key, maxRetries });
  const list = (retries) => client(retries).beta.memoryStores.list();
  await list(0);
  await list(0);
  const error = await list(0).catch((error) => error);
  assert.ok(error instanceof RateLimitError);
  assert.equal(error.error.error.type, 'rate_limit_error');
  const seconds = Number(error.headers.get('retry-after'));
  assert.ok(seconds >= 1 && seconds <= 30, `${seconds}`);
  // Nobody wants to wait half a minute in a test; how often it is tried stays true.
  proxied.replacedHeaders['retry-after'] = '0.01';
  proxied.statuses.splice(0);
  await assert.rejects(list(3), RateLimitError);
  assert.deepEqual(proxied.statuses, [429, 429, 429, 429]);
  proxied.close();
  await limited.close();
});

test('a faulty peer is tried again', async () => {
  for (const status of [408, 500, 503, 529]) {
    const answer = { status, headers: { 'retry-after-ms': '1' } };
    proxy.statuses.splice(0);
    proxy.answers = [answer, answer];
    assert.equal((await stores.retrieve(store)).id, store);
    assert.deepEqual(proxy.statuses, [status, status, 200]);
    proxy.statuses.splice(0);
    proxy.answers = [answer, answer, answer];
    const error = await stores.retrieve(store).catch((error) => error);
    assert.equal(error.status, status);
    if (status >= 500) assert.ok(error instanceof InternalServerError);
    assert.deepEqual(proxy.statuses, [status, status, status]);
  }
});

test('a server that is gone', async () => {
  const gone = new Anthropic({ baseURL: 'http://127.0.0.1:9', apiKey: 'x', maxRetries: 0 });
  await assert.rejects(gone.beta.memoryStores.list(), APIConnectionError);
});
