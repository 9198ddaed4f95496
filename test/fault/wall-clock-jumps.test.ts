import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ProbeStatus, StatusReport } from '../../src/agent/report.ts';
import { newFolder } from '../folder.ts';
import { available } from '../installed.ts';
import { startLiveService } from '../live-service.ts';
import { hasPostgres } from '../postgres.ts';

/** Debian's libfaketime, which shifts the wall clock of a process by what a file says. */
const library = ['/usr/lib', '/usr/lib64']
  .flatMap((folder) =>
    existsSync(folder) ? ['', ...readdirSync(folder)].map((name) => join(folder, name)) : [],
  )
  .map((folder) => join(folder, 'faketime', 'libfaketime.so.1'))
  .find((file) => existsSync(file));
const hasLibrary = available('libfaketime', library !== undefined);

const hourS = 3_600;
const secondsOf = (text: string) => Date.parse(text) / 1e3;
const checksOf = ({ probes }: StatusReport, name: string) =>
  probes.find((probe) => probe.name === name)!.consecutiveFailures;

test.skipIf(!hasPostgres || !hasLibrary).each([
  ['an hour ahead, back again, and ahead', [hourS, 0, hourS]],
  ['an hour back', [-hourS]],
])(
  'the wall clock of the built agent jumps %s: nothing else is wrong, and what lasts began when it began',
  async (_, jumpsS) => {
    const shift = join(newFolder(), 'shift');
    const shiftBy = (seconds: number) => writeFileSync(shift, `${seconds < 0 ? '' : '+'}${seconds}\n`);
    shiftBy(0);
    const service = await startLiveService({
      // The long timeouts ensure that nothing else fails, not even once, however busy the machine is. The roles themselves have
      // one for their store: a role that gives up says that it is not well.
      ...{ healthTimeout: '6s', storeTimeout: '10s', roleWaitMs: 5000 },
      env: {
        LD_PRELOAD: library!,
        FAKETIME_TIMESTAMP_FILE: shift,
        FAKETIME_NO_CACHE: '1',
        FAKETIME_DONT_FAKE_MONOTONIC: '1',
      },
    });
    const isShifted = ({ now }: StatusReport, byS: number) =>
      Math.abs(secondsOf(now) - Date.now() / 1e3 - byS) < hourS / 2;
    const startedS = Date.now() / 1e3;
    service.signal('worker', 'SIGKILL');
    const seen = new Set<string>();
    const ids = ({ verdict: { problems } }: StatusReport) => {
      for (const { id } of problems) seen.add(id);
      return problems.map(({ id }) => id);
    };
    const down = await service.sees('the worker is down', (report) =>
      ids(report).includes('role_down/worker'),
    );
    const { since } = down.verdict.cause!;

    let latest = down;
    for (const [i, jumpS] of jumpsS.entries()) {
      const isLast = i === jumpsS.length - 1;
      shiftBy(jumpS);
      const failed = checksOf(latest, 'health/worker');
      latest = await service.sees(
        'the worker is checked again after the jump',
        (report) =>
          ids(report).length > 0 &&
          isShifted(report, jumpS) &&
          checksOf(report, 'health/worker') >= failed + (isLast ? 4 : 1),
      );
      expect(latest.verdict.cause?.since).toBe(since);
      expect(latest.incidents).toEqual([]);
    }

    await service.begin('worker');
    const { start, end, durationSeconds } = await service.isOver('role_down/worker');
    const lastedS = Date.now() / 1e3 - startedS;
    expect(start).toBe(since);
    expect(end >= start).toBe(true);
    expect(durationSeconds).toBeLessThanOrEqual(Math.ceil(lastedS));
    expect(durationSeconds).toBeGreaterThan(0);

    // Then the clock is set back to the right time, while all is well.
    shiftBy(0);
    const well = await service.sees('each probe has run after the second jump', (report) => {
      const isChecked = ({ last }: ProbeStatus) => Math.abs(secondsOf(last!.at) - secondsOf(report.now)) < 60;
      return ids(report).length === 0 && isShifted(report, 0) && report.probes.every(isChecked);
    });
    // A role fails before it is down.
    expect([...seen].filter((id) => !id.endsWith('/worker'))).toEqual([]);
    // The whole incident is compared, so that a failure says what was wrong with another subject.
    expect(well.incidents).toMatchObject([{ id: 'role_down/worker' }]);
  },
);
