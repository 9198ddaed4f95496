import { expect, test } from 'vitest';
import { hasCassandra } from '../cassandra.ts';
import { hasMariadb } from '../mariadb.ts';
import { hasPostgres } from '../postgres.ts';
import { killedEverywhere } from './recover-killed/killed.ts';
import { hasMariabackup, kinds } from './recover-killed/stages.ts';

// `svc-agent recover` is killed after every line of its journal, and at every command together with it, for each kind of backup.
// test/e2e/failover.long.test.ts does this with a failover.

const isThere: Readonly<Record<keyof typeof kinds, boolean>> = {
  'PostgreSQL, a dump': hasPostgres,
  'PostgreSQL, a base backup and its log': hasPostgres && process.getuid?.() === 0,
  'MariaDB, a dump and the binary log': hasMariadb,
  'MariaDB, mariabackup': hasMariadb && hasMariabackup && process.getuid?.() === 0,
  'Cassandra, a snapshot': hasCassandra,
};

const rows = (Object.keys(kinds) as (keyof typeof kinds)[]).flatMap((kind) =>
  (['database-corruption', 'cluster-loss'] as const).map((procedure) => ({ kind, procedure })),
);

for (const { kind, procedure } of rows) {
  test.skipIf(!isThere[kind])(`${procedure}: ${kind}`, async () => {
    const stage = await kinds[kind](procedure);
    const lines = await killedEverywhere(stage);
    console.log(`${procedure}: ${kind}: killed after each of ${lines} lines`);
    // Each step writes at least two lines.
    expect(lines).toBeGreaterThan(12);
  });
}
