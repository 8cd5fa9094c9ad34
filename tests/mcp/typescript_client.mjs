// The official TypeScript client against the real binary: over stdio, and over HTTP with a key.
//
//   node typescript_client.mjs BINARY DATA_DIRECTORY [URL KEY]
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";

const [binary, data, url, key] = process.argv.slice(2);
const transport = url
  ? new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
      requestInit: { headers: { Authorization: `Bearer ${key}` } },
    })
  : new StdioClientTransport({ command: binary, args: ["--data", data, "mcp"] });

const client = new Client({ name: "typescript", version: "1" });
const next = (schema) =>
  new Promise((resolve) => client.setNotificationHandler(schema, resolve));
await client.connect(transport);

const call = async (name, args) => {
  const result = await client.callTool({ name, arguments: args });
  assert.ok(!result.isError, JSON.stringify(result));
  return result.structuredContent;
};

assert.match(client.getInstructions(), /Look first/);
assert.equal((await client.listTools()).tools.length, 15);
const note = { title: "Green tea", content: "- [method] 80 °C #brew\n- part_of [[Tea]]", directory: "drinks" };
assert.equal((await call("write_note", note)).action, "created");
assert.equal((await call("search_notes", { query: "brewing" })).results[0].title, "Green tea");
const history = await call("note_history", { identifier: "Green tea" });
assert.equal(history.versions[0].actor.title, "typescript 1");
const failed = await client.callTool({ name: "read_note", arguments: { identifier: "nothing" } });
assert.ok(failed.isError);

const uri = "memory://notes/drinks/Green%20tea.md";
assert.equal((await client.listResources()).resources[0].uri, uri);
assert.match((await client.readResource({ uri })).contents[0].text, /80 °C/);
assert.equal((await client.listPrompts()).prompts.length, 4);
const guide = await client.getPrompt({ name: "memory_guide" });
assert.match(guide.messages[0].content.text, /Keeping a memory/);
const completed = await client.complete({
  ref: { type: "ref/resource", uri: "memory://{store}/{+path}" },
  argument: { name: "path", value: "drinks" },
});
assert.deepEqual(completed.completion.values, ["drinks/Green tea.md"]);

// Changes by another process cause notifications.
await client.subscribeResource({ uri });
const updated = next(ResourceUpdatedNotificationSchema);
execFileSync(binary, ["--data", data, "put", "/drinks/Green tea.md"], { input: "changed" });
assert.equal((await updated).params.uri, uri);
const listed = next(ResourceListChangedNotificationSchema);
execFileSync(binary, ["--data", data, "rm", "/drinks/Green tea.md"]);
await listed;

await client.close();
console.log(`typescript client, over ${url ? "http" : "stdio"}: ok`);
process.exit(0);
