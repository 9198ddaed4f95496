import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { knownStore } from '../../src/probes/backups/known-store.ts';
import {
  asPostgres,
  hasPostgres,
  ownedByPostgres,
  postgresFolder,
  postgresPrograms,
  startPostgres,
} from '../postgres.ts';
import { bench, checkStore, storeOn } from '../store-probe.ts';

// A dump of a replica that lags has no trace of that: without a word of the configuration it counts only if there is no replica.
const backup = { store: 'main', database: 'persistence', source: { kind: 'runs' } } as never;

const knownWith = async (options: Parameters<typeof checkStore>[0], before = {}) => {
  const finding = await checkStore(options, { deps: bench().deps });
  return knownStore(backup, before, () => finding, { nowMs: 1, databases: [] });
};

test.skipIf(!hasPostgres)('a store that has, or once had, a standby is replicated', async () => {
  const place = postgresFolder();
  onTestFinished(() => rmSync(place, { recursive: true, force: true }));
  const server = await startPostgres({ settings: ['wal_level=replica', 'max_wal_senders=4'] });
  onTestFinished(() => server.stop());
  const primary = storeOn(server.port, { user: 'postgres' });
  expect(await knownWith(primary)).toMatchObject({ replicated: false });

  const data = join(place, 'standby');
  const from = ['-h', '127.0.0.1', '-p', String(server.port), '-U', 'postgres'];
  const copy = [...from, '-D', data, '--checkpoint=fast', '--create-slot', '--slot=standby', '-R'];
  const [program, ...rest] = asPostgres([join(postgresPrograms, 'pg_basebackup'), ...copy]);
  execFileSync(program!, rest, { cwd: '/', stdio: 'pipe' });
  // Its slot is there, and nobody reads it.
  const known = await knownWith(primary);
  expect(known).toMatchObject({ replicated: true });
  await server.query(`SELECT pg_drop_replication_slot('standby')`);
  expect(await knownWith(primary, known)).toMatchObject({ replicated: true });
  expect(await knownWith(primary)).toMatchObject({ replicated: false });

  writeFileSync(join(data, 'postgresql.auto.conf'), '');
  ownedByPostgres(join(data, 'postgresql.auto.conf'));
  const standby = await startPostgres({ data });
  onTestFinished(() => standby.stop());
  expect(await knownWith(storeOn(standby.port, { user: 'postgres' }))).toMatchObject({ replicated: true });
});

test('a store that was never asked says nothing', () => {
  expect(knownStore(backup, {}, () => undefined, { nowMs: 1, databases: [] }).replicated).toBeUndefined();
});
