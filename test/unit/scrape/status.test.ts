import { expect, test } from 'vitest';
import type { Log } from '../../../src/core/ports.ts';
import type { Page } from '../../../src/sources/scrape/exposition/line-table.ts';
import { createScrapeStatus, failureOf, ScrapeFailure } from '../../../src/sources/scrape/scrape-status.ts';
import { manualClock } from '../../clock.ts';

const startMs = 1_700_000_000_000;

function bed(url = 'http://user:swordfish@role.test:8000/metrics?token=swordfish') {
  const clock = manualClock(startMs);
  const told: string[] = [];
  const drops: Record<string, number> = {};
  const log: Log = {
    write: (level, message, fields = {}) => void told.push(`${level} ${message} ${String(fields.target)}`),
    named: () => log,
  };
  const status = createScrapeStatus({
    url,
    redact: (text) => text,
    clock,
    log,
    drops: {
      count(component, reason, by = 1) {
        drops[`${component}/${reason}`] = (drops[`${component}/${reason}`] ?? 0) + by;
      },
    },
  });
  const succeeded = (invalidLines = 0, refusedLines = 0) =>
    status.succeeded(
      { samples: 7, bytes: 99, invalidLines, firstInvalid: undefined } as Page,
      { series: 5, refusedLines, counters: 0, fallen: 0 },
      12,
    );
  const failed = (reason: 'reset' | 'too_slow', isCounted = false) =>
    status.failed(new ScrapeFailure(reason, `the fault ${reason}`), isCounted);
  return { clock, told, drops, status, succeeded, failed };
}

const target = 'http://role.test:8000/metrics';

test('before the first page a target is neither up nor failed, and its URL has no secret', () => {
  expect(bed().status.current('svc')).toEqual({
    ...{ url: target, up: false, vocabulary: 'svc', failures: {} },
    ...{ lastTakenMs: undefined, lastFailure: undefined, page: undefined, firstInvalid: undefined },
  });
});

test('a page that is accepted is shown with its figures', () => {
  const { clock, status, succeeded, told, drops } = bed();
  clock.advance(3);
  succeeded();
  expect(status.current(undefined)).toMatchObject({
    ...{ up: true, lastTakenMs: startMs + 3 },
    page: { series: 5, samples: 7, bytes: 99, invalidLines: 0, durationMs: 12 },
  });
  expect([told, drops]).toEqual([[], {}]);
});

test('a failure is told when it begins and when its reason changes, and its end once', () => {
  const { clock, status, succeeded, failed, told, drops } = bed();
  clock.advance(5);
  for (const reason of ['reset', 'reset', 'too_slow', 'reset'] as const) failed(reason);
  expect(status.current(undefined)).toMatchObject({
    ...{ up: false, failures: { reset: 3, too_slow: 1 } },
    lastFailure: { reason: 'reset', what: 'the fault reset', atMs: startMs + 5 },
  });
  succeeded();
  succeeded();
  failed('reset');
  const failure = `warn scrape failed ${target}`;
  expect(told).toEqual([failure, failure, failure, `info the target is up again ${target}`, failure]);
  expect(drops).toEqual({ 'scrape/failed': 4, 'scrape/too_slow': 1 });
});

test('a failure whose missed deadline was counted is shown, and not counted again', () => {
  const { status, failed, told, drops } = bed();
  failed('reset', true);
  expect(status.current(undefined)).toMatchObject({
    up: false,
    failures: {},
    lastFailure: { reason: 'reset' },
  });
  expect([told.length, drops]).toEqual([1, {}]);
});

test('invalid and refused lines are counted on each page, and told when they begin', () => {
  const { status, succeeded, told, drops } = bed();
  for (const [invalid, refused] of [
    [2, 0],
    [0, 3],
    [0, 0],
    [1, 1],
  ] as const)
    succeeded(invalid, refused);
  const skipping = `warn skipping invalid lines of the page ${target}`;
  expect(told).toEqual([skipping, skipping]);
  expect(drops).toEqual({ 'scrape/invalid_line': 7 });
  expect(status.current(undefined).page?.invalidLines).toBe(2);
});

test.each([
  ['a reset within the body', 'ECONNRESET', true, 'cut_off'],
  ['a reset before it', 'ECONNRESET', false, 'reset'],
  ['a refused connection', 'ECONNREFUSED', true, 'refused'],
  ['another error', 'EXOTIC', true, 'failed'],
])('%s', (_, code, inBody, reason) => {
  const thrown = Object.assign(new Error('x'), { code });
  expect(failureOf(thrown, inBody)).toMatchObject({ reason, cause: thrown });
});

test('an error without a message is told by its code', () => {
  expect(failureOf(Object.assign(new Error(''), { code: 'EXOTIC' }), false).message).toContain('EXOTIC');
});

test('a failure of the scrape itself stays as it is', () => {
  const failure = new ScrapeFailure('too_large', 'x');
  expect(failureOf(failure, true)).toBe(failure);
});
