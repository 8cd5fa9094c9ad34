/** Every page: what it is called, whether everybody can use it, and that it does nothing forbidden. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { assertAccessible, launch, open } from './browser.mjs';
import { signIn } from './flows.mjs';
import { serve } from './live.mjs';
import { seed } from './seed.mjs';
import { use, WAYS } from './hands.mjs';

/** The most bytes of any page, uncompressed. */
const PAGE_SIZE_BYTES_MAX = 60_000;

/** The pages that links must lead to, from the first one on, each with a word of its title. */
const PAGES = {
  '/ui': /^Stores/,
};

let server;
let browser;
let ids;
let page;
before(async () => {
  [server, browser] = await Promise.all([serve(), launch()]);
  ids = await seed(server);
  const { page: window, hands } = await use(browser, server.url, WAYS['with a mouse']);
  page = window;
  await signIn(page, hands, server.key);
});
after(async () => {
  await browser?.close();
  await server?.close();
});

/** Returns an address with its ids and values left out, so that pages of a kind are alike. */
function kind(address) {
  const { pathname, searchParams } = new URL(address);
  const path = pathname.replaceAll(/\b(memstore|mem|memver|sesn|apikey|rcpt|wrkspc)_\w+/g, '{$1}');
  // Facets combine without end; one of them at a time is enough.
  if (pathname === '/ui/search') return `${path}?${[...searchParams.keys()].slice(0, 2)}`;
  // Another order is the same page; another view is not.
  const names = [...new Set(searchParams.keys())].filter((name) => !['view', 'sort'].includes(name));
  return [path, [...names.sort(), searchParams.get('view')].filter(Boolean).join('&')].filter(Boolean).join('?');
}

/** Follows links from the first page; returns one address of every kind of page. Each page is shown to `look`. */
async function crawl(page, look = () => {}) {
  // Forms lead to the others.
  const starts = ['/ui', '/ui/search?q=ledger'];
  const known = new Map(starts.map((path) => [kind(server.url + path), server.url + path]));
  for (const address of known.values()) {
    const response = await page.goto(address);
    assert.equal(response.status(), 200, address);
    await look(address);
    // The links of a drawing have objects as addresses, so the attribute is read.
    const links = await page
      .locator('a[href]')
      .evaluateAll((all) => all.map((link) => new URL(link.getAttribute('href'), document.baseURI).href));
    for (const link of links) {
      const isOurs = link.startsWith(`${server.url}/ui`) && !link.includes('#') && !/\.json$|export|download/.test(link);
      if (isOurs && !known.has(kind(link))) known.set(kind(link), link);
    }
  }
  return known;
}

test('every page has a title of its own, one heading of its own, and nothing for axe to find', async (context) => {
  const known = await crawl(page);
  page.assertQuiet('while following links');
  for (const expected of Object.keys(PAGES)) assert.ok(known.has(expected), `no link leads to ${expected}`);
  const titles = new Map();
  for (const [name, address] of known) {
    await context.test(name, async () => {
      const response = await page.goto(address);
      assert.ok((await response.body()).length <= PAGE_SIZE_BYTES_MAX, 'the page is small');
      const title = await page.title();
      assert.match(title, / · Quipu$/);
      assert.match(title, PAGES[name] ?? /./);
      // Some addresses lead on to another page.
      const [path] = kind(page.url()).split('?');
      assert.equal(titles.get(title) ?? path, path, `${title} is also the title of another page`);
      titles.set(title, path);
      assert.equal(await page.getByRole('heading', { level: 1 }).count(), 1);
      await assertAccessible(page, name);
      page.assertQuiet(name);
    });
  }
});

test('a read-only key finds no link that is refused, and no form that changes anything', async () => {
  const { secret } = JSON.parse(server.quipu('--json', 'key', 'create', '--role', 'read_only'));
  const { page: reader, hands } = await use(browser, server.url, WAYS['with a mouse']);
  await signIn(reader, hands, secret);
  const forms = new Set();
  const known = await crawl(reader, async () => {
    const actions = await reader.locator('form[method=post]').evaluateAll((all) => all.map((form) => form.action));
    for (const action of actions) forms.add(kind(action));
  });
  assert.ok(known.size > 10, `${known.size} kinds of pages`);
  // Choosing what to export is a form only because a selection is too long for an address.
  forms.delete('/ui/stores/{memstore}/export');
  assert.deepEqual([...forms], ['/ui/sign-out']);
  reader.assertQuiet();
  await reader.context().close();
});

test('a key for one store learns nothing of the others, on any page', async () => {
  const words = ['--role', 'admin', '--store', 'support playbook'];
  const { secret } = JSON.parse(server.quipu('--json', 'key', 'create', ...words));
  const { page: reader, hands } = await use(browser, server.url, WAYS['with a mouse']);
  await signIn(reader, hands, secret);
  const known = await crawl(reader, async (address) => {
    const text = await reader.content();
    for (const name of [ids.team, '>team<', 'Nightly review', 'Release 2.4', 'Rounding rules', ids.overview.id]) {
      assert.ok(!text.includes(name), `${address} says ${name}`);
    }
  });
  assert.ok(known.size > 10, `${known.size} kinds of pages`);
  reader.assertQuiet();
  await reader.context().close();
});

test('pages for people without a sign-in and pages of failures are as accessible', async () => {
  const guest = await open(browser, server.url);
  const failures = { '/ui/sign-in': 200, '/ui/no-such-page': 404 };
  for (const [address, status] of Object.entries(failures)) {
    assert.equal((await guest.goto(address)).status(), status);
    await assertAccessible(guest, address);
    guest.assertQuiet(address);
  }
  for (const address of ['/ui/stores/memstore_01', `/ui/stores/${ids.team}/memories/mem_01`]) {
    assert.equal((await page.goto(address)).status(), 404);
    await assertAccessible(page, address);
    page.assertQuiet(address);
  }
  await guest.context().close();
});

test('the page that lets an MCP host in is accessible, and a host that goes astray is refused', async () => {
  const host = { client_name: '<img src=x onerror=pwn(1)>', redirect_uris: ['http://127.0.0.1:1/callback'] };
  const body = JSON.stringify(host);
  const headers = { 'content-type': 'application/json' };
  const registered = await fetch(`${server.url}/oauth/register`, { method: 'POST', headers, body });
  assert.equal(registered.status, 201);
  const question = new URLSearchParams({
    response_type: 'code',
    client_id: (await registered.json()).client_id,
    redirect_uri: host.redirect_uris[0],
    code_challenge: 'a'.repeat(43),
    code_challenge_method: 'S256',
    state: 'x',
  });
  assert.equal((await page.goto(`/ui/authorize?${question}`)).status(), 200);
  assert.match(await page.getByRole('heading', { level: 1 }).innerText(), /<img src=x/);
  await assertAccessible(page, 'the consent');
  page.assertQuiet();
  question.set('redirect_uri', 'http://127.0.0.1:2/elsewhere');
  assert.equal((await page.goto(`/ui/authorize?${question}`)).status(), 400);
  await assertAccessible(page, 'a refused host');
  page.assertQuiet();
});

test('the front page leads people to the inspector and programs to a text', async () => {
  await page.goto('/');
  assert.equal(new URL(page.url()).pathname, '/ui');
  const response = await fetch(server.url);
  assert.match(await response.text(), /\/ui +the inspector/);
});

test('every answer carries the policy', async () => {
  for (const address of ['/ui', '/ui/sign-in', '/ui/no-such-page']) {
    const headers = (await page.goto(address)).headers();
    assert.match(headers['content-security-policy'], /default-src 'none'.*require-trusted-types-for 'script'/s, address);
    assert.equal(headers['x-content-type-options'], 'nosniff');
    assert.equal(headers['cache-control'], 'no-store');
  }
});
