import { createHash } from 'node:crypto';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { until } from '../until.ts';
import { type RunningAgent, startAgent } from './process.ts';

// Right after its start, the built program says whether a database could be recovered. The evidence is read once an hour here, so
// that only the first reading, and what is remembered of it, can say so.

let place: string;
let agent: RunningAgent | undefined;
beforeEach(() => {
  place = newFolder();
});
afterEach(async () => {
  await agent?.end();
  agent = undefined;
});

const file = (name: string) => join(place, name);
const report = (ageMs: number) => {
  const start = new Date(Date.now() - ageMs).toISOString();
  writeFileSync(
    file('report.json'),
    JSON.stringify({ backups: [{ id: 'a', start, size: 9, verified: true }] }),
  );
};
const share = (instance: string, name: string) =>
  createHash('sha256')
    .update(JSON.stringify([instance, name]))
    .digest()
    .readUIntBE(0, 6);

/** An agent whose probe of the database would run before the probe of its backup if each had its own times. */
const instance = Array.from({ length: 100 }, (_, n) => `host-${n}`).find(
  (one) => share(one, 'recovery/main/persistence') < share(one, 'backup/nightly'),
);

/** Writes the configuration. The command waits as long as the file `hold` exists. */
function configure(rpo = '24h'): void {
  const script = `echo >> ${file('asked')}; while [ -e ${file('hold')} ]; do sleep 0.05; done; cat ${file('report.json')}`;
  writeFileSync(
    file('agent.yaml'),
    `instance: ${instance}
stateDirectory: ${file('state')}
metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}
admin: {listenAddress: 127.0.0.1:0}
roles: [history]
services: {history: {logs: {paths: [${file('none.log')}]}}}
stores: [{name: main, kind: postgres, address: '127.0.0.1:1', databases: {persistence: svc}}]
backups:
  - {name: nightly, store: main, database: persistence, type: full, interval: 1h, objectives: {rpo: ${rpo}, rto: 4h},
     source: {command: {command: [sh, -c, '${script}'], format: json, timeout: 59m}}}
`,
  );
}

async function gauges(): Promise<Record<string, number>> {
  const page = await (await fetch(`http://${agent!.address('metrics')}/metrics`)).text();
  return Object.fromEntries(
    [
      ...page.matchAll(
        /^(svc_recovery_ready|svc_rpo_objective_seconds|svc_rto_objective_seconds)\{.*\} (\S+)$/gm,
      ),
    ].map(([, name, value]) => [name, Number(value)]),
  );
}

/** Ends the agent once its state has the judgement, and starts another one, whose evidence does not arrive. */
async function restartAndHold(): Promise<void> {
  await agent!.end();
  writeFileSync(file('hold'), '');
  rmSync(file('asked'));
  agent = await startAgent(file('agent.yaml'));
}

test('a first start: the evidence is read and judged at once', async () => {
  report(2 * 3_600_000);
  configure();
  agent = await startAgent(file('agent.yaml'));
  await until('recovery is judged', async () => 'svc_recovery_ready' in (await gauges()));
  expect(await gauges()).toEqual({
    svc_recovery_ready: 1,
    svc_rpo_objective_seconds: 86_400,
    svc_rto_objective_seconds: 14_400,
  });
});

test('a restart: the last judgement is shown before the evidence is read again', async () => {
  report(2 * 3_600_000);
  configure();
  agent = await startAgent(file('agent.yaml'));
  await until('recovery is judged', async () => 'svc_recovery_ready' in (await gauges()));
  await restartAndHold();
  expect(await gauges()).toEqual({
    svc_recovery_ready: 1,
    svc_rpo_objective_seconds: 86_400,
    svc_rto_objective_seconds: 14_400,
  });
  // A loss in the meantime shows as soon as it is read.
  await until('the evidence is asked for', async () => existsSync(file('asked')));
  writeFileSync(file('report.json'), '{"backups": []}');
  rmSync(file('hold'));
  await until('recovery is judged anew', async () => (await gauges()).svc_recovery_ready === 0);
});

test('a restart with other objectives: the last judgement says nothing', async () => {
  report(2 * 3_600_000);
  configure();
  agent = await startAgent(file('agent.yaml'));
  await until('recovery is judged', async () => 'svc_recovery_ready' in (await gauges()));
  configure('10m');
  await restartAndHold();
  expect(await gauges()).toEqual({});
  rmSync(file('hold'));
  await until('recovery is judged anew', async () => (await gauges()).svc_recovery_ready === 0);
});
