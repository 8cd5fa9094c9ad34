/**
 * An agent that saves what matters before its context is trimmed.
 *
 * Context editing clears old tool results when the conversation grows long. Results of the memory tool
 * are excluded, and the model is warned before anything is cleared, so it writes its findings to memory
 * first and reads them back later. Run it twice: the second run starts from what the first one saved.
 *
 *     ANTHROPIC_API_KEY=… node build/examples/save-before-forgetting.js
 */
import { execFileSync } from 'node:child_process';

import Anthropic from '@anthropic-ai/sdk';
import { betaMemoryTool } from '@anthropic-ai/sdk/helpers/beta/memory';

import { quipuMemory } from '../src/index.js';

const binary = process.argv[2] ?? 'quipu';
const store = 'research';

// The instructions are about a store that exists.
execFileSync(binary, ['store', 'create', '--if-missing', store]);
const memory = quipuMemory({ store, binary, title: 'save-before-forgetting' });
const runner = new Anthropic().beta.messages.toolRunner({
  model: 'claude-sonnet-5-5',
  max_tokens: 4096,
  // Quipu's instructions on how to use the store.
  system: execFileSync(binary, ['prompt', '--store', store], { encoding: 'utf-8' }),
  tools: [betaMemoryTool(memory)],
  messages: [{ role: 'user', content: 'Go on comparing green teas for our shop.' }],
  betas: ['context-management-2025-06-27'],
  context_management: {
    edits: [
      {
        type: 'clear_tool_uses_20250919',
        trigger: { type: 'input_tokens', value: 30_000 },
        keep: { type: 'tool_uses', value: 3 },
        // The model must keep seeing what it read from memory.
        exclude_tools: ['memory'],
      },
    ],
  },
});
for await (const message of runner) {
  for (const block of message.content) {
    if (block.type === 'text') console.log(`model: ${block.text}`);
    if (block.type === 'tool_use') console.log(`memory: ${JSON.stringify(block.input)}`);
  }
}
await memory.close();
