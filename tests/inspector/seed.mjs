/** Fills a server with what a team's agents would remember: projects, decisions, people, several sessions. */
import assert from 'node:assert/strict';

/** Returns a client of the REST API with a key or a session's token. */
export function api({ url }, key) {
  return async (method, path, body) => {
    const headers = { 'x-api-key': key, 'content-type': 'application/json' };
    const response = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
    const answer = await response.json();
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
    return { ...answer, token: response.headers.get('quipu-session-token') };
  };
}

/** Returns what can be done with the memories of a store, as whoever has this key. */
export function writer(server, key, store) {
  const call = api(server, key);
  const base = `/v1/memory_stores/${store}/memories`;
  return {
    create: (path, content) => call('POST', base, { path, content }),
    read: (id) => call('GET', `${base}/${id}`),
    update: (id, change) => call('POST', `${base}/${id}`, change),
    remove: (id) => call('DELETE', `${base}/${id}`),
  };
}

const OVERVIEW = `---
title: Ledger rewrite
type: project
tags: [ledger, q4]
---

# Ledger rewrite

Move invoices from the nightly batch to events, without a day on which both are wrong.

- [status] The importer runs beside the batch since week 44 #importer
- [risk] Rounding differs by one cent in 0.2 % of all invoices #rounding
- depends on [[Rounding rules]]
- decided in [[Events over batches]]

## Next

1. Compare both outputs for a whole month.
2. Turn the batch off for one customer, then for all.

| week | invoices compared | different |
|---|---|---|
| 44 | 18,204 | 41 |
| 45 | 18,377 | 36 |
`;

const ROUNDING = `---
title: Rounding rules
type: reference
tags: [ledger, rounding]
---

# Rounding rules

- [rule] Round each line half to even, then add #rounding
- [rule] Never round a sum a second time
- used by [[Ledger rewrite]]

\`\`\`python
total = sum(round_half_even(line) for line in invoice.lines)
\`\`\`
`;

const DECISION = `---
title: Events over batches
type: decision
tags: [architecture]
---

# Events over batches

- [decision] Invoices are made when an order ships, not at night
- [because] Support waits for the batch in one call of five
- [rejected] A batch every hour: same code, same lock, half of the wait
- concerns [[Ledger rewrite]]
- asked by [[On-call handbook]]
`;

const HANDBOOK = `---
title: On-call handbook
type: guide
tags: [operations]
---

# On-call handbook

- [first] Look at the queue length before anything else #queue
- [contact] Payments pages the second line after 15 minutes
- see [[Queue runbook]] and [[Ledger rewrite]]
`;

const PREFERENCES = `# How this team works

- Small pull requests: one reason each.
- Tests first when it is a bug.
- Never deploy after 15:00 on a Friday.
`;

const PLAYBOOK = `# Refunds

- [limit] Up to 200 EUR without asking #refund
- [tone] Say what happens next, and when
- see [[Delivery delays]]
`;

const CHECKLIST = `# Release 2.4

- [x] Changelog
- [x] Migration tried on a copy
- [ ] Announce
`;

/** Fills a server; returns the ids that tests need. */
export async function seed(server) {
  const admin = api(server, server.key);
  const store = async (name, description) => (await admin('POST', '/v1/memory_stores', { name, description })).id;
  const team = await store('team', 'What the agents of the platform team know');
  const support = await store('support playbook', 'How the support agents answer');
  const session = (title, ...stores) =>
    admin('POST', '/v1/sessions', {
      agent: 'agent_ledger',
      environment_id: 'env_team',
      title,
      resources: stores.map((memory_store_id) => ({ type: 'memory_store', memory_store_id, access: 'read_write' })),
    });
  const review = await session('Nightly review of pull requests', team);
  const release = await session('Release 2.4', team);
  const answers = await session('Answers of week 46', support, team);

  const byReview = writer(server, review.token, team);
  const byRelease = writer(server, release.token, team);
  const bySupport = writer(server, answers.token, support);
  const byPerson = writer(server, server.key, team);

  const overview = await byReview.create('/projects/ledger/overview.md', OVERVIEW.replace('| 45 | 18,377 | 36 |\n', ''));
  await byReview.create('/projects/ledger/rounding.md', ROUNDING);
  const decision = await byPerson.create('/decisions/events-over-batches.md', DECISION);
  const handbook = await byRelease.create('/people/on-call.md', HANDBOOK.replace('15 minutes', '30 minutes'));
  const preferences = await byPerson.create('/preferences.md', PREFERENCES);
  await byRelease.update(overview.id, { content: OVERVIEW });
  await byRelease.update(handbook.id, { content: HANDBOOK });
  await byRelease.create('/projects/ledger/release-2.4.md', CHECKLIST);
  const access = (how) => `# Access to the copy\n\n${how}\n`;
  const secret = await byRelease.create('/projects/ledger/access.md', access('The password is correct-horse.'));
  await byPerson.update(secret.id, { content: access('Ask the second line; it is in the vault.') });
  await admin('POST', `/v1/memory_stores/${team}/memory_versions/${secret.memory_version_id}/redact`);
  const draft = await byReview.create('/drafts/idea.md', '# One queue for all\n\nProbably not.\n');
  await byReview.remove(draft.id);
  await bySupport.create('/refunds.md', PLAYBOOK);
  await bySupport.create('/delays.md', '# Delivery delays\n\n- [rule] Offer a date, not an apology\n- see [[Refunds]]\n');
  return { team, support, overview, decision, handbook, preferences, secret, draft, review, release, answers };
}
