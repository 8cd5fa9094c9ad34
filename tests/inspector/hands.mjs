/** The ways of using a page: a mouse, a keyboard, and either without script. */
import assert from 'node:assert/strict';

import { open } from './browser.mjs';

/** The most stops of the Tab key until something must be reached. */
const TABS_MAX = 300;

/** Every flow is done in each of these ways. */
export const WAYS = {
  'with a mouse': { isKeyboard: false, options: {} },
  'with the keyboard alone': { isKeyboard: true, options: {} },
  'without script': { isKeyboard: false, options: { javaScriptEnabled: false } },
};

/** Opens a window and returns it with hands that use it. */
export async function use(browser, url, way, options = {}) {
  const page = await open(browser, url, { ...way.options, ...options });
  return { page, hands: way.isKeyboard ? keyboard(page) : mouse(page) };
}

/** Finds things as people name them. */
const finders = (page) => ({
  button: (name) => page.getByRole('button', { name }).first(),
  link: (name) => page.getByRole('link', { name }).first(),
  field: (name) => page.getByLabel(name).and(page.locator('input, textarea, select')).first(),
  fold: (name) => page.locator('summary', { hasText: name }).first(),
});

export function mouse(page) {
  const find = finders(page);
  return {
    press: (name) => find.button(name).click(),
    follow: (name) => find.link(name).click(),
    unfold: (name) => find.fold(name).click(),
    type: (name, text) => find.field(name).fill(text),
    tick: (name) => find.field(name).check(),
    choose: (name, value) => find.field(name).selectOption(value),
  };
}

function keyboard(page) {
  const find = finders(page);
  /** Goes on with the Tab key until a thing has the focus, and sees that the focus shows. */
  const reach = async (thing) => {
    await thing.waitFor();
    for (let stops = 0; stops < TABS_MAX; stops += 1) {
      const isReached = await thing.evaluate((it) => {
        if (it !== document.activeElement) return false;
        const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(it);
        return outlineStyle !== 'none' && outlineWidth !== '0px' ? 'shown' : `hidden, shadow ${boxShadow}`;
      });
      if (isReached) {
        assert.equal(isReached, 'shown', `the focus on ${thing}`);
        return;
      }
      await page.keyboard.press('Tab');
    }
    assert.fail(`the Tab key does not reach ${thing}`);
  };
  return {
    async press(name) {
      await reach(find.button(name));
      await page.keyboard.press('Enter');
    },
    async follow(name) {
      await reach(find.link(name));
      await page.keyboard.press('Enter');
    },
    async unfold(name) {
      await reach(find.fold(name));
      await page.keyboard.press('Enter');
    },
    async type(name, text) {
      await reach(find.field(name));
      await page.keyboard.press('ControlOrMeta+A');
      // An empty text is typed by deleting what was there.
      if (text) await page.keyboard.insertText(text);
      else await page.keyboard.press('Delete');
    },
    async tick(name) {
      const box = find.field(name);
      await reach(box);
      if (!(await box.isChecked())) await page.keyboard.press('Space');
    },
    async choose(name, value) {
      const list = find.field(name);
      await reach(list);
      const label = await list.locator(`option[value="${value}"]`).innerText();
      await page.keyboard.type(label);
      assert.equal(await list.inputValue(), value, name);
    },
  };
}
