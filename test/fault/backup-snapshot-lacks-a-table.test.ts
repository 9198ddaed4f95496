import { mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { readSnapshotEvidence, type SnapshotContext } from '../../src/probes/backups/cassandra-backups.ts';
import { newFolder } from '../folder.ts';

// Files in the form in which Cassandra 5 writes them: a part of a snapshot for each table, with a manifest.

const id = '0123456789ab11f0a0b1c2d3e4f50617';
const [executions, domains] = [`executions-${id}`, `domains-${id}`];
const takenMs = Date.UTC(2026, 10, 23, 12);
let place: string;
beforeEach(() => {
  place = newFolder();
});
const part = (
  table: string,
  snapshot: string,
  manifest: object = { created_at: new Date(takenMs).toISOString() },
) => {
  const directory = join(place, 'svc', table, 'snapshots', snapshot);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'oa-1-big-Data.db'), 'rows');
  writeFileSync(join(directory, 'oa-1-big-TOC.txt'), 'Data.db\nTOC.txt\n');
  writeFileSync(
    join(directory, 'manifest.json'),
    JSON.stringify({ files: ['oa-1-big-Data.db'], ...manifest }),
  );
};
const tables = [executions, domains];
const read = async ({ settleMs, ...context }: Partial<SnapshotContext> & { settleMs?: number } = {}) => {
  const source = { dataDirectory: place, keyspace: 'svc', settleMs };
  const { artifacts, unfinished } = await readSnapshotEvidence(source, { nowMs: Date.now() + 1, ...context });
  return {
    whole: artifacts.map(({ id: name }) => name),
    half: unfinished.map(({ id: name }) => name),
    artifacts,
  };
};

test('its time is the one in its manifests, not that of its files', async () => {
  part(executions, 'one');
  part(domains, 'one', { created_at: new Date(takenMs + 5).toISOString() });
  const { artifacts } = await read({ schema: tables });
  expect(artifacts).toMatchObject([{ id: 'one', content: { startMs: takenMs } }]);
  part(executions, 'one', {});
  expect((await read({ schema: tables })).artifacts).toMatchObject([
    { id: 'one', content: { unknown: expect.stringMatching(/manifests do not say/) } },
  ]);
});

test('a table that the node has is missing in it', async () => {
  part(executions, 'one');
  mkdirSync(join(place, 'svc', domains, 'backups'), { recursive: true });
  expect(await read()).toMatchObject({ whole: [], half: ['one'] });
  // A table that was dropped has left a snapshot.
  mkdirSync(join(place, 'svc', domains, 'snapshots', 'dropped-1-domains'), { recursive: true });
  expect(await read()).toMatchObject({ whole: ['one'], half: [] });
});

test('a table that another snapshot has is missing in it', async () => {
  for (const table of [executions, domains]) part(table, 'one');
  part(executions, 'two');
  expect(await read()).toMatchObject({ whole: ['one'], half: ['two'] });
});

test('a table of the store’s schema is missing in the only snapshot', async () => {
  part(executions, 'one');
  expect(await read({ schema: tables })).toMatchObject({ whole: [], half: ['one'] });
  expect(await read({ schema: [executions] })).toMatchObject({ whole: ['one'], half: [] });
});

test('a table that was there when the run ended is missing', async () => {
  for (const table of tables) part(table, 'one');
  const files = tables.map((table) => `${table}/snapshots/one`);
  const runs = [{ startMs: takenMs, endMs: takenMs + 1000, status: 0, files }];
  expect(await read({ runs })).toMatchObject({
    whole: ['one'],
    artifacts: [{ content: { startMs: takenMs } }],
  });
  rmSync(join(place, 'svc', domains, 'snapshots', 'one'), { recursive: true });
  expect(await read({ runs })).toMatchObject({ whole: [], half: ['one'] });
});

test('nothing shows which tables it must have', async () => {
  part(executions, 'one');
  expect((await read()).artifacts).toMatchObject([
    { content: { unknown: expect.stringMatching(/let the agent reach the store/) } },
  ]);
});

test('a file that the table of contents of an SSTable lists is missing', async () => {
  part(executions, 'one');
  const path = join(place, 'svc', executions, 'snapshots', 'one', 'oa-1-big-TOC.txt');
  writeFileSync(path, 'Data.db\nStatistics.db\nTOC.txt\n');
  expect(await read()).toMatchObject({ whole: [], half: ['one'] });
  rmSync(path);
  expect(await read()).toMatchObject({ whole: [], half: ['one'] });
});

describe('a snapshot that is under way or is cleared is not incomplete until nothing changes', () => {
  const settleMs = 10_000;
  /** Sets the times of everything below the keyspace as if the last change had been an hour ago. */
  const settle = () => {
    const then = new Date(Date.now() - 36e5);
    for (const name of readdirSync(place, { recursive: true, encoding: 'utf8' }))
      utimesSync(join(place, name), then, then);
  };
  const later = () => read({ schema: tables, settleMs, nowMs: Date.now() + settleMs + 1000 });

  test.each<[string, () => void]>([
    ['a table without a part', () => part(executions, 'one')],
    [
      'a part without its manifest',
      () => {
        for (const table of tables) part(table, 'one');
        settle();
        rmSync(join(place, 'svc', domains, 'snapshots', 'one', 'manifest.json'));
      },
    ],
    [
      'a part that was removed',
      () => {
        for (const table of tables) part(table, 'one');
        settle();
        rmSync(join(place, 'svc', domains, 'snapshots', 'one'), { recursive: true });
      },
    ],
    [
      'a part that was removed with its directory',
      () => {
        for (const table of tables) part(table, 'one');
        settle();
        rmSync(join(place, 'svc', domains, 'snapshots'), { recursive: true });
      },
    ],
  ])('%s', async (_, change) => {
    change();
    expect(await read({ schema: tables, settleMs })).toMatchObject({ whole: [], half: [] });
    expect(await later()).toMatchObject({ whole: [], half: ['one'] });
    settle();
    expect(await read({ schema: tables, settleMs })).toMatchObject({ whole: [], half: ['one'] });
  });
});
