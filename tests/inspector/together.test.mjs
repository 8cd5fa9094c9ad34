/** Several at once: two browsers and an agent on the same memory, and changes that arrive while one reads. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { launch, open } from './browser.mjs';
import { signIn } from './flows.mjs';
import { mouse } from './hands.mjs';
import { serve } from './live.mjs';
import { seed, writer } from './seed.mjs';

let server;
let browser;
let ids;
let agent;
before(async () => {
  [server, browser] = await Promise.all([serve(), launch()]);
  ids = await seed(server);
  agent = writer(server, ids.review.token, ids.team);
});
after(async () => {
  await browser?.close();
  await server?.close();
});

/** Opens a window of a person. */
async function enter(name) {
  const page = await open(browser, server.url);
  await signIn(page, mouse(page), server.key, name);
  return page;
}

/** Opens the editor of a memory, and replaces one text by another in it. */
async function change(page, id, [from, to]) {
  await page.goto(`/ui/stores/${ids.team}/memories/${id}/edit`);
  const field = page.getByLabel('Text').and(page.locator('textarea'));
  await field.fill((await field.inputValue()).replace(from, to));
}

/** Saves; returns the status of the answer. */
async function save(page) {
  const answered = page.waitForResponse((answer) => answer.request().method() === 'POST');
  await Promise.all([page.waitForEvent('load'), page.getByRole('button', { name: 'Save' }).click()]);
  return (await answered).status();
}

const LINES = Array.from({ length: 30 }, (_, number) => `line ${number}\n`).join('');

test('two people and an agent change different lines: all changes stay', async () => {
  const { id } = await agent.create('/together/lines.md', LINES);
  const [ada, ben] = [await enter('ada'), await enter('ben')];
  await change(ada, id, ['line 3\n', 'line 3 by ada\n']);
  await change(ben, id, ['line 20\n', 'line 20 by ben\n']);
  await agent.update(id, { content: LINES.replace('line 10\n', 'line 10 by an agent\n') });
  assert.equal(await save(ada), 409, 'what the agent did is not overwritten');
  assert.match(await ada.locator('main').innerText(), /Nothing is saved yet/);
  assert.doesNotMatch((await agent.read(id)).content, /by ada/);
  assert.equal(await save(ada), 303);
  assert.equal(await save(ben), 409);
  assert.equal(await save(ben), 303);
  const { content } = await agent.read(id);
  for (const text of ['line 3 by ada', 'line 20 by ben', 'line 10 by an agent']) assert.ok(content.includes(text), content);
  for (const page of [ada, ben]) {
    page.assertQuiet();
    await page.context().close();
  }
});

test('two people change the same line: the second one sees both, and decides', async () => {
  const { id } = await agent.create('/together/line.md', LINES);
  const [ada, ben] = [await enter('ada'), await enter('ben')];
  await change(ada, id, ['line 5\n', 'line 5 by ada\n']);
  await change(ben, id, ['line 5\n', 'line 5 by ben\n']);
  assert.equal(await save(ada), 303);
  assert.equal(await save(ben), 409);
  const text = await ben.getByLabel('Text').and(ben.locator('textarea')).inputValue();
  assert.ok(text.includes('line 5 by ada') && text.includes('line 5 by ben'), text);
  assert.ok((await agent.read(id)).content.includes('line 5 by ada'), 'nothing is overwritten meanwhile');
  await ada.context().close();
  await ben.context().close();
});

test('a memory that is deleted while it is edited: the text is not lost', async () => {
  const { id } = await agent.create('/together/gone.md', LINES);
  const ada = await enter('ada');
  await change(ada, id, ['line 5\n', 'line 5 by ada\n']);
  await agent.remove(id);
  assert.equal(await save(ada), 409);
  assert.ok((await ada.locator('textarea').inputValue()).includes('line 5 by ada'));
  await ada.context().close();
});

test('somebody deletes a memory as it was, not as it has become', async () => {
  const { id } = await agent.create('/together/keep.md', 'old\n');
  const ada = await enter('ada');
  await ada.goto(`/ui/stores/${ids.team}/memories/${id}/delete`);
  await agent.update(id, { content: 'new, and nobody has seen it\n' });
  await Promise.all([ada.waitForEvent('load'), ada.getByRole('button', { name: 'Delete' }).click()]);
  assert.equal((await agent.read(id)).content, 'new, and nobody has seen it\n');
  assert.match(await ada.locator('main').innerText(), /changed/);
  await ada.context().close();
});

test('changes arrive by themselves, and what is read does not move', async () => {
  const ada = await enter('ada');
  await ada.goto('/ui');
  const heading = ada.getByRole('heading', { name: 'Newest changes' });
  const list = ada.locator('#newest');
  const [place, text] = [await heading.boundingBox(), await list.innerText()];
  await agent.create('/together/live.md', 'now\n');
  const news = ada.getByRole('button', { name: /^Show 1 new change/ });
  await news.waitFor();
  assert.equal(await list.innerText(), text, 'the list is as it was');
  const moved = Math.abs((await heading.boundingBox()).y - place.y);
  await news.click();
  await list.getByRole('link', { name: '/together/live.md' }).waitFor();
  assert.ok(moved === 0, `the heading moved by ${moved} px`);
  ada.assertQuiet();
  await ada.context().close();
});

test('a search answers as one types, and the address follows', async () => {
  const ada = await enter('ada');
  await ada.goto('/ui/search');
  await ada.getByLabel('Words').pressSequentially('roundi', { delay: 20 });
  await ada.getByRole('link', { name: 'Rounding rules' }).waitFor();
  await ada.waitForURL(/q=roundi/);
  assert.equal(await ada.getByLabel('Words').evaluate((it) => it === document.activeElement), true);
  ada.assertQuiet();
  await ada.context().close();
});

test('the keys of the help do what they say', async () => {
  const ada = await enter('ada');
  await ada.keyboard.press('/');
  assert.equal(await ada.getByLabel('Search all stores').evaluate((it) => it === document.activeElement), true);
  await ada.keyboard.press('Escape');
  await ada.locator('main').focus();
  await ada.keyboard.press('?');
  await ada.getByRole('dialog', { name: 'Keys' }).waitFor();
  await ada.keyboard.press('Escape');
  await ada.keyboard.press('g');
  await Promise.all([ada.waitForURL(/\/ui\/sessions/), ada.keyboard.press('e')]);
  ada.assertQuiet();
  await ada.context().close();
});
