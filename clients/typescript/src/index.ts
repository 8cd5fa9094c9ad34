/**
 * Quipu as the memory tool of the Anthropic TypeScript SDK.
 *
 * The handlers talk to a child process (`quipu tool`) or, given a URL, to a Quipu server. Commands are
 * passed on as the model sent them, and answers are returned byte for byte.
 */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';

import type { MemoryToolHandlers } from '@anthropic-ai/sdk/helpers/beta/memory';
import { ToolError } from '@anthropic-ai/sdk/lib/tools/ToolError';

export interface QuipuOptions {
  /** The store; it is created if it does not exist. Default: `memories`. */
  store?: string;
  /** The program to start. Default: `quipu`. */
  binary?: string;
  /** The data directory of the program. */
  data?: string;
  /** Whether every command but view is refused. */
  readOnly?: boolean;
  /** What to call the session in the history. */
  title?: string;
  /** The address of a Quipu server to use instead of a child process. */
  url?: string;
  /** The key for that server. */
  apiKey?: string;
}

/** Quipu could not be started or reached, or has ended. */
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

/** Handlers for `betaMemoryTool`, and `close` to end the child process. */
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
        this.#fail(`\`${binary}\` cannot be started (${error.message}); install quipu or pass \`binary\``);
        resolve();
      });
      this.#process.on('close', () => {
        this.#fail('`quipu tool` has ended; its error output says why');
        resolve();
      });
    });
    // A write to a process that has ended is answered by its `close` event.
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

/** The memory tool of a Quipu server. */
class Server implements Connection {
  readonly #url: string;
  readonly #headers: Record<string, string>;

  constructor(url: string, options: QuipuOptions) {
    const store = encodeURIComponent(options.store ?? 'memories');
    this.#url = `${url.replace(/\/+$/, '')}/quipu/stores/${store}/tool`;
    this.#headers = { 'content-type': 'application/json' };
    if (options.apiKey !== undefined) this.#headers['authorization'] = `Bearer ${options.apiKey}`;
  }

  async send(command: object): Promise<Answer> {
    const request = { method: 'POST', headers: this.#headers, body: JSON.stringify(command) };
    const response = await fetch(this.#url, request).catch((error: unknown) => {
      throw new QuipuUnavailable(`the Quipu server did not answer: ${String(error)}`);
    });
    if (!response.ok) {
      throw new QuipuUnavailable(`the Quipu server refused: ${response.status} ${await response.text()}`);
    }
    return (await response.json()) as Answer;
  }

  async close(): Promise<void> {}
}
