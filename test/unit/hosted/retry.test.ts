import { describe, expect, test } from 'vitest';
import { createBackoff } from '../../../src/reporters/hosted/delivery.ts';
import { retryAfterMs } from '../../../src/reporters/hosted/http-client.ts';

const nowMs = Date.UTC(2026, 0, 1, 12, 0, 0);

describe('Retry-After', () => {
  test.each<[string | undefined, number | undefined]>([
    ['0', 0],
    ['120', 120_000],
    [' 7 ', 7000],
    ['Thu, 01 Jan 2026 12:00:30 GMT', 30_000],
    ['Thu, 01 Jan 2026 11:00:00 GMT', 0],
    ['Fri, 02 Jan 2026 12:00:00 GMT', 86_400_000],
    [undefined, undefined],
    ['', undefined],
    ['-5', undefined],
    ['1.5', undefined],
    ['soon', undefined],
    ['2026-01-01', undefined],
    ['Xyz, 99 Foo 2026 12:00:00 GMT', undefined],
  ])('%j', (header, waitMs) => expect(retryAfterMs(header, nowMs)).toBe(waitMs));
});

describe('backoff', () => {
  test('its span doubles from 500 ms to a minute, and begins anew after a success', () => {
    const backoff = createBackoff(() => 0.5);
    const spans = Array.from({ length: 10 }, () => backoff.nextMs(undefined));
    expect(spans).toEqual([250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
    backoff.reset();
    expect(backoff.nextMs(undefined)).toBe(250);
  });

  test('what the receiver asks for is waited for, up to ten minutes', () => {
    const backoff = createBackoff(() => 0);
    expect(backoff.nextMs(30_000)).toBe(30_000);
    expect(backoff.nextMs(86_400_000)).toBe(600_000);
  });
});
