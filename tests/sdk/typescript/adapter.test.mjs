/** The memory tool adapter, reaching Quipu by URL and key, in the SDK's own tool runner. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import Anthropic from '@anthropic-ai/sdk';
import { betaMemoryTool } from '@anthropic-ai/sdk/helpers/beta/memory';

import { quipuMemory, QuipuUnavailable } from './adapter/src/index.js';
import { ScriptedModel, say, use } from './adapter/tests/scripted-model.js';
import { serve } from './live.mjs';

let server;
before(async () => {
  server = await serve();
});
after(() => server.close());

const path = '/memories/tea.md';
const view = { command: 'view', path };

/** Lets the tool runner play these turns, and returns the results that the model was given. */
async function play(memory, turns) {
  const model = new ScriptedModel(turns);
  const client = new Anthropic({ apiKey: 'test', baseURL: await model.listen() });
  const final = await client.beta.messages.toolRunner({
    model: 'scripted',
    max_tokens: 100,
    tools: [betaMemoryTool(memory)],
    messages: [{ role: 'user', content: 'Remember how to make tea.' }],
  });
  model.close();
  assert.deepEqual(final.content, turns.at(-1));
  return model.results().map((result) => [result.is_error ?? false, result.content]);
}

const newKey = (...words) => JSON.parse(server.quipu('--json', 'key', 'create', '--role', ...words)).secret;

test('the tool runner works on the store of a server and the history names its session', async () => {
  server.quipu('store', 'create', 'by url');
  const memory = quipuMemory({ url: server.url, apiKey: server.key, store: 'by url', title: 'by url' });
  const results = await play(memory, [
    use(1, { command: 'create', path, file_text: 'green: 80 C\n' }),
    use(2, { command: 'str_replace', path, old_str: '70 C', new_str: 'x' }),
    use(3, view),
    use(4, { command: 'str_replace', path, old_str: '80 C', new_str: '75 C' }),
    use(5, { command: 'rename', old_path: path, new_path: '/memories/green.md' }),
    say('Noted.'),
  ]);
  await memory.close();
  assert.deepEqual(results.map(([isError]) => isError), [false, true, false, false, false]);
  assert.match(results[1][1], /did not appear verbatim/);
  assert.match(results[2][1], /green: 80 C/);
  assert.equal(server.quipu('-s', 'by url', 'cat', '/green.md'), 'green: 75 C\n');
  const versions = JSON.parse(server.quipu('--json', '-s', 'by url', 'log')).data;
  const [author, ...others] = new Set(versions.map((version) => version.created_by.session_id));
  assert.deepEqual(others, []);
  assert.equal(JSON.parse(server.quipu('--json', 'session', 'show', author)).title, 'by url');
  const { beta } = new Anthropic({ baseURL: server.url, apiKey: server.key });
  assert.notEqual((await beta.sessions.retrieve(author)).archived_at, null, 'closing ends the session');
});

test('a read-only tool and a read-only key report the refusal to the model', async () => {
  server.quipu('store', 'create', 'locked');
  const script = [use(1, { command: 'create', path, file_text: 'x' }), say('Oh.')];
  const options = [
    { apiKey: server.key, readOnly: true },
    { apiKey: newKey('read_only', '--store', 'locked') },
  ];
  for (const option of options) {
    const memory = quipuMemory({ url: server.url, store: 'locked', ...option });
    const [[isError, content]] = await play(memory, script);
    await memory.close();
    assert.ok(isError);
    assert.match(content, /read-only/);
  }
});

test('commands sent at once share one session', async () => {
  server.quipu('store', 'create', 'at once');
  const memory = quipuMemory({ url: server.url, apiKey: newKey('admin'), store: 'at once' });
  const numbers = Array.from({ length: 20 }, (_, number) => number);
  const create = (number) => memory.create({ command: 'create', path: `/memories/${number}`, file_text: '' });
  await Promise.all(numbers.map(create));
  await memory.close();
  const versions = JSON.parse(server.quipu('--json', '-s', 'at once', 'log')).data;
  assert.equal(versions.length, 20);
  assert.equal(new Set(versions.map((version) => version.created_by.session_id)).size, 1);
});

test('a server that refuses or is gone is explained', async () => {
  const stranger = quipuMemory({ url: server.url, apiKey: 'sk-quipu-wrong' });
  await assert.rejects(async () => stranger.view(view), QuipuUnavailable);
  await assert.rejects(async () => stranger.view(view), /401.*authentication_error/);
  const gone = quipuMemory({ url: 'http://127.0.0.1:9', apiKey: server.key });
  await assert.rejects(async () => gone.view(view), /did not answer/);
  await gone.close();
});
