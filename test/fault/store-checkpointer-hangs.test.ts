import { rmSync } from 'node:fs';
import { expect, test } from 'vitest';
import { logState } from '../../src/probes/stores/postgres-checks.ts';
import { planStores } from '../../src/probes/stores/stores.ts';
import { openProbes } from '../backup-probes.ts';
import { manualClock } from '../clock.ts';
import { hasPostgres, startArchiving } from '../postgres.ts';
import { bench, kindOf, probeOf, storeOn } from '../store-probe.ts';

// The checkpointer of PostgreSQL closes a segment with anything of importance after archive_timeout. If it hangs, what the segment
// has stays unarchived, however long the server has been idle. It counts each time that it comes round.
const segment = '16777216';
const [header, list, more] = ['28', '60', '68'];

type Poll = { lsn?: string; passes?: number; afterMs: number };

/** Whether the log is known to be whole at each of the polls. */
async function polled(polls: readonly Poll[], settings: object): Promise<boolean[]> {
  const { deps, clock } = bench();
  let now: Poll = polls[0]!;
  const kind = kindOf(async () => ({
    identity: 'a',
    log: logState({
      ...{ lsn: `0/50000${more}`, timeline: 1, ...now },
      archiver: { failures: 0, failing: false, failedWal: null, archivedWal: '000000010000000000000004' },
      backlog: { waiting: 0, ageS: 0 },
      settings: { wal_segment_size: segment, bgwriter_delay: '200', archive_timeout: '60', ...settings },
    } as never),
  }));
  const probe = probeOf(storeOn(1), kind, deps);
  const found: boolean[] = [];
  let recalled: unknown;
  for (now of polls) {
    clock.advance(now.afterMs);
    const { details, remember } = await probe.check(new AbortController().signal, recalled);
    // An agent that is started again continues with what it remembered.
    recalled = JSON.parse(JSON.stringify(remember));
    found.push((details!.log as { wholeUntilMs?: number }).wholeUntilMs === clock.nowMs());
  }
  return found;
}

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const first = { passes: 7, afterMs: 0 };

test.each<[string, Poll[], boolean[], object?]>([
  [
    'it has not come round since',
    [first, { passes: 7, afterMs: dayMs }, { passes: 7, afterMs: dayMs }],
    [false, false, false],
  ],
  [
    'it came round before the segment was old enough',
    [first, { passes: 8, afterMs: 30_000 }, { passes: 8, afterMs: dayMs }, { passes: 8, afterMs: dayMs }],
    [false, false, false, false],
  ],
  [
    'it has come round since, and has found nothing to close',
    [first, { passes: 7, afterMs: 66_000 }, { passes: 8, afterMs: 1000 }, { passes: 8, afterMs: dayMs }],
    [false, false, true, true],
  ],
  [
    'something was written then',
    [first, { passes: 7, afterMs: 66_000 }, { passes: 8, lsn: '0/5000100', afterMs: 1000 }],
    [false, false, false],
  ],
  [
    'the counts were reset',
    [first, { passes: 7, afterMs: 66_000 }, { passes: 0, afterMs: 1000 }, { passes: 1, afterMs: 1000 }],
    [false, false, false, true],
  ],
  ['its count is not known', [{ afterMs: 0 }, { afterMs: dayMs }], [false, false]],
  [
    'nothing closes segments',
    [first, { passes: 7, afterMs: dayMs }, { passes: 8, afterMs: minuteMs }],
    [false, false, false],
    { archive_timeout: '0' },
  ],
  [
    'it hangs, and the segment has no more than a list of transactions',
    [
      { ...first, lsn: `0/50000${list}` },
      { ...first, lsn: `0/50000${list}`, afterMs: 55_200 },
      { ...first, lsn: `0/50000${list}`, afterMs: 1 },
    ],
    [false, false, true],
  ],
  [
    'the background writer, which writes the list, sleeps for longer',
    [
      { ...first, lsn: `0/50000${list}` },
      { ...first, lsn: `0/50000${list}`, afterMs: 500_000 },
      { ...first, lsn: `0/50000${list}`, afterMs: 60_000 },
    ],
    [false, false, true],
    { bgwriter_delay: '10000' },
  ],
  ['it hangs, and the segment has nothing', [{ ...first, lsn: `0/50000${header}` }], [true]],
])('%s', async (_, polls, expected, settings = {}) =>
  expect(await polled(polls, settings)).toEqual(expected),
);

test.skipIf(!hasPostgres)('a real one hangs after a row was written', async () => {
  const { folder, server } = await startArchiving({ settings: ['archive_timeout=1'] });
  const clock = manualClock(Date.now());
  const { round, close } = await openProbes(
    planStores({ stores: [storeOn(server.port, { user: 'postgres' })] }),
    () => ({ clock }),
  );
  const wholeUntilMs = async () => {
    const finding = (await round()).get('store/main/persistence')!;
    return (finding.details!.log as { wholeUntilMs?: number } | undefined)?.wholeUntilMs;
  };
  const { rows } = await server.query(`SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'`);
  const pid = Number(rows[0].pid);
  try {
    await server.query('CREATE TABLE executions (id int)');
    await server.archiveWal();
    process.kill(pid, 'SIGSTOP');
    await server.query('INSERT INTO executions VALUES (1)');
    for (let polls = 0; polls < 5; polls++) {
      expect(await wholeUntilMs()).toBeUndefined();
      clock.advance(dayMs);
    }
  } finally {
    process.kill(pid, 'SIGCONT');
    await close();
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
