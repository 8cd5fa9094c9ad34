// A proxy between the conformance suite and the server. It adds a key to every request, which the
// suite cannot, and maps the names of the suite's reference server to names that this server has.
// Responses are passed through unchanged.
//
//   node proxy.mjs http://127.0.0.1:8420 KEY
import http from "node:http";

const [target, key] = process.argv.slice(2);
const { hostname, port } = new URL(target);

const TOOLS = {
  test_simple_text: { name: "list_memory_projects" },
  test_error_handling: { name: "read_note" },
  test_tool_with_progress: { name: "search_notes", arguments: { query: "text" } },
};
const PROMPTS = {
  test_simple_prompt: () => ({ name: "memory_guide" }),
  test_prompt_with_arguments: ({ arg1, arg2 }) => ({
    name: "search_knowledge_base",
    arguments: { query: `${arg1} ${arg2}` },
  }),
};
const RESOURCES = {
  "test://static-text": "memory://notes/static-text.md",
  "test://template/123/data": "memory://notes/template/123/data.md",
  "test://watched-resource": "memory://notes/static-text.md",
};

function translated(text) {
  let message;
  try {
    message = JSON.parse(text);
  } catch {
    return text;
  }
  const params = message.params ?? {};
  if (message.method === "tools/call") Object.assign(params, TOOLS[params.name]);
  if (message.method === "prompts/get") {
    Object.assign(params, PROMPTS[params.name]?.(params.arguments ?? {}));
  }
  if (params.uri in RESOURCES) params.uri = RESOURCES[params.uri];
  return JSON.stringify(message);
}

const server = http.createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = chunks.length ? translated(Buffer.concat(chunks).toString()) : "";
  const headers = { ...request.headers, authorization: `Bearer ${key}` };
  delete headers["transfer-encoding"];
  headers["content-length"] = Buffer.byteLength(body);
  const options = { hostname, port, path: request.url, method: request.method, headers };
  const onward = http.request(options, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    response.flushHeaders();
    answer.pipe(response);
  });
  onward.on("error", () => response.destroy());
  response.on("close", () => onward.destroy());
  onward.end(body);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
