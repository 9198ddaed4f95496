import { describe, expect, test } from 'vitest';
import { phaseOf, shareOf } from '../../../../src/probes/runner/schedule.ts';

const noon = Date.UTC(2026, 0, 1, 12);

describe('the share of a probe', () => {
  test('never changes: it is the first 48 bits of a SHA-256', () => {
    // printf '["host-1","health/frontend"]' | sha256sum
    expect(shareOf('host-1', 'health/frontend')).toBeCloseTo(0.5158513536383822, 12);
  });

  test('differs by agent and by probe', () => {
    const shares = ['a', 'b'].flatMap((instance) => ['p', 'q'].map((name) => shareOf(instance, name)));
    expect(new Set(shares).size).toBe(4);
  });

  test('is spread evenly', () => {
    const tenths = new Array<number>(10).fill(0);
    for (let i = 0; i < 2000; i++) tenths[Math.floor(shareOf(`host-${i % 50}`, `health/${i}`) * 10)]! += 1;
    for (const count of tenths) {
      expect(count).toBeGreaterThan(140);
      expect(count).toBeLessThan(260);
    }
  });
});

test('probes of one phase run first at the start, and then at the same moments, each by its delay later', () => {
  for (const [instance, intervalMs] of [
    ['host-1', 60_000],
    ['host-2', 1000],
    ['host-3', 150],
  ] as const) {
    const at = (name: string, delayMs: number, nowMs: number) => {
      const { firstMs, thenMs } = phaseOf(
        { instance, name, intervalMs, phase: { name: 'backups/main', delayMs } },
        nowMs,
      );
      expect(firstMs).toBe(delayMs);
      return (nowMs + thenMs) % intervalMs;
    };
    // The agent was started a moment later, within the same interval.
    const early = at('backup/nightly', 0, noon);
    expect(at('backup/hourly', 0, noon + 3)).toBe(early);
    expect(at('recovery/main/persistence', 100, noon + 5)).toBe((early + 100) % intervalMs);
  }
});

describe('regular runs', () => {
  const names = ['health/frontend', 'store/main/persistence', 'cluster/dc2', 'domain/orders'];

  test.each([1, 999, 1000, 15_000, 60_000, 3_600_000, 7 * 864e5])(
    'every %d ms come back to the same wall-clock moments, whenever the agent starts',
    (intervalMs) => {
      for (const name of names) {
        const moments = [0, 1, 137, 4321, 59_999, 3_599_999, 86_399_999].map((laterMs) => {
          const nowMs = noon + laterMs;
          return (nowMs + phaseOf({ instance: 'host-1', name, intervalMs }, nowMs).thenMs) % intervalMs;
        });
        expect(new Set(moments).size).toBe(1);
      }
    },
  );

  test.each([
    [1, 1],
    [5000, 5000],
    [15_000, 10_000],
    [3_600_000, 10_000],
  ])(
    'every %d ms: first checks are spread over %d ms, the next are half to one and a half intervals later',
    (intervalMs, spreadMs) => {
      const firsts: number[] = [];
      for (let i = 0; i < 200; i++) {
        const { firstMs, thenMs } = phaseOf({ instance: `host-${i}`, name: 'p', intervalMs }, noon + i * 17);
        firsts.push(firstMs);
        expect(thenMs - firstMs).toBeGreaterThanOrEqual(intervalMs / 2);
        expect(thenMs - firstMs).toBeLessThanOrEqual(intervalMs * 1.5 + 1);
      }
      expect(Math.min(...firsts)).toBeLessThan(spreadMs / 10);
      expect(Math.max(...firsts)).toBeLessThan(spreadMs);
      expect(Math.max(...firsts)).toBeGreaterThanOrEqual(Math.floor(spreadMs * 0.9));
    },
  );
});
