import { expect, test } from 'vitest';
import type { ProbeStatus, StatusFacts } from '../../../../src/agent/report.ts';
import { createJudge } from '../../../../src/agent/verdict/verdict.ts';
import { atOf, look } from '../../../judged.ts';
import { probeStatusOf } from '../../../status-report.ts';

const refused = { reason: 'refused', msg: 'connection refused' } as const;

/** Counts how often the name of an entry of a list is read. */
function counted<T extends object>(list: readonly T[], key: keyof T, count: () => void): T[] {
  return list.map((one) =>
    Object.defineProperty({ ...one }, key, {
      enumerable: true,
      get() {
        count();
        return one[key];
      },
    }),
  );
}

/** How often the judge reads names in facts with this many roles, some up and some down in each way, and stores and domains. */
function readsOf(roles: number): number {
  let reads = 0;
  const count = () => {
    reads++;
  };
  const failing = (at: number, name: Parameters<typeof probeStatusOf>[0], msBefore = 5) =>
    probeStatusOf(name, { at: atOf(at), ...refused }, { since: atOf(at - msBefore) });
  const judge = createJudge();
  for (const at of [30, 45, 60]) {
    const numbers = Array.from({ length: roles }, (_, i) => i);
    const isDown = (i: number) => i % 3 === 0 || (i % 3 === 1 && at === 45);
    const probes = numbers.flatMap((i): ProbeStatus[] => [
      isDown(i) ? failing(at, `health/r${i}`) : probeStatusOf(`health/r${i}`, { at: atOf(at) }),
      failing(at, `domain/d${i}`),
      ...(i % 10 === 0 ? [failing(at, `store/s${i}`, 3)] : []),
    ]);
    const scrapes = numbers.map((i): StatusFacts['scrapes'][number] => ({
      ...({ service: `r${i}`, url: 'http://127.0.0.1/metrics', up: false } as const),
      lastFailure: { reason: 'refused', what: 'connection refused', atMs: Date.parse(atOf(at)) },
      ...{ lastTakenMs: Date.parse(atOf(0)), failingSinceMs: Date.parse(atOf(20)), failures: {} },
      ...{ page: undefined, firstInvalid: undefined, vocabulary: undefined },
    }));
    look(judge, at, {
      probes: counted(probes, 'name', count),
      scrapes: counted(scrapes, 'service', count),
    });
  }
  return reads;
}

test('with twice as many problems, the judge looks for about twice as many probes and pages by their names', () => {
  expect(readsOf(160) / readsOf(80)).toBeLessThan(2.2);
});
