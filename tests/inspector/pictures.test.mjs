/**
 * The pictures of the documentation: every page in both themes, and a terminal on a real mount. Opt-in:
 *
 *     QUIPU_PICTURES=docs/pictures ./test inspector
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { launch, open } from './browser.mjs';
import { signIn } from './flows.mjs';
import { mouse } from './hands.mjs';
import { serve } from './live.mjs';
import { fewColors } from './png.mjs';
import { seed } from './seed.mjs';

const folder = process.env['QUIPU_PICTURES'];
const skip = folder ? false : 'QUIPU_PICTURES is not set';
const SIZE = { width: 1000, height: 700 };
const PICTURE_SIZE_BYTES_MAX = 60_000;

let server;
let browser;
let ids;
before(async () => {
  if (skip) return;
  mkdirSync(folder, { recursive: true });
  [server, browser] = await Promise.all([serve(), launch()]);
  ids = await seed(server);
});
after(async () => {
  await browser?.close();
  await server?.close();
});

async function take(page, name, options = {}) {
  const picture = fewColors(await page.screenshot({ animations: 'disabled', caret: 'hide', ...options }));
  assert.ok(picture.length <= PICTURE_SIZE_BYTES_MAX, `${name}: ${picture.length} bytes`);
  writeFileSync(join(folder, `${name}.png`), picture);
}

test('pages in both themes', { skip }, async () => {
  const store = `/ui/stores/${ids.team}`;
  const memory = `${store}/memories/${ids.overview.id}`;
  const pages = {
    start: '/ui',
    store,
    memory,
    history: `${memory}/history`,
    past: `${store}/past?at=1s`,
    search: '/ui/search?q=ledger',
    session: `/ui/sessions/${ids.release.id}#changes`,
    graph: `${store}/graph`,
    redact: '/ui/redact',
    admin: '/ui/admin',
  };
  const page = await open(browser, server.url, { viewport: SIZE });
  await signIn(page, mouse(page), server.key, 'ada');
  for (const [name, address] of Object.entries(pages)) {
    assert.equal((await page.goto(address)).status(), 200, address);
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme });
      await take(page, `${name}-${colorScheme}`);
    }
  }
  page.assertQuiet();
  await page.context().close();
});

/** What the terminal of the picture shows: commands, typed at a mount of the store. */
const COMMANDS = [
  'quipu mount --store team --root ~/memory --detach',
  'ls -C ~/memory/team ~/memory/team/projects/ledger',
  "rg 'half to even' ~/memory/team",
  "sed -i 's/15 minutes/10 minutes/' ~/memory/team/people/on-call.md",
  'quipu --store team diff /people/on-call.md',
  'quipu --store team log -n 1 /people/on-call.md',
];

test('a terminal on a mount', { skip }, async () => {
  const home = mkdtempSync(join(tmpdir(), 'quipu-home-'));
  const bin = join(process.env['QUIPU_BINARY'], '..');
  const PATH = `${bin}:${process.env['PATH']}`;
  const env = { PATH, HOME: home, USER: 'ada', LC_ALL: 'C.UTF-8', QUIPU_DATA: server.data };
  const run = (command) => execFileSync('bash', ['-c', command], { env, encoding: 'utf-8' }).replaceAll(home, '~');
  const lines = COMMANDS.map((command) => [command, run(command)]);
  run('quipu unmount --root ~/memory');
  rmSync(home, { recursive: true });
  const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  const shown = lines.map(([command, output]) => `<b>$ ${escape(command)}</b>\n${escape(output)}`).join('');
  const page = await browser.newPage({ viewport: { ...SIZE, height: 100 } });
  await page.setContent(`<style>
    body { margin: 0; padding: 16px; background: #161311; color: #ede6df; }
    pre { margin: 0; font: 14px/1.4 "DejaVu Sans Mono", monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
    b { color: #f0a36b; font-weight: normal; }
  </style><pre>${shown}</pre>`);
  await take(page, 'mount', { fullPage: true });
  await page.close();
});
