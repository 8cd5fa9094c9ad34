/** What Quipu forwards is to the SDK as if it spoke to the Messages API itself. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, beforeEach, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import Anthropic, { toFile } from '@anthropic-ai/sdk';

import { all, serve } from './live.mjs';

const key = 'sk-upstream-of-the-tests';
const ask = { model: 'scripted-1', max_tokens: 99, messages: [{ role: 'user', content: 'Hello, I am Ada.' }] };
// The tests run in a folder of their own, below `target`.
const support = join(dirname(fileURLToPath(import.meta.url)), '../../tests/support');
let upstream, server, forwarding, folder;

before(async () => {
  const child = spawn('python3', [join(support, 'scripted_messages.py')], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [url] = await once(createInterface({ input: child.stdout }), 'line');
  const call = async (path, body) => {
    const response = await fetch(url + path, body && { method: 'POST', body: JSON.stringify(body) });
    return response.json();
  };
  upstream = {
    url,
    faults: (faults) => call('/faults', faults),
    seen: () => call('/seen'),
    async close() {
      child.stdin.end();
      await once(child, 'exit');
    },
  };
  folder = mkdtempSync(join(tmpdir(), 'quipu-upstream-'));
  writeFileSync(join(folder, 'key'), `${key}\n`);
  server = await serve({ upstream_base_url: url, upstream_api_key_file: join(folder, 'key') });
  forwarding = JSON.parse(server.quipu('--json', 'key', 'create', '--role', 'admin', '--forward')).secret;
});
after(async () => {
  await server.close();
  await upstream.close();
  rmSync(folder, { recursive: true });
});

for (const way of ['direct', 'forwarded']) {
  describe(way, () => {
    let client, seenBefore;
    before(() => {
      client =
        way === 'direct'
          ? new Anthropic({ baseURL: upstream.url, apiKey: key, maxRetries: 2 })
          : new Anthropic({ baseURL: server.url, apiKey: forwarding, maxRetries: 2 });
    });
    beforeEach(async () => {
      seenBefore = (await upstream.seen()).length;
    });
    const seen = async () => (await upstream.seen()).slice(seenBefore);

    test('a message', async () => {
      const message = await client.messages.create(ask);
      assert.equal(message.content[0].text, 'Hello, Ada.');
      assert.match(message._request_id, /^req_upstream_/);
      const [request] = await seen();
      assert.ok(JSON.stringify(request.headers).includes(key));
      assert.ok(!JSON.stringify(request).includes(forwarding));
    });

    test('a stream', async () => {
      const stream = client.messages.stream(ask);
      let text = '';
      stream.on('text', (piece) => (text += piece));
      const message = await stream.finalMessage();
      assert.equal(text, 'Hello, Ada.');
      assert.equal(message.usage.output_tokens, 5);
    });

    test('tokens, models and batches', async () => {
      const { max_tokens: _, ...counted } = ask;
      assert.equal((await client.messages.countTokens(counted)).input_tokens, 42);
      assert.deepEqual((await all(client.models.list())).map((model) => model.id), ['scripted-1']);
      const batches = client.messages.batches;
      const batch = await batches.create({ requests: [{ custom_id: 'a', params: ask }] });
      const results = await all(await batches.results(batch.id));
      assert.deepEqual(results.map((result) => result.custom_id), ['a']);
      assert.ok((await seen()).every((request) => JSON.stringify(request.headers).includes(key)));
    });

    test('files', async () => {
      const files = client.beta.files;
      const file = await files.upload({ file: await toFile(Buffer.from('green'), 'tea.txt', { type: 'text/plain' }) });
      assert.deepEqual((await all(files.list())).map((found) => found.id), [file.id]);
      assert.equal(await (await files.download(file.id)).text(), 'green');
      assert.equal((await files.delete(file.id)).id, file.id);
    });

    for (const status of [408, 409, 429, 500, 529]) {
      test(`${status} is tried again`, async () => {
        await upstream.faults([
          [status, { 'retry-after-ms': '1' }],
          [status, { 'retry-after': '0.01' }],
        ]);
        assert.equal((await client.messages.create(ask)).stop_reason, 'end_turn');
        const counts = (await seen()).map((request) => request.headers['x-stainless-retry-count']);
        assert.deepEqual(counts, ['0', '1', '2']);
      });
    }

    for (const status of [400, 403, 404, 413, 422]) {
      test(`${status} is not tried again`, async () => {
        await upstream.faults([[status, {}]]);
        const error = await client.messages.create(ask).then(assert.fail, (error) => error);
        assert.equal(error.status, status);
        assert.match(error.requestID ?? error.request_id, /^req_upstream_/);
        assert.equal((await seen()).length, 1);
      });
    }

    test('a stream that nobody reads to its end', async () => {
      for await (const event of await client.messages.create({ ...ask, stream: true })) {
        assert.equal(event.type, 'message_start');
        break;
      }
      assert.equal((await client.messages.create(ask)).stop_reason, 'end_turn');
    });
  });
}

for (const isStreamed of [false, true]) {
  test(`one header gives an app memory, ${isStreamed ? 'streamed' : 'in one piece'}`, async () => {
    const name = isStreamed ? 'streamed' : 'whole';
    const defaultHeaders = { 'quipu-store': name };
    const client = new Anthropic({ baseURL: server.url, apiKey: forwarding, defaultHeaders, maxRetries: 0 });
    const store = await client.beta.memoryStores.create({ name });
    const message = isStreamed ? await client.messages.stream(ask).finalMessage() : await client.messages.create(ask);
    assert.deepEqual(message.content.map((block) => block.type), ['text', 'text']);
    assert.match(message.content[1].text, /^I have noted it: /);
    assert.equal(message.usage.output_tokens, 10);
    const [memory] = await all(client.beta.memoryStores.memories.list(store.id, { view: 'full' }));
    assert.equal(memory.content, 'Ada said hello');
  });
}
