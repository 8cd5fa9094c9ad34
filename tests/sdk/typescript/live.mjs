/** A real Quipu for tests: `quipu serve` on a data directory of its own, and a proxy that counts. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, request as send } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const binary = process.env['QUIPU_BINARY'] ?? 'quipu';

/** The environment without what is set for the tests themselves. */
const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('QUIPU_')));

/** Starts a server; settings are given by the names of their variables. */
export async function serve(settings = {}) {
  const data = mkdtempSync(join(tmpdir(), 'quipu-sdk-'));
  const key = 'sk-quipu-of-the-tests-0123456789';
  const variables = Object.entries(settings).map(([name, value]) => [`QUIPU_${name.toUpperCase()}`, value]);
  const child = spawn(
    binary,
    ['--data', data, 'serve', '--listen', '127.0.0.1:0', '--log-level', 'error'],
    {
      env: { ...environment, QUIPU_ADMIN_KEY: key, ...Object.fromEntries(variables) },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const lines = createInterface({ input: child.stdout });
  const [line] = await Promise.race([once(lines, 'line'), once(child, 'exit')]);
  if (!String(line).startsWith('listening on ')) throw new Error(`the server said ${line}`);
  return {
    key,
    data,
    url: line.slice('listening on '.length).trim(),
    /** Runs a command on the same data. */
    quipu: (...words) => execFileSync(binary, ['--data', data, ...words], { encoding: 'utf-8', env: environment }),
    async close() {
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      const [code] = await ended;
      rmSync(data, { recursive: true });
      if (code !== 0) throw new Error(`the server ended with ${code}`);
    },
  };
}

/**
 * A reverse proxy that counts. `answers` are given first, one per request, in place of the server's;
 * `replacedHeaders` take the place of those that the server has sent.
 */
export async function countingProxy(url) {
  const proxy = { statuses: [], answers: [], replacedHeaders: {} };
  const server = createServer((incoming, outgoing) => {
    const answer = proxy.answers.shift();
    if (answer) {
      incoming.resume();
      proxy.statuses.push(answer.status);
      outgoing.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers });
      const error = { type: 'api_error', message: 'a faulty peer' };
      outgoing.end(JSON.stringify({ type: 'error', error }));
      return;
    }
    const passed = send(new URL(incoming.url, url), { method: incoming.method, headers: incoming.headers });
    passed.on('response', (response) => {
      proxy.statuses.push(response.statusCode);
      const headers = { ...response.headers };
      for (const [name, value] of Object.entries(proxy.replacedHeaders)) {
        if (name in headers) headers[name] = value;
      }
      outgoing.writeHead(response.statusCode, headers);
      response.pipe(outgoing);
    });
    passed.on('error', () => outgoing.destroy());
    incoming.pipe(passed);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  proxy.url = `http://127.0.0.1:${server.address().port}`;
  proxy.close = () => {
    server.closeAllConnections();
    server.close();
  };
  return proxy;
}

/** Reads all pages. */
export async function all(pages) {
  const items = [];
  for await (const item of pages) items.push(item);
  return items;
}
