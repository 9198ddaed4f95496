import type { ProbeStatus, StatusFacts } from '../report.ts';

type Page = StatusFacts['scrapes'][number];

/**
 * What is computed once of each list of facts. The lists of a report do not change, and thousands of problems ask the same of
 * them.
 */
export function onceOf<L extends object, T>(compute: (list: L) => T): (list: L) => T {
  const known = new WeakMap<L, { result: T }>();
  return (list) => {
    const made = known.get(list) ?? { result: compute(list) };
    known.set(list, made);
    return made.result;
  };
}

const probesByName = onceOf(
  (probes: readonly ProbeStatus[]) => new Map(probes.map((probe) => [probe.name, probe])),
);
const pagesByRole = onceOf(
  (scrapes: readonly Page[]) => new Map(scrapes.map((page) => [page.service, page])),
);

/** The probe of a name; undefined if there is none. */
export const probeNamed = (
  { probes }: Pick<StatusFacts, 'probes'>,
  name: string | undefined,
): ProbeStatus | undefined => probesByName(probes).get(name ?? '');

/** The page of a role; undefined if the role is not scraped. */
export const pageOf = ({ scrapes }: Pick<StatusFacts, 'scrapes'>, role: string): Page | undefined =>
  pagesByRole(scrapes).get(role);

/** Whether a role passed its last health check. */
export const isPassing = (role: string | undefined, facts: Pick<StatusFacts, 'probes'>): boolean =>
  probeNamed(facts, `health/${role}`)?.last?.ok === true;
