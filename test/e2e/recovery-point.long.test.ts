import { spawnSync } from 'node:child_process';
import { describe, expect, onTestFinished, test } from 'vitest';
import { hasCassandra } from '../cassandra.ts';
import { hasMariadb } from '../mariadb.ts';
import { hasPostgres } from '../postgres.ts';
import { bySize } from '../size.ts';
import { cassandraBed, cassandraPlots } from './recovery-point/cassandra.ts';
import { mariadbBed, mariadbPlots } from './recovery-point/mariadb.ts';
import {
  barmanBed,
  pgBackRestBed,
  plainBed,
  plainPlots,
  toolPlots,
  walgBed,
} from './recovery-point/postgres.ts';
import { type Bed, type Plot, playRound, type Random, seeded } from './recovery-point/round.ts';

/**
 * The agent's promise, compared with restores by hand: nothing that was committed before the claimed recovery point is lost, and
 * if nothing can be restored the agent claims nothing. RECOVERY_POINT_SEED plays other rounds; with RECOVERY_POINT_PLOT only
 * faults whose name contains it are played.
 */
const has = (program: string, ...args: string[]) => spawnSync(program, args).status === 0;
const firstSeed = Number(process.env.RECOVERY_POINT_SEED ?? 20261123);
const wanted = process.env.RECOVERY_POINT_PLOT ?? '';

function rounds<B extends Bed>(
  plots: readonly Plot<B>[],
  openBed: (random: Random, plot: Plot<B>) => Promise<B>,
  count: number,
): void {
  const chosen = plots.filter(({ name }) => name.includes(wanted));
  // Any `count` successive rounds play as many different faults as there are.
  const list = Array.from({ length: chosen.length === 0 ? 0 : count }, (_, n) => ({
    seed: firstSeed + n,
    plot: chosen[(firstSeed + n) % chosen.length]!,
  }));
  test.each(list.map(({ seed, plot }) => [plot.name, seed, plot] as const))(
    '%s (seed %i)',
    async (_, seed, plot) => {
      const random = seeded(seed);
      const bed = await openBed(random, plot);
      onTestFinished(() => bed.remove());
      const verdict = await playRound(bed, plot, random);
      expect(verdict, JSON.stringify(verdict)).toMatchObject({ broken: [] });
    },
  );
}

const count = (long: number, nightly: number) =>
  Number(process.env.RECOVERY_POINT_ROUNDS ?? bySize({ short: 1, long, nightly }));

describe.skipIf(!hasPostgres)('PostgreSQL: base backups with archived log, and dumps', () => {
  rounds(plainPlots, plainBed, count(2, 70));
});

describe.skipIf(!hasPostgres || !has('pgbackrest', 'version'))('PostgreSQL: pgBackRest', () => {
  rounds(toolPlots, pgBackRestBed, count(1, 20));
});

describe.skipIf(!hasPostgres || !has('barman', '--version'))('PostgreSQL: Barman', () => {
  rounds(toolPlots, barmanBed, count(1, 20));
});

describe.skipIf(!hasPostgres || !has('wal-g', '--version'))('PostgreSQL: WAL-G', () => {
  rounds(toolPlots, walgBed, count(1, 20));
});

describe.skipIf(!hasMariadb || !has('mariadb-dump', '--version'))(
  'MariaDB: dumps, mariadb-backup, binary log',
  () => {
    rounds(mariadbPlots, mariadbBed, count(1, 40));
  },
);

describe.skipIf(!hasCassandra)('Cassandra: snapshots and incremental backups', () => {
  rounds(cassandraPlots, cassandraBed, count(1, 40));
});
