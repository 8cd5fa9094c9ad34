/** Times the TypeScript SDK's own local memory tool in its process; prints one JSON line per scenario. */
import { readFileSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [scenariosFile, folder, packages] = process.argv.slice(2);
const require = createRequire(join(packages, 'package.json'));
const { betaMemoryTool } = require('@anthropic-ai/sdk/helpers/beta/memory');
const { BetaLocalFilesystemMemoryTool } = require('@anthropic-ai/sdk/tools/memory/node');

const base = mkdtempSync(join(folder, 'peer-'));
const tool = betaMemoryTool(await BetaLocalFilesystemMemoryTool.init(base));
for (const scenario of JSON.parse(readFileSync(scenariosFile, 'utf-8'))) {
  for (const command of scenario.setup) await tool.run(command);
  for (const command of scenario.warm ? scenario.commands.slice(0, 20) : []) await tool.run(command);
  const cpu = process.cpuUsage();
  const wall = process.hrtime.bigint();
  for (const command of scenario.commands) await tool.run(command);
  const spent = process.cpuUsage(cpu);
  const count = scenario.commands.length;
  console.log(
    JSON.stringify({
      cpu_us: (spent.user + spent.system) / count,
      wall_us: Number(process.hrtime.bigint() - wall) / 1e3 / count,
    }),
  );
}
rmSync(base, { recursive: true });
