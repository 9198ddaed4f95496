import { describe, expect, test } from 'vitest';
import { type Assessment, assess, keyOf, type Ledger } from '../../../../src/probes/backups/assessment.ts';
import { backupFinding } from '../../../../src/probes/backups/backup-finding.ts';
import type { BackupOptions } from '../../../../src/probes/backups/block.ts';
import type { Artifact, Evidence, VerifyAnswer } from '../../../../src/probes/backups/evidence.ts';
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

/** Assesses again and again as the agent does, across restarts too: the ledger goes through JSON. */
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
    // Days 2 and 3 have none: the first of them is told as late, the other as missed.
    expect(b.totals).toEqual({ success: 3, late: 1, missed: 1 });
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
      reason: 'no_backup',
      msg: expect.stringContaining('/mnt/b does not exist'),
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
    // The shrunken one was no success, so the slot passed without one.
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
  // The newest one is being copied.
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
