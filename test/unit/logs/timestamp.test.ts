import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createFields, plainText, setField, viewOf } from '../../../src/sources/logs/lines/fields.ts';
import { createTimestampReader, timestampMs } from '../../../src/sources/logs/metrics/entry-time.ts';
import { createCounting, feed } from '../../counting.ts';

function createReading() {
  const reader = createTimestampReader();
  const fields = createFields([0]);
  return (text: string) => {
    fields.bytes = Buffer.from(`"${text}"\n`);
    fields.view = viewOf(fields.bytes);
    setField(fields, 0, plainText, 1, fields.bytes.length - 2);
    return timestampMs(reader, fields, 0);
  };
}

describe('the time of an entry', () => {
  test.each([
    ['2026-01-02T03:04:05Z', '2026-01-02T03:04:05Z'],
    ['2026-01-02T03:04:05.678Z', '2026-01-02T03:04:05.678Z'],
    ['2026-01-02T03:04:05.678+0200', '2026-01-02T03:04:05.678+02:00'],
    ['2026-01-02T03:04:05.678-07:30', '2026-01-02T03:04:05.678-07:30'],
    ['2026-12-31T23:59:59.9-0001', '2026-12-31T23:59:59.900-00:01'],
    ['2024-02-29T00:00:00.000Z', '2024-02-29T00:00:00Z'],
    ['0099-03-01T00:00:00.000Z', '0099-03-01T00:00:00Z'],
  ])('%s is what Date.parse makes of %s', (text, oracle) => {
    expect(createReading()(text)).toBe(Date.parse(oracle));
  });

  test('has more digits than Date keeps', () => {
    expect(createReading()('2026-01-02T03:04:05.678901234Z')).toBeCloseTo(
      Date.parse('2026-01-02T03:04:05.678Z') + 0.901234,
      3,
    );
  });

  test.each([
    '',
    '2026-01-02',
    '2026-01-02T03:04:05',
    '2026-01-02 03:04:05.000Z',
    '2026-13-02T03:04:05Z',
    '2026-00-02T03:04:05Z',
    '2026-02-29T03:04:05Z',
    '2026-04-31T03:04:05Z',
    '2026-01-02T24:04:05Z',
    '2026-01-02T03:60:05Z',
    '2026-01-02T03:04:60Z',
    '2026-01-02T03:04:05.Z',
    '2026-01-02T03:04:05.678',
    '2026-01-02T03:04:05.678z',
    '2026-01-02T03:04:05.678+02',
    '2026-01-02T03:04:05.678+02:0',
    '2026-01-02T03:04:05.678+2400',
    '2026-01-02T03:04:05.678Z ',
    '2026-01-02T03-04-05.678Z',
    '2026/01/02T03:04:05.678Z',
    'x026-01-02T03:04:05.678Z',
    '1767323045.678000000000',
  ])('is not %s', (text) => {
    expect(createReading()(text)).toBeNaN();
  });

  test('is right whatever time was read before', () => {
    const day = 86_400_000;
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: -day * 365, max: day * 365 * 100 }), { minLength: 1 }),
        (times) => {
          const read = createReading();
          for (const ms of times) expect(read(new Date(ms).toISOString())).toBe(ms);
          expect(read('2026-02-30T00:00:00Z')).toBeNaN();
          expect(read(new Date(times[0]!).toISOString())).toBe(times[0]);
        },
      ),
    );
  });
});

test('the newest of all entries of all files shows, and none before there is one', () => {
  const counting = createCounting();
  const name = 'svc_log_newest_entry_timestamp_seconds';
  const line = (ts: unknown) => `${JSON.stringify({ level: 'info', ts })}\n`;
  const [a, b] = [counting.open(), counting.open()];
  feed(a, line('soon'), line(12), line(undefined));
  expect(counting.intake().values.has(name)).toBe(false);
  feed(a, line('2025-12-31T03:04:05.678Z'), line('2025-01-02T03:04:05.678Z'));
  feed(b, line('2025-12-31T03:04:05.677Z'), line('2025-12-31T04:04:05.678+0100'));
  expect(counting.intake().values.get(name)).toBe(Date.parse('2025-12-31T03:04:05.678Z') / 1000);
  feed(b, line('2025-12-31T03:04:05.679Z'));
  expect(counting.intake().values.get(name)).toBe(Date.parse('2025-12-31T03:04:05.679Z') / 1000);
});

test('a time more than an hour ahead of the clock is ignored and counted; one within the hour is not', () => {
  const counting = createCounting();
  const name = 'svc_log_newest_entry_timestamp_seconds';
  const line = (ms: number) => `${JSON.stringify({ level: 'info', ts: new Date(ms).toISOString() })}\n`;
  const sink = counting.open();
  const nowMs = counting.clock.nowMs();
  feed(sink, line(nowMs - 1000), line(nowMs + 3_600_001), line(nowMs + 10 ** 11));
  expect(counting.intake().values.get(name)).toBe((nowMs - 1000) / 1000);
  expect(counting.drops.get('logs/future_timestamp')).toBe(2);
  feed(sink, line(nowMs + 3_600_000));
  expect(counting.intake().values.get(name)).toBe((nowMs + 3_600_000) / 1000);
  counting.clock.advance(2 * 3_600_000);
  feed(sink, line(nowMs + 3 * 3_600_000), line(nowMs + 3 * 3_600_000 + 1));
  expect(counting.intake().values.get(name)).toBe((nowMs + 3 * 3_600_000) / 1000);
  expect(counting.drops.get('logs/future_timestamp')).toBe(3);
  expect(counting.counts()['svc_log_entries_total{level="info"}']).toBe(6);
});

test('once the clock was set back, the times of before do not count any more', () => {
  const counting = createCounting();
  const name = 'svc_log_newest_entry_timestamp_seconds';
  const line = (ms: number) => `${JSON.stringify({ level: 'info', ts: new Date(ms).toISOString() })}\n`;
  const sink = counting.open();
  const nowMs = counting.clock.nowMs();
  counting.clock.jumpTo(nowMs + 86_400_000);
  feed(sink, line(nowMs + 86_400_000));
  counting.clock.jumpTo(nowMs);
  for (let n = 0; n < 3; n++) feed(sink, line(nowMs + n));
  expect(counting.intake().values.get(name)).toBe((nowMs + 2) / 1000);
  feed(sink, line(nowMs + 3_600_001));
  expect(counting.intake().values.get(name)).toBe((nowMs + 2) / 1000);
  expect(counting.drops.get('logs/future_timestamp')).toBe(1);
});

test('a line without a time has none, whatever stands where the line before had one', () => {
  const counting = createCounting();
  feed(counting.open(), '{"ts":"2025-12-31T03:04:05.678Z"}\n', '{"to":"2027-01-02T03:04:05.678Z"}\n', '{}\n');
  expect(counting.counts().svc_log_newest_entry_timestamp_seconds).toBe(
    Date.parse('2025-12-31T03:04:05.678Z') / 1000,
  );
});
