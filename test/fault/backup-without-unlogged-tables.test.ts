import { expect, onTestFinished, test } from 'vitest';
import type { BackupOptions } from '../../src/probes/backups/block.ts';
import type { Artifact } from '../../src/probes/backups/evidence.ts';
import { againstStore, knownStore } from '../../src/probes/backups/known-store.ts';
import { hasPostgres, startPostgres } from '../postgres.ts';
import { bench, checkStore, storeOn } from '../store-probe.ts';

// A base backup has no rows of an unlogged table, and neither has the log. A dump has them.
test.skipIf(!hasPostgres)(
  'a base backup of a database with an unlogged table has no known point',
  async () => {
    const server = await startPostgres();
    onTestFinished(() => server.stop());
    await server.query('CREATE TABLE executions (i int); CREATE UNLOGGED TABLE tasks (i int)');
    const options = storeOn(server.port, { user: 'postgres' });
    const backup = {
      store: 'main',
      database: 'persistence',
      source: { kind: 'runs' },
    } as unknown as BackupOptions;
    const { deps } = bench();
    const known = async (before = {}, of = backup) => {
      const finding = await checkStore(options, { deps });
      return knownStore(of, before, (name) => (name === 'store/main/persistence' ? finding : undefined), {
        nowMs: 1,
        databases: ['postgres'],
      });
    };
    const artifact = (method: Artifact['method']): Artifact => ({
      ...{ id: 'a', startMs: 2, endMs: 3, sizeBytes: 1, fingerprint: '', method },
    });
    const lacks = (
      method: Artifact['method'],
      unlogged: readonly string[] | undefined,
      awaitsTables = false,
    ) => {
      const evidence = { artifacts: [], unfinished: [], failures: [], unlogged, awaitsTables };
      return againstStore({ result: 'ok', msg: '', content: {} }, artifact(method), evidence).content?.lacks;
    };
    const { unlogged } = await known();
    // A base backup is of the whole server.
    expect(await known({}, { ...backup, database: undefined })).toMatchObject({ unlogged });
    expect(lacks('postgres_base', unlogged)).toContain('public.tasks, which is an unlogged table');
    expect(lacks('postgres_dump', unlogged)).toBeUndefined();
    expect(lacks('postgres_base', undefined, true)).toContain('has not been asked yet');
    expect(lacks('postgres_dump', undefined, true)).toBeUndefined();
    // What was seen once is still known when the store is gone.
    expect(knownStore(backup, { unlogged }, () => undefined, { nowMs: 2, databases: [] })).toMatchObject({
      unlogged: ['public.tasks'],
    });
    await server.query('ALTER TABLE tasks SET LOGGED');
    expect(lacks('postgres_base', (await known({ unlogged })).unlogged)).toBeUndefined();
  },
);
