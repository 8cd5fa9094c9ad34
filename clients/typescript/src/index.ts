/**
 * Quipu as the memory tool of the Anthropic TypeScript SDK.
 *
 * The handlers talk to a child process (`quipu tool`) or, given a URL, to a Quipu server. Commands are
 * forwarded as the model sent them, and answers are returned byte for byte.
 */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';

import type { MemoryToolHandlers } from '@anthropic-ai/sdk/helpers/beta/memory';
import { ToolError } from '@anthropic-ai/sdk/lib/tools/ToolError';

export interface QuipuOptions {
  /** The store, created if missing. Default: `memories`. */
  store?: string;
  /** The binary to run. Default: `quipu`. */
  binary?: string;
  /** The data directory. */
  data?: string;
  /** Rejects every command except `view`. */
  readOnly?: boolean;
  /** The title of the session in the history. */
  title?: string;
  /** The URL of a Quipu server to use instead of a child process. */
  url?: string;
  /** The API key for that server. */
  apiKey?: string;
}

/** Quipu could not be started or reached, or has exited. */
export class QuipuUnavailable extends Error {
  override name = 'QuipuUnavailable';
}

interface Answer {
  content: string;
  is_error: boolean;
}

interface Connection {
  send(command: object): Promise<Answer>;
  close(): Promise<void>;
}

/** Handlers for `betaMemoryTool`; `close` stops the child process or archives the session on the server. */
export type QuipuMemory = MemoryToolHandlers & AsyncDisposable & { close(): Promise<void> };

export function quipuMemory(options: QuipuOptions = {}): QuipuMemory {
  const connection = options.url === undefined ? new Child(options) : new Server(options.url, options);
  const run = async (command: object): Promise<string> => {
    const answer = await connection.send(command);
    if (answer.is_error) {
      throw new ToolError(answer.content);
    }
    return answer.content;
  };
  const close = () => connection.close();
  return {
    view: run,
    create: run,
    str_replace: run,
    insert: run,
    delete: run,
    rename: run,
    close,
    [Symbol.asyncDispose]: close,
  };
}

type Settle = { resolve(answer: Answer): void; reject(error: Error): void };

/** A `quipu tool` process: one command per line, one answer per line, in order. */
class Child implements Connection {
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  readonly #waiting: Settle[] = [];
  readonly #ended: Promise<void>;
  #failure: QuipuUnavailable | undefined;

  constructor(options: QuipuOptions) {
    const binary = options.binary ?? 'quipu';
    const words = ['tool', '--store', options.store ?? 'memories'];
    if (options.data !== undefined) words.push('--data', options.data);
    if (options.readOnly) words.push('--read-only');
    if (options.title !== undefined) words.push('--title', options.title);
    this.#process = spawn(binary, words, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#ended = new Promise((resolve) => {
      this.#process.on('error', (error) => {
        this.#fail(`cannot start \`${binary}\` (${error.message}); install quipu or pass \`binary\``);
        resolve();
      });
      this.#process.on('close', () => {
        this.#fail('`quipu tool` has exited; see its standard error');
        resolve();
      });
    });
    // A write to a process that has exited is reported by the `close` event.
    this.#process.stdin.on('error', () => {});
    createInterface({ input: this.#process.stdout }).on('line', (line) => {
      this.#waiting.shift()?.resolve(JSON.parse(line) as Answer);
    });
  }

  send(command: object): Promise<Answer> {
    if (this.#failure) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#process.stdin.write(`${JSON.stringify(command)}\n`);
    });
  }

  async close(): Promise<void> {
    this.#process.stdin.end();
    await this.#ended;
  }

  #fail(reason: string): void {
    this.#failure ??= new QuipuUnavailable(reason);
    for (const waiting of this.#waiting.splice(0)) waiting.reject(this.#failure);
  }
}

interface ToolSession {
  session_id: string | null;
  token: string | null;
}

/** The memory tool of a Quipu server. Its writes belong to a session of its own. */
class Server implements Connection {
  readonly #url: string;
  readonly #tool: string;
  readonly #options: QuipuOptions;
  #session: Promise<ToolSession> | undefined;

  constructor(url: string, options: QuipuOptions) {
    this.#url = url.replace(/\/+$/, '');
    this.#tool = `/quipu/stores/${encodeURIComponent(options.store ?? 'memories')}/tool`;
    this.#options = options;
  }

  async send(command: object): Promise<Answer> {
    const { apiKey, readOnly } = this.#options;
    // Reading leaves no trace in the history, so it needs no session.
    if (readOnly) return this.#post<Answer>(`${this.#tool}?access=read_only`, command, apiKey);
    this.#session ??= this.#start();
    const { token } = await this.#session;
    return this.#post<Answer>(this.#tool, command, token ?? apiKey);
  }

  /** Archives the session, if one was created, which revokes its token. */
  async close(): Promise<void> {
    const session = await this.#session?.catch(() => undefined);
    this.#session = undefined;
    if (!session?.token) return;
    const ended = this.#post(`/v1/sessions/${session.session_id}/archive`, {}, this.#options.apiKey);
    // Everything is saved already, and without the server the token is useless anyway.
    await ended.catch(() => undefined);
  }

  async #start(): Promise<ToolSession> {
    const { title, apiKey } = this.#options;
    try {
      return await this.#post<ToolSession>(`${this.#tool}/session`, { title }, apiKey);
    } catch (error) {
      // The next command retries.
      this.#session = undefined;
      throw error;
    }
  }

  async #post<T>(path: string, body: object, key: string | undefined): Promise<T> {
    const headers: Record<string, string> = { 'content-type': 'application/json' };
    if (key !== undefined) headers['authorization'] = `Bearer ${key}`;
    const request = { method: 'POST', headers, body: JSON.stringify(body) };
    const response = await fetch(this.#url + path, request).catch((error: unknown) => {
      throw new QuipuUnavailable(`the Quipu server did not answer: ${String(error)}`);
    });
    if (!response.ok) {
      throw new QuipuUnavailable(`the Quipu server rejected the request: ${response.status} ${await response.text()}`);
    }
    return (await response.json()) as T;
  }
}
