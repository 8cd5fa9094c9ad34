/**
 * How long pages take, measured in the browser on a store of 10,000 memories. Opt-in, with a release build:
 *
 *     QUIPU_INSPECTOR_SPEED=1 ./test inspector
 *
 * Prints the table of `docs/benchmarks.md`. Nothing fails by its time: a busy machine is not a defect.
 */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { launch, open } from './browser.mjs';
import { signIn } from './flows.mjs';
import { mouse } from './hands.mjs';
import { serve } from './live.mjs';
import { api, writer } from './seed.mjs';

const skip = process.env['QUIPU_INSPECTOR_SPEED'] ? false : 'QUIPU_INSPECTOR_SPEED is not set';
/** With the one that changes often, as many as a store may hold. */
const MEMORIES = 9_999;
const VERSIONS = 1_000;
const ROUNDS = 40;
/** A page that is slow is asked for less often. */
const PAGE_TIME_MS_MAX = 20_000;

const WORDS = 'ledger queue invoice rounding batch event order refund delay export shard index cache lease retry'.split(' ');

/** Writes notes with links, tags and observations, in folders of 100. */
function notes(folder) {
  for (let number = 0; number < MEMORIES; number += 1) {
    const word = (step) => WORDS[(number * step + step) % WORDS.length];
    const text = `---
title: Note ${number} about ${word(3)}
type: ${['note', 'decision', 'guide'][number % 3]}
tags: [${word(5)}, ${word(7)}]
---

# Note ${number} about ${word(3)}

- [fact] The ${word(3)} of the ${word(11)} is ${number} #${word(5)}
- relates to [[Note ${(number * 7) % MEMORIES} about ${WORDS[(((number * 7) % MEMORIES) * 3 + 3) % WORDS.length]}]]

${Array.from({ length: 40 }, (_, line) => `${word(line + 1)} ${word(line + 2)} ${word(2 * line + 1)}`).join(' and ')}.
`;
    const place = join(folder, `area-${Math.floor(number / 100)}`);
    if (number % 100 === 0) mkdirSync(place, { recursive: true });
    writeFileSync(join(place, `note-${number}.md`), text);
  }
}

let server;
let browser;
let page;
let store;
let memory;
let moment;
before(async () => {
  if (skip) return;
  const folder = mkdtempSync(join(tmpdir(), 'quipu-notes-'));
  notes(folder);
  [server, browser] = await Promise.all([serve(), launch()]);
  const call = api(server, server.key);
  store = (await call('POST', '/v1/memory_stores', { name: 'large' })).id;
  server.quipu('--store', store, 'import', folder);
  rmSync(folder, { recursive: true });
  moment = new Date().toISOString();
  const memories = writer(server, server.key, store);
  memory = await memories.create('/often.md', 'version 0\n');
  for (let number = 1; number < VERSIONS; number += 1) {
    await memories.update(memory.id, { content: `version ${number}\n${'the same line\n'.repeat(40)}` });
  }
  page = await open(browser, server.url);
  page.setDefaultTimeout(120_000);
  await signIn(page, mouse(page), server.key);
});
after(async () => {
  await browser?.close();
  await server?.close();
});

/** Returns the value that this share of all values is below. */
const quantile = (values, share) => [...values].sort((one, other) => one - other)[Math.ceil(values.length * share) - 1];

/** Returns the time from sending the request to the first byte of the answer. Runs in the page. */
function waited() {
  const [{ requestStart, responseStart }] = performance.getEntriesByType('navigation');
  return responseStart - requestStart;
}

test('pages of a large store', { skip }, async () => {
  const base = `/ui/stores/${store}`;
  const list = `/v1/memory_stores/${store}/memories?limit=1&path_prefix=/area-50/`;
  const [one] = (await api(server, server.key)('GET', list)).data;
  const pages = {
    start: '/ui',
    'store, tree': base,
    'store, a folder': `${base}?dir=/area-50/`,
    'store, list by time': `${base}?view=list&sort=time`,
    'store, list by size': `${base}?view=list&sort=size`,
    'store, health': `${base}/health`,
    memory: `${base}/memories/${one.id}`,
    'memory, as the model sees it': `${base}/memories/${one.id}?view=model`,
    'memory, blame': `${base}/memories/${one.id}?view=blame`,
    'memory, edit': `${base}/memories/${one.id}/edit`,
    [`history of ${VERSIONS} versions`]: `${base}/memories/${memory.id}/history`,
    [`blame of ${VERSIONS} versions`]: `${base}/memories/${memory.id}?view=blame`,
    'the past': `${base}/past`,
    'the past, compared with now': `${base}/past/changes?at=${moment}`,
    'search, one word': '/ui/search?q=ledger',
    'search, a question': '/ui/search?q=which+invoice+has+the+wrong+rounding+after+a+refund',
    'graph around a note': `${base}/graph?focus=${one.id}`,
    graph: `${base}/graph`,
    sessions: '/ui/sessions',
    redact: '/ui/redact',
    administration: '/ui/admin',
  };
  console.log('| page | bytes | server, median ms | server, p95 ms |\n|---|---|---|---|');
  for (const [name, address] of Object.entries(pages)) {
    const times = [];
    let size = 0;
    const start = Date.now();
    for (let round = 0; round < ROUNDS && Date.now() - start < PAGE_TIME_MS_MAX; round += 1) {
      const response = await page.goto(address);
      assert.equal(response.status(), 200, address);
      times.push(await page.evaluate(waited));
      size = (await response.body()).length;
    }
    console.log(`| ${name} | ${size} | ${quantile(times, 0.5).toFixed(1)} | ${quantile(times, 0.95).toFixed(1)} |`);
  }
});

test('search as one types', { skip }, async () => {
  await page.goto('/ui/search');
  const times = [];
  const answered = (response) => {
    if (new URL(response.url()).pathname === '/ui/search') times.push(response.request().timing());
  };
  page.on('response', answered);
  for (const word of ['ledger', 'rounding', 'invoice refund', 'wrong batch']) {
    await page.getByLabel('Words').fill('');
    await page.getByLabel('Words').pressSequentially(word, { delay: 120 });
  }
  await page.waitForTimeout(500);
  const waits = times.map((timing) => timing.responseStart - timing.requestStart).filter((wait) => wait >= 0);
  assert.ok(waits.length > 10, `${waits.length} answers`);
  const [median, high] = [0.5, 0.95].map((share) => quantile(waits, share).toFixed(1));
  console.log(`| search as one types, per key | – | ${median} | ${high} |`);
});
