import { describe, expect, test } from 'vitest';
import type { BackupType } from '../../../../src/core/reasons.ts';
import type { BackupOptions } from '../../../../src/probes/backups/block.ts';
import type { Artifact, BackupContent, Evidence } from '../../../../src/probes/backups/evidence.ts';
import { placeSegments, type SegmentContent } from '../../../../src/probes/backups/formats/segments.ts';
import type { RunRecord } from '../../../../src/probes/backups/journal.ts';
import type { ArchivedSegments } from '../../../../src/probes/backups/log-chain.ts';
import {
  pointOf,
  recoveryOf,
  recoveryPointOf,
  type Standing,
} from '../../../../src/probes/backups/recovery-point.ts';

const minuteMs = 6e4;
const hourMs = 60 * minuteMs;
const nowMs = Date.UTC(2026, 5, 1, 12);

const artifactOf = (over: Partial<Artifact>): Artifact => ({
  ...{ id: 'a', startMs: nowMs - hourMs, endMs: nowMs, sizeBytes: 1, fingerprint: '', method: 'other' },
  ...over,
});

/** A backup with these artifacts, all of which are verified. */
function standing(
  type: BackupType,
  artifacts: Partial<Artifact>[],
  { name = type, ...rest }: Partial<Evidence> & { name?: string } = {},
): Standing {
  const usable = artifacts.map(artifactOf);
  return {
    options: { name, type } as BackupOptions,
    assessed: {
      evidence: { artifacts: usable, unfinished: [], failures: [], ...rest },
      assessment: {
        msg: '',
        ledger: { sinceMs: 0, counted: {}, durationsMs: [], overdue: 0, verified: {} },
        results: {},
        usable,
        unverified: [],
        isRetentionKept: true,
      },
    },
  };
}

/** The recovery point with its chain, or why it is unknown. */
function recovered(...standings: Standing[]) {
  const { chain, unknown } = recoveryOf(standings, nowMs);
  return chain ? [chain.recoveryPointMs, ...chain.links.map(({ what }) => what)] : unknown!.msg;
}

test.each<[Artifact['method'], number, boolean]>([
  ['postgres_dump', -hourMs, false],
  ['postgres_base', -hourMs - minuteMs, true],
])('the clock of the store is mentioned where it counts: %s', (method, point, isMentioned) => {
  const full = { method, hasLog: true, content: { startMs: nowMs - hourMs } };
  const { chain } = recoveryOf([standing('full', [full], { aheadMs: minuteMs })], nowMs);
  expect(chain!.recoveryPointMs - nowMs).toBe(point);
  expect(chain!.note?.startsWith('the clock of the store is 1m ahead') ?? false).toBe(isMentioned);
});

describe('the moment that a backup shows by itself', () => {
  const wall = { ms: nowMs - hourMs };
  const job = (startMs: number, endMs?: number, status = 0): RunRecord => ({
    startMs,
    status,
    ...(endMs !== undefined && { endMs }),
  });
  const shown = (
    content: BackupContent | undefined,
    over: Partial<Artifact> = {},
    jobs: RunRecord[] = [],
  ) => {
    const point = pointOf(artifactOf({ ...(content && { content }), ...over }), jobs, nowMs);
    return 'ms' in point ? [point.ms - nowMs, point.note] : point.unknown;
  };
  const utc = { timeZone: 'UTC' };
  const berlin = { timeZone: 'Europe/Berlin' };
  const ofPrimary = { ...berlin, takenFrom: 'primary' as const };
  const noBeginning = 'a: it does not say when it began';

  test.each<[string, Parameters<typeof shown>, unknown]>([
    [
      'ten seconds ahead of the clock: now',
      [{ startMs: nowMs + 10_000 }, { endMs: nowMs + 10_000 }],
      [0, undefined],
    ],
    [
      'further ahead: unknown',
      [{ startMs: nowMs + 10_001 }],
      'a states a start in the future; compare the clocks and time zones',
    ],
    [
      'two seconds newer than its file',
      [{ startMs: nowMs - minuteMs }, { endMs: nowMs - minuteMs - 2000 }],
      [-minuteMs, undefined],
    ],
    [
      'newer than that: unknown',
      [{ startMs: nowMs - minuteMs + 1 }, { endMs: nowMs - minuteMs - 2000 }],
      'a is older than its content; compare the clocks, and source.files.timeZone',
    ],
    [
      'two seconds newer than its place',
      [{ startMs: nowMs - minuteMs }, { placedMs: nowMs - minuteMs - 2000 }],
      [-minuteMs, undefined],
    ],
    [
      'newer than that, with the times of its host: unknown',
      [{ startMs: nowMs - minuteMs + 1 }, { placedMs: nowMs - minuteMs - 2000 }],
      'a is older than its content; compare the clocks, and source.files.timeZone',
    ],
    ['files that nobody could read: unknown', [{ startMs: 0, unread: 'no list' }], 'a: no list'],
    ['a table that it lacks: unknown', [{ startMs: 0, lacks: 'no orders' }], 'a: no orders'],
    ['nothing, and why', [{ unknown: 'its header is cut off' }], 'a: its header is cut off'],
    ['nothing', [{}], noBeginning],
    ['a time of a known zone', [{ startWall: wall }, berlin], [-3 * hourMs, undefined]],
    [
      'a time that this zone skipped: unknown',
      [{ startWall: { ms: Date.UTC(2026, 2, 29, 2, 30) } }, berlin],
      'a: it states a time that Europe/Berlin does not have; set source.files.timeZone',
    ],
    [
      'an end of an unknown zone: unknown',
      [{ endWall: wall }, {}, [job(nowMs - 2 * hourMs, nowMs)]],
      'a: its time has no zone; set source.files.timeZone to the zone of the host that makes it',
    ],
    [
      'an end within two runs: the beginning of the newer one',
      [
        { endWall: wall },
        utc,
        [job(nowMs - 4 * hourMs, nowMs), job(nowMs - 2 * hourMs, nowMs), job(nowMs - minuteMs, nowMs)],
      ],
      [-2 * hourMs, undefined],
    ],
    [
      'an end in the second in which the run began and ended',
      [{ endWall: wall }, utc, [job(wall.ms + 999, wall.ms)]],
      [999 - hourMs, undefined],
    ],
    [
      'an end a second before the run began',
      [{ endWall: wall }, utc, [job(wall.ms + 1000, nowMs)]],
      noBeginning,
    ],
    ['a time, and it is of the primary', [{ startWall: wall }, ofPrimary], [-3 * hourMs, undefined]],
    [
      'a time, and nobody says of which server: unknown',
      [{ startWall: wall }, { ...berlin, takenFrom: 'unknown' }],
      'a: it does not say whether its server is the primary or a replica that lags; set source.files.takenFrom: primary if each one is taken from the primary',
    ],
    [
      'a time, and it is of a replica: unknown',
      [{ startWall: wall }, { ...berlin, takenFrom: 'replica' }],
      'a: it is from a replica (source.files.takenFrom), and does not state the lag of the replica; take it from the primary',
    ],
    ['an end after the run', [{ endWall: wall }, utc, [job(0, wall.ms - 1)]], noBeginning],
    ['an end in a run that failed', [{ endWall: wall }, utc, [job(0, nowMs, 1)]], noBeginning],
    ['an end in a run that goes on', [{ endWall: wall }, utc, [job(0)]], noBeginning],
  ])('%s', (_, seen, expected) => {
    expect(shown(...seen)).toEqual(expected);
  });

  test('a time without a zone is the earliest that it may be', () => {
    const [ms, note] = shown({ startWall: wall }) as [number, string];
    // UTC+14 is the earliest zone.
    expect(ms).toBe(-hourMs - 14 * hourMs);
    expect(note).toContain('the backup may be up to 26 hours newer');
  });
});

describe('what an incremental backup builds upon', () => {
  const fullMs = nowMs - 10 * hourMs;
  const at = (hours: number, over: Partial<Artifact>) => ({
    id: `at-${hours}`,
    startMs: fullMs + hours * hourMs,
    content: { startMs: fullMs + hours * hourMs },
    ...over,
  });
  const chain = (full: Partial<Artifact>, ...upon: Partial<Artifact>[]) =>
    recovered(standing('full', [full]), standing('incremental', upon)).slice(1);
  const [snapshot, flush] = ['snapshot', 'flush'] as const;
  const placeOf = (file: string, position: number, gtids?: string) => ({
    file,
    position,
    ...(gtids && { gtids }),
  });

  test.each<[string, [full: Partial<Artifact>, ...upon: Partial<Artifact>[]], string[]]>([
    ['the parent that it names', [at(0, {}), at(1, { parent: 'at-0' })], ['at-0', 'at-1']],
    ['not another one', [at(0, {}), at(1, { parent: 'at-9' })], ['at-0']],
    [
      'the one that it names, though the positions are those of another one',
      [at(0, { lsn: { from: '0', to: '7' } }), at(1, { parent: 'at-9', lsn: { from: '7', to: '8' } })],
      ['at-0'],
    ],
    ['nothing that neither names', [at(0, {}), at(1, {})], ['at-0']],
    [
      'nothing where the parent states no position',
      [at(0, {}), at(1, { lsn: { from: '7', to: '8' } })],
      ['at-0'],
    ],
    ['nothing where it states none', [at(0, { lsn: { from: '0', to: '7' } }), at(1, {})], ['at-0']],
    ...(
      [
        ['the position where it ended', {}, {}, true],
        ['not that of another server', { serverId: 'a' }, { serverId: 'b' }, false],
        ['that of a server that one of them does not state', { serverId: 'a' }, {}, true],
        [
          'its transactions',
          { binlog: placeOf('bin.000002', 9, '0-1-8') },
          { binlog: placeOf('bin.000001', 4, '0-1-9') },
          true,
        ],
        [
          'its last one',
          { binlog: placeOf('bin.000002', 9, '0-1-8') },
          { binlog: placeOf('bin.000002', 9, '0-1-8') },
          true,
        ],
        [
          'not fewer',
          { binlog: placeOf('bin.000001', 4, '0-1-8') },
          { binlog: placeOf('bin.000002', 9, '0-1-7') },
          false,
        ],
        [
          'not one of the same number',
          { binlog: placeOf('bin.000001', 4, '0-1-8') },
          { binlog: placeOf('bin.000001', 4, '0-2-8') },
          false,
        ],
        [
          'none less of a second domain',
          { binlog: placeOf('bin.000001', 4, '0-1-8,7-1-3') },
          { binlog: placeOf('bin.000001', 9, '0-1-9') },
          false,
        ],
        ['a later file', { binlog: placeOf('bin.000009', 9) }, { binlog: placeOf('bin.000010', 4) }, true],
        [
          'not an earlier position',
          { binlog: placeOf('bin.000009', 9) },
          { binlog: placeOf('bin.000009', 8) },
          false,
        ],
        [
          'not an earlier file',
          { binlog: placeOf('bin.000009', 9) },
          { binlog: placeOf('bin.000008', 90) },
          false,
        ],
        [
          'a file of another name',
          { binlog: placeOf('bin.000009', 9) },
          { binlog: placeOf('log.000001', 4) },
          true,
        ],
      ] as [string, BackupContent, BackupContent, boolean][]
    ).map(([name, before, after, isUpon]): [string, [Partial<Artifact>, Partial<Artifact>], string[]] => {
      const content = (of: BackupContent, hours: number) => ({ ...of, startMs: fullMs + hours * hourMs });
      return [
        name,
        [
          at(0, { lsn: { from: '0', to: '7' }, content: content(before, 0) }),
          at(1, { lsn: { from: '7', to: '8' }, content: content(after, 1) }),
        ],
        isUpon ? ['at-0', 'at-1'] : ['at-0'],
      ];
    }),
    [
      'a differential one builds upon the full one',
      [at(0, {}), at(1, { parent: 'at-0' }), at(2, { parent: 'at-0' })],
      ['at-0', 'at-2'],
    ],
    [
      'an incremental one upon that before it',
      [at(0, {}), at(1, { parent: 'at-0' }), at(2, { parent: 'at-1' })],
      ['at-0', 'at-1', 'at-2'],
    ],
    [
      'a flush upon the snapshot that was taken while it collected',
      [at(0, { method: snapshot }), at(1, { method: flush, sinceMs: fullMs })],
      ['at-0', 'at-1'],
    ],
    [
      'not upon an older snapshot: what was written between them is nowhere',
      [at(0, { method: snapshot }), at(1, { method: flush, sinceMs: fullMs + 1 })],
      ['at-0'],
    ],
    [
      'upon a snapshot of the same moment',
      [at(1, { method: snapshot }), at(1, { id: 'flush', method: flush })],
      ['at-1', 'flush'],
    ],
    [
      'not upon a snapshot that is newer',
      [at(2, { method: snapshot }), at(1, { method: flush, content: { startMs: nowMs } })],
      ['at-2'],
    ],
    ['no copy of files builds upon a snapshot', [at(0, { method: snapshot }), at(1, {})], ['at-0']],
    ['not upon a dump', [at(0, {}), at(1, { method: flush })], ['at-0']],
    [
      'upon the flush before it',
      [
        at(0, { method: snapshot }),
        at(1, { method: flush }),
        at(2, { method: flush, sinceMs: fullMs + hourMs }),
      ],
      ['at-0', 'at-1', 'at-2'],
    ],
    [
      'not upon a flush before the one that is gone',
      [
        at(0, { method: snapshot }),
        at(1, { method: flush }),
        at(3, { method: flush, sinceMs: fullMs + 2 * hourMs }),
      ],
      ['at-0', 'at-1'],
    ],
  ])('%s', (_, artifacts, expected) => {
    expect(chain(...artifacts)).toEqual(expected);
  });

  test('the time of one is read in the runs of its own entry', () => {
    const timeZone = 'UTC';
    const upon = { id: 'i', parent: 'a', timeZone, content: { endWall: { ms: nowMs } } };
    const full = { timeZone, content: { endWall: { ms: nowMs - 5 * hourMs } } };
    const run = (startMs: number, endMs: number) => ({ jobs: [{ startMs, endMs, status: 0 }] });
    const [ofFull, ofUpon] = [run(nowMs - 6 * hourMs, nowMs - 5 * hourMs), run(nowMs - hourMs, nowMs)];
    expect(recovered(standing('full', [full], ofFull), standing('incremental', [upon], ofUpon))).toEqual([
      nowMs - hourMs,
      'a',
      'i',
    ]);
    // The order of the configuration does not matter.
    expect(recovered(standing('incremental', [upon]), standing('full', [full], ofFull))).toEqual([
      nowMs - 6 * hourMs,
      'a',
    ]);
    expect(recovered(standing('full', [full], ofUpon))).toMatch(/does not say/);
    expect(recovered(standing('full', [full]), standing('incremental', [upon]))).toMatch(/does not say/);
  });

  test('a table that the full one lacks, all upon it lack too', () => {
    const full = at(0, { content: { startMs: fullMs, lacks: 'no orders' } });
    expect(chain(full, at(1, { parent: 'at-0' })).toString()).toContain('no orders');
  });
});

describe('with archived logs', () => {
  const names = ['000000010000000000000002', '000000010000000000000003', '000000010000000000000004'];
  const logOf = (kind: 'wal' | 'binlog', contents: Record<string, SegmentContent>): ArchivedSegments => ({
    kind,
    placed: placeSegments(
      kind,
      Object.entries(contents).map(([name, content]) => ({
        name,
        endMs: nowMs + hourMs,
        sizeBytes: 1,
        content,
      })),
    ),
    histories: new Map(),
  });
  const wal = (count: number, name?: string) =>
    standing('log', [], {
      ...(name && { name }),
      log: logOf(
        'wal',
        Object.fromEntries(names.slice(0, count).map((each, i) => [each, { newestMs: nowMs - 30 + 10 * i }])),
      ),
    });
  const base = (over: Partial<Artifact> = {}) =>
    standing('full', [
      {
        method: 'postgres_base',
        wal: [{ timeline: 1, start: '0/2000028', end: '0/3000100' }],
        content: { startMs: nowMs - hourMs },
        ...over,
      },
    ]);
  const binlog = (newestMs: number, name: string, file = 'binlog.000007') =>
    standing('log', [], {
      name,
      log: logOf('binlog', { [file]: { newestMs, bytes: 9, binlog: { isClosed: true, places: { 4: '' } } } }),
    });
  const dump = (over: Partial<Artifact> = {}) =>
    standing('full', [
      { content: { startMs: nowMs - hourMs, binlog: { file: 'binlog.000007', position: 4 } }, ...over },
    ]);
  const hourAgo = [nowMs - hourMs, 'a'];
  const [wal3, wal4] = [`${names[0]} to ${names[1]}`, `${names[0]} to ${names[2]}`];
  const ofFile = 'binlog.000007 to binlog.000007';
  const needsWal =
    'the recovery point is unknown: a needs WAL, which no entry of type log observes; add one, or take it with --wal-method=stream';
  const endsBefore =
    'the recovery point is unknown: a cannot be restored: the archive ends before the backup does';
  const tool = { hasLog: true as const, recoverableToMs: nowMs - 5 };

  test.each<[string, Standing[], unknown]>([
    ['a base backup and its log', [base(), wal(3)], [nowMs - 10, 'a', wal4]],
    [
      'the log that reaches further, wherever it stands',
      [base(), wal(2, 'w'), wal(3)],
      [nowMs - 10, 'a', wal4],
    ],
    ['the same the other way round', [base(), wal(3), wal(2, 'w')], [nowMs - 10, 'a', wal4]],
    ['a log that reaches just to its end', [base(), wal(2)], [nowMs - 20, 'a', wal3]],
    ['a log that ends before it does', [base(), wal(1)], endsBefore],
    [
      'a base backup of which nothing was read',
      [base({ content: undefined } as never), wal(3)],
      [nowMs - 10, 'a', wal4],
    ],
    ['the same without a log', [base({ content: undefined } as never)], needsWal],
    [
      'a dump of which nothing was read',
      [dump({ content: undefined } as never), binlog(nowMs, 'b')],
      'the recovery point is unknown: a: it does not say when it began',
    ],
    [
      'entries that were not read yet',
      [
        { options: { name: 'i', type: 'incremental' } as BackupOptions },
        dump(),
        { options: wal(1).options },
        { options: { name: 'f', type: 'full' } as BackupOptions },
      ],
      hourAgo,
    ],
    ['no log at all', [base()], needsWal],
    ['a binary log is none of WAL', [base(), binlog(nowMs, 'b')], needsWal],
    [
      'a base backup with a part of the WAL in itself',
      [base({ content: { startMs: nowMs - hourMs, wal: { [names[0]!]: {} } } })],
      endsBefore,
    ],
    [
      'a tool that keeps the log itself',
      [base({ ...tool, content: { startMs: nowMs - hourMs } })],
      [nowMs - 5, 'a'],
    ],
    ['an archive that shows less than the tool says', [base(tool), wal(1)], endsBefore],
    ['a dump and the log from its position', [dump(), binlog(nowMs - 7, 'b')], [nowMs - 7, 'a', ofFile]],
    ['a log that does not go on from it', [dump(), binlog(nowMs, 'b', 'binlog.000008')], hourAgo],
    [
      'a dump without a position',
      [standing('full', [{ content: { startMs: nowMs - hourMs } }]), binlog(nowMs, 'b')],
      hourAgo,
    ],
    ['a log of another kind', [dump(), wal(3)], hourAgo],
    [
      'of two logs the one that reaches further',
      [dump(), binlog(nowMs - 7, 'b'), binlog(nowMs - 9, 'c')],
      [nowMs - 7, 'a', ofFile],
    ],
    [
      'the same the other way round',
      [dump(), binlog(nowMs - 9, 'c'), binlog(nowMs - 7, 'b')],
      [nowMs - 7, 'a', ofFile],
    ],
    [
      'a dump of an unknown time is known by the log that goes on from it',
      [dump({ content: { binlog: { file: 'binlog.000007', position: 4 } } }), binlog(nowMs - 7, 'b')],
      [nowMs - 7, 'a', ofFile],
    ],
    [
      'a log that shows an older time than the dump',
      [dump(), binlog(nowMs - 2 * hourMs, 'b')],
      [nowMs - hourMs, 'a', ofFile],
    ],
    ['a log ten seconds ahead of the clock', [dump(), binlog(nowMs + 10_000, 'b')], [nowMs, 'a', ofFile]],
    [
      'a log further ahead shows nothing',
      [dump(), binlog(nowMs + 10_001, 'b')],
      [nowMs - hourMs, 'a', ofFile],
    ],
    ['what the tool says of a dump', [dump({ recoverableToMs: nowMs - 3 })], [nowMs - 3, 'a']],
    [
      'a dump of an unknown time says why its log does not count, either',
      [
        dump({ content: { binlog: { file: 'binlog.000007', position: 4 } } }),
        binlog(nowMs, 'b', 'binlog.000008'),
      ],
      'the recovery point is unknown: a: it does not say when it began; the log b does not count: binlog.000007, in which the backup was taken, is missing in the archive',
    ],
    [
      'so does one whose log states only times that are later than its files',
      [
        dump({ content: { binlog: { file: 'binlog.000007', position: 4 } } }),
        binlog(nowMs + hourMs + 2001, 'b'),
      ],
      'the recovery point is unknown: a: it does not say when it began; the log b does not count: it states no time before its files were changed; compare the clocks',
    ],
    [
      'a table that it lacks makes it worth nothing, with any log',
      [
        dump({ content: { lacks: 'no orders', binlog: { file: 'binlog.000007', position: 4 } } }),
        binlog(nowMs, 'b'),
      ],
      'the recovery point is unknown: a: no orders',
    ],
  ])('%s', (_, standings, expected) => {
    expect(recovered(...standings)).toEqual(expected);
  });

  test('the log is named with up to when it reaches, the backup with its own time', () => {
    expect(recoveryOf([dump(), binlog(nowMs - 7, 'b')], nowMs).chain!.links).toEqual([
      { backup: 'full', type: 'full', what: 'a', recoveryPointMs: nowMs - hourMs },
      { backup: 'b', type: 'log', what: ofFile, recoveryPointMs: nowMs - 7 },
    ]);
    const withOwn = base({ content: { wal: { [names[0]!]: {}, [names[1]!]: { newestMs: nowMs - 1 } } } });
    expect(recoveryOf([withOwn], nowMs).chain).toMatchObject({
      recoveryPointMs: nowMs - 1,
      links: [{ backup: 'full', type: 'full', what: 'a' }],
    });
  });

  test.each<[string, number, Partial<Artifact>]>([
    ['the log', -10, {}],
    ['the backup itself', -2, { content: { startMs: nowMs - 1 } }],
  ])(
    'what the store wrote after its last poll may not be where another server went on: %s',
    (_, without, over) => {
      const segments = {
        [names[0]!]: {},
        [names[1]!]: {},
        '000000020000000000000004': { newestMs: nowMs - 10 },
      };
      const log = {
        ...logOf('wal', segments),
        histories: new Map([[2, [{ timeline: 1, lsn: '0/4000050' }]]]),
      };
      const reached = (atMs: number) => {
        const wrote = { timeline: 1, position: '0/4000050', atMs };
        return recoveryOf([base(over), standing('log', [], { log: { ...log, wrote } })], nowMs).chain!;
      };
      expect(reached(nowMs - 60).recoveryPointMs).toBe(nowMs - 60);
      expect(reached(nowMs - 60).links.at(-1)!.recoveryPointMs).toBe(nowMs - 60);
      expect(reached(nowMs - 2).recoveryPointMs).toBe(nowMs + without);
    },
  );

  describe('the gauge of each backup', () => {
    const full = dump();
    const log = binlog(nowMs - 7, 'b');
    const otherFull = standing('full', [{ id: 'o', content: { startMs: nowMs - minuteMs } }], {
      name: 'other',
    });
    const upon = standing('incremental', [
      {
        ...dump().assessed!.assessment.usable[0]!,
        id: 'i',
        parent: 'a',
        content: { startMs: nowMs - 2 * minuteMs, binlog: { file: 'binlog.000007', position: 4 } },
      },
    ]);
    const config = standing('config', []);
    config.assessed!.assessment.ledger.success = { startMs: 1, endMs: 2, sizeBytes: 3 };
    const all = [full, log, otherFull, upon, config];
    test.each<[string, Standing, number | undefined]>([
      ['a full one: its own beginning, whatever builds upon it', full, nowMs - hourMs],
      ['another full one', otherFull, nowMs - minuteMs],
      ['an incremental one: its own beginning', upon, nowMs - 2 * minuteMs],
      ['a log: how far it reaches', log, nowMs - 7],
      ['a copy of the configuration: when it was last good', config, 2],
      ['a copy that was never good', standing('config', []), undefined],
      ['one that was not read', { options: full.options }, undefined],
      ['a copy of the configuration that was not read', { options: config.options }, undefined],
      ['a log without a backup', binlog(nowMs, 'c', 'binlog.000009'), undefined],
    ])('%s', (_, one, expected) => {
      expect(recoveryPointOf(one, all, nowMs)).toBe(expected);
    });

    test('a log, where nothing else was read', () => {
      expect(recoveryPointOf(log, [log, { options: full.options }], nowMs)).toBeUndefined();
    });
  });

  test.each<[string, Standing[], string, string]>([
    ['nothing', [{ options: base().options }], 'no_backup', 'there is no full backup'],
    [
      'a log alone',
      [{ options: base().options }, wal(3)],
      'chain_broken',
      'there is a log, but no verified full backup before it',
    ],
    [
      'a directory that is not there',
      [standing('log', []), standing('full', [], { missingDirectory: '/mnt/b' })],
      'no_backup',
      '/mnt/b does not exist',
    ],
  ])('without a full backup: %s', (_, standings, reason, msg) => {
    expect(recoveryOf(standings, nowMs).unknown).toEqual({ reason, msg });
  });
});
