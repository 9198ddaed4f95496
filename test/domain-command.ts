import { planDomains } from '../src/probes/domains/plan.ts';
import type { Finding } from '../src/probes/probe.ts';
import { probeOnce, probesOptions } from './cluster-group.ts';

export const kept = { active: 'dc1', owed: 0 };

/** One check of a domain with this command, after a check that saw the domain active in dc1. */
export function checkBy(command: string[], signal?: AbortSignal): Promise<Finding> {
  const domains = { watch: ['orders'], describe: { command, intervalMs: 60_000, timeoutMs: 10_000 } };
  const [row] = planDomains(probesOptions({ domains }));
  return probeOnce(row!, { signal, recalled: kept });
}
