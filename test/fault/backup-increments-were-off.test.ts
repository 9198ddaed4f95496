import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Artifact } from '../../src/probes/backups/evidence.ts';
import {
  joined,
  type LogRange,
  readStatistics,
} from '../../src/probes/backups/formats/sstable-statistics.ts';
import { continues } from '../../src/probes/backups/incremental-parent.ts';
import { verifyBackup } from '../../src/probes/backups/verify.ts';
import { hasCassandra, startCassandra } from '../cassandra.ts';

// `nodetool disablebackup`, a flush and `nodetool enablebackup` between two polls: the rows of that flush are in no incremental
// backup, and no setting shows it. The next files state that their part of the commit log begins after those rows.
const range = (from: number, to: number, segment = 1_700_000_000_000): LogRange => ({
  from: [segment, from],
  to: [segment, to],
});
const backup = (commitLog: Record<string, LogRange[]> | undefined, startMs = 0) =>
  ({ startMs, content: { commitLog } }) as Artifact;
// The first 60 bits of the id are a time: it was created in 1970, or in 2020.
const [old, young] = ['t-138140001dd211b280000000000000ff', 'u-3e0a00002c4d11ea80000000000000ff'];

test.each<[string, Artifact, Artifact[], boolean]>([
  ['the next flush of a table', backup({ [old]: [range(5, 9)] }), [backup({ [old]: [range(1, 5)] })], true],
  ['a flush is missing', backup({ [old]: [range(6, 9)] }), [backup({ [old]: [range(1, 5)] })], false],
  [
    'it was there before the snapshot too',
    backup({ [old]: [range(3, 9)] }),
    [backup({ [old]: [range(1, 5)] })],
    true,
  ],
  [
    'a flush is missing between two of the same run',
    backup({ [old]: [range(5, 7), range(8, 9)] }),
    [backup({ [old]: [range(1, 5)] })],
    false,
  ],
  [
    'the flush before was in the run before',
    backup({ [old]: [range(7, 9)] }),
    [backup({ [old]: [range(1, 5)] }), backup({ [old]: [range(5, 7)] })],
    true,
  ],
  [
    'the node was started again',
    backup({ [old]: [range(1, 9, 1_700_000_090_000)] }),
    [backup({ [old]: [range(1, 5)] })],
    true,
  ],
  [
    'a segment later it was not',
    backup({ [old]: [range(1, 9, 1_700_000_000_001)] }),
    [backup({ [old]: [range(1, 5)] })],
    false,
  ],
  [
    'a table without rows in the snapshot',
    backup({ [old]: [range(4, 9)] }),
    [backup({ 'other-1': [range(1, 5)] })],
    true,
  ],
  [
    'a table without rows in the snapshot, with a flush since',
    backup({ [old]: [range(6, 9)] }),
    [backup({ 'other-1': [range(1, 5)] })],
    false,
  ],
  [
    'a table that is younger than the snapshot',
    backup({ [young]: [range(6, 9)] }),
    [backup({ 'other-1': [range(1, 5)] })],
    true,
  ],
  ['nothing was written', backup({}), [backup({ [old]: [range(1, 5)] })], true],
  ['a snapshot without rows', backup({ [old]: [range(6, 9)] }), [backup({})], true],
  ['files that state nothing', backup(undefined), [backup({ [old]: [range(1, 5)] })], true],
])('%s', (_, flush, before, expected) => expect(continues(flush, before)).toBe(expected));

test('ranges that meet are one', () =>
  expect(joined([range(7, 9), range(1, 3), range(2, 5), range(5, 6)])).toEqual([range(1, 6), range(7, 9)]));

test.skipIf(!hasCassandra)('a flush of a real node while incremental backups were off', async () => {
  const node = await startCassandra({ settings: '\nincremental_backups: true\n' });
  onTestFinished(() => node.remove());
  const nodetool = (...args: string[]) => {
    const [program, ...rest] = node.nodetool(...args);
    execFileSync(program!, rest, { stdio: 'pipe' });
  };
  await node.run(
    `CREATE KEYSPACE svc WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`,
    'CREATE TABLE svc.executions (i int PRIMARY KEY)',
  );
  const insert = (row: number) => node.run(`INSERT INTO svc.executions (i) VALUES (${row})`);
  const keyspace = join(node.data, 'svc');
  const [table] = readdirSync(keyspace);
  const directory = join(keyspace, table!, 'backups');
  const seen = new Set<string>();
  const verified = async (request: { snapshot: string } | { flush: string[] }) => {
    const { result, content } = await verifyBackup({
      ...{ path: keyspace, level: 'full', bytesPerSecond: 1e12 },
      ...request,
    });
    expect(result).toBe('ok');
    return backup(content!.commitLog as Record<string, LogRange[]>, Date.now());
  };
  /** The backup of a flush, which has the files that were not there before. */
  const flushed = async () => {
    nodetool('flush', 'svc');
    const stems = readdirSync(directory).flatMap((name) => /^.*-big-(?=Data\.db)/.exec(name)?.[0] ?? []);
    const own = stems.filter((stem) => !seen.has(stem));
    for (const stem of own) seen.add(stem);
    return verified({ flush: own.map((stem) => `${table}/backups/${stem}`) });
  };
  await insert(1);
  nodetool('snapshot', '--tag', 'snap', 'svc');
  const snapshot = await verified({ snapshot: 'snap' });
  await insert(2);
  const first = await flushed();
  expect(continues(first, [snapshot])).toBe(true);
  await insert(3);
  nodetool('disablebackup');
  nodetool('flush', 'svc');
  nodetool('enablebackup');
  await insert(4);
  const next = await flushed();
  expect(continues(next, [snapshot, first])).toBe(false);
  await insert(5);
  expect(continues(await flushed(), [snapshot, first, next])).toBe(true);

  // Every byte of the statistics is protected.
  const name = readdirSync(directory).find((each) => each.endsWith('-Statistics.db'))!;
  const bytes = readFileSync(join(directory, name));
  expect(readStatistics(name, bytes)).toMatchObject({ range: expect.anything() });
  for (let at = 0; at < bytes.length; at++) {
    const damaged = Buffer.from(bytes);
    damaged[at]! ^= 1 << (at % 8);
    expect(readStatistics(name, damaged)).toEqual({ fault: `${name} does not match its checksums` });
    expect(readStatistics(name, bytes.subarray(0, at)).fault).toBeDefined();
  }
});
