/**
 * Measures the CPU time of the agent with every feature on while nothing happens but its own schedules. With another root (a
 * folder with another `dist/`) an agent of each root runs beside the other agent in the same surroundings, so that both have the
 * same machine. `npm run bench -- idle [SECONDS] [OTHER_ROOT]`, default 120 s. AGENT_FLAGS: flags of the agents' Node;
 * OTHER_FLAGS: flags of the Node of the other root's agent only.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { numberAt, rootsFrom } from './arguments.ts';
import { logLines } from './lines.ts';
import { mainOf, newPlace, pause, startAgent, stopped, usageOf, words } from './process.ts';
import { surround } from './surroundings.ts';

const seconds = numberAt(0, 'SECONDS', 120);
const roots = rootsFrom(1);
const { AGENT_FLAGS, OTHER_FLAGS = AGENT_FLAGS } = process.env;
/** The tailer lists often for some seconds after the last line, and V8 compiles code that runs for the first time. */
const settleMs = 20_000;
const place = newPlace('idle');
const logOf = (role: string) => join(place, `${role}.log`);
const roles = ['frontend', 'history', 'matching', 'worker'];

async function startCopy(root: string, config: string, n: number) {
  const file = join(place, `agent-${n}.yaml`);
  const own = { ...parse(readFileSync(config, 'utf8')), stateDirectory: join(place, `state-${n}`) };
  writeFileSync(file, JSON.stringify(own));
  const flags = words(n === 0 ? AGENT_FLAGS : OTHER_FLAGS);
  return startAgent(file, { main: mainOf(root), flags });
}

for (const role of roles) writeFileSync(logOf(role), logLines('flat', 5_000, role.length));
const around = await surround(place, { root: roots[0]!, logOf, seriesCount: 5_000 });
const agents = await Promise.all(roots.map((root, n) => startCopy(root, around.config, n)));
await pause(settleMs);
const before = agents.map(({ pid }) => usageOf(pid));
await pause(seconds * 1000);
for (const [n, { pid }] of agents.entries()) {
  const { cpuSeconds, residentMiB, anonymousMiB } = usageOf(pid);
  const percent = ((cpuSeconds - before[n]!.cpuSeconds) / seconds) * 100;
  console.log(
    `${roots[n]}: ${percent.toFixed(3)} % of a core, resident ${residentMiB.toFixed(1)} MiB (private ${anonymousMiB.toFixed(1)})`,
  );
}
await Promise.all(agents.map(({ child }) => stopped(child)));
await around.close();
