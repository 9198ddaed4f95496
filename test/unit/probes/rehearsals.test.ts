import { expect, test } from 'vitest';
import type { BackupOptions } from '../../../src/probes/backups/block.ts';
import type { Finding } from '../../../src/probes/probe.ts';
import type { RehearsalOptions } from '../../../src/probes/rehearsal/block.ts';
import type { RehearsalAnswer, RehearsalRequest } from '../../../src/probes/rehearsal/rehearsal.ts';
import type { StartRehearsal } from '../../../src/probes/rehearsal/rehearsal-process.ts';
import { planRehearsals } from '../../../src/probes/rehearsal/rehearsals.ts';
import { manualClock } from '../../clock.ts';
import { newFolder } from '../../folder.ts';
import { bench, storeOn } from '../../store-probe.ts';
import { until } from '../../until.ts';

const hourMs = 36e5;
const dayMs = 24 * hourMs;
const startMs = Date.parse('2026-11-23T12:00:00Z');

const backup = (
  name: string,
  type: BackupOptions['type'],
  source: BackupOptions['source'],
): BackupOptions => ({
  ...{ name, type, source, store: 'main', database: 'persistence', intervalMs: 60_000 },
  schedule: { everyMs: dayMs, usualGraceMs: hourMs },
  objectives:
    type === 'log' ? { rpoMs: hourMs / 12, rtoMs: hourMs / 2 } : { rpoMs: dayMs, rtoMs: 4 * hourMs },
  retention: { minCount: 1 },
  integrity: { level: 'full', minBytes: 1, maxShrink: 0.9, bytesPerSecond: 1e9, everyMs: 7 * 864e5 },
});
const chain = {
  details: {
    chain: {
      links: [
        { backup: 'base', type: 'full', what: 'base-1' },
        { backup: 'wal', type: 'log', what: '000000010000000000000002 to 000000010000000000000009' },
      ],
    },
  },
};
const good: RehearsalAnswer = {
  ...{ result: 'ok', msg: '', phasesMs: { copy: 60_000, log: 30_000, check: 1000, remove: 5000 } },
  ...{ workflows: 700, newestRowMs: startMs - 60_000 },
};

/** A row with a process that gives these answers, and a clock that the test advances. */
async function rehearsing(
  answer: () => RehearsalAnswer | undefined,
  { state = newFolder(), ...block }: Partial<RehearsalOptions> & { state?: string } = {},
) {
  const clock = manualClock(startMs);
  const requests: RehearsalRequest[] = [];
  const start: StartRehearsal = (request) => {
    if (!('clean' in request)) requests.push(request);
    return { phase: () => 'copy', ended: Promise.resolve('clean' in request ? undefined : answer()) };
  };
  const [row] = planRehearsals(
    {
      stores: [storeOn(1)],
      backups: [
        backup('base', 'full', { kind: 'files', directory: '/backups', pattern: '^base-', settleMs: 0 }),
        backup('wal', 'log', { kind: 'segments', directory: '/backups/wal', log: 'wal', settleMs: 0 }),
      ],
      stateDirectory: state,
      recovery: {
        rehearsal: { everyMs: 7 * dayMs, directory: '/tmp', maxBytes: 1e9, timeoutMs: hourMs, ...block },
      },
    },
    start,
  );
  let found: Finding | undefined = chain as unknown as Finding;
  const probe = await row!.open({ ...bench().deps, clock, latest: () => found });
  let remembered: unknown;
  const check = async () => {
    const finding = await probe.check(AbortSignal.timeout(10_000), remembered);
    remembered = finding.remember;
    const proven = finding.gauges?.find(({ name }) => name === 'svc_recovery_proven')?.value;
    return { proven, reason: finding.reason, msg: finding.msg };
  };
  return {
    requests,
    clock,
    check,
    evidence: (next: Finding | undefined) => {
      found = next;
    },
    /** Checks until the rehearsal that is due has ended. */
    done: () =>
      until('the rehearsal has ended', async () => {
        const checked = await check();
        return requests.length > 0 && !checked.msg.includes('under way') && checked;
      }),
  };
}

test('the newest backup and its log are restored, once until the next is due', async () => {
  const { requests, check, done } = await rehearsing(() => good);
  expect(await done()).toEqual({
    proven: 1,
    reason: undefined,
    msg: 'restored in 1m31s with 700 workflows; the newest row was 1m old',
  });
  expect(requests).toMatchObject([
    {
      kind: 'postgres',
      backup: '/backups/base-1',
      log: { directory: '/backups/wal', last: '000000010000000000000009' },
    },
  ]);
  await check();
  expect(requests).toHaveLength(1);
});

test.each<[string, Partial<RehearsalAnswer>, object]>([
  [
    'a restore that takes longer than the objective',
    { phasesMs: { copy: hourMs, remove: 1 } },
    { proven: 0, reason: 'drill_too_slow', msg: 'the rehearsal took 1h; the objective is 30m' },
  ],
  [
    'a newest row that is older than the objective',
    { newestRowMs: startMs - hourMs },
    {
      proven: 0,
      reason: 'recovery_point_too_old',
      msg: 'the newest row restored was 1h old; the objective is 5m',
    },
  ],
  [
    'a newest row exactly as old as the objective',
    { newestRowMs: startMs - hourMs / 12 },
    { proven: 1, reason: undefined },
  ],
  [
    'an unknown newest row',
    { newestRowMs: undefined },
    { proven: 1, msg: expect.stringContaining('set recovery.rehearsal.newestRow') },
  ],
  [
    'a backup that does not restore',
    { result: 'failed', msg: 'pg_restore: exit status 1' },
    {
      proven: 0,
      reason: 'rehearsal_failed',
      msg: 'the backup cannot be restored: pg_restore: exit status 1',
    },
  ],
  [
    'a host that cannot look',
    { result: 'unknown', msg: 'this host has no initdb' },
    {
      proven: undefined,
      reason: 'rehearsal_unknown',
      msg: expect.stringContaining('this host has no initdb'),
    },
  ],
])('%s', async (_, over, expected) => {
  const { done } = await rehearsing(() => ({ ...good, ...over }));
  expect(await done()).toMatchObject(expected);
});

test('a proof holds for two intervals; then, and if there never was one, the rehearsal is missing', async () => {
  // Later rehearsals never end.
  const answers = [good];
  const proven = await rehearsing(() => answers.shift());
  await proven.done();
  proven.clock.jumpTo(startMs + 13 * dayMs);
  expect(await proven.check()).toMatchObject({ proven: 1 });
  proven.clock.jumpTo(startMs + 15 * dayMs);
  expect(await proven.check()).toMatchObject({ proven: 0, reason: 'rehearsal_missing' });

  const never = await rehearsing(() => good);
  never.evidence({ msg: '', details: {} });
  expect(await never.check()).toEqual({
    proven: undefined,
    reason: undefined,
    msg: 'there is no verified full backup',
  });
  never.clock.jumpTo(startMs + 15 * dayMs);
  expect(await never.check()).toMatchObject({
    proven: 0,
    reason: 'rehearsal_missing',
    msg: expect.stringContaining('there is no verified full backup'),
  });
  expect(never.requests).toEqual([]);
});

test('a rehearsal with other settings is due at once, one with another schedule is not', async () => {
  const state = newFolder();
  const statement = 'SELECT max(start_time) FROM executions';
  const unknown: RehearsalAnswer = { ...good, result: 'unknown', msg: 'newestRow fails' };
  const first = await rehearsing(() => unknown, { state, newestRow: { persistence: 'SELECT 1 FROM no' } });
  expect(await first.done()).toMatchObject({ reason: 'rehearsal_unknown' });
  await first.check();
  expect(first.requests).toMatchObject([{ newestRow: 'SELECT 1 FROM no' }]);

  const repaired = await rehearsing(() => good, { state, newestRow: { persistence: statement } });
  expect(await repaired.done()).toMatchObject({ proven: 1, reason: undefined });
  await repaired.check();
  expect(repaired.requests).toMatchObject([{ newestRow: statement }]);

  const settings = { state, newestRow: { persistence: statement, visibility: 'SELECT 1' } };
  const rescheduled = await rehearsing(() => good, { ...settings, everyMs: dayMs });
  expect(await rescheduled.check()).toMatchObject({
    proven: 1,
    msg: expect.not.stringContaining('under way'),
  });
  expect(rescheduled.requests).toEqual([]);
});

test('what another rehearsal keeps waiting is no attempt', async () => {
  const { requests, check } = await rehearsing(() => undefined);
  const asked = await until('it is asked again', async () => {
    const checked = await check();
    return requests.length > 2 && checked;
  });
  expect(asked).toMatchObject({ proven: undefined, msg: expect.stringContaining('no rehearsal yet') });
});
