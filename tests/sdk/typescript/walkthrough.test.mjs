/** The walkthrough of the documentation runs against a fresh server and says what it promises. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';

import { VERSION } from '@anthropic-ai/sdk/version';

import { serve } from './live.mjs';

const TRANSCRIPT = `\
agent     Tea brewer, version 1
attached  Tea notes (read_write) at /mnt/memory/tea-notes
attached  House rules (read_only) at /mnt/memory/house-rules
event     user.message Green tea, please.
event     agent.message 80 C, two minutes.
event     session.status_idle
recorded  Green tea, please.
version   created /green.md by session_actor
changed   version 2; the session keeps 1: You brew tea.
archived  terminated
`;

const skip = VERSION.startsWith('0.') && 'older SDKs cannot filter events by type';

test('the walkthrough', { skip }, async () => {
  const server = await serve();
  try {
    const environment = { ...process.env, QUIPU_URL: server.url, QUIPU_API_KEY: server.key };
    const { stdout } = await promisify(execFile)(process.execPath, ['walkthrough.mjs'], { env: environment });
    assert.equal(stdout, TRANSCRIPT);
  } finally {
    await server.close();
  }
});
