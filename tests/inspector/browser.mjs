/** Debian's Chromium, watched: what a page must never do is noticed wherever it happens. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

import { chromium } from 'playwright-core';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf-8');

/** A window as wide as most, and one that a zoom of 400 % leaves of it. */
const WINDOW = { width: 1280, height: 1024 };
const ZOOMED = { width: 320, height: 256 };

/** The ways in which people look at a page. */
const LOOKS = {
  light: { colorScheme: 'light', forcedColors: 'none' },
  dark: { colorScheme: 'dark', forcedColors: 'none' },
  'forced colors': { colorScheme: 'dark', forcedColors: 'active' },
  zoomed: { colorScheme: 'light', forcedColors: 'none', size: ZOOMED },
};

/** Starts the browser. */
export function launch() {
  return chromium.launch({
    executablePath: process.env['QUIPU_CHROMIUM'] ?? '/usr/bin/chromium',
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

/**
 * Opens a window without any sign-in, or with one that `storageState` of another window returned.
 *
 * Everything that no page of ours may ever do is collected in `trouble`: a request to another origin, an
 * error in the console, an exception, a dialog, a violation of the content security policy.
 */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ baseURL: url, viewport: WINDOW, ...options });
  context.setDefaultTimeout(20_000);
  const trouble = [];
  const visited = new Set();
  const requests = [];
  const errors = [];
  await context.addInitScript(() => {
    addEventListener('securitypolicyviolation', (event) => {
      console.error(`the policy forbids ${event.violatedDirective}: ${event.blockedURI} ${event.sample}`);
    });
  });
  context.on('request', (request) => {
    requests.push(request.url());
    if (request.isNavigationRequest()) visited.add(request.url());
    if (new URL(request.url()).origin !== new URL(url).origin) trouble.push(`asked for ${request.url()}`);
  });
  context.on('console', (message) => {
    if (message.type() === 'error') errors.push([message.location().url, message.text()]);
  });
  context.on('weberror', (error) => trouble.push(`threw ${error.error()}`));
  context.on('dialog', async (dialog) => {
    trouble.push(`showed a dialog: ${dialog.message()}`);
    await dialog.dismiss();
  });
  const page = await context.newPage();
  return Object.assign(page, {
    requests,
    /** Fails if anything forbidden has happened since the last call. */
    assertQuiet(where = page.url()) {
      // The browser reports a page with the status 404 as an error, though it shows it.
      const isStatus = ([from, text]) => visited.has(from) && text.startsWith('Failed to load resource: the server');
      const all = [...trouble, ...errors.filter((error) => !isStatus(error)).map((error) => error.join(': '))];
      trouble.length = 0;
      errors.length = 0;
      assert.deepEqual(all, [], where);
    },
  });
}

/** Fails unless axe-core finds nothing on a page, in these ways of looking at it. */
export async function assertAccessible(page, where, looks = Object.keys(LOOKS)) {
  const session = await page.context().newCDPSession(page);
  const evaluate = async (expression, more = {}) => {
    const { result, exceptionDetails } = await session.send('Runtime.evaluate', { expression, ...more });
    assert.equal(exceptionDetails, undefined, `${where}: ${exceptionDetails?.exception?.description}`);
    return result.value;
  };
  // The world of its own keeps axe out of reach of the page's policy, and its globals off the page.
  const { frameTree } = await session.send('Page.getFrameTree');
  const world = await session.send('Page.createIsolatedWorld', { frameId: frameTree.frame.id });
  const inWorld = { contextId: world.executionContextId, returnByValue: true, awaitPromise: true };
  await evaluate(axe, { contextId: world.executionContextId });
  for (const look of looks) {
    const { size, ...media } = LOOKS[look];
    await page.emulateMedia(media);
    await page.setViewportSize(size ?? WINDOW);
    const found = await evaluate(
      `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations.map(
        ({ id, help, nodes }) => [id, help, ...nodes.slice(0, 3).map((node) => node.html + node.failureSummary)]))`,
      inWorld,
    );
    assert.deepEqual(found, [], `${where}, ${look}`);
    if (size) {
      const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
      assert.ok((await evaluate(overflow, inWorld)) <= 0, `${where}, ${look}: the page scrolls sideways`);
    }
  }
  await page.emulateMedia(LOOKS.light);
  await page.setViewportSize(WINDOW);
  await session.detach();
}
