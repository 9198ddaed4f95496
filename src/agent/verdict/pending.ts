import type { StatusFacts } from '../report.ts';

/** How many checks have no result yet, as a clause; undefined if each has one. */
export function pendingText({
  probes,
  scrapes,
}: Pick<StatusFacts, 'probes' | 'scrapes'>): string | undefined {
  const pending = [
    ...probes.filter(({ last }) => !last),
    ...scrapes.filter(({ up, lastFailure }) => !up && !lastFailure),
  ].length;
  const checks = probes.length + scrapes.length;
  return pending > 0 ? `${pending} of ${checks} checks have no result yet` : undefined;
}
