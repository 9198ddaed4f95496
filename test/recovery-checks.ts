import type { Check, CheckAnswer } from '../src/agent/recovery/check.ts';
import { type Checks, createChecks, type RunProbe } from '../src/agent/recovery/checks.ts';
import type { Subject } from '../src/agent/recovery/commands.ts';
import type { Sample } from '../src/probes/probe.ts';

type Found = NonNullable<Awaited<ReturnType<RunProbe>>>;
type Deps = Parameters<typeof createChecks>[1];

/** The checks for a situation in which probes have found this. */
export function checksWhere(
  probes: Readonly<Record<string, Partial<Found>>>,
  { subject, ...deps }: { subject?: Subject } & Partial<Omit<Deps, 'runProbe'>> = {},
): Checks {
  return createChecks(
    { store: 'main', database: 'persistence', domain: 'orders', to: 'dc2', ...subject },
    {
      config: { clusterGroupMetadata: { currentClusterName: 'dc1' } as never },
      rows: [],
      runProbe: async (name) => {
        const found = probes[name];
        return found && { ok: found.reason === undefined, msg: 'fine', ...found };
      },
      commands: { client: () => undefined, named: () => undefined },
      env: { PATH: process.env.PATH ?? '' },
      ...deps,
    },
  );
}

export const gauges = (
  name: Sample['name'],
  value: number,
  labels: Readonly<Record<string, string>> = {},
): { gauges: readonly Sample[] } => ({
  gauges: [
    { name: 'svc_store_up', value: 7, labels: {} },
    { name, value, labels },
  ],
});
export const named = (words: readonly string[]): Deps['commands'] => ({
  client: () => words,
  named: () => words,
});
export const prints = (text: string) => ({ commands: named(['printf', '%s', text]) });

type CheckCase = [what: string, asks: (checks: Checks) => Check, checks: () => Checks, answer: CheckAnswer];
type Given = Parameters<typeof checksWhere>;

/** The cases of one check: what probes have found, and its answer. Its checks are created when the test runs. */
export const asking = (
  asks: CheckCase[1],
  cases: readonly [what: string, found: Given[0], answer: CheckAnswer, more?: Given[1]][],
): CheckCase[] =>
  cases.map(([what, found, answer, more]) => [what, asks, () => checksWhere(found, more), answer]);

/** The rows of two roles and a store. */
export const rows = [
  { name: 'health/history', kind: 'health' },
  { name: 'health/matching', kind: 'health' },
  { name: 'store/main/persistence', kind: 'store' },
] as const;
