// Adds a key to every request: the conformance suite has no way to send one.
//
//   node proxy.mjs http://127.0.0.1:8420 KEY
import http from "node:http";

const [target, key] = process.argv.slice(2);
const { hostname, port } = new URL(target);

const server = http.createServer((request, response) => {
  const headers = { ...request.headers, authorization: `Bearer ${key}` };
  const options = { hostname, port, path: request.url, method: request.method, headers };
  const onward = http.request(options, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    response.flushHeaders();
    answer.pipe(response);
  });
  onward.on("error", () => response.destroy());
  response.on("close", () => onward.destroy());
  request.pipe(onward);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
