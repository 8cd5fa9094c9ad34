/** A local Messages endpoint that plays a model from a script. */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Block = Record<string, unknown> & { type: string };

export interface Request {
  body: Record<string, any>;
  headers: IncomingHttpHeaders;
}

export class ScriptedModel {
  readonly requests: Request[] = [];
  #server: Server;

  constructor(turns: Block[][]) {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const body = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, any>;
        const content = turns[this.requests.length] ?? [];
        this.requests.push({ body, headers: request.headers });
        const isToolUse = content.some((block) => block.type === 'tool_use');
        response.setHeader('content-type', 'application/json');
        response.end(
          JSON.stringify({
            id: `msg_${this.requests.length}`,
            type: 'message',
            role: 'assistant',
            model: 'scripted',
            content,
            stop_reason: isToolUse ? 'tool_use' : 'end_turn',
            stop_sequence: null,
            usage: { input_tokens: 1, output_tokens: 1 },
          }),
        );
      });
    });
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The tool results that the model received, in order. */
  results(): Block[] {
    const results = new Map<unknown, Block>();
    for (const { body } of this.requests) {
      for (const message of body['messages'] as { content: Block[] | string }[]) {
        const blocks = Array.isArray(message.content) ? message.content : [];
        for (const block of blocks) {
          if (block.type === 'tool_result') results.set(block['tool_use_id'], block);
        }
      }
    }
    return [...results.values()];
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

export function use(number: number, command: Record<string, unknown>): Block[] {
  return [{ type: 'tool_use', id: `toolu_${number}`, name: 'memory', input: command }];
}

export function say(text: string): Block[] {
  return [{ type: 'text', text }];
}
