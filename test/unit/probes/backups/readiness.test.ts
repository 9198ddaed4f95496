import { describe, expect, test } from 'vitest';
import type { BackupType } from '../../../../src/core/reasons.ts';
import type { Assessment } from '../../../../src/probes/backups/assessment.ts';
import type { BackupOptions } from '../../../../src/probes/backups/block.ts';
import type { Artifact, BackupContent, Evidence } from '../../../../src/probes/backups/evidence.ts';
import {
  placeSegments,
  type SegmentContent,
  segmentOfLsn,
  segmentPosition,
} from '../../../../src/probes/backups/formats/segments.ts';
import type { Switch } from '../../../../src/probes/backups/log-chain.ts';
import { configurationReadiness, readinessOf } from '../../../../src/probes/backups/readiness.ts';
import {
  pointOf,
  recoveryOf,
  recoveryPointOf,
  type Standing,
} from '../../../../src/probes/backups/recovery-point.ts';

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
    integrity: { level: 'full', minBytes: 1, maxShrink: 0.5, bytesPerSecond: 1e9, everyMs: 7 * 864e5 },
  };
  const artifacts = usable.map(
    (artifact): Artifact => ({
      ...{
        id: 'a',
        startMs: nowMs - hourMs,
        endMs: nowMs,
        sizeBytes: 1,
        fingerprint: '',
        method: 'other',
      },
      content: { startMs: artifact.startMs ?? nowMs - hourMs },
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

const name = (number: number, timeline = 1) =>
  `${timeline.toString(16).padStart(8, '0')}${Math.floor(number / 256)
    .toString(16)
    .padStart(8, '0')}${(number % 256).toString(16).padStart(8, '0')}`.toUpperCase();
const base = {
  method: 'postgres_base' as const,
  wal: [{ timeline: 1, start: '0/2000028', end: '0/2000100' }],
};

const segmentBytes = 16 * 2 ** 20;
/** Archived segments, each with a commit one minute after the commit of the one before. */
function archive(
  names: readonly string[],
  histories: [number, Switch[]][] = [],
  over: Record<string, SegmentContent> = {},
) {
  const contents = names.map((each, index): [string, SegmentContent] => [
    each,
    over[each] ?? {
      newestMs: nowMs - hourMs + index * minuteMs,
      bytes: segmentBytes,
      after: names[index - 1],
      wal: { remainder: {}, systemId: '1', segmentBytes },
    },
  ]);
  const segments = contents.map(([each, content]) => ({
    name: each,
    endMs: nowMs,
    sizeBytes: segmentBytes,
    content,
  }));
  return { kind: 'wal' as const, placed: placeSegments('wal', segments), histories: new Map(histories) };
}

test('the server’s own names are read as the server means them', () => {
  expect(segmentOfLsn('1/2A000000')).toBe(segmentPosition('wal', '00000001000000010000002A', 256)!.number);
  expect(segmentPosition('wal', '00000002.history', 256)).toBeUndefined();
  expect(segmentPosition('wal', '000000010000000000000003.partial', 256)).toBeUndefined();
  expect(segmentPosition('wal', '000000010000000000000003.gz', 256)?.number).toBe(3);
  expect(segmentPosition('binlog', 'mariadb-bin.000042', 1)?.number).toBe(42);
  expect(segmentPosition('binlog', 'mariadb-bin.index', 1)).toBeUndefined();
});

describe('what a backup shows by itself', () => {
  const at = (content: BackupContent | undefined, endMs = nowMs) =>
    pointOf(
      {
        ...{ id: 'a', startMs: nowMs, endMs, sizeBytes: 1, fingerprint: '', method: 'other', content },
        timeZone: 'UTC',
      },
      [{ startMs: nowMs - hourMs, endMs: nowMs, status: 0 }],
      nowMs,
    );
  test.each<[string, BackupContent | undefined, number | undefined]>([
    ['its own time', { startMs: nowMs - minuteMs }, nowMs - minuteMs],
    ['nothing', undefined, undefined],
    ['no time', {}, undefined],
    ['an end within a recorded run', { endWall: { ms: nowMs - hourMs + minuteMs } }, nowMs - hourMs],
    ['an end in no recorded run', { endWall: { ms: nowMs - 2 * hourMs } }, undefined],
    ['a time in the future', { startMs: nowMs + minuteMs }, undefined],
  ])('%s', (_, content, ms) => {
    const point = at(content);
    expect('ms' in point ? point.ms : undefined).toBe(ms);
  });

  test('a file that is older than its content says is of another time zone', () => {
    expect(at({ startMs: nowMs - minuteMs }, nowMs - hourMs)).toHaveProperty('unknown');
  });
});

describe('how far a database can be restored', () => {
  const log = (names: string[], histories?: [number, Switch[]][], over?: Record<string, SegmentContent>) =>
    standing('log', [], { log: archive(names, histories, over) });
  const numbered = (...numbers: number[]) => log(numbers.map((number) => name(number)));
  const chainOf = (standings: Standing[]) => recoveryOf(standings, nowMs).chain;
  const unknownOf = (standings: Standing[]) => recoveryOf(standings, nowMs).unknown;
  const reached = (minutes: number) => nowMs - hourMs + minutes * minuteMs;

  test('a full by itself: to its start', () => {
    expect(chainOf([standing('full', [{}])])?.recoveryPointMs).toBe(nowMs - hourMs);
  });
  test('a base backup with the log that goes on from it', () => {
    expect(chainOf([standing('full', [base]), numbered(2, 3, 4, 5)])).toMatchObject({
      recoveryPointMs: reached(3),
      links: [{ type: 'full' }, { type: 'log' }],
    });
  });
  test('a log with a gap reaches to the gap', () => {
    expect(chainOf([standing('full', [base]), numbered(2, 3, 5, 6)])?.recoveryPointMs).toBe(reached(1));
  });
  test('segments over the end of 4 GiB follow each other', () => {
    const late = { ...base, wal: [{ timeline: 1, start: '0/FE000028', end: '0/FE000100' }] };
    expect(chainOf([standing('full', [late]), numbered(254, 255, 256, 257)])?.recoveryPointMs).toBe(
      reached(3),
    );
  });
  test.each([
    ['its first segment is gone', numbered(3, 4), /000000010000000000000002 is missing/],
    ['no log is observed', undefined, /no entry of type log/],
    [
      'its segment is damaged',
      log([name(2), name(3)], [], { [name(2)]: { fault: 'torn' } }),
      /is damaged: torn/,
    ],
  ])('a base backup alone is worth nothing: %s', (_, log, why) => {
    const standings = [standing('full', [base]), ...(log ? [log] : [])];
    expect(chainOf(standings)).toBeUndefined();
    expect(unknownOf(standings)).toMatchObject({
      reason: 'recovery_point_unknown',
      msg: expect.stringMatching(why),
    });
  });
  test('a base backup with the log in itself', () => {
    const own = { [name(2)]: { newestMs: reached(5), wal: { systemId: '1', segmentBytes } } };
    const full = standing('full', [{ ...base, content: { startMs: reached(1), wal: own } }]);
    expect(chainOf([full])?.recoveryPointMs).toBe(reached(5));
  });
  test('a dump of PostgreSQL takes no log', () => {
    expect(chainOf([standing('full', [{ method: 'postgres_dump' }]), numbered(1, 2, 3)])?.links).toHaveLength(
      1,
    );
  });
  test('without a full, nothing counts', () => {
    const standings = [numbered(2, 3), standing('incremental', [{}])];
    expect(chainOf(standings)).toBeUndefined();
    expect(unknownOf(standings)?.reason).toBe('chain_broken');
  });

  describe('over a switch of timeline', () => {
    // Timeline 2 left the first one in the middle of segment 3.
    const history: [number, Switch[]][] = [[2, [{ timeline: 1, lsn: '0/3800000' }]]];
    test.each<[string, string[], [number, Switch[]][], number | undefined]>([
      ['with the history and the first segment', [name(2), name(3, 2), name(4, 2)], history, 2],
      ['without the first segment', [name(2), name(4, 2)], history, 0],
      ['without the history: the old timeline is followed', [name(2), name(3, 2), name(4, 2)], [], 0],
      [
        'a backup of the old timeline from after the switch',
        [name(2)],
        [[2, [{ timeline: 1, lsn: '0/2000050' }]]],
        undefined,
      ],
    ])('%s', (_, names, histories, minutes) => {
      const chain = chainOf([standing('full', [base]), log(names, histories)]);
      expect(chain?.recoveryPointMs).toBe(minutes === undefined ? undefined : reached(minutes));
    });
  });

  test('segments of another server do not continue a backup', () => {
    const full = standing('full', [{ ...base, content: { startMs: nowMs - hourMs, systemId: '2' } }]);
    expect(unknownOf([full, numbered(2, 3)])?.msg).toMatch(/of another server/);
  });

  // A cluster that was made anew begins with the names of segments with which the one before began.
  test.each([
    ['does not state its server', undefined, undefined],
    ['states its server', '1', reached(1)],
  ])('a log that was archived before a backup began, which %s', (_, systemId, pointMs) => {
    const startMs = nowMs + minuteMs;
    const full = (content: object) => standing('full', [{ ...base, startMs, content }]);
    expect(chainOf([full({ unknown: 'no time', systemId }), numbered(2, 3)])?.recoveryPointMs).toBe(pointMs);
    if (systemId === undefined)
      expect(unknownOf([full({}), numbered(2, 3)])?.msg).toMatch(/there before it began/);
  });

  // The clock of the server was ahead when it wrote the log and began the backup, and is right now.
  test('a clock that was ahead: a time that is later than the file in which it is does not count', () => {
    const { placed, ...rest } = archive([name(2), name(3)]);
    const changed = (minutes: readonly number[]) =>
      placed.map((each, at) => ({ ...each, segment: { ...each.segment, endMs: reached(minutes[at]!) } }));
    const content = { startMs: reached(30), systemId: '1' };
    const full = standing('full', [{ ...base, content }]);
    const points = (...minutes: readonly number[]) => {
      const log = standing('log', [], { log: { ...rest, placed: changed(minutes) } });
      return chainOf([full, log])?.links.map((link) => link.recoveryPointMs);
    };
    expect(points(40, 40)).toEqual([reached(30), reached(30)]);
    expect(points(20, 40)).toEqual([undefined, reached(1)]);
    expect(points(20, 0.5)).toEqual([undefined, reached(0)]);
    expect(points(-5, 0.5)).toBeUndefined();
  });

  test.each([
    ['goes on', '10', 2],
    ['has lost its parent', '11', 1],
  ])('an incremental that %s', (_, from, links) => {
    const full = standing('full', [{ lsn: { from: '0', to: '10' } }]);
    const next = standing('incremental', [{ id: 'i', startMs: nowMs - minuteMs, lsn: { from, to: '20' } }]);
    const chain = chainOf([full, next])!;
    expect(chain.links).toHaveLength(links);
    expect(recoveryPointOf(next, [full, next], nowMs)).toBe(links === 2 ? nowMs - minuteMs : undefined);
  });

  test('of several fulls the one that reaches furthest', () => {
    const old = { ...base, id: 'old', startMs: nowMs - 30 * hourMs };
    const fresh = { id: 'fresh', method: 'postgres_dump' as const, startMs: nowMs - 10 * hourMs };
    expect(chainOf([standing('full', [old, fresh]), numbered(2, 3)])?.links[0]?.what).toBe('old');
  });
});

describe('ready', () => {
  const fresh = standing('full', [{ startMs: nowMs - hourMs }]);
  const old = standing('full', [{ startMs: nowMs - 25 * hourMs }]);
  const recent = standing('full', [{ startMs: nowMs - minuteMs }]);
  const drill = { procedure: 'database-corruption', endMs: nowMs };

  test.each<[string, Standing[], string | undefined, Parameters<typeof readinessOf>[1]?]>([
    ['within the objective', [fresh], undefined],
    ['too old', [old], 'recovery_point_too_old'],
    [
      'a minute too old: there is no grace',
      [standing('full', [{ startMs: nowMs - 24 * hourMs - minuteMs }])],
      'recovery_point_too_old',
    ],
    ['a log that nobody has ever replayed', [recent, standing('log', [])], 'drill_missing'],
    [
      'a log that was replayed in time',
      [recent, standing('log', [])],
      undefined,
      { ...drill, durationMs: hourMs },
    ],
    ['too old for the tightest of the objectives', [fresh, standing('log', [])], 'recovery_point_too_old'],
    ['no backup', [standing('full', [])], 'no_backup'],
    ['a drill within the objective', [fresh], undefined, { ...drill, durationMs: hourMs }],
    ['a drill that took longer', [fresh], 'drill_too_slow', { ...drill, durationMs: hourMs + 1 }],
    [
      'evidence that cannot be read',
      [fresh, { options: old.options, unreadable: 'EACCES' }],
      'evidence_unreadable',
    ],
  ])('%s', (_, standings, reason, newest) => {
    const readiness = readinessOf(standings, newest, nowMs);
    expect([readiness.isReady, readiness.reason]).toEqual([reason === undefined, reason]);
  });

  test('on the objective is within it, and until when is said', () => {
    const onIt = standing('full', [{ startMs: nowMs - 24 * hourMs }]);
    expect(readinessOf([onIt], undefined, nowMs)).toMatchObject({ isReady: true, untilMs: nowMs });
  });

  test('the message says what would be lost, the objective, and what has not been read', () => {
    const read = (...standings: Standing[]) => readinessOf(standings, undefined, nowMs).msg;
    expect(read(fresh)).toBe('at most 1h would be lost');
    expect(read(old)).toBe('1d1h would be lost; the objective of full is 1d');
    expect(read({ options: old.options })).toBe('backup full: not read yet');
    expect(read({ options: old.options, unreadable: 'EACCES' })).toBe('backup full: EACCES');
  });

  test('the message says why the moment is likely to be later', () => {
    const vague = standing('full', [{ content: { startWall: { ms: nowMs - hourMs } } }]);
    expect(readinessOf([vague], undefined, nowMs).msg).toMatch(
      /^at most 15h would be lost; a: .* 26 hours newer$/,
    );
  });

  test('a drill is held against the tightest of the objectives', () => {
    const log = standing('log', []);
    log.options.objectives = { ...log.options.objectives, rtoMs: 2 * hourMs };
    const took = (durationMs: number) => readinessOf([recent, log], { ...drill, durationMs }, nowMs).reason;
    expect([took(hourMs), took(hourMs + 1)]).toEqual([undefined, 'drill_too_slow']);
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

describe('copies of the configuration', () => {
  const copy = (over: { endMs?: number; overdue?: number; drift?: string[] }): Standing => {
    const made = standing('config', [], over.drift ? { drift: over.drift } : {});
    made.options.objectives.rpoMs = hourMs;
    const { assessment } = made.assessed!;
    assessment.msg = 'as it was judged';
    assessment.ledger.overdue = over.overdue ?? 0;
    if (over.endMs !== undefined)
      assessment.ledger.success = { startMs: over.endMs, endMs: over.endMs, sizeBytes: 1 };
    return made;
  };
  const fresh = { endMs: nowMs };
  const drift = ['/etc/service.yaml'];
  const { options } = copy(fresh);

  const equal = 'each copy equals the live files';
  const judged = 'backup config: as it was judged';
  test.each<[string, Standing, string | undefined, string]>([
    ['equal', copy(fresh), undefined, equal],
    [
      'different for as long as the objective allows',
      copy({ endMs: nowMs - hourMs, drift }),
      undefined,
      equal,
    ],
    ['different for longer', copy({ endMs: nowMs - hourMs - 1, drift }), 'drifted', judged],
    ['different and late', copy({ ...fresh, drift, overdue: 1 }), undefined, equal],
    ['late', copy({ ...fresh, overdue: 1 }), 'late', judged],
    ['old and equal', copy({ endMs: nowMs - 9 * hourMs, drift: [] }), undefined, equal],
    ['none', copy({}), 'no_backup', 'backup config: there is no good copy'],
    ['not read', { options, unreadable: 'EACCES' }, 'evidence_unreadable', 'backup config: EACCES'],
  ])('%s', (_, one, reason, msg) => {
    expect(configurationReadiness([copy(fresh), one], nowMs)).toEqual({ ...(reason && { reason }), msg });
  });
});
