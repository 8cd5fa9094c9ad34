/**
 * Hostile memories in a real browser: no script runs, nothing is fetched from elsewhere, and no markup of a memory
 * becomes markup of a page. The policy would stop most of it; pages must not need it.
 *
 *     QUIPU_HOSTILE=10000 ./test inspector
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { launch, open } from './browser.mjs';
import { signIn } from './flows.mjs';
import { mouse } from './hands.mjs';
import { hostilePath, hostileTexts, NAMES } from './hostile.mjs';
import { serve } from './live.mjs';
import { api, writer } from './seed.mjs';

const COUNT = Number(process.env['QUIPU_HOSTILE'] ?? 300);
const WINDOWS = 3;
/** The rendered view is where markup could get through, so every text is seen in it; every third in another, too. */
const VIEWS = ['?view=source', '?view=model', '?view=blame', '/edit', '/history', '/rename', '/delete'];

let server;
let browser;
let sign;
before(async () => {
  [server, browser] = await Promise.all([serve(), launch()]);
  const page = await open(browser, server.url);
  await signIn(page, mouse(page), server.key);
  sign = await page.context().storageState();
});
after(async () => {
  await browser?.close();
  await server?.close();
});

/** Lists what is on a page and cannot be ours. Runs in the page. */
function foreign() {
  const found = [];
  const say = (what, element) => found.push(`${what}: ${element.outerHTML.slice(0, 200)}`);
  const ours = (address) => address.startsWith(`${location.origin}/ui`);
  for (const element of document.querySelectorAll('*')) {
    const name = element.localName;
    if (/^(iframe|object|embed|base|style|math|video|audio|template|portal|marquee|dialog|noscript|frame)$/.test(name)) {
      say('an element', element);
    }
    if (name === 'script' && !ours(element.src)) say('a script', element);
    if (name === 'link' && !ours(element.href)) say('a link to a resource', element);
    if (name === 'meta' && element.httpEquiv) say('an order to the browser', element);
    if ((name === 'img' || name === 'source') && !ours(element.src)) say('an image', element);
    if (name === 'form' && !ours(element.getAttribute('action') ? element.action : location.href)) say('a form', element);
    for (const { name: attribute, value } of element.attributes) {
      if (/^on|^style$|^srcdoc$|^ping$|^is$/.test(attribute)) say('an attribute', element);
      if (/^(href|src|action|formaction|xlink:href)$/.test(attribute)) {
        const { protocol, origin } = new URL(value, document.baseURI);
        if (!['http:', 'https:'].includes(protocol)) say('an address', element);
        const rel = element.getAttribute('rel') ?? '';
        if (origin !== location.origin && !['noopener', 'noreferrer', 'nofollow'].every((it) => rel.includes(it))) {
          say('a link without rel', element);
        }
      }
    }
  }
  return found;
}

/** Visits all addresses, in several windows at once, and looks at each page. */
async function visitAll(addresses) {
  const waiting = addresses.entries();
  await Promise.all(
    Array.from({ length: WINDOWS }, async () => {
      // Painting is most of the work, and not what is looked at.
      const page = await open(browser, server.url, { storageState: sign, viewport: { width: 400, height: 300 } });
      const ran = [];
      await page.context().exposeFunction('pwn', () => ran.push(page.url()));
      for (const [, address] of waiting) {
        const before = page.requests.length;
        const response = await page.goto(address);
        assert.equal(response.status(), 200, address);
        assert.deepEqual(await page.evaluate(foreign), [], address);
        assert.equal(page.frames().length, 1, `${address}: a frame`);
        // The form for editing names the version in its address.
        const asked = new URL(address, server.url).href;
        const here = address.endsWith('/edit') ? page.url().replace(/\?version=memver_\w+$/, '') : page.url();
        assert.equal(here, asked, `${address}: somewhere else`);
        const isExtra = (url) => url !== page.url() && url !== asked && !/\/ui\/(assets|events)/.test(url);
        const extra = page.requests.slice(before).filter(isExtra);
        assert.deepEqual(extra, [], `${address}: asked for more`);
        assert.deepEqual(ran, [], `${address}: a script ran`);
        page.assertQuiet(address);
      }
      await page.context().close();
    }),
  );
}

test(`${COUNT} hostile memories do nothing`, async () => {
  const { id } = await api(server, server.key)('POST', '/v1/memory_stores', { name: 'hostile' });
  const memories = writer(server, server.key, id);
  const addresses = [];
  for (const [number, text] of hostileTexts(COUNT).entries()) {
    const memory = await memories.create(hostilePath(text, number), text);
    if (number % 10 === 0) await memories.update(memory.id, { content: `${text}\n\n${text}`.slice(0, 90_000) });
    const address = `/ui/stores/${id}/memories/${memory.id}`;
    addresses.push(address);
    if (number % 3 === 0) addresses.push(address + VIEWS[(number / 3) % VIEWS.length]);
  }
  await visitAll(addresses);
});

test('hostile names do nothing on any page', async () => {
  const call = api(server, server.key);
  const stores = [];
  for (const name of NAMES.slice(0, 60)) {
    const { id } = await call('POST', '/v1/memory_stores', { name, description: name });
    stores.push(`/ui/stores/${id}`);
    await call('POST', '/v1/sessions', {
      agent: name.slice(0, 50),
      environment_id: 'env',
      title: name,
      resources: [{ type: 'memory_store', memory_store_id: id, access: 'read_write' }],
    });
  }
  const searches = NAMES.filter((_, number) => number % 3 === 0).map((text) => `/ui/search?${new URLSearchParams({ q: text })}`);
  await visitAll(['/ui', '/ui/sessions', '/ui/actors', '/ui/redact', ...searches]);
});
