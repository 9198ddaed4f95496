import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { FailoverEntry } from '../../../../src/probes/domains/description.ts';
import {
  countFailovers,
  type FailoverMemory,
  failoverMemory,
} from '../../../../src/probes/domains/failovers.ts';
import { runs } from '../../../size.ts';

const nowMs = Date.UTC(2026, 2, 2);
interface Seen {
  activeCluster?: string;
  failoverVersion?: number;
  failoverHistory?: readonly FailoverEntry[];
}
const entry = (atMs: number, to: string): FailoverEntry => ({ key: `${atMs} ${to}`, atMs, to });
const [e1, e2, e3] = [entry(1000, 'b'), entry(2000, 'a'), entry(3000, 'b')];

/** Makes checks one after the other, each in a new run of the agent: what is remembered passes through JSON. */
function counts(checks: readonly Seen[]): number[] {
  let kept: unknown;
  return checks.map((seen) => {
    const { count, memory } = countFailovers(failoverMemory(kept), seen, nowMs);
    kept = JSON.parse(JSON.stringify(memory));
    return count;
  });
}

describe('failovers between checks', () => {
  const seen = (activeCluster: string, failoverHistory?: readonly FailoverEntry[]): Seen => ({
    activeCluster,
    ...(failoverHistory && { failoverHistory }),
  });
  const versioned = (activeCluster: string, failoverVersion: number): Seen => ({
    activeCluster,
    failoverVersion,
  });
  test.each<[string, Seen[], number[]]>([
    ['the first check counts none', [seen('a', [e2, e1])], [0]],
    [
      'new entries of the history, once',
      [seen('b', [e1]), seen('b', [e3, e2, e1]), seen('b', [e3, e2, e1])],
      [0, 2, 0],
    ],
    ['the first entry ever', [seen('a', []), seen('b', [e1])], [0, 1]],
    [
      'another active cluster, where there is no history',
      [seen('a'), seen('b'), seen('b'), seen('a')],
      [0, 1, 0, 1],
    ],
    [
      'there and back between two checks shows in the version',
      [versioned('a', 0), versioned('a', 10)],
      [0, 2],
    ],
    [
      'an old view counts none, and neither does the end of it',
      [versioned('a', 0), versioned('b', 2), versioned('a', 0), versioned('b', 2)],
      [0, 1, 0, 0],
    ],
    [
      'an old history counts none, its oldest entry included',
      [seen('a', [e3, e2]), seen('a', [e2, e1]), seen('a', [e3, e2])],
      [0, 0, 0],
    ],
    [
      'a failover that was counted before its entry came',
      [seen('a', []), seen('b'), seen('b', [e1]), seen('a', [e2, e1])],
      [0, 1, 0, 1],
    ],
    [
      'more than the history keeps, counted before it came: it owes none after that',
      [
        seen('a', [entry(1, 'a')]),
        seen('b'),
        seen('a'),
        seen('b'),
        seen('b', [e3, e2]),
        seen('a', [entry(4000, 'a'), e3]),
      ],
      [0, 1, 1, 1, 0, 1],
    ],
    [
      'a history that shows for the first time is not news',
      [seen('a'), seen('a', [e2, e1]), seen('b', [e3, e2, e1])],
      [0, 0, 1],
    ],
    [
      'entries without a time count by what they say',
      [seen('a', [{ key: 'x' }]), seen('b', [{ key: 'y' }, { key: 'x' }])],
      [0, 1],
    ],
    ['nothing known is nothing new', [seen('a'), {}, seen('a')], [0, 0, 0]],
  ])('%s', (_, checks, expected) => expect(counts(checks)).toEqual(expected));

  test('when the last one was: by the history, else the check that noticed', () => {
    const checks = (...all: Seen[]) => {
      let memory: FailoverMemory | undefined;
      for (const seen of all) memory = countFailovers(memory, seen, nowMs).memory;
      return memory?.lastMs;
    };
    expect(checks({ activeCluster: 'a' })).toBeUndefined();
    expect(checks({ activeCluster: 'a', failoverHistory: [e2, e1] })).toBe(2000);
    expect(checks({ activeCluster: 'a' }, { activeCluster: 'b' })).toBe(nowMs);
    expect(checks({ activeCluster: 'a' }, { activeCluster: 'b' }, { activeCluster: 'b' })).toBe(nowMs);
    expect(
      checks(
        { activeCluster: 'a', failoverHistory: [e1] },
        { activeCluster: 'b', failoverHistory: [e3, e1] },
      ),
    ).toBe(3000);
  });

  test.each([undefined, null, 7, 'text', [], { keys: 7, owed: 'x', version: null, active: 1 }])(
    'what was kept by somebody else (%j) counts none',
    (recalled) => {
      expect(
        countFailovers(failoverMemory(recalled), { activeCluster: 'a', failoverVersion: 2 }, nowMs).count,
      ).toBe(0);
    },
  );
});

/** A domain that fails over, and what a check of it may show. */
const steps = fc.array(
  fc.record({
    failovers: fc.nat(7),
    showsHistory: fc.boolean(),
    showsVersion: fc.boolean(),
    showsActive: fc.boolean(),
    restart: fc.boolean(),
  }),
  { minLength: 1, maxLength: 20 },
);
type Step = Parameters<Parameters<typeof steps.map>[0]>[0][number];

const historyLength = 5;
const names = ['a', 'b', 'c'];

const groupOf = (size: number) => ({
  failoverVersionIncrement: 10,
  clusters: names
    .slice(0, size)
    .map((name, initialFailoverVersion) => ({ name, enabled: true, initialFailoverVersion })),
});

function run(
  all: readonly Step[],
  shows: (step: Step) => Omit<Step, 'failovers' | 'restart'>,
  { size = names.length, isGroupKnown = false } = {},
) {
  let version = 0;
  let active = 0;
  let happened = 0;
  let counted = 0;
  let checksWithNews = 0;
  let history: FailoverEntry[] = [];
  let kept: unknown;
  all.forEach((step, index) => {
    for (let n = 0; n < step.failovers; n++) {
      const to = (active + 1 + (n % (size - 1))) % size;
      const next = Math.floor(version / 10) * 10 + to;
      version = next < version ? next + 10 : next;
      active = to;
      history = [entry(index * 1000 + n, names[to]!), ...history].slice(0, historyLength);
      if (index > 0) happened++;
    }
    if (index > 0 && step.failovers > 0) checksWithNews++;
    const { showsHistory, showsVersion, showsActive } = shows(step);
    const seen: Seen = {
      activeCluster: showsActive ? names[active] : undefined,
      failoverVersion: showsVersion ? version : undefined,
      failoverHistory: showsHistory ? history : undefined,
    };
    const group = isGroupKnown ? groupOf(size) : undefined;
    const { count, memory } = countFailovers(failoverMemory(kept), seen, nowMs, group);
    counted += count;
    kept = step.restart ? JSON.parse(JSON.stringify(memory)) : memory;
  });
  return { happened, counted, looksWithNews: checksWithNews };
}

describe('whatever happens', () => {
  test('no failover counts twice, however little or much a check shows', () => {
    fc.assert(
      fc.property(steps, fc.boolean(), fc.constantFrom(2, 3), (all, isGroupKnown, size) => {
        const { happened, counted } = run(all, (step) => step, { isGroupKnown, size });
        expect(counted).toBeLessThanOrEqual(happened);
      }),
      { numRuns: runs(2000) },
    );
  });

  test('with the history always there, each counts once, up to its length between two checks', () => {
    fc.assert(
      fc.property(steps, (all) => {
        const few = all.map((step) => ({ ...step, failovers: step.failovers % (historyLength + 1) }));
        const { happened, counted } = run(few, () => ({
          showsHistory: true,
          showsVersion: false,
          showsActive: true,
        }));
        expect(counted).toBe(happened);
      }),
    );
  });

  test('with the version of two clusters alone, each counts once, there and back between two checks too', () => {
    fc.assert(
      fc.property(steps, (all) => {
        const shows = () => ({ showsHistory: false, showsVersion: true, showsActive: true });
        const { happened, counted } = run(all, shows, { isGroupKnown: true, size: 2 });
        expect(counted).toBe(happened);
      }),
    );
  });

  test('with the version alone, each check that comes after failovers counts at least one', () => {
    fc.assert(
      fc.property(steps, (all) => {
        const {
          looksWithNews: checksWithNews,
          happened,
          counted,
        } = run(all, () => ({
          showsHistory: false,
          showsVersion: true,
          showsActive: true,
        }));
        expect(counted).toBeGreaterThanOrEqual(checksWithNews);
        expect(counted).toBeLessThanOrEqual(happened);
      }),
    );
  });
});
