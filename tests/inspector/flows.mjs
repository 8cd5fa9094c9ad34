/** What people do, by the names of what they see. */
/** Signs in with a key. */
export async function signIn(page, hands, key, name = 'tester') {
  await page.goto('/ui/sign-in');
  await hands.type('Key', key);
  await hands.type('Your name', name);
  await Promise.all([page.waitForURL((url) => url.pathname !== '/ui/sign-in'), hands.press('Sign in')]);
}
