// The official TypeScript client signs in by OAuth against the real binary.
//
//   node oauth_client.mjs URL KEY
import assert from "node:assert/strict";

import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, key] = process.argv.slice(2);
const callback = "http://127.0.0.1:41998/callback";

// The person: signs in, reads the consent page, presses a button.
const send = (address, cookie, fields) =>
  fetch(address, {
    method: fields ? "POST" : "GET",
    body: fields && new URLSearchParams(fields),
    headers: { cookie, "sec-fetch-site": "same-origin" },
    redirect: "manual",
  });
const signedIn = await send(`${url}/ui/sign-in`, "", { key, name: "ada" });
assert.equal(signedIn.status, 303);
const cookie = signedIn.headers.get("set-cookie").split(";")[0];
const unescaped = (text) =>
  text.replaceAll("&quot;", '"').replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
const decide = async (address) => {
  const page = await (await send(address, cookie)).text();
  const hidden = [...page.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)"/g)];
  const fields = Object.fromEntries(hidden.map(([, name, value]) => [name, unescaped(value)]));
  Object.assign(fields, { role: "read_write", days: "7", decision: "allow" });
  const answer = await send(`${url}/ui/authorize`, cookie, fields);
  assert.equal(answer.status, 303, await answer.text());
  return new URL(answer.headers.get("location"));
};

const kept = {};
let asked;
const provider = {
  redirectUrl: callback,
  clientMetadata: { client_name: "A host", redirect_uris: [callback] },
  state: () => "a state",
  clientInformation: () => kept.client,
  saveClientInformation: (client) => (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => (kept.tokens = tokens),
  redirectToAuthorization: (address) => (asked = address),
  saveCodeVerifier: (verifier) => (kept.verifier = verifier),
  codeVerifier: () => kept.verifier,
};
const transport = () => new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { authProvider: provider });
const connect = async () => {
  const client = new Client({ name: "typescript", version: "1" });
  await client.connect(transport());
  return client;
};

await assert.rejects(connect(), UnauthorizedError);
const location = await decide(asked);
assert.equal(location.searchParams.get("state"), "a state");
assert.equal(location.searchParams.get("iss"), url);
await transport().finishAuth(location.searchParams.get("code"));
let client = await connect();
const written = await client.callTool({
  name: "write_note",
  arguments: { title: "Tea", content: "green", directory: "drinks" },
});
assert.ok(!written.isError, JSON.stringify(written));
await client.close();

// An access token that has ended is renewed without asking anybody.
const { refresh_token: used } = kept.tokens;
kept.tokens = { ...kept.tokens, access_token: "ended" };
client = await connect();
assert.ok((await client.listTools()).tools.length > 0);
assert.notEqual(kept.tokens.refresh_token, used);
await client.close();
