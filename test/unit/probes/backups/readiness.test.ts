import { describe, expect, test } from 'vitest';
import type { BackupType } from '../../../../src/core/reasons.ts';
import type { Assessment } from '../../../../src/probes/backups/assessment.ts';
import type { BackupOptions } from '../../../../src/probes/backups/block.ts';
import type { Artifact, Evidence } from '../../../../src/probes/backups/evidence.ts';
import {
  chainOf,
  readinessOf,
  recoveryPointOf,
  type Standing,
} from '../../../../src/probes/backups/readiness.ts';
import {
  runFromDump,
  segmentOfLsn,
  segmentPosition,
  segmentRuns,
} from '../../../../src/probes/backups/segments.ts';

const minuteMs = 6e4;
const hourMs = 60 * minuteMs;
const nowMs = Date.UTC(2026, 5, 1, 12);

const rpo: Record<BackupType, number> = {
  full: 24 * hourMs,
  incremental: hourMs,
  log: 5 * minuteMs,
  config: 0,
};

function standing(type: BackupType, usable: Partial<Artifact>[], rest: Partial<Evidence> = {}): Standing {
  const options: BackupOptions = {
    ...{
      name: type,
      store: 'main',
      database: 'persistence',
      type,
      source: { kind: 'runs' },
      intervalMs: 6e4,
    },
    schedule: { everyMs: rpo[type], graceMs: 5 * minuteMs, usualGraceMs: 0 },
    objectives: { rpoMs: rpo[type], rtoMs: hourMs },
    retention: { minCount: 1 },
    integrity: { level: 'full', minBytes: 1, maxShrink: 0.5, bytesPerSecond: 1e9 },
  };
  const artifacts = usable.map(
    (artifact): Artifact => ({
      ...{
        id: 'a',
        startMs: nowMs - hourMs,
        endMs: nowMs - hourMs / 2,
        sizeBytes: 1,
        fingerprint: '',
        method: 'other',
      },
      ...artifact,
    }),
  );
  const ledger = { sinceMs: 0, counted: {}, durationsMs: [], overdue: 0, verified: {} };
  const assessment: Assessment = {
    msg: '',
    ledger,
    results: {},
    usable: artifacts,
    unverified: [],
    isRetentionKept: true,
  };
  return {
    options,
    assessed: { evidence: { artifacts, unfinished: [], failures: [], ...rest }, assessment },
  };
}

const wal = (names: string[], endMs: (index: number) => number) =>
  segmentRuns(
    'wal',
    names.map((name, index) => ({ name, endMs: endMs(index), sizeBytes: 16 * 2 ** 20 })),
  );
const name = (number: number, timeline = 1) =>
  `${timeline.toString(16).padStart(8, '0')}${Math.floor(number / 256)
    .toString(16)
    .padStart(8, '0')}${(number % 256).toString(16).padStart(8, '0')}`.toUpperCase();
const base = {
  method: 'postgres_base' as const,
  wal: [{ timeline: 1, start: '0/2000028', end: '0/2000100' }],
};

describe('runs of segments', () => {
  test.each([
    ['consecutive', [1, 2, 3], 1],
    ['over the end of 4 GiB', [254, 255, 256, 257], 1],
    ['a gap', [1, 2, 4], 2],
    ['out of order', [3, 1, 2], 1],
    ['none', [], 0],
  ])('%s', (_, numbers, runs) => {
    expect(
      wal(
        numbers.map((number) => name(number)),
        () => 0,
      ),
    ).toHaveLength(runs);
  });

  test('a switch of timeline goes on in the same segment or the next', () => {
    expect(wal([name(1), name(2), name(2, 2), name(3, 2)], () => 0)).toHaveLength(1);
    expect(wal([name(1), name(4, 2)], () => 0)).toHaveLength(2);
  });

  test('the server’s own names are read as the server means them', () => {
    expect(segmentOfLsn('1/2A000000')).toBe(segmentPosition('wal', '00000001000000010000002A', 256)!.number);
    expect(segmentPosition('wal', '00000002.history', 256)).toBeUndefined();
    expect(segmentPosition('wal', '000000010000000000000003.partial', 256)).toBeUndefined();
    expect(segmentPosition('wal', '000000010000000000000003.gz', 256)?.number).toBe(3);
    expect(segmentPosition('binlog', 'mariadb-bin.000042', 1)?.number).toBe(42);
    expect(segmentPosition('binlog', 'mariadb-bin.index', 1)).toBeUndefined();
  });
});

describe('how far a database can be restored', () => {
  const log = (numbers: number[]) =>
    standing('log', [], {
      runs: wal(
        numbers.map((number) => name(number)),
        (index) => nowMs - hourMs + index * minuteMs,
      ),
    });

  test('a full by itself: to its start', () => {
    expect(chainOf([standing('full', [{}])])?.recoveryPointMs).toBe(nowMs - hourMs);
  });
  test('a base backup with the log that goes on from it', () => {
    expect(chainOf([standing('full', [base]), log([2, 3, 4, 5])])).toMatchObject({
      recoveryPointMs: nowMs - hourMs + 3 * minuteMs,
      links: [{ type: 'full' }, { type: 'log' }],
    });
  });
  test('a log with a gap reaches to the gap', () => {
    expect(chainOf([standing('full', [base]), log([2, 3, 5, 6])])?.recoveryPointMs).toBe(
      nowMs - hourMs + minuteMs,
    );
  });
  test('a log that begins after the base backup counts for nothing', () => {
    expect(chainOf([standing('full', [base]), log([3, 4])])?.links).toHaveLength(1);
  });
  test('a dump of PostgreSQL takes no log', () => {
    expect(chainOf([standing('full', [{ method: 'postgres_dump' }]), log([1, 2, 3])])?.links).toHaveLength(1);
  });
  test('without a full, nothing counts', () => {
    expect(chainOf([log([2, 3]), standing('incremental', [{}])])).toBeUndefined();
  });

  test.each([
    ['goes on', '10', 2],
    ['has lost its parent', '11', 1],
  ])('an incremental that %s', (_, from, links) => {
    const full = standing('full', [{ lsn: { from: '0', to: '10' } }]);
    const next = standing('incremental', [{ id: 'i', startMs: nowMs - minuteMs, lsn: { from, to: '20' } }]);
    const chain = chainOf([full, next])!;
    expect(chain.links).toHaveLength(links);
    expect(recoveryPointOf(next, [full, next])).toBe(links === 2 ? nowMs - minuteMs : undefined);
  });

  test('of several fulls the one that reaches furthest', () => {
    const old = { ...base, id: 'old', startMs: nowMs - 30 * hourMs };
    const fresh = { id: 'fresh', method: 'postgres_dump' as const, startMs: nowMs - 10 * hourMs };
    expect(chainOf([standing('full', [old, fresh]), log([2, 3])])?.links[0]?.what).toBe('old');
  });

  test('a MySQL dump names the file of the binary log it stands in', () => {
    const runs = segmentRuns(
      'binlog',
      [7, 8, 9].map((n) => ({ name: `bin.00000${n}`, endMs: n, sizeBytes: 1 })),
    );
    expect(runFromDump(runs, { startMs: 8, binlog: 'bin.000008' })?.last).toBe('bin.000009');
    expect(runFromDump(runs, { startMs: 8, binlog: 'bin.000006' })).toBeUndefined();
  });
});

describe('ready', () => {
  const fresh = standing('full', [{ startMs: nowMs - hourMs }]);
  const old = standing('full', [{ startMs: nowMs - 25 * hourMs }]);
  const drill = { procedure: 'database-corruption', endMs: nowMs };

  test.each([
    ['within the objective', [fresh], undefined, true, undefined],
    ['too old', [old], undefined, false, 'recovery_point_too_old'],
    [
      'too old for the tightest of the objectives',
      [fresh, standing('log', [])],
      undefined,
      false,
      'recovery_point_too_old',
    ],
    ['no backup', [standing('full', [])], undefined, false, 'no_backup'],
    ['a drill within the objective', [fresh], { ...drill, durationMs: hourMs }, true, undefined],
    ['a drill that took longer', [fresh], { ...drill, durationMs: hourMs + 1 }, false, 'drill_too_slow'],
    [
      'evidence that cannot be read',
      [fresh, { options: old.options, unreadable: 'EACCES' }],
      undefined,
      undefined,
      'evidence_unreadable',
    ],
  ] as const)('%s', (_, standings, newest, isReady, reason) => {
    const readiness = readinessOf([...standings], newest, nowMs);
    expect({ isReady: readiness.isReady, reason: readiness.reason }).toEqual({ isReady, reason });
  });

  test('what is not verified is not ready', () => {
    const unverified = standing('full', [{}]);
    unverified.assessed!.assessment.unverified = unverified.assessed!.assessment.usable;
    unverified.assessed!.assessment.usable = [];
    expect(readinessOf([unverified], undefined, nowMs)).toMatchObject({
      isReady: false,
      reason: 'unverified',
    });
  });
});
