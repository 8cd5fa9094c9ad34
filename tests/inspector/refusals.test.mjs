/** Bad input: a page says what to do next, and nothing has changed. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, beforeEach, afterEach, test } from 'node:test';

import { assertAccessible, launch, open } from './browser.mjs';
import { signIn } from './flows.mjs';
import { mouse } from './hands.mjs';
import { serve } from './live.mjs';
import { api, seed } from './seed.mjs';

let server;
let browser;
let ids;
let stores;
before(async () => {
  [server, browser] = await Promise.all([serve(), launch()]);
  ids = await seed(server);
});
after(async () => {
  await browser?.close();
  await server?.close();
});

/** Returns the names of all stores and the newest version of each: whatever a form could have changed. */
async function state() {
  const call = api(server, server.key);
  const { data } = await call('GET', '/v1/memory_stores?limit=100');
  const newest = (store) => call('GET', `/v1/memory_stores/${store.id}/memory_versions?limit=1`);
  return Promise.all(data.map(async (store) => [store.name, (await newest(store)).data[0]?.id]));
}
beforeEach(async () => {
  stores = await state();
});
afterEach(async () => {
  assert.deepEqual(await state(), stores, 'nothing has changed');
});

/** Opens a window that has signed in with a key. */
async function enter(key = server.key, name = 'tester') {
  const page = await open(browser, server.url);
  await signIn(page, mouse(page), key, name);
  return page;
}

/** Returns a new key. */
const newKey = (...words) => JSON.parse(server.quipu('--json', 'key', 'create', ...words));

/** The token of the form that makes a store. */
const TOKEN = 'form[action="/ui/stores"] input[name=token]';

/** Puts another token into the form that makes a store. */
const forge = (page, token) =>
  page.locator(TOKEN).evaluate((it, value) => {
    it.value = value;
  }, token);

/** Sends the form that makes a store. */
async function createStore(page, name) {
  await page.locator('summary', { hasText: 'New store' }).click();
  await page.getByLabel('Name', { exact: true }).fill(name);
  const [response] = await Promise.all([
    page.waitForResponse((answer) => answer.request().method() === 'POST'),
    page.getByRole('button', { name: 'Create' }).click(),
  ]);
  await page.waitForLoadState();
  return response;
}

/** Fails unless a page tells its reader what happened and where to go. */
async function assertHelpful(page, pattern) {
  assert.match(await page.locator('main').innerText(), pattern);
  assert.ok((await page.locator('main').getByRole('link').count()) > 0, 'a way on');
  await assertAccessible(page, 'a failure', ['light']);
  page.assertQuiet();
}

test('a broken cookie leads to the sign-in, and from there to the page that was asked for', async () => {
  const name = `quipu-${new URL(server.url).port}`;
  const values = ['x', '%00', 'sk-quipu-wrong', `"${'é'.repeat(10)}"`, 'a'.repeat(3_500), ids.review.token, server.key, '../../etc'];
  for (const value of values) {
    const page = await open(browser, server.url);
    const headers = { cookie: `${name}=${encodeURI(value)}; ${name}=; other=1` };
    await page.setExtraHTTPHeaders(headers);
    await page.goto('/ui?q=ledger');
    assert.match(page.url(), /\/ui\/sign-in\?next=%2Fui%3Fq%3Dledger$/, value);
    assert.equal(await page.getByRole('heading', { level: 1 }).innerText(), 'Sign in');
    page.assertQuiet(value);
    await page.context().close();
  }
});

test('a one-time link signs in once; again, or made up, it says how to get another', async () => {
  const link = server.quipu('ui', '--print', '--url', server.url).match(/http\S+/)[0];
  const page = await open(browser, server.url);
  await page.goto(link);
  assert.equal(await page.getByRole('heading', { level: 1 }).innerText(), 'Stores');
  assert.ok(!page.url().includes('link='), 'the address holds nothing that could be used again');
  page.assertQuiet();
  await page.context().close();
  const forged = link.replace(/.{8}$/, '00000000');
  for (const address of [link, forged, `${server.url}/ui/enter`, `${server.url}/ui/enter?link=%00&link=x`]) {
    const other = await open(browser, server.url);
    await other.goto(address);
    await assertHelpful(other, /quipu ui/);
    await other.goto('/ui');
    assert.match(other.url(), /\/ui\/sign-in/, address);
    await other.context().close();
  }
});

test('signing in never leads to another site', async () => {
  for (const next of ['https://outside.invalid', '//outside.invalid', '/\\outside.invalid', 'javascript:alert(1)']) {
    const page = await open(browser, server.url);
    await page.goto(`/ui/sign-in?next=${encodeURIComponent(next)}`);
    await page.getByLabel('Key').fill(server.key);
    await page.getByLabel('Your name').fill('tester');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL(`${server.url}/ui`);
    page.assertQuiet(next);
    await page.context().close();
  }
});

test('a wrong key is refused with the way to a right one, and is not shown again', async () => {
  const page = await open(browser, server.url);
  await page.goto('/ui/sign-in');
  await page.getByLabel('Key').fill('sk-quipu-wrong');
  await page.getByLabel('Your name').fill('tester');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').waitFor();
  assert.match(await page.getByRole('alert').innerText(), /not valid.*quipu key create/s);
  assert.equal(await page.getByLabel('Key').inputValue(), '');
  assert.ok(!(await page.content()).includes('sk-quipu-wrong'));
  await assertAccessible(page, 'a wrong key', ['light']);
  page.assertQuiet();
  await page.context().close();
});

test('a forged form token is refused', async () => {
  for (const token of ['', 'x', '0'.repeat(64), '<script>']) {
    const page = await enter();
    await forge(page, token);
    assert.equal((await createStore(page, 'forged')).status(), 403);
    await assertHelpful(page, /go back, copy what you wrote, reload the page/);
    await page.context().close();
  }
});

test('the token of another sign-in is refused', async () => {
  const [one, other] = [await enter(), await enter(newKey('--role', 'admin').secret)];
  await forge(other, await one.locator(TOKEN).inputValue());
  assert.equal((await createStore(other, 'forged')).status(), 403);
  await one.context().close();
  await other.context().close();
});

test('a form of another site changes nothing, even with the token, and even on the same host', async () => {
  const victim = await enter();
  const token = await victim.locator(TOKEN).inputValue();
  const form = `<form method=post action="${server.url}/ui/stores"><input name=name value=foreign>
    <input name=token value="${token}"><button>Win a prize</button></form>
    <form method=post action="${server.url}/ui/sign-out"><button>Leave</button></form>
    <iframe src="${server.url}/ui"></iframe>`;
  const elsewhere = createServer((_, answer) => answer.setHeader('content-type', 'text/html').end(form));
  await new Promise((resolve) => elsewhere.listen(0, resolve));
  const { port } = elsewhere.address();
  // Another port is another origin of the same site, so that SameSite alone lets the cookie through.
  for (const host of ['127.0.0.1', 'localhost']) {
    for (const [button, status] of [['Win a prize', 403], ['Leave', 403]]) {
      const page = await victim.context().newPage();
      await page.goto(`http://${host}:${port}/`);
      const framed = page.frames().filter((frame) => frame.url().startsWith(`${server.url}/ui`));
      const texts = await Promise.all(framed.map((frame) => frame.locator('body').innerText().catch(() => '')));
      assert.ok(texts.every((text) => !/Stores|Sign in/.test(text)), 'no page of ours shows in a frame');
      const answered = page.waitForResponse((answer) => answer.request().method() === 'POST');
      await page.getByRole('button', { name: button }).click();
      const response = await answered;
      assert.ok([status, 401].includes(response.status()), `${host}: ${response.status()}`);
      await page.close();
    }
  }
  elsewhere.closeAllConnections();
  elsewhere.close();
  await victim.reload();
  assert.equal(await victim.getByRole('heading', { level: 1 }).innerText(), 'Stores', 'still signed in');
  await victim.context().close();
});

test('huge forms are refused with a page', async () => {
  const page = await enter();
  await page.locator('summary', { hasText: 'New store' }).click();
  const name = page.getByLabel('Name', { exact: true });
  await name.evaluate((it) => {
    it.removeAttribute('maxlength');
    it.value = 'a'.repeat(4_000_000);
  });
  const answered = page.waitForResponse((answer) => answer.request().method() === 'POST');
  await page.getByRole('button', { name: 'Create' }).click();
  assert.ok([400, 413].includes((await answered).status()));
  await page.waitForLoadState();
  await assertHelpful(page, /./);
  const guest = await open(browser, server.url);
  await guest.goto('/ui/sign-in');
  await guest.getByLabel('Key').evaluate((it) => { it.value = 'a'.repeat(1_000_000); });
  await guest.getByLabel('Your name').fill('tester');
  await guest.getByRole('button', { name: 'Sign in' }).click();
  await guest.waitForLoadState();
  await assertHelpful(guest, /./);
  await page.context().close();
  await guest.context().close();
});

test('a key that is revoked while somebody writes: nothing is saved, and the text can still be', async () => {
  const key = newKey('--role', 'admin');
  const page = await enter(key.secret);
  await page.goto(`/ui/stores/${ids.team}/memories/${ids.preferences.id}/edit`);
  const text = page.locator('textarea');
  await text.fill('written for an hour\n');
  server.quipu('key', 'revoke', key.id);
  const send = async () => {
    const answered = page.waitForResponse((answer) => answer.request().method() === 'POST');
    await Promise.all([page.waitForEvent('load'), page.getByRole('button', { name: 'Save' }).click()]);
    return (await answered).status();
  };
  assert.equal(await send(), 401);
  await assertHelpful(page, /sign/i);
  assert.equal(await page.getByRole('heading', { level: 1 }).innerText(), 'Signed out');
  assert.deepEqual(await state(), stores, 'nothing has changed');
  const tab = await page.context().newPage();
  await tab.goto(await page.getByRole('link', { name: 'Sign in' }).getAttribute('href'));
  await tab.getByLabel('Key').fill(server.key);
  await tab.getByLabel('Your name').fill('tester');
  await Promise.all([tab.waitForEvent('load'), tab.getByRole('button', { name: 'Sign in' }).click()]);
  assert.equal(await tab.getByRole('heading', { level: 1 }).innerText(), 'Stores', 'the sign-in leads to a page');
  await page.goBack();
  assert.equal(await text.inputValue(), 'written for an hour\n', 'the page promises this');
  assert.equal(await send(), 303);
  stores = await state();
  await page.context().close();
});

test('a key that expires ends the open tabs of its sign-ins', async () => {
  const key = newKey('--role', 'admin', '--expires', '6s');
  const page = await enter(key.secret);
  const status = async () => (await fetch(`${server.url}/v1/memory_stores`, { headers: { 'x-api-key': key.secret } })).status;
  while ((await status()) !== 401) await page.waitForTimeout(100);
  assert.equal((await createStore(page, 'too late')).status(), 401);
  await assertHelpful(page, /sign/i);
  await page.context().close();
});

test('an address that only takes forms is a page that says so when it is opened', async () => {
  const page = await enter();
  const response = await page.goto('/ui/stores');
  assert.match(response.headers()['content-type'], /text\/html/);
  await assertHelpful(page, /./);
  await page.context().close();
});

test('a read-only key sees no form that it cannot use, and a made-up one is refused', async () => {
  const page = await enter(newKey('--role', 'read_only').secret);
  assert.equal(await page.locator('summary', { hasText: 'New store' }).count(), 0);
  const token = await page.locator('input[name=token]').first().inputValue();
  const answered = page.waitForResponse((answer) => answer.request().method() === 'POST');
  await page.locator('form.who').evaluate((it, value) => {
    it.action = '/ui/stores';
    it.append(Object.assign(document.createElement('input'), { name: 'name', value }));
    it.submit();
  }, token);
  assert.equal((await answered).status(), 403);
  await page.waitForLoadState();
  await assertHelpful(page, /./);
  await page.context().close();
});
