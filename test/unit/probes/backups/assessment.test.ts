import { describe, expect, test } from 'vitest';
import { type Assessment, assess } from '../../../../src/probes/backups/assessment.ts';
import { backupFinding } from '../../../../src/probes/backups/backup-finding.ts';
import type { BackupOptions } from '../../../../src/probes/backups/block.ts';
import type { Artifact, Evidence, VerifyAnswer } from '../../../../src/probes/backups/evidence.ts';
import { keyOf, type Ledger } from '../../../../src/probes/backups/ledger.ts';
import { compareOffsite } from '../../../../src/probes/backups/offsite.ts';

const hourMs = 36e5;
const dayMs = 24 * hourMs;
const startMs = Date.UTC(2026, 0, 1, 2);

const full: BackupOptions = {
  name: 'b',
  store: 'main',
  database: 'persistence',
  type: 'full',
  source: { kind: 'runs' },
  schedule: { everyMs: dayMs, usualGraceMs: hourMs },
  objectives: { rpoMs: dayMs, rtoMs: 4 * hourMs },
  retention: { keepMs: 30 * dayMs, minCount: 1 },
  integrity: { level: 'full', minBytes: 1, maxShrink: 0.5, bytesPerSecond: 1e9, everyMs: 7 * 864e5 },
  intervalMs: 60_000,
};

/** The backup of a day, which took ten minutes. */
const ofDay = (day: number, over: Partial<Artifact> = {}): Artifact => ({
  id: `day-${day}`,
  startMs: startMs + day * dayMs,
  endMs: startMs + day * dayMs + 600_000,
  sizeBytes: 1000,
  fingerprint: 'f',
  method: 'postgres_dump',
  verify: { path: `/b/day-${day}` },
  ...over,
});
const evidence = (artifacts: Artifact[], rest: Partial<Evidence> = {}): Evidence => ({
  artifacts,
  unfinished: [],
  failures: [],
  ...rest,
});
const good: VerifyAnswer = { result: 'ok', msg: '' };

/** Assesses repeatedly as the agent does, even across restarts: the ledger passes through JSON. */
function assessing(options = full) {
  let ledger: Ledger | undefined;
  const totals: Record<string, number> = {};
  return {
    totals,
    at(
      nowMs: number,
      seen: Evidence,
      answer: (artifact: Artifact) => VerifyAnswer | undefined = () => good,
    ): Assessment {
      const answers = Object.fromEntries(
        seen.artifacts.flatMap((artifact) => {
          const given = answer(artifact);
          return given ? [[keyOf(artifact), given]] : [];
        }),
      );
      const assessed = assess(options, seen, answers, ledger, nowMs);
      ledger = JSON.parse(JSON.stringify(assessed.ledger));
      for (const [result, count] of Object.entries(assessed.results))
        totals[result] = (totals[result] ?? 0) + count;
      return assessed;
    },
  };
}

describe('what lies there when the agent comes', () => {
  test('only the newest counts', () => {
    const b = assessing();
    const assessed = b.at(startMs + 2 * dayMs + hourMs, evidence([ofDay(0), ofDay(1), ofDay(2)]));
    expect(assessed.reason).toBeUndefined();
    expect(b.totals).toEqual({ success: 1 });
    expect(assessed.ledger.success).toMatchObject({ startMs: ofDay(2).startMs });
  });

  test('nothing is no fault until a backup is due', () => {
    const b = assessing();
    expect(b.at(startMs, evidence([]))).toMatchObject({ msg: 'no backup yet' });
    expect(b.at(startMs + dayMs + hourMs + 1, evidence([])).reason).toBe('no_backup');
    expect(b.totals).toEqual({ late: 1 });
  });
});

describe('a backup from the future', () => {
  test('counts up to an hour ahead of the clock, not beyond', () => {
    const [early, late] = [assessing(), assessing()];
    const { startMs: begins } = ofDay(0);
    expect(early.at(begins - hourMs - 1, evidence([ofDay(0)])).results).toEqual({});
    expect(late.at(begins - hourMs, evidence([ofDay(0)])).results).toEqual({ success: 1 });
  });
});

describe('retention', () => {
  test('a backup may outlive its time by two intervals: the one that replaces it comes late', () => {
    const options = { ...full, retention: { keepMs: 2 * dayMs, minCount: 1 } };
    const seen = evidence([0, 1, 2, 3, 4].map((day) => ofDay(day)));
    const tooOldMs = ofDay(0).endMs + 4 * dayMs;
    expect(assessing(options).at(tooOldMs, seen).isRetentionKept).toBe(true);
    expect(assessing(options).at(tooOldMs + 1, seen).isRetentionKept).toBe(false);
  });

  test('fewer good backups than it asks for do not keep it', () => {
    const options = { ...full, retention: { minCount: 2 } };
    const at = startMs + dayMs + hourMs;
    expect(assessing(options).at(at, evidence([ofDay(0), ofDay(1)])).isRetentionKept).toBe(true);
    const damaged = evidence([ofDay(0, { sizeBytes: 0 }), ofDay(1)]);
    expect(assessing(options).at(at, damaged).isRetentionKept).toBe(false);
  });
});

describe('broken retention', () => {
  const keeping = (retention: BackupOptions['retention'], seen: Evidence, day: number) => {
    const b = assessing({ ...full, retention });
    b.at(startMs + day * dayMs, evidence([ofDay(day - 1)]));
    return b.at(startMs + day * dayMs + hourMs, seen);
  };
  const days = (...numbers: number[]) => numbers.map((day) => ofDay(day));
  test.each<[string, BackupOptions['retention'], Evidence, string]>([
    [
      'too few',
      { minCount: 2 },
      evidence(days(9)),
      'too few are kept: 1 good backup is there, and retention.minCount is 2',
    ],
    [
      'none',
      { minCount: 1 },
      evidence([]),
      'too few are kept: 0 good backups are there, and retention.minCount is 1',
    ],
    [
      'too old',
      { minCount: 1, keepMs: 3 * dayMs },
      evidence(days(4, 5, 6, 7, 8, 9)),
      'day-4 is kept too long: it ended 6d50m ago, and retention.keep is 3d',
    ],
    [
      'a gap',
      { minCount: 1 },
      evidence(days(5, 6, 9)),
      'some are missing: day-6 and day-9 are 3d apart, and one is due every 1d',
    ],
  ])('says which rule: %s', (_, retention, seen, msg) => {
    const found = keeping(retention, seen, 10);
    expect(found).toMatchObject({ isRetentionKept: false, reason: 'retention' });
    expect(found.msg).toBe(msg);
  });

  test('a backup whose files have not settled is not gone', () => {
    const copied = keeping({ minCount: 1 }, evidence([], { unsettled: 1 }), 10);
    expect([copied.isRetentionKept, copied.reason]).toEqual([true, undefined]);
    expect(keeping({ minCount: 2 }, evidence([], { unsettled: 1 }), 10).isRetentionKept).toBe(false);
  });
});

describe('each result once', () => {
  test('looks as often as it likes', () => {
    const b = assessing();
    for (let minute = 0; minute < 60; minute++) b.at(startMs + hourMs + minute * 6e4, evidence([ofDay(0)]));
    expect(b.totals).toEqual({ success: 1 });
  });

  test('late after the interval, the usual duration and an hour; missed with the next slot', () => {
    const b = assessing();
    const dueMs = startMs + dayMs + hourMs + 600_000;
    b.at(startMs + hourMs, evidence([ofDay(0)]));
    expect(b.at(dueMs - 1, evidence([ofDay(0)])).reason).toBeUndefined();
    expect(b.at(dueMs + 1, evidence([ofDay(0)])).reason).toBe('late');
    expect(b.totals).toEqual({ success: 1, late: 1 });
    b.at(dueMs + dayMs + 1, evidence([ofDay(0)]));
    b.at(dueMs + dayMs + 2, evidence([ofDay(0)]));
    expect(b.totals).toEqual({ success: 1, late: 1, missed: 1 });
    expect(b.at(startMs + 2 * dayMs + 2 * hourMs, evidence([ofDay(0), ofDay(2)])).reason).toBeUndefined();
    expect(b.totals).toEqual({ success: 2, late: 1, missed: 1 });
  });

  test('slots that passed while the agent was down are found from the artifacts', () => {
    const b = assessing();
    b.at(startMs + hourMs, evidence([ofDay(0)]));
    b.at(startMs + 4 * dayMs + hourMs, evidence([ofDay(0), ofDay(1), ofDay(4)]));
    // Days 2 and 3 have no backup: the first is reported as late, the other as missed.
    expect(b.totals).toEqual({ success: 3, late: 1, missed: 1 });
  });

  test.each<[string, (seen: Evidence) => Evidence]>([
    ['an empty mount point', () => evidence([])],
    ['a missing directory', () => ({ ...evidence([]), missingDirectory: '/b' })],
    ['one of the backups', ({ artifacts }) => evidence([artifacts[0]!])],
    ['a new backup below the mount point', () => evidence([ofDay(2, { id: 'another' })])],
  ])('what was counted before its file system was gone, behind %s', (_, without) => {
    const b = assessing({ ...full, schedule: { usualGraceMs: hourMs } });
    const nowMs = startMs + 2 * dayMs + hourMs;
    const answer = ({ id }: Artifact): VerifyAnswer =>
      id === 'day-1' ? { result: 'corrupt', msg: 'cut off' } : good;
    const there = evidence([ofDay(0), ofDay(1), ofDay(2)], {
      failures: [{ id: '7', endMs: startMs, msg: 'exit status 3' }],
      unfinished: [{ id: 'x.tmp', sinceMs: startMs }],
    });
    b.at(startMs - hourMs, evidence([]));
    const first = b.at(nowMs, there, answer);
    const before = { ...b.totals };
    expect(before).toEqual({ success: 2, corrupt: 1, failed: 1, incomplete: 1 });
    for (let times = 0; times < 2; times++) {
      b.at(nowMs + 1, without(there), answer);
      const back = b.at(nowMs + 2, there, answer);
      expect(back.ledger.lastFailureMs).toBe(first.ledger.lastFailureMs);
    }
    expect({ ...b.totals, success: before.success }).toEqual(before);
    // No answer is there in the meantime.
    b.at(nowMs + 3, there, () => undefined);
    expect(b.totals.corrupt).toBe(1);
    expect(b.totals.success).toBe(without(there).artifacts[0]?.id === 'another' ? 3 : 2);
  });

  test('of thousands of backups that are gone, until other backups follow', () => {
    const b = assessing();
    const many = evidence(Array.from({ length: 1200 }, (_, index) => ofDay(0, { id: `part-${index}` })));
    const nowMs = startMs + hourMs;
    b.at(startMs - hourMs, evidence([]));
    b.at(nowMs, many);
    b.at(nowMs, evidence([]));
    b.at(nowMs, many);
    expect(b.totals).toEqual({ success: 1200 });
    const { ledger } = b.at(nowMs + dayMs, evidence([ofDay(1)]));
    expect(Object.keys(ledger.counted)).toHaveLength(501);
    expect(Object.keys(ledger.verified)).toHaveLength(501);
    expect(Object.keys(ledger.counted)[0]).toBe('part-700 f');
  });

  test('a later attempt that leaves a file of the same name behind', () => {
    const b = assessing();
    b.at(startMs, evidence([]));
    b.at(startMs + 2, evidence([], { unfinished: [{ id: 'x.tmp', sinceMs: startMs + 1 }] }));
    b.at(startMs + 3, evidence([]));
    b.at(startMs + 6, evidence([], { unfinished: [{ id: 'x.tmp', sinceMs: startMs + 5 }] }));
    expect(b.totals).toEqual({ incomplete: 2 });
  });

  test('a run that failed, and one that was never completed', () => {
    const b = assessing();
    b.at(startMs + hourMs, evidence([ofDay(0)]));
    const faults = {
      failures: [{ id: '7', endMs: startMs + 2 * hourMs, msg: 'exit status 3' }],
      unfinished: [{ id: 'x.tmp', sinceMs: startMs + 2 * hourMs }],
    };
    for (let i = 0; i < 3; i++) {
      expect(b.at(startMs + (3 + i) * hourMs, evidence([ofDay(0)], faults))).toMatchObject({
        reason: 'backup_failed',
        msg: 'exit status 3',
      });
    }
    expect(b.totals).toEqual({ success: 1, failed: 1, incomplete: 1 });
  });
});

describe('a clock that is wrong', () => {
  test('a backup with a time in the future is none until then', () => {
    const b = assessing();
    b.at(startMs + hourMs, evidence([ofDay(0)]));
    const ahead = ofDay(30);
    const assessed = b.at(startMs + 2 * dayMs, evidence([ofDay(0), ahead]));
    expect(assessed).toMatchObject({ reason: 'late', usable: [{ id: 'day-0' }] });
    expect(assessed.msg).toContain('day-30 has a time in the future');
    expect(b.totals).toEqual({ success: 1, late: 1 });
  });

  test('a clock that was ahead for a while hides nothing afterwards, and nothing is counted again', () => {
    const b = assessing();
    b.at(startMs + hourMs, evidence([ofDay(0)]));
    b.at(startMs + 400 * dayMs, evidence([ofDay(0), ofDay(400)]));
    const counted = { ...b.totals };
    b.at(startMs + dayMs, evidence([ofDay(0), ofDay(400)]));
    expect(b.totals).toEqual(counted);
    expect(b.at(startMs + 3 * dayMs, evidence([ofDay(0), ofDay(400)])).reason).toBe('late');
  });

  test('a clock that was set back to 1970 forgets nothing', () => {
    const b = assessing();
    b.at(startMs + hourMs, evidence([ofDay(0)]));
    expect(b.at(0, evidence([ofDay(0)])).usable).toEqual([]);
    expect(b.at(startMs + 2 * hourMs, evidence([ofDay(0)])).usable).toHaveLength(1);
    expect(b.totals.success).toBe(1);
  });
});

describe('a directory that does not exist', () => {
  test('has no backup, and what it held is not counted again when it is back', () => {
    const b = assessing();
    const missing = evidence([], { missingDirectory: '/mnt/b' });
    expect(b.at(startMs, missing)).toMatchObject({ reason: 'no_backup', usable: [] });
    b.at(startMs + hourMs, evidence([ofDay(0)]));
    const assessed = b.at(startMs + 2 * hourMs, missing);
    expect(assessed).toMatchObject({
      reason: 'directory_gone',
      msg: '/mnt/b does not exist, and the newest backup there ended 1h50m ago',
    });
    b.at(startMs + 3 * hourMs, evidence([ofDay(0)]));
    expect(b.totals).toEqual({ success: 1 });
  });
});

describe('verification', () => {
  test('a backup counts when it is verified, not before', () => {
    const b = assessing();
    b.at(startMs - hourMs, evidence([]));
    expect(b.at(startMs + hourMs, evidence([ofDay(0)]), () => undefined)).toMatchObject({
      msg: 'the newest backup is being verified',
      usable: [],
      unverified: [{ id: 'day-0' }],
    });
    expect(b.totals).toEqual({});
    expect(b.at(startMs + hourMs, evidence([ofDay(0)])).usable).toHaveLength(1);
    expect(b.totals).toEqual({ success: 1 });
  });

  test('a backup that the system refuses to read is unreadable until it is read', () => {
    const b = assessing();
    const refused: VerifyAnswer = {
      ...{ result: 'unknown', msg: 'EACCES: permission denied', isFailure: true, isUnreadable: true },
    };
    const at = (answer: VerifyAnswer | undefined) =>
      b.at(startMs + hourMs, evidence([ofDay(0)]), () => answer);
    b.at(startMs - hourMs, evidence([]));
    const unreadable = { reason: 'evidence_unreadable', msg: 'cannot be read: EACCES: permission denied' };
    expect(at(refused)).toMatchObject(unreadable);
    // The next verification takes longer than the check.
    expect(at(undefined)).toMatchObject(unreadable);
    expect(b.totals).toEqual({});
    expect(at({ ...refused, isUnreadable: undefined }).reason).toBeUndefined();
    at(refused);
    expect(at(good).reason).toBeUndefined();
    expect(at(undefined).reason).toBeUndefined();
    expect(b.totals).toEqual({ success: 1 });
  });

  test('a verification that failed is no answer: the backup waits for the next one', () => {
    const b = assessing();
    b.at(startMs - hourMs, evidence([]));
    const failed = b.at(startMs + hourMs, evidence([ofDay(0)]), () => ({
      result: 'unknown',
      msg: 'EACCES',
      isFailure: true,
    }));
    expect(failed.ledger.verified).toEqual({});
    expect(b.totals).toEqual({});
    expect(b.at(startMs + hourMs, evidence([ofDay(0)])).usable).toHaveLength(1);
    expect(b.totals).toEqual({ success: 1 });
  });

  test('a damaged one is corrupt, and the one before it stays the newest success', () => {
    const b = assessing();
    b.at(startMs + hourMs, evidence([ofDay(0)]));
    const assessed = b.at(startMs + dayMs + hourMs / 2, evidence([ofDay(0), ofDay(1)]), ({ id }) =>
      id === 'day-1' ? { result: 'corrupt', msg: 'bit' } : good,
    );
    expect(assessed).toMatchObject({ reason: 'corrupt', usable: [{ id: 'day-0' }] });
    expect(assessed.ledger.success?.startMs).toBe(ofDay(0).startMs);
    expect(b.totals).toEqual({ success: 1, corrupt: 1 });
  });

  test('a known one that changes on disk is verified and assessed anew', () => {
    const b = assessing();
    b.at(startMs + hourMs, evidence([ofDay(0)]));
    const changed = ofDay(0, { fingerprint: 'g' });
    expect(
      b.at(startMs + 2 * hourMs, evidence([changed]), () => ({ result: 'corrupt', msg: '' })).reason,
    ).toBe('corrupt');
    expect(b.totals).toEqual({ success: 1, corrupt: 1 });
  });

  test.each([
    ['unknown', 'full', { result: 'unknown', msg: '' } as const],
    ['not asked for', 'none', undefined],
  ])('what is %s is a success of the run, and nothing to build upon', (_, level, answer) => {
    const b = assessing({ ...full, integrity: { ...full.integrity, level: level as 'full' | 'none' } });
    const assessed = b.at(startMs + hourMs, evidence([ofDay(0)]), () => answer);
    expect(b.totals).toEqual({ success: 1 });
    expect(assessed).toMatchObject({ usable: [], unverified: [{ id: 'day-0' }] });
  });

  test('half the size of the one before is shrunken, once', () => {
    const b = assessing();
    b.at(startMs + hourMs, evidence([ofDay(0)]));
    const small = ofDay(1, { sizeBytes: 499 });
    expect(b.at(startMs + dayMs + hourMs, evidence([ofDay(0), small])).reason).toBe('shrunken');
    const after = ofDay(2, { sizeBytes: 480 });
    expect(b.at(startMs + 2 * dayMs + hourMs, evidence([ofDay(0), small, after])).reason).toBeUndefined();
    // The shrunken backup was no success, so the slot passed without one.
    expect(b.totals).toEqual({ success: 2, shrunken: 1, late: 1 });
  });
});

test('of many without an off-site copy three are named', () => {
  const seen = evidence([ofDay(0)]);
  const assessed = assessing().at(startMs + hourMs, seen);
  const found = (...missing: string[]) =>
    backupFinding(full, seen, assessed, {
      siblings: [{ options: full }],
      offsite: { missing },
      nowMs: startMs,
    }).msg;
  expect(found('a', 'b', 'c')).toBe('no off-site copy of a, b, c');
  expect(found('a', 'b', 'c', 'd', 'e')).toBe('no off-site copy of a, b, c and 2 more');
});

test('a snapshot that is still on the node after its off-site copy', async () => {
  const snapshots = [ofDay(0), ofDay(1)];
  const seen = evidence(snapshots, { snapshots: snapshots.map(({ id }) => id) });
  const nowMs = startMs + dayMs + hourMs;
  const findingWith = async (...copies: string[]) => {
    const offsite = await compareOffsite(
      snapshots,
      {
        find: async (id) => (copies.includes(id) ? { sizeBytes: 1000 } : undefined),
        findAll: () => Promise.reject(new Error('only of a log')),
      },
      { maxLagMs: 2 * hourMs, nowMs, snapshots: seen.snapshots },
    );
    return backupFinding(full, seen, assessing().at(nowMs, seen), {
      siblings: [{ options: full }],
      offsite,
      nowMs,
    });
  };
  // The newest backup is being copied.
  expect(await findingWith('day-0')).toMatchObject({
    reason: 'snapshot_not_cleared',
    msg: 'snapshots with an off-site copy still on the node: day-0',
  });
  expect((await findingWith('day-0', 'day-1')).msg).toMatch(/day-0, day-1$/);
});

describe('configuration', () => {
  const config: BackupOptions = {
    ...full,
    type: 'config',
    source: { kind: 'configuration', files: ['a.yaml'], directory: 'copies' },
    schedule: { usualGraceMs: 5 * 6e4 },
    objectives: { rpoMs: 0, rtoMs: 5 * 6e4 },
  };
  const copy = ofDay(0, { method: 'configuration', verified: 'ok', verify: undefined });

  test('a copy that equals the live files is good at every check', () => {
    const b = assessing(config);
    const assessed = b.at(startMs + 40 * dayMs, evidence([copy], { drift: [] }));
    expect(assessed.ledger.success?.endMs).toBe(startMs + 40 * dayMs);
    expect(assessed.reason).toBeUndefined();
  });

  test('drift within the objective is none yet', () => {
    const b = assessing({ ...config, objectives: { rpoMs: 2 * 6e4, rtoMs: 0 } });
    b.at(startMs, evidence([copy], { drift: [] }));
    const later = (minutes: number) => b.at(startMs + minutes * 6e4, evidence([copy], { drift: ['a.yaml'] }));
    expect([later(1).reason, later(2).reason, later(3).reason]).toEqual([undefined, undefined, 'drifted']);
  });

  test('files that are backed up like others are judged by their schedule', () => {
    const b = assessing({ ...full, type: 'config' });
    expect(b.at(startMs + hourMs, evidence([copy])).reason).toBeUndefined();
    expect(b.at(startMs + 2 * dayMs, evidence([copy])).reason).toBe('late');
  });

  test('drift is late after the grace, once, and ends with a new copy', () => {
    const b = assessing(config);
    b.at(startMs, evidence([copy], { drift: [] }));
    expect(b.at(startMs + 6e4, evidence([copy], { drift: ['a.yaml'] })).reason).toBe('drifted');
    expect(b.at(startMs + 7 * 6e4, evidence([copy], { drift: ['a.yaml'] })).reason).toBe('drifted');
    b.at(startMs + 8 * 6e4, evidence([copy], { drift: ['a.yaml'] }));
    expect(b.totals.late).toBe(1);
    expect(b.at(startMs + 9 * 6e4, evidence([copy], { drift: [] })).reason).toBeUndefined();
    // The next copy has its own grace.
    b.at(startMs + 20 * 6e4, evidence([copy], { drift: ['a.yaml'] }));
    b.at(startMs + 24 * 6e4, evidence([copy], { drift: ['a.yaml'] }));
    expect(b.totals.late).toBe(1);
    b.at(startMs + 26 * 6e4, evidence([copy], { drift: ['a.yaml'] }));
    expect(b.totals.late).toBe(2);
  });

  test('without a copy and without files nothing is good', () => {
    const assessed = assessing(config).at(startMs, evidence([], { drift: [] }));
    expect([assessed.ledger.success, assessed.ledger.driftSinceMs]).toEqual([undefined, startMs]);
  });
});

describe('retention', () => {
  const at = startMs + 40 * dayMs + hourMs;
  const days = (from: number, to: number, leave: number[] = []) =>
    Array.from({ length: to - from + 1 }, (_, i) => from + i)
      .filter((day) => !leave.includes(day))
      .map((day) => ofDay(day));

  test.each([
    ['thirty days', days(11, 40), true],
    ['too old', days(1, 40), false],
    ['a gap', days(11, 40, [20, 21]), false],
  ])('%s', (_, artifacts, kept) => {
    expect(assessing().at(at, evidence(artifacts)).isRetentionKept).toBe(kept);
  });

  test('too few', () => {
    const b = assessing({ ...full, retention: { keepMs: 30 * dayMs, minCount: 3 } });
    expect(b.at(at, evidence(days(39, 40)))).toMatchObject({ isRetentionKept: false, reason: 'retention' });
  });
});

describe('the time of the last failure is that of the newest one, whatever shows it', () => {
  const at = startMs + 5 * hourMs;
  const [early, late] = [startMs + hourMs, startMs + 2 * hourMs];
  const damaged = (id: string, endMs: number) => ofDay(0, { id, endMs, verified: 'corrupt' });
  const kinds: [name: string, shown: (times: readonly number[]) => Evidence][] = [
    ['a damaged backup', (times) => evidence(times.map((endMs) => damaged(`at-${endMs}`, endMs)))],
    [
      'a run that failed',
      (times) => evidence([], { failures: times.map((endMs) => ({ id: `at-${endMs}`, endMs, msg: '' })) }),
    ],
    [
      'a run that was not completed',
      (times) => evidence([], { unfinished: times.map((sinceMs) => ({ id: `at-${sinceMs}`, sinceMs })) }),
    ],
  ];

  test.each(kinds)('%s', (_, shown) => {
    const b = assessing();
    for (const times of [[late, early], [early, late], [early]])
      expect(b.at(at, shown(times)).ledger.lastFailureMs).toBe(late);
  });

  test('a missed slot fails at its end, whenever it is found, a late backup and one that is being verified do not', () => {
    const b = assessing({ ...full, schedule: { everyMs: dayMs, graceMs: 0, usualGraceMs: hourMs } });
    expect(b.at(startMs, evidence([ofDay(0)]), () => undefined).ledger.lastFailureMs).toBeUndefined();
    expect(b.at(startMs + dayMs, evidence([])).ledger.lastFailureMs).toBeUndefined();
    expect(b.totals).toEqual({ late: 1 });
    const missedMs = startMs + 2 * dayMs;
    expect(b.at(missedMs + 7 * hourMs, evidence([])).ledger.lastFailureMs).toBe(missedMs);
    const newer = { failures: [{ id: '7', endMs: startMs + 5 * dayMs, msg: '' }] };
    expect(b.at(startMs + 3 * dayMs, evidence([], newer)).ledger.lastFailureMs).toBe(startMs + 5 * dayMs);
    expect(b.at(startMs + 4 * dayMs, evidence([])).ledger.lastFailureMs).toBe(startMs + 5 * dayMs);
    expect(b.totals).toEqual({ late: 1, missed: 3, failed: 1 });
  });
});

describe('the first look at a directory', () => {
  test('failures from before are shown and not counted', () => {
    const b = assessing();
    const faults = {
      failures: [{ id: '7', endMs: startMs + hourMs, msg: 'exit status 3' }],
      unfinished: [{ id: 'x.tmp', sinceMs: startMs }],
    };
    expect(b.at(startMs + 2 * hourMs, evidence([], faults)).reason).toBe('backup_failed');
    expect(b.totals).toEqual({});
  });

  test('only the newest of the backups from before has to be verified to count', () => {
    const b = assessing();
    const seen = evidence([ofDay(0), ofDay(1)]);
    b.at(startMs + dayMs + hourMs, seen, () => undefined);
    expect(b.at(startMs + dayMs + hourMs, seen, () => undefined).ledger.counted).toEqual({
      [keyOf(ofDay(0))]: 'success',
    });
    // What has ended since waits for its verification, too, whether it is the newest or not.
    const later = evidence([ofDay(1), ofDay(2), ofDay(3)]);
    const assessed = b.at(startMs + 3 * dayMs + hourMs, later, ({ id }) =>
      id === 'day-1' ? good : undefined,
    );
    expect(assessed.ledger.counted).toEqual({
      [keyOf(ofDay(0))]: 'success',
      [keyOf(ofDay(1))]: 'success',
    });
  });
});

test('a backup that ended in the moment of the first look is one from before', () => {
  const b = assessing();
  const [first, second] = [ofDay(0), ofDay(1)];
  b.at(first.endMs, evidence([first]), () => undefined);
  expect(b.at(second.endMs, evidence([first, second]), () => undefined).ledger.counted).toEqual({
    [keyOf(first)]: 'success',
  });
});

describe('what may be built upon', () => {
  const sizes: [name: string, over: Partial<Artifact>, options: BackupOptions, result: string][] = [
    ['as small as allowed', { sizeBytes: 1 }, { ...full, type: 'log' }, 'success'],
    ['smaller than allowed', { sizeBytes: 0 }, { ...full, type: 'log' }, 'incomplete'],
    ['half the size of the one before', { sizeBytes: 500 }, full, 'success'],
    ['less than half of it', { sizeBytes: 499 }, full, 'shrunken'],
    ['less than half of it, incremental', { sizeBytes: 499 }, { ...full, type: 'incremental' }, 'success'],
  ];
  test.each(sizes)('a backup that is %s', (_, over, options, result) => {
    const second = ofDay(1, over);
    const assessed = assessing(options).at(second.endMs, evidence([ofDay(0), second]));
    expect(assessed.ledger.counted[keyOf(second)]).toBe(result);
    // A good check of its content does not make a backup with a wrong size usable.
    const usable = result === 'success' ? [ofDay(0), second] : [ofDay(0)];
    expect(assessed.usable).toEqual(usable);
  });

  test('a damaged backup neither is usable nor waits for a verification', () => {
    const seen = evidence([ofDay(0), ofDay(1)]);
    const assessed = assessing().at(startMs + dayMs + hourMs, seen, ({ id }) => ({
      result: id === 'day-1' ? 'corrupt' : 'unknown',
      msg: '',
    }));
    expect([assessed.usable, assessed.unverified]).toEqual([[], [ofDay(0)]]);
  });

  test('a backup that nothing can verify counts at once', () => {
    const seen = evidence([ofDay(0, { verify: undefined })]);
    const b = assessing();
    expect(b.at(startMs + hourMs, seen, () => undefined).usable).toEqual([]);
    expect(b.totals).toEqual({ success: 1 });
  });

  test('what a verification reads of the content is known of the backup', () => {
    const seen = evidence([ofDay(0, { content: { systemId: '7' } })]);
    const answer: VerifyAnswer = { ...good, content: { startMs } };
    expect(assessing().at(startMs + hourMs, seen, () => answer).usable).toEqual([
      ofDay(0, { content: { systemId: '7', startMs } }),
    ]);
  });
});

describe('a backup that loses files', () => {
  const withFiles = (files: number, recordedFiles?: number) =>
    ofDay(0, { files, ...(recordedFiles !== undefined && { recordedFiles }) });
  const lost = { reason: 'incomplete', msg: '3 files of day-0 are gone', usable: [] };

  test('is incomplete at each look, and counted once', () => {
    const b = assessing();
    // What an earlier version of the agent remembers names no files.
    b.at(startMs, evidence([]));
    const plain = ofDay(0, { id: 'plain' });
    expect(b.at(startMs + hourMs, evidence([plain, withFiles(12)])).reason).toBeUndefined();
    for (let look = 0; look < 2; look++)
      expect(b.at(startMs + 2 * hourMs, evidence([plain, withFiles(9)]))).toMatchObject({
        ...lost,
        usable: [plain],
      });
    expect(b.totals).toEqual({ success: 2, incomplete: 1 });
  });

  test('is incomplete at the first look where its tool recorded how many it had', () => {
    expect(assessing().at(startMs + hourMs, evidence([withFiles(7, 10)]))).toMatchObject(lost);
    const tooSmall = { ...withFiles(10, 10), sizeBytes: 0 };
    expect(assessing().at(startMs + hourMs, evidence([tooSmall])).msg).toBe('the newest backup is too small');
  });
});

test('the ledger forgets the files of backups that are gone', () => {
  const b = assessing();
  for (let day = 0; day < 3; day++) {
    const { ledger } = b.at(ofDay(day).endMs, evidence([ofDay(day, { files: 2 })]));
    expect(Object.keys(ledger.files!)).toEqual([`day-${day}`]);
  }
  expect(b.totals).toEqual({ success: 3 });
});

describe('how late a backup may be', () => {
  const minuteMs = 6e4;
  const lasting = (day: number, minutes: number) =>
    ofDay(day, { endMs: startMs + day * dayMs + minutes * minuteMs });
  /** The first minute after the last backup in which it is late. */
  const lateAfter = (options: BackupOptions, artifacts: Artifact[]): number => {
    const b = assessing(options);
    for (const artifact of artifacts) b.at(artifact.endMs, evidence([artifact]));
    const { startMs: lastMs } = artifacts.at(-1)!;
    for (let minute = 0; ; minute++)
      if (b.at(lastMs + minute * minuteMs, evidence([artifacts.at(-1)!])).reason === 'late') return minute;
  };
  const every = (everyMs: number): BackupOptions => ({
    ...full,
    schedule: { everyMs, usualGraceMs: 10 * minuteMs },
  });

  test.each([
    ['the usual grace alone while no duration is known', [0], 70],
    ['the duration of the one before, too', [5], 75],
    ['nothing of a duration that is not known', [0, 0, 5], 75],
    ['the median of the durations', [30, 2, 9], 79],
    ['the median as a number, not as text', [30, 9, 10], 80],
    ['the median of the last nine', [1, 1, 1, 1, 1, 1, 1, 20, 20, 20, 20, 20], 90],
  ])('%s', (_, durations, minutes) => {
    expect(
      lateAfter(
        every(hourMs),
        durations.map((took, at) =>
          ofDay(0, {
            id: `no-${at}`,
            startMs: startMs + at * hourMs,
            endMs: startMs + at * hourMs + took * minuteMs,
          }),
        ),
      ),
    ).toBe(minutes);
  });

  test('the grace of the configuration instead of all that', () => {
    const options = { ...full, schedule: { everyMs: hourMs, graceMs: 0, usualGraceMs: 10 * minuteMs } };
    expect(lateAfter(options, [lasting(0, 30)])).toBe(60);
  });

  test.each([undefined, 0])('a backup with the interval %s is never late', (everyMs) => {
    const schedule = { usualGraceMs: 0, ...(everyMs !== undefined && { everyMs }) };
    const b = assessing({ ...full, schedule });
    b.at(startMs + hourMs, evidence([ofDay(0)]));
    expect(b.at(startMs + 400 * dayMs, evidence([ofDay(0)])).reason).not.toBe('late');
    expect(b.totals).toEqual({ success: 1 });
  });
});

describe('the reason that is shown', () => {
  const seen = evidence([ofDay(0)]);
  const { endMs } = ofDay(0);
  const failed = (atMs: number) => ({ failures: [{ id: '7', endMs: atMs, msg: 'exit status 3' }] });
  const begun = (sinceMs: number) => ({ unfinished: [{ id: 'x.tmp', sinceMs }] });
  const segment = ofDay(0, { id: 'segment', verified: 'corrupt', fault: 'bad magic' });
  const cases: [name: string, shown: Evidence, answer: VerifyAnswer, reason: unknown, msg: string][] = [
    ['a failure after the last success', { ...seen, ...failed(endMs + 1) }, good, 'backup_failed', 'exit'],
    ['a failure before it', { ...seen, ...failed(endMs) }, good, undefined, 'newest backup ended 50m ago'],
    ['one begun after it', { ...seen, ...begun(endMs + 1) }, good, 'incomplete', 'started but not completed'],
    ['one begun before it', { ...seen, ...begun(endMs) }, good, undefined, '50m ago'],
    ['one begun, and none before', evidence([], begun(startMs)), good, 'incomplete', 'started'],
    ['a gap in a log', { ...seen, gap: 'no segment 7' }, good, 'log_gap', 'no segment 7'],
    ['damage that was read', seen, { result: 'corrupt', msg: 'bit 7' }, 'corrupt', 'damaged: bit 7'],
    ['damage that its tool tells', evidence([segment]), good, 'corrupt', 'damaged: bad magic'],
    [
      'damage without a word',
      evidence([{ ...segment, fault: undefined } as unknown as Artifact]),
      good,
      'corrupt',
      'damaged: its tool reports it',
    ],
    ['damage of an older backup', evidence([segment, ofDay(0)]), good, undefined, '50m ago'],
    [
      'damage of an older segment of a log',
      { ...evidence([segment, ofDay(0)]), log: {} as Evidence['log'] } as Evidence,
      good,
      'corrupt',
      'a segment is damaged: bad magic',
    ],
    [
      'a damaged segment of which nothing is told',
      { ...evidence([ofDay(0, { verified: 'corrupt' }), ofDay(0)]), log: {} } as unknown as Evidence,
      good,
      undefined,
      '50m ago',
    ],
    [
      'no damage of a log',
      { ...evidence([ofDay(0, { fault: 'none' }), ofDay(0)]), log: {} } as unknown as Evidence,
      good,
      undefined,
      '50m ago',
    ],
  ];
  test.each(cases)('%s', (_, shown, answer, reason, msg) => {
    const b = assessing({ ...full, retention: { minCount: 0 } });
    const answers = ({ verified }: Artifact) => (verified ? undefined : answer);
    const assessed = b.at(startMs + hourMs, shown, answers);
    expect([assessed.reason, assessed.msg]).toEqual([reason, expect.stringContaining(msg)]);
  });

  test('since when no backup has succeeded', () => {
    const b = assessing();
    b.at(startMs + hourMs, seen);
    expect(b.at(startMs + 3 * dayMs, seen).msg).toBe('no backup has succeeded for 3d');
    // The gap would still be there after the next segment.
    const { reason, msg } = b.at(startMs + 3 * dayMs, { ...seen, gap: 'no segment 7' });
    expect([reason, msg]).toEqual(['late', 'no backup has succeeded for 3d; no segment 7']);
  });

  test('three of the files that differ are named', () => {
    const config: BackupOptions = {
      ...full,
      source: { kind: 'configuration', files: [], directory: 'copies' },
      objectives: { rpoMs: 0, rtoMs: 0 },
    };
    const { msg } = assessing(config).at(startMs, evidence([], { drift: ['a', 'b', 'c', 'd'] }));
    expect(msg).toBe('the newest copy differs from the live files: a, b, c');
  });
});

test('a clock that was ahead when the configuration drifted does not hide that it is late', () => {
  const config: BackupOptions = {
    ...full,
    source: { kind: 'configuration', files: ['a.yaml'], directory: 'copies' },
    schedule: { usualGraceMs: hourMs },
    objectives: { rpoMs: 40 * dayMs, rtoMs: 0 },
  };
  const drifted = evidence([], { drift: ['a.yaml'] });
  const b = assessing(config);
  b.at(startMs + 30 * dayMs, drifted);
  b.at(startMs, drifted);
  expect(b.at(startMs + hourMs, drifted).reason).toBeUndefined();
  expect(b.at(startMs + hourMs + 1, drifted).reason).toBe('drifted');
  expect(b.totals).toEqual({ late: 1 });
});

test('a success that was recorded an hour ahead of the clock stays, one further ahead is taken back', () => {
  const successAt = (aheadMs: number) => {
    const b = assessing();
    b.at(startMs + dayMs, evidence([ofDay(1)]));
    return b.at(startMs + dayMs - aheadMs, evidence([])).ledger.success?.startMs;
  };
  expect(successAt(hourMs)).toBe(startMs + dayMs);
  expect(successAt(hourMs + 1)).toBe(startMs + dayMs - hourMs - 1);
});

describe('backups that are missing among those that are kept', () => {
  const after = (gapMs: number) => [ofDay(0), ofDay(0, { id: 'next', startMs: startMs + gapMs })];
  const most = 2 * dayMs + hourMs;
  test.each([
    ['as far apart as two slots and the grace', full, most, true],
    ['further apart', full, most + 1, false],
    ['further apart, of a log', { ...full, type: 'log' as const }, most + 1, true],
    ['further apart, without an interval', { ...full, schedule: { usualGraceMs: hourMs } }, most + 1, true],
    ['of a configuration', { ...full, type: 'config' as const }, most + 1, true],
  ])('%s', (_, options, gapMs, isKept) => {
    const assessed = assessing(options).at(startMs + gapMs + hourMs, evidence(after(gapMs)));
    expect(assessed.isRetentionKept).toBe(isKept);
  });

  test('what is kept for ever is never too old', () => {
    const options = { ...full, retention: { minCount: 0 } };
    expect(assessing(options).at(startMs + 999 * dayMs, evidence([ofDay(0)])).isRetentionKept).toBe(true);
    const none = { ...full, retention: { keepMs: dayMs, minCount: 0 } };
    expect(assessing(none).at(startMs, evidence([])).isRetentionKept).toBe(true);
  });
});
