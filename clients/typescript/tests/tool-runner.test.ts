/** The SDK's own tool runner, against a scripted model and a real Quipu. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { promisify } from 'node:util';

import Anthropic from '@anthropic-ai/sdk';
import { betaMemoryTool } from '@anthropic-ai/sdk/helpers/beta/memory';

import { quipuMemory, QuipuUnavailable } from '../src/index.js';
import { ScriptedModel, say, use } from './scripted-model.js';

const binary = process.env['QUIPU_BINARY'] ?? 'quipu';
let data: string;
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'quipu-ts-'));
});
afterEach(() => rmSync(data, { recursive: true }));

function quipu(...words: string[]): string {
  return execFileSync(binary, ['--data', data, ...words], { encoding: 'utf-8' });
}

const path = '/memories/tea.md';
const session = [
  use(1, { command: 'view', path: '/memories' }),
  use(2, { command: 'create', path, file_text: 'green: 80 C\nblack: 95 C\n' }),
  use(3, { command: 'str_replace', path, old_str: 'green: 70 C', new_str: 'x' }),
  use(4, { command: 'view', path }),
  use(5, { command: 'str_replace', path, old_str: '80 C', new_str: '75 C' }),
  use(6, { command: 'insert', path, insert_line: 2, insert_text: 'white: 70 C' }),
  use(7, { command: 'create', path: '/memories/scratch.md', file_text: 'temporary' }),
  use(8, { command: 'rename', old_path: '/memories/scratch.md', new_path: '/memories/old/s.md' }),
  use(9, { command: 'delete', path: '/memories/old' }),
  say('Noted.'),
];
const expected: [boolean, string][] = [
  [false, '4.0K\t/memories'],
  [false, 'File created successfully at: /memories/tea.md'],
  [true, 'No replacement was performed, old_str `green: 70 C` did not appear verbatim'],
  [false, '     1\tgreen: 80 C\n     2\tblack: 95 C\n     3\t'],
  [false, 'The memory file has been edited.'],
  [false, 'The file /memories/tea.md has been edited.'],
  [false, 'File created successfully at: /memories/scratch.md'],
  [false, 'Successfully renamed /memories/scratch.md to /memories/old/s.md'],
  [false, 'Successfully deleted /memories/old'],
];

test('the tool runner works on a store and the history names its session', async () => {
  const model = new ScriptedModel(session);
  const client = new Anthropic({ apiKey: 'test', baseURL: await model.listen() });
  const memory = quipuMemory({ binary, data, title: 'typescript test' });
  const final = await client.beta.messages.toolRunner({
    model: 'scripted',
    max_tokens: 100,
    tools: [betaMemoryTool(memory)],
    messages: [{ role: 'user', content: 'Remember how to make tea.' }],
  });
  await memory.close();
  model.close();
  assert.deepEqual(final.content, say('Noted.'));
  const results = model.results();
  assert.equal(results.length, expected.length);
  for (const [index, [isError, part]] of expected.entries()) {
    const result = results[index]!;
    assert.equal(result['is_error'] ?? false, isError, JSON.stringify(result));
    assert.ok((result['content'] as string).includes(part), JSON.stringify(result));
  }
  assert.equal(quipu('cat', '/tea.md'), 'green: 75 C\nblack: 95 C\nwhite: 70 C\n');
  const versions = JSON.parse(quipu('--json', 'log')).data as { created_by: { session_id: string } }[];
  const authors = new Set(versions.map((version) => version.created_by.session_id));
  assert.equal(authors.size, 1);
  const [author] = authors;
  assert.equal(JSON.parse(quipu('--json', 'session', 'show', author!)).title, 'typescript test');
});

test('a missing binary and an exited process are explained', async () => {
  const missing = quipuMemory({ binary: '/nonexistent/quipu' });
  const view = { command: 'view', path: '/memories' } as const;
  await assert.rejects(async () => missing.view(view), QuipuUnavailable);
  const memory = quipuMemory({ binary, data });
  await memory.close();
  await assert.rejects(async () => memory.view(view), /has exited/);
});

test('concurrent commands are answered in order', async () => {
  const memory = quipuMemory({ binary, data });
  const numbers = Array.from({ length: 20 }, (_, number) => number);
  const answers = await Promise.all(
    numbers.map((number) =>
      memory.create({ command: 'create', path: `/memories/${number}`, file_text: '' }),
    ),
  );
  assert.deepEqual(answers, numbers.map((n) => `File created successfully at: /memories/${n}`));
  await memory.close();
});

test('the example saves before it forgets', async () => {
  const model = new ScriptedModel([
    use(1, { command: 'view', path: '/memories' }),
    [
      ...say('My context will be trimmed soon, so I save what I found.'),
      ...use(2, { command: 'create', path: '/memories/teas.md', file_text: '- Sencha: grassy\n' }),
    ],
    use(3, { command: 'view', path: '/memories/teas.md' }),
    say('Sencha is done; gyokuro comes next.'),
  ]);
  const url = await model.listen();
  const example = new URL('../examples/save-before-forgetting.js', import.meta.url).pathname;
  const env = { ...process.env, ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: 'test', QUIPU_DATA: data };
  const ran = await promisify(execFile)(process.execPath, [example, binary], { env });
  model.close();
  assert.match(ran.stdout, /I save what I found/);
  assert.equal(quipu('cat', '/teas.md'), '- Sencha: grassy\n');
  const { body, headers } = model.requests[0]!;
  assert.deepEqual(body['context_management'].edits[0].exclude_tools, ['memory']);
  assert.match(String(headers['anthropic-beta']), /context-management-2025-06-27/);
  assert.match(body['system'], /Look first\./);
});
