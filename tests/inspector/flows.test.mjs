/** Everything that people do with the inspector: with a mouse, with the keyboard alone, and without script. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { launch } from './browser.mjs';
import { signIn } from './flows.mjs';
import { use, WAYS } from './hands.mjs';
import { serve } from './live.mjs';
import { api, seed, writer } from './seed.mjs';

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser?.close());

for (const [name, way] of Object.entries(WAYS)) {
  describe(name, () => {
    let server;
    let ids;
    let page;
    let hands;
    let call;
    before(async () => {
      server = await serve();
      ids = await seed(server);
      call = api(server, server.key);
      ({ page, hands } = await use(browser, server.url, way));
      await signIn(page, hands, server.key);
    });
    after(async () => {
      await page?.context().close();
      await server?.close();
    });

    const memory = (store, id, more = '') => `/ui/stores/${store}/memories/${id}${more}`;
    const text = (id) => call('GET', `/v1/memory_stores/${ids.team}/memories/${id}`);
    const main = () => page.locator('main').innerText();
    /** Waits for the page that something leads to. */
    const arrive = async (doing, pattern) => {
      await Promise.all([page.waitForEvent('load'), doing]);
      await page.waitForURL(pattern);
      page.assertQuiet();
    };

    test('create a store', async () => {
      await page.goto('/ui');
      await hands.unfold('New store');
      await hands.type(/^Name/, 'field notes');
      await arrive(hands.press(/^Create/), /\/ui\/stores\/memstore_/);
      assert.match(await page.title(), /^field notes/);
      const { data } = await call('GET', '/v1/memory_stores');
      assert.ok(data.some((store) => store.name === 'field notes'));
    });

    test('write, look at, edit, rename and delete a memory', async () => {
      await page.goto(`/ui/stores/${ids.team}`);
      await arrive(hands.follow('New memory'), /\/new/);
      await hands.type(/^Path/, '/drafts/tea.md');
      await hands.type('Text', '# Tea\n\ngreen, 80 °C\n');
      await arrive(hands.press('Create'), /\/memories\/mem_/);
      const id = /mem_\w+/.exec(page.url())[0];
      assert.equal((await text(id)).content, '# Tea\n\ngreen, 80 °C\n');
      const views = { Source: /view=source/, 'As the model sees it': /view=model/, Blame: /view=blame/ };
      for (const [link, view] of Object.entries(views)) {
        await arrive(hands.follow(link), view);
        assert.match(await main(), /green, 80 °C/);
      }
      assert.match(await main(), /tester/, 'the history names who has signed in');
      await arrive(hands.follow('Edit'), /\/edit/);
      await hands.type('Text', '# Tea\n\ngreen, 75 °C\n');
      await arrive(hands.press('Save'), /\/memories\/mem_\w+(\?|$)/);
      assert.equal((await text(id)).content, '# Tea\n\ngreen, 75 °C\n');
      await arrive(hands.follow('Rename'), /\/rename/);
      await hands.type('New path', '/drafts/green.md');
      await arrive(hands.press('Rename'), /\/memories\/mem_\w+(\?|$)/);
      assert.equal((await text(id)).path, '/drafts/green.md');
      await arrive(hands.follow('Delete'), /\/delete/);
      await arrive(hands.press('Delete'), (url) => !url.pathname.endsWith('/delete'));
      await assert.rejects(text(id), /404/);
    });

    test('compare two versions, restore one, redact one', async () => {
      await page.goto(memory(ids.team, ids.handbook.id, '/history'));
      assert.match(await main(), /30 minutes/);
      await arrive(hands.press('Compare the chosen versions'), /[?&]a=memver_/);
      assert.match(await main(), /15 minutes/);
      const version = `/versions/${ids.handbook.memory_version_id}`;
      await page.goto(memory(ids.team, ids.handbook.id, version));
      await hands.unfold('Restore this version');
      await arrive(hands.press('Restore'), (url) => !/restore$|versions/.test(url.pathname));
      assert.match((await text(ids.handbook.id)).content, /30 minutes/);
      await page.goto(memory(ids.team, ids.handbook.id, '/history'));
      const { data } = await call('GET', `/v1/memory_stores/${ids.team}/memory_versions?memory_id=${ids.handbook.id}`);
      assert.equal(data.length, 3);
      const old = data.find((each) => each.id !== data[0].id);
      await page.goto(memory(ids.team, ids.handbook.id, `/versions/${old.id}`));
      await hands.unfold('Redact this version');
      await hands.tick('Erase this version for good');
      await arrive(hands.press('Redact'), (url) => !url.pathname.endsWith('/redact'));
      const { redacted_at } = await call('GET', `/v1/memory_stores/${ids.team}/memory_versions/${old.id}`);
      assert.notEqual(redacted_at, null);
    });

    test('look at the past and restore a memory of it', async () => {
      const moment = new Date().toISOString();
      await call('POST', `/v1/memory_stores/${ids.team}/memories/${ids.preferences.id}`, { content: 'All wrong.\n' });
      await page.goto(`/ui/stores/${ids.team}`);
      await arrive(hands.follow('The past'), /\/past/);
      await hands.type('Moment', moment);
      await arrive(hands.press('Show'), /at=/);
      await arrive(hands.follow('preferences.md'), /\/past\/memories\/mem_/);
      assert.match(await main(), /Never deploy after 15:00/);
      await arrive(hands.follow('Plan to restore it'), /\/past\/restore/);
      await arrive(hands.press(/^Restore 1 memory/), /done=/);
      assert.match((await text(ids.preferences.id)).content, /Never deploy/);
    });

    test('search, and open what was found', async () => {
      await page.goto('/ui');
      await hands.type('Search all stores', 'rounding');
      await arrive(page.keyboard.press('Enter'), /\/ui\/search\?q=rounding/);
      await page.getByRole('link', { name: 'Rounding rules' }).first().waitFor();
      await arrive(hands.follow('Rounding rules'), /\/memories\/mem_/);
      assert.match(await main(), /half to even/);
    });

    test('delete what a search found', async () => {
      const { id } = await writer(server, server.key, ids.team).create('/x/zebra.md', 'zebra\n');
      await page.goto('/ui/search?q=zebra');
      await hands.tick('Select /x/zebra.md');
      await arrive(hands.press('Delete selected'), /\/ui\/search\/delete/);
      await arrive(hands.press(/^Delete 1 memory/), (url) => url.pathname === '/ui/search');
      await assert.rejects(text(id), /404/);
    });

    test('review what a session did, take it back, end the session', async () => {
      await page.goto('/ui/sessions');
      await arrive(hands.follow('Release 2.4'), /\/ui\/sessions\/sesn_/);
      assert.match(await main(), /release-2\.4\.md/);
      await page.goto(`/ui/sessions/${ids.release.id}?actor=${ids.release.id}&store=${ids.team}`);
      await arrive(hands.follow('Plan a revert'), /\/ui\/revert/);
      await hands.type(/^Reason/, 'tried in a browser');
      await arrive(hands.press(/^Revert \d+ memor/), /done=/);
      assert.doesNotMatch((await text(ids.overview.id)).content, /18,377/);
      await page.goto(`/ui/sessions/${ids.release.id}`);
      await hands.unfold('End this session');
      await arrive(hands.press('End the session'), /\/ui\/sessions/);
      assert.notEqual((await call('GET', `/v1/sessions/${ids.release.id}`)).archived_at, null);
    });

    test('redact by content, and read the receipt', async () => {
      await writer(server, server.key, ids.team).create('/x/token.md', 'open sesame-4711\n');
      await page.goto('/ui/redact');
      await hands.type('Exactly this text', 'sesame-4711');
      await hands.tick(/^All stores/);
      await hands.tick(/live|edited|deleted/);
      await arrive(hands.press('Show what would be redacted'), /\/ui\/redact/);
      assert.match(await main(), /x\/token\.md/);
      await hands.type(/^To confirm/, '1');
      await arrive(hands.press('Redact for good'), /\/ui\/receipts\/rcpt_/);
      assert.doesNotMatch(await page.content(), /sesame-4711/);
      assert.ok(!server.quipu('--json', 'search', '--all', 'sesame').includes('sesame-4711'));
    });

    test('see the links of a store, and follow one from the list', async () => {
      await page.goto(`/ui/stores/${ids.team}/graph`);
      await arrive(hands.follow('Links around Ledger rewrite'), /focus=/);
      await arrive(hands.follow(/^\/projects\/ledger\/overview\.md$/), /\/memories\/mem_/);
      assert.match(await main(), /without a day on which both are wrong/);
    });

    test('create a key and revoke it', async () => {
      await page.goto('/ui/admin/keys');
      await hands.type(/^Name/, 'reporting');
      await hands.choose('Role', 'read_only');
      await Promise.all([page.waitForEvent('load'), hands.press('Create key')]);
      const secret = /sk-quipu-\w+/.exec(await main())[0];
      assert.ok((await fetch(`${server.url}/v1/memory_stores`, { headers: { 'x-api-key': secret } })).ok);
      await arrive(hands.follow('I have copied it'), /\/ui\/admin\/keys$/);
      assert.ok(!(await page.content()).includes(secret), 'it is shown once');
      await arrive(hands.follow('Revoke reporting'), /\/revoke/);
      await arrive(hands.press('Revoke reporting'), /\/ui\/admin\/keys$/);
      assert.equal((await fetch(`${server.url}/v1/memory_stores`, { headers: { 'x-api-key': secret } })).status, 401);
    });

    test('sign out', async () => {
      await page.goto('/ui');
      await arrive(hands.press('Sign out'), /\/ui\/sign-in/);
      await page.goto('/ui');
      assert.match(page.url(), /\/ui\/sign-in/);
    });
  });
}
