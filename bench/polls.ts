/**
 * Measures what a poll of a store costs: the CPU time of the agent's probe and of a real PostgreSQL, over both databases of a
 * store. `npm run bench -- polls [ROUNDS]`, default 300.
 */
import { readFileSync } from 'node:fs';
import { systemClock } from '../src/core/clock.ts';
import type { Probe } from '../src/probes/probe.ts';
import { planStores } from '../src/probes/stores/stores.ts';
import { startPostgres } from '../test/postgres.ts';
import { bench, storeOn } from '../test/store-probe.ts';
import { numberAt } from './arguments.ts';
import { cpuMs } from './figures.ts';
import { usageOf, words } from './process.ts';

const rounds = numberAt(0, 'ROUNDS', 300);

/** CPU seconds of the server, including its sessions that have ended. */
function serverCpuSeconds(postmaster: number): number {
  const sessions = readFileSync(`/proc/${postmaster}/task/${postmaster}/children`, 'utf8');
  const seconds = words(sessions).map((pid) => {
    try {
      return usageOf(Number(pid)).cpuSeconds;
    } catch {
      return 0; // The session has ended.
    }
  });
  const { cpuSeconds, endedChildrenCpuSeconds } = usageOf(postmaster);
  return seconds.reduce((sum, one) => sum + one, cpuSeconds + endedChildrenCpuSeconds);
}

const server = await startPostgres();
try {
  for (const name of ['svc', 'svc_visibility']) {
    await server.query(`CREATE DATABASE ${name}`);
    await server.query('CREATE TABLE schema_version (db_name text, curr_version text)', name);
    await server.query(`INSERT INTO schema_version VALUES ('${name}', '0.8')`, name);
  }
  const postmaster = Number(readFileSync(`${server.data}/postmaster.pid`, 'utf8').split('\n')[0]);
  const store = storeOn(server.port, {
    user: 'postgres',
    databases: { persistence: 'svc', visibility: 'svc_visibility' },
  });
  const deps = { ...bench().deps, clock: systemClock };
  const probes: Probe[] = await Promise.all(planStores({ stores: [store] }).map((row) => row.open(deps)));
  const round = async () => {
    for (const probe of probes) {
      const { reason, msg } = await probe.check(AbortSignal.timeout(20_000), undefined);
      if (reason !== undefined) throw new Error(msg);
    }
  };
  for (let n = 0; n < 50; n++) await round();
  const before = { own: process.cpuUsage(), server: serverCpuSeconds(postmaster) };
  for (let n = 0; n < rounds; n++) await round();
  const ownMs = cpuMs(before.own);
  const polls = rounds * probes.length;
  console.log(`agent  ${(ownMs / polls).toFixed(2)} ms of CPU a poll`);
  const serverMs = (serverCpuSeconds(postmaster) - before.server) * 1000;
  console.log(`server ${(serverMs / polls).toFixed(2)} ms of CPU a poll`);
  for (const probe of probes) await probe.close?.();
} finally {
  await server.stop();
}
