import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { mainFile, type Running, start } from '../e2e/process.ts';
import { newFolder } from '../folder.ts';
import { atTestEnd } from '../test-end.ts';
import { until } from '../until.ts';

// Two runs of the built program would change the same database or domain.

let place: string;
beforeEach(() => {
  place = newFolder();
  writeFileSync(
    join(place, 'agent.yaml'),
    `stateDirectory: ${join(place, 'state')}
roles: [history]
services: {history: {logs: {paths: [${place}/none.log]}}}
clusterGroupMetadata:
  failoverVersionIncrement: 10
  primaryClusterName: dc1
  currentClusterName: dc1
  clusterGroup:
    dc1: {enabled: true, initialFailoverVersion: 0, rpcAddress: '127.0.0.1:1'}
    dc2: {enabled: true, initialFailoverVersion: 1, rpcAddress: '127.0.0.1:1'}
domains: {watch: [orders, refunds], describe: {command: ['false', '{domain}']}}
stores:
  - {name: main, kind: postgres, address: '127.0.0.1:1', databases: {persistence: svc, visibility: svc_visibility}}
`,
  );
});

/** Runs a procedure with overridden refusals, so that it reaches a step that waits. */
function recover(procedure: string, ...args: string[]): Running {
  const common = ['-c', join(place, 'agent.yaml'), '--force', 'a test'];
  const run = start(process.execPath, [mainFile, 'recover', procedure, ...common, ...args]);
  atTestEnd(() => run.end('SIGKILL'));
  return run;
}

/** Waits until a run begins; it holds the lock before that. */
const begins = (run: Running) => until('it begins', () => run.output().includes('\nStep 1 of '));
const persistence = ['--store', 'main', '--database', 'persistence'];

test.each([
  ['a database', 'database-corruption', 'cluster-loss', persistence, 'main/persistence'],
  ['a domain', 'datacenter-failure', 'failback', ['--domain', 'orders', '--to', 'dc2'], 'orders'],
] as const)(
  '%s: the second run is refused, whatever its procedure, until the first one is killed',
  async (_, first, second, subject, name) => {
    const startedMs = Date.now();
    const holder = recover(first, ...subject);
    await begins(holder);
    for (const procedure of [first, second]) {
      const refused = recover(procedure, ...subject);
      expect(await refused.ended).toBe(1);
      const [, since] =
        new RegExp(
          `a run of ${first} \\(pid ${holder.child.pid}, since (\\S+Z)\\) is under way for ${name}`,
        ).exec(refused.output()) ?? expect.fail(refused.output());
      expect(Date.parse(since!)).toBeGreaterThanOrEqual(startedMs);
      expect(Date.parse(since!)).toBeLessThanOrEqual(Date.now());
    }
    // The holder is killed while it holds the lock: nothing is left that has to be cleaned up by hand.
    await holder.end('SIGKILL');
    const next = recover(second, ...subject);
    await begins(next);
    const refused = recover(first, ...subject);
    expect(await refused.ended).toBe(1);
    expect(refused.output()).toContain(`a run of ${second} (pid ${next.child.pid}, since `);
  },
);

test('runs of another database, and of another domain, go on side by side', async () => {
  const runs = [
    recover('database-corruption', ...persistence),
    recover('database-corruption', '--store', 'main', '--database', 'visibility'),
    recover('datacenter-failure', '--domain', 'orders', '--to', 'dc2'),
    recover('datacenter-failure', '--domain', 'refunds', '--to', 'dc2'),
  ];
  for (const run of runs) await begins(run);
});

test('of many that start at the same moment one goes on', async () => {
  const runs = Array.from({ length: 6 }, () => recover('database-corruption', ...persistence));
  const refused = await until('all but one are refused', () => {
    const ended = runs.filter(({ child }) => child.exitCode === 1);
    return ended.length === runs.length - 1 ? ended : undefined;
  });
  for (const run of refused)
    expect(run.output()).toMatch(/ is under way for main\/persistence; wait for its end/);
  await begins(runs.find((run) => !refused.includes(run))!);
});
