import { describe, expect, test } from 'vitest';
import { AgentError } from '../../../src/core/errors.ts';
import { type Baseline, createBaseline } from '../../../src/reporters/push/baseline.ts';
import { count, type PushedFamily, pushedView } from '../../push.ts';

interface Bench {
  baseline: Baseline;
  /** The increases in a successful flush, by family name; lines without an increase are left out. */
  flush(specs: readonly PushedFamily[]): Record<string, number | number[]>;
  notFinite: number;
  discarded: number;
}

function bench(
  options: { sinceMs?: number; maxGone?: number; carried?: boolean; section?: Uint8Array } = {},
): Bench {
  const { sinceMs = 0, maxGone = 100, carried = false, section } = options;
  const baseline = createBaseline(
    { sinceMs, maxGone },
    {
      hasExternalTotals: () => carried,
      notFinite: (totals) => {
        it.notFinite += totals;
      },
      discarded: (lines) => {
        it.discarded += lines;
      },
    },
  );
  if (section) baseline.restore(section);
  const it: Bench = {
    baseline,
    notFinite: 0,
    discarded: 0,
    flush(specs) {
      const carriedBy: Record<string, number | number[]> = {};
      const view = pushedView(specs);
      baseline.begin();
      for (const family of view.families) {
        for (const series of family.series) {
          const entry = baseline.take(family, series, view.numbers(series));
          const deltas = Array.from({ length: entry?.count ?? 0 }, (_, i) => baseline.settle(entry!, i));
          if (deltas.some((delta) => delta !== 0)) {
            carriedBy[family.name] = deltas.length === 1 ? deltas[0]! : deltas;
          }
        }
      }
      baseline.end();
      return carriedBy;
    },
  };
  return it;
}

const at = (startMs: number) => ({ startMs });
const histogram = (numbers: readonly number[], startMs = 1): PushedFamily => ({
  name: 'h',
  kind: 'histogram',
  series: [{ bounds: ['1'], numbers, startMs }],
});

describe('totals of the agent', () => {
  test('the first counts whole, then the increase, a fall anew', () => {
    const { flush } = bench();
    expect(flush([count('a', 5)])).toEqual({ a: 5 });
    expect(flush([count('a', 7.5)])).toEqual({ a: 2.5 });
    expect(flush([count('a', 7.5)])).toEqual({});
    expect(flush([count('a', 2)])).toEqual({ a: 2 });
  });

  test('with another start it is another series, even if it is higher', () => {
    const { flush } = bench();
    flush([count('a', 5, at(10))]);
    expect(flush([count('a', 8, at(20))])).toEqual({ a: 8 });
  });

  test('one that began before the reporter counts from here', () => {
    const { flush } = bench({ sinceMs: 100 });
    expect(flush([count('old', 5, at(99)), count('new', 5, at(100))])).toEqual({ new: 5 });
    expect(flush([count('old', 6, at(99)), count('new', 5, at(100))])).toEqual({ old: 1 });
  });

  test('label sets, bounds and kinds are told apart', () => {
    const { flush } = bench();
    const labelled = (total: number, x: string) => count('a', total, { labels: { x } });
    flush([labelled(5, '1'), histogram([1, 1, 1, 1])]);
    expect(flush([labelled(3, '2')])).toEqual({ a: 3 });
    const summary: PushedFamily = {
      name: 'h',
      kind: 'summary',
      series: [{ bounds: ['1'], numbers: [9, 4, 2] }],
    };
    expect(flush([summary])).toEqual({ h: [4, 2] });
  });

  test('a histogram: every part; a fall of the count starts all anew', () => {
    const { flush } = bench();
    expect(flush([histogram([1, 3, 4.5, 3])])).toEqual({ h: [1, 3, 4.5, 3] });
    expect(flush([histogram([1, 4, 6, 4])])).toEqual({ h: [0, 1, 1.5, 1] });
    expect(flush([histogram([2, 2, 0.5, 2])])).toEqual({ h: [2, 2, 0.5, 2] });
  });

  test('a sum that falls by itself waits until it is over its old height', () => {
    const { flush } = bench();
    flush([histogram([1, 3, 4, 3])]);
    expect(flush([histogram([2, 4, 1, 4])])).toEqual({ h: [1, 1, 0, 1] });
    expect(flush([histogram([2, 5, 4.5, 5])])).toEqual({ h: [0, 1, 0.5, 1] });
  });

  test.each([Number.NaN, Infinity, -Infinity])('%d is left out and counted', (value) => {
    const it = bench();
    it.flush([count('a', 5)]);
    expect(it.flush([count('a', value)])).toEqual({});
    expect(it.notFinite).toBe(1);
    expect(it.flush([count('a', 6)])).toEqual({ a: 1 });
  });

  test('a negative total is never pushed', () => {
    const { flush } = bench();
    expect(flush([count('a', -5)])).toEqual({});
    expect(flush([count('a', 2)])).toEqual({ a: 2 });
  });
});

describe("a sender's own totals", () => {
  test('of a page seen for the first time are only a beginning; a series new on it counts whole', () => {
    const { flush } = bench({ carried: true });
    expect(flush([count('a', 1e9), count('b', 7)])).toEqual({});
    expect(flush([count('a', 1e9 + 1), count('b', 7), count('c', 3)])).toEqual({ a: 1, c: 3 });
  });

  test('each service has its own first page', () => {
    const { flush } = bench({ carried: true });
    flush([count('a', 5, { service: 'frontend' })]);
    expect(flush([count('b', 5, { service: 'history' })])).toEqual({});
  });

  test('go on where they were after the target was gone, however long the agent calls it new', () => {
    const { flush } = bench({ carried: true });
    flush([count('a', 5)]);
    flush([]);
    expect(flush([count('a', 9, at(77))])).toEqual({ a: 4 });
    expect(flush([count('a', 2, at(78))])).toEqual({ a: 2 });
  });

  test('of a counter that fell and rose again between two flushes count whole', () => {
    const { baseline } = bench({ carried: true });
    const view = pushedView([count('a', 5)]);
    const family = view.families[0]!;
    const series = { ...family.series[0]!, startMs: 1 };
    const owedAfter = (total: number) => {
      baseline.begin();
      const entry = baseline.take(family, series, Float64Array.of(total))!;
      baseline.end();
      return baseline.settle(entry, 0);
    };
    expect(owedAfter(5)).toBe(0);
    series.startMs = 2;
    expect(owedAfter(8)).toBe(8);
  });
});

describe('what is owed', () => {
  test('comes back when it did not leave, over a restart of its sender too', () => {
    const { baseline } = bench();
    const take = (total: number) => {
      const view = pushedView([count('a', total)]);
      baseline.begin();
      const entry = baseline.take(view.families[0]!, view.families[0]!.series[0]!, Float64Array.of(total))!;
      baseline.end();
      return entry;
    };
    const entry = take(5);
    baseline.restoreOwed(entry, 0, baseline.settle(entry, 0));
    take(7);
    take(3);
    expect(baseline.owed(entry, 0)).toBe(10);
    expect(baseline.absent()).toEqual([]);
    baseline.begin();
    baseline.end();
    expect(baseline.absent()).toEqual([entry]);
    baseline.settle(entry, 0);
    expect(baseline.absent()).toEqual([]);
  });

  test('is nothing once it left, whether the total is seen again or not; a gauge never owes', () => {
    const { baseline, flush } = bench();
    flush([count('a', 5)]);
    flush([count('a', 5)]);
    flush([]);
    expect(baseline.absent()).toEqual([]);
    const { families, numbers } = pushedView([{ name: 'g', kind: 'gauge', series: [{ numbers: [5] }] }]);
    const [{ series }] = [families[0]!];
    expect(baseline.take(families[0]!, series[0]!, numbers(series[0]!))).toBeUndefined();
  });
});

describe('gone series', () => {
  test('beyond the bound only as many are given up as must be, the longest gone first', () => {
    const { flush } = bench({ maxGone: 1 });
    flush([count('b', 5, at(20)), count('a', 5, at(10))]);
    flush([count('b', 5, at(20))]);
    flush([]);
    flush([]);
    expect(flush([count('b', 6, at(20)), count('a', 6, at(10))])).toEqual({ b: 1 });
  });

  test.each([
    ['within the bound', 3, []],
    ['within the bound, beside those that are there', 1, [count('a', 5), count('b', 5)]],
  ])('%s none is given up', (_, maxGone, there) => {
    const { flush } = bench({ maxGone });
    flush([count('a', 5), count('b', 5), ...(there.length === 0 ? [] : [count('c', 5)])]);
    for (let round = 0; round < 3; round++) flush(there);
    const back = ['a', 'b', 'c'].slice(0, there.length === 0 ? 2 : 3);
    expect(flush(back.map((name) => count(name, 6)))).toEqual(
      Object.fromEntries(back.map((name) => [name, 1])),
    );
  });

  test('one that was given up is unknown, also as the same series', () => {
    const { baseline, flush } = bench({ maxGone: 0 });
    const { families } = pushedView([count('a', 5)]);
    const take = (total: number) => {
      baseline.begin();
      const entry = baseline.take(families[0]!, families[0]!.series[0]!, Float64Array.of(total))!;
      baseline.end();
      return baseline.settle(entry, 0);
    };
    expect(take(5)).toBe(5);
    flush([]);
    flush([]);
    expect(take(9)).toBe(0);
    expect(take(10)).toBe(1);
  });

  test('a thousand services are remembered: on the page of another one, every total is new', () => {
    const { flush } = bench({ carried: true });
    const page = Array.from({ length: 1001 }, (_, i) => count(`a${i}`, 5, { service: `s${i}` }));
    flush(page);
    const more = [count('b', 7, { service: 's999' }), count('c', 7, { service: 's1000' })];
    expect(flush([...page, ...more])).toEqual({ b: 7 });
  });

  test('beyond the bound the oldest are given up; what may be one of them counts from here', () => {
    const it = bench({ maxGone: 1 });
    it.flush([count('a', 5, at(10))]);
    it.flush([count('b', 5, at(20))]);
    it.flush([count('c', 5, at(30))]);
    it.flush([]);
    expect(it.flush([count('b', 6, at(20)), count('a', 6, at(10)), count('d', 4, at(31))])).toEqual({ d: 4 });
    expect(it.flush([count('a', 7, at(10))])).toEqual({ a: 1 });
  });

  test("of a sender's own, every unknown one counts from here afterwards", () => {
    const { flush } = bench({ maxGone: 0, carried: true });
    flush([count('a', 5)]);
    flush([]);
    expect(flush([count('a', 6), count('b', 5)])).toEqual({});
    expect(flush([count('a', 7), count('b', 6)])).toEqual({ a: 1, b: 1 });
  });

  test('that still owed something are counted, line by line', () => {
    const it = bench({ maxGone: 0 });
    const view = pushedView([histogram([1, 1, 0, 1])]);
    it.baseline.begin();
    it.baseline.take(view.families[0]!, view.families[0]!.series[0]!, Float64Array.of(1, 1, 0, 1));
    it.baseline.end();
    it.flush([]);
    it.flush([]);
    expect(it.discarded).toBe(3);
  });
});

describe('the section', () => {
  test('a restart neither repeats nor inflates', () => {
    const before = bench({ sinceMs: 100 });
    before.flush([count('log', 5, at(100)), histogram([1, 3, 4.5, 3], 110), count('statsd', 8, at(120))]);
    const { flush } = bench({ sinceMs: 1000, section: before.baseline.freeze() });
    const after = [
      count('log', 6, at(100)),
      histogram([1, 4, 5, 4], 110),
      // The counters of its process began again at 0.
      count('statsd', 9, at(1001)),
      // This total was committed by an earlier process before the restart, and was never pushed.
      count('late', 2, at(130)),
    ];
    expect(flush(after)).toEqual({ log: 1, h: [0, 1, 0.5, 1], statsd: 9, late: 2 });
    expect(flush(after)).toEqual({});
  });

  test('keeps what is owed, which services are known and what was forgotten', () => {
    const before = bench({ carried: true, maxGone: 1 });
    before.flush([count('a', 5)]);
    before.flush([count('a', 5), count('new', 2)]);
    const after = bench({ carried: true, section: before.baseline.freeze() });
    expect(after.flush([count('newer', 3)])).toEqual({ newer: 3 });
    before.flush([]);
    before.flush([]);
    const forgetful = bench({ carried: true, section: before.baseline.freeze() });
    expect(forgetful.flush([count('newer', 3)])).toEqual({});

    const owing = bench();
    const view = pushedView([count('a', 5)]);
    owing.baseline.begin();
    owing.baseline.take(view.families[0]!, view.families[0]!.series[0]!, Float64Array.of(5));
    expect(bench({ section: owing.baseline.freeze() }).flush([count('a', 6)])).toEqual({ a: 6 });
    const gone = bench({ section: owing.baseline.freeze() });
    expect(gone.flush([])).toEqual({});
    expect(gone.baseline.absent().map((entry) => gone.baseline.settle(entry, 0))).toEqual([5]);
  });

  test('of series that owe nothing, of more than may be gone, and of none', () => {
    const before = bench();
    expect(bench({ section: before.baseline.freeze() }).flush([count('a', 5)])).toEqual({ a: 5 });
    const three = (total: number) => ['a', 'b', 'c'].map((name) => count(name, total));
    before.flush(three(5));
    const idle = bench({ section: before.baseline.freeze() });
    idle.flush([]);
    expect(idle.baseline.absent()).toEqual([]);
    const { flush } = bench({ maxGone: 1, section: before.baseline.freeze() });
    expect(flush(three(6))).toEqual({ a: 1, b: 1, c: 1 });
  });

  test("a sender's own totals are still its own: another start changes nothing", () => {
    const before = bench({ carried: true });
    before.flush([count('a', 5)]);
    const { flush } = bench({ carried: true, section: before.baseline.freeze() });
    expect(flush([count('a', 9, at(77))])).toEqual({ a: 4 });
  });

  test('cells of given up series do not leave traces in it', () => {
    const before = bench({ maxGone: 0 });
    before.flush([count('a', 5), histogram([1, 3, 4.5, 3])]);
    before.flush([]);
    before.flush([count('b', 6, at(2))]);
    const { flush } = bench({ section: before.baseline.freeze() });
    expect(flush([count('b', 7, at(2))])).toEqual({ b: 1 });
  });

  const sound = () => {
    const it = bench();
    it.flush([count('a', 5), count('b', 6)]);
    return Buffer.from(it.baseline.freeze());
  };
  const withFacts = (bytes: Buffer, facts: object) => {
    const text = Buffer.from(JSON.stringify(facts));
    const changed = Buffer.concat([bytes.subarray(0, 12), text, bytes.subarray(12 + factsBytes())]);
    changed.writeUInt32LE(text.length, 4);
    return changed;
  };
  const factsBytes = () => sound().readUInt32LE(4);
  test.each<[string, (bytes: Buffer) => unknown]>([
    ['of another version', (bytes) => bytes.writeUInt32LE(9, 0)],
    ['with more entries than bytes', (bytes) => bytes.writeUInt32LE(1e6, 8)],
    ['whose facts are not JSON', (bytes) => bytes.write('x', 12)],
    ['whose facts are others', (bytes) => bytes.write('{"sinceMz"', 12)],
    ['whose time is a text', (bytes) => withFacts(bytes, { sinceMs: '0', forgot: false, services: [] })],
    ['that does not say what it forgot', (bytes) => withFacts(bytes, { sinceMs: 0, services: [] })],
    ['whose services are no list', (bytes) => withFacts(bytes, { sinceMs: 0, forgot: false, services: {} })],
    [
      'with a service that is a number',
      (bytes) => withFacts(bytes, { sinceMs: 0, forgot: false, services: [1] }),
    ],
    // There are two series of three numbers each, and no seventh number.
    ['that points outside by one', (bytes) => bytes.writeUInt32LE(4, 12 + factsBytes() + 8)],
    ['with an entry of nothing', (bytes) => bytes.writeUInt32LE(0, 12 + factsBytes() + 12)],
    [
      'with an entry twice',
      (bytes) => bytes.copy(bytes, 12 + factsBytes() + 16, 12 + factsBytes(), 12 + factsBytes() + 8),
    ],
    ['too short', (bytes) => bytes.subarray(0, 11)],
    ['cut off', (bytes) => bytes.subarray(0, bytes.length - 1)],
  ])('%s is refused', (_, damage) => {
    const { baseline } = bench();
    let thrown: unknown;
    const bytes = sound();
    const damaged = damage(bytes);
    try {
      baseline.restore(damaged instanceof Uint8Array ? damaged : bytes);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(AgentError);
    expect((thrown as AgentError).code).toBe('snapshot_corrupt');
  });
});
