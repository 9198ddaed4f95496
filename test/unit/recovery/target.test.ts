import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Subject } from '../../../src/agent/recovery/commands.ts';
import { backupIn, chainNow, chosenOf, restoreTarget } from '../../../src/agent/recovery/target.ts';
import { newFolder } from '../../folder.ts';

type Target = Parameters<typeof restoreTarget>[0];

/** A folder with a dump that states its position in the binary log, and three files of that log. */
function place() {
  const folder = newFolder();
  mkdirSync(join(folder, 'log'));
  for (const number of [4, 5, 6]) writeFileSync(join(folder, 'log', `bin.00000${number}`), '');
  const dump = join(folder, 'svc.sql');
  writeFileSync(
    dump,
    "-- MariaDB dump 10.19\n-- CHANGE MASTER TO MASTER_LOG_FILE='bin.000004', MASTER_LOG_POS=330;\n",
  );
  const plain = join(folder, 'plain.sql');
  writeFileSync(plain, '-- MariaDB dump 10.19\n');
  return { folder, dump, plain };
}

function target(
  { folder }: { folder: string },
  kind: 'mysql' | 'postgres' | 'widecolumn',
  over: Partial<Target> & { backups?: readonly object[]; restore?: readonly string[] } = {},
) {
  const log = {
    name: 'log',
    store: 'main',
    type: 'log',
    source: { kind: 'segments', log: kind === 'mysql' ? 'binlog' : 'wal', directory: join(folder, 'log') },
  };
  const full = { name: 'full', store: 'main', type: 'full', source: { kind: 'files', directory: folder } };
  const config = {
    stores: [
      { name: 'far', kind: 'other' },
      { name: 'main', kind },
    ],
    backups: over.backups ?? [full, { ...log, name: 'far', store: 'far' }, log],
    recovery: { commands: { restore: over.restore } },
  };
  return { subject: {}, chain: undefined, held: undefined, config: config as never, ...over } as Target;
}

const subject = (backup: string | undefined, over: Partial<Subject> = {}): Subject => ({
  store: 'main',
  database: 'persistence',
  backup,
  ...over,
});
const chain = (what: string, last?: string): NonNullable<Target['chain']> => ({
  recoveryPoint: '2026-11-23T12:00:00Z',
  links: [
    { type: 'full', what, backup: 'full', to: '2026-11-23T02:00:00Z' },
    ...(last === undefined ? [] : [{ type: 'log', what: `bin.000004 to ${last}`, backup: 'log' }]),
  ],
});
const pointMs = Date.parse('2026-11-23T12:00:00Z');

test('the chain is that of the recovery probe; its backup is a path, or the name that a tool gave it', async () => {
  const details = { chain: chain('svc.sql') };
  const probes: string[] = [];
  const runProbe = async (name: string) => {
    probes.push(name);
    return { ok: true, msg: '', details };
  };
  expect(await chainNow(subject(undefined), runProbe)).toBe(details.chain);
  expect(await chainNow({ database: 'persistence' }, runProbe)).toBeUndefined();
  expect(await chainNow(subject(undefined), async () => undefined)).toBeUndefined();
  expect(probes).toEqual(['recovery/main/persistence']);
  const backups = [
    { name: 'other', source: { directory: '/no' } },
    { name: 'full', source: { directory: '/b' } },
  ];
  expect(backupIn(details.chain, { backups } as never)).toBe('/b/svc.sql');
  expect(
    backupIn(details.chain, { backups: [{ name: 'full', source: { kind: 'pgbackrest' } }] } as never),
  ).toBe('svc.sql');
  expect(backupIn({ links: [] }, { backups } as never)).toBeUndefined();
  expect(backupIn(undefined, { backups } as never)).toBeUndefined();
});

test('MySQL: the dump of the chain and its log, to the end of the chain', async () => {
  const at = place();
  const given = target(at, 'mysql', { subject: subject(at.dump), chain: chain('svc.sql', 'bin.000005') });
  expect(await restoreTarget(given)).toEqual({
    until: undefined,
    reachesMs: pointMs,
    replay: {
      files: [join(at.folder, 'log/bin.000004'), join(at.folder, 'log/bin.000005')],
      position: { file: 'bin.000004', position: 330 },
      ...{ isMariadb: true, until: undefined },
    },
    reaches:
      'Restores up to 2026-11-23T12:00:00.000Z: what was written later is lost. The dump, then 2 files of the binary log.',
  });
});

test.each([
  ['a chain without a log', { chain: chain('svc.sql') }, {}, 0, pointMs],
  ['a dump that the operator named', { chain: chain('other.sql', 'bin.000005') }, {}, 3, undefined],
  ['no chain', {}, {}, 3, undefined],
  ['a chain without links', { chain: { recoveryPoint: '2026-11-23T12:00:00Z' } }, {}, 3, undefined],
  ['an earlier run that had a log', { held: { lastLog: 'bin.000005', reachesMs: 5 } }, {}, 2, 5],
  ['an earlier run without one', { held: { reachesMs: 5 }, chain: chain('svc.sql', 'bin.000005') }, {}, 0, 5],
  [
    'an earlier run, whatever the chain has become',
    {
      held: { lastLog: 'bin.000005', reachesMs: 5 },
      chain: { links: [...chain('svc.sql').links!, { type: 'log', what: 'a to bin.000006', backup: 'far' }] },
    },
    {},
    2,
    5,
  ],
  [
    'a log that another entry observes',
    {
      chain: {
        ...chain('svc.sql'),
        links: [...chain('svc.sql').links!, { type: 'log', what: 'a to bin.000005', backup: 'far' }],
      },
    },
    {},
    0,
    pointMs,
  ],
])('MySQL: %s', async (_, { held, ...over }: Partial<Target>, more, files, reachesMs) => {
  const at = place();
  const found = await restoreTarget(
    target(at, 'mysql', {
      subject: subject(at.dump, more),
      ...over,
      held: held && { backup: at.dump, ...held },
    }),
  );
  expect({ files: found.replay?.files.length ?? 0, reachesMs: found.reachesMs }).toEqual({
    files,
    reachesMs,
  });
});

test('MySQL: the log ends at the second before the time', async () => {
  const at = place();
  const given = target(at, 'mysql', {
    subject: subject(at.dump, { until: '2026-11-23T11:00:00.9Z' }),
    chain: chain('svc.sql', 'bin.000005'),
  });
  const time = new Date('2026-11-23T11:00:00Z');
  expect(await restoreTarget(given)).toMatchObject({
    ...{ until: { time }, replay: { until: time }, reachesMs: time.getTime() },
    reaches:
      'Restores what was written before 2026-11-23T11:00:00.000Z. The dump, then 2 files of the binary log.',
  });
});

test('MySQL: a log of one file', async () => {
  const at = place();
  const given = target(at, 'mysql', { subject: subject(at.dump), chain: chain('svc.sql', 'bin.000004') });
  expect((await restoreTarget(given)).reaches).toMatch(/ The dump, then 1 file of the binary log\.$/);
});

test('MySQL: a dump without its place has no log, and cannot end at a time; a folder is no dump', async () => {
  const at = place();
  expect(await restoreTarget(target(at, 'mysql', { subject: subject(at.plain) }))).toEqual({
    ...{ until: undefined, reachesMs: undefined, replay: undefined },
    reaches: 'Restores everything that the backup and its log hold.',
  });
  const until = { until: '2026-11-23T11:00:00Z' };
  expect(await restoreTarget(target(at, 'mysql', { subject: subject(at.plain, until) }))).toMatchObject({
    refused: 'the dump does not record its place in a binary log that is observed',
  });
  expect(await restoreTarget(target(at, 'mysql', { subject: subject(at.folder) }))).not.toHaveProperty(
    'replay',
  );
  expect(await restoreTarget(target(at, 'mysql', { subject: subject(undefined) }))).not.toHaveProperty(
    'replay',
  );
});

const refusals: [
  string,
  Partial<Subject>,
  Parameters<typeof target>[2] & { kind?: 'postgres' | 'mysql' },
  string | undefined,
][] = [
  [
    'a backup that is gone',
    { backup: '/none/svc.sql' },
    {},
    '/none/svc.sql of the earlier run is gone: name a backup with --backup',
  ],
  ['a name that is no path', { backup: '20261123-F' }, {}, undefined],
  [
    'a dump of PostgreSQL',
    { until: '2026-11-23T11:00:00Z' },
    { kind: 'postgres' },
    'no log can be applied to a dump of PostgreSQL: name a base backup with --backup',
  ],
  [
    'no log',
    { until: '2026-11-23T11:00:00Z' },
    { backups: [{ name: 'far', store: 'far', type: 'log' }] },
    'no log of main is observed: add an entry of type log to backups',
  ],
  [
    'no log, but a full backup',
    { until: '2026-11-23T11:00:00Z' },
    { backups: [{ name: 'full', store: 'main', type: 'full', source: {} }] },
    'no log of main is observed: add an entry of type log to backups',
  ],
  [
    'a time before the backup',
    { until: '2026-11-23T01:59:59Z' },
    {},
    'the newest backup is of 2026-11-23T02:00:00.000Z, after --until: name an older one with --backup',
  ],
  ['the very time of the backup', { until: '2026-11-23T02:00:00Z' }, {}, undefined],
  [
    'a time after the log',
    { until: '2026-11-23T12:00:01Z' },
    {},
    'the log only reaches to 2026-11-23T12:00:00.000Z, which is before --until: leave --until out to restore all of it',
  ],
  ['the very end of the log', { until: '2026-11-23T12:00:00Z' }, {}, undefined],
  [
    'a time after the log, on another timeline',
    { until: '2026-11-23T12:00:01Z', untilTimeline: '2' },
    {},
    undefined,
  ],
  [
    'a command without {until}',
    { until: '2026-11-23T11:00:00Z' },
    { restore: ['load', '{file}'] },
    'recovery.commands.restore does not take --until: give it {until}',
  ],
  [
    'a command with {until}',
    { until: '2026-11-23T11:00:00Z' },
    { restore: ['load', '-u{until}'] },
    undefined,
  ],
  [
    'a command for a transaction',
    { untilXid: '77', until: undefined },
    { restore: ['load', '-u{until}'] },
    'recovery.commands.restore does not take --until-xid: leave it out of the configuration to restore by hand',
  ],
];

test.each(refusals)('refused or not: %s', async (_, over, { kind = 'mysql', ...more }, refused) => {
  const at = place();
  const found = await restoreTarget(
    target(at, kind, { subject: subject(at.dump, over), chain: chain('svc.sql', 'bin.000006'), ...more }),
  );
  expect(found.refused).toBe(refused);
  expect(found.reaches === '').toBe(refused !== undefined);
});

test.each([
  ['no end', ['backup_manifest', 'PG_VERSION'], {}],
  // The program of the archive restores it, and finds its end.
  ['an archive of a tool', ['backup_manifest', 'PG_VERSION'], { untilXid: '77' }],
  ['a base backup in tar format', ['backup_manifest'], { untilXid: '77' }],
  ['a backup that nobody names', undefined, { untilXid: '77' }],
])('PostgreSQL: the log is not read for %s', async (what, files, over) => {
  const at = place();
  // A manifest that says nothing: whoever reads it fails.
  for (const name of files ?? []) writeFileSync(join(at.folder, name), '');
  const given = target(at, 'postgres', {
    subject: subject(files && at.folder, over),
    ...(what === 'an archive of a tool' && {
      backups: [{ name: 'log', store: 'main', type: 'log', source: { kind: 'pgbackrest' } }],
    }),
  });
  expect(await restoreTarget(given)).not.toHaveProperty('refused');
});

test.each([
  [{ untilXid: '77' }, 'Restores up to transaction 77.'],
  [{ untilName: 'before-upgrade' }, 'Restores up to the restore point before-upgrade.'],
  [{ untilTimeline: '3' }, 'Restores all of timeline 3.'],
  [{ until: '2026-11-23T11:00:00Z' }, 'Restores what was written before 2026-11-23T11:00:00.000Z.'],
  [{}, 'Restores everything that the backup and its log hold.'],
] as const)('up to when, in words: %j', async (over, reaches) => {
  const at = place();
  const given = target(at, 'widecolumn', { subject: subject('20261123-F', over) });
  expect((await restoreTarget(given)).reaches).toBe(reaches);
});

test('a command of the configuration applies the log by itself', async () => {
  const at = place();
  const given = target(at, 'mysql', { subject: subject(at.dump), restore: ['load'] });
  expect((await restoreTarget(given)).reaches).toBe(
    'Restores everything that the backup and its log hold. This is done by recovery.commands.restore.',
  );
});

test.each([
  [
    'the first run',
    { files: ['/l/bin.000003', '/l/bin.000004', '/l/bin.000005'] },
    undefined,
    { backup: '/b', lastLog: 'bin.000005', reachesMs: 7 },
  ],
  ['a run without a log', undefined, undefined, { backup: '/b', lastLog: undefined, reachesMs: 7 }],
  ['a log of no file', { files: [] }, undefined, { backup: '/b', lastLog: undefined, reachesMs: 7 }],
  [
    'a run after it, in whose log are its statements',
    { files: ['/l/bin.000009'] },
    { lastLog: 'bin.000005' },
    { isKept: true, backup: '/b', lastLog: 'bin.000005', reachesMs: 7 },
  ],
])('what %s restores', (_, replay, held, chosen) =>
  expect(chosenOf(subject('/b'), { replay, reachesMs: 7, reaches: '' } as never, held)).toEqual(chosen),
);
