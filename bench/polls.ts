/**
 * Measures what a poll of a store costs: the CPU time of the agent's probe and of a real PostgreSQL, over both databases of a
 * store. `npm run bench -- polls [ROUNDS]`, default 300.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { systemClock } from '../src/core/clock.ts';
import type { Probe } from '../src/probes/probe.ts';
import { planStores } from '../src/probes/stores/stores.ts';
import { startPostgres } from '../test/postgres.ts';
import { bench, storeOn } from '../test/store-probe.ts';
import { numberAt } from './arguments.ts';

const rounds = numberAt(0, 'ROUNDS', 300);
const ticksPerSecond = 100;

/** CPU seconds of the server, including its sessions that have ended. */
function serverCpuSeconds(postmaster: number): number {
  const stats = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
          .replace(/^.*\) /s, '')
          .split(' ')
          .map(Number);
        if (Number(pid) === postmaster) return [fields[11]! + fields[12]! + fields[13]! + fields[14]!];
        return fields[1] === postmaster ? [fields[11]! + fields[12]!] : [];
      } catch {
        return [];
      }
    });
  return stats.reduce((sum, ticks) => sum + ticks, 0) / ticksPerSecond;
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
  const own = process.cpuUsage(before.own);
  const polls = rounds * probes.length;
  const ms = (seconds: number) => ((seconds * 1000) / polls).toFixed(2);
  console.log(`agent  ${ms((own.user + own.system) / 1e6)} ms of CPU a poll`);
  console.log(`server ${ms(serverCpuSeconds(postmaster) - before.server)} ms of CPU a poll`);
  for (const probe of probes) await probe.close?.();
} finally {
  await server.stop();
}
