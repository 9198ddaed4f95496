import { createReadSecret } from '../src/agent/read-secret.ts';
import type { Lookup } from '../src/probes/connection.ts';
import type { HealthOptions } from '../src/probes/health/block.ts';
import { planHealth } from '../src/probes/health/plan.ts';
import type { Finding, ProbeDeps } from '../src/probes/probe.ts';
import { manualClock } from './clock.ts';

interface HealthCheckOptions extends Partial<HealthOptions> {
  url: string;
  service?: string;
  signal?: AbortSignal;
  lookup?: Lookup;
  env?: Record<string, string>;
  recalled?: unknown;
  /** Called when the check reads its clock, which it does when a step begins and ends. */
  onStep?: () => void;
}

/** One check of a role with the configuration `options`. */
export async function checkHealth(options: HealthCheckOptions): Promise<Finding> {
  const { service = 'frontend', signal, lookup, env = {}, recalled, onStep, ...more } = options;
  const health = { intervalMs: 15_000, timeoutMs: 5000, failureThreshold: 3, successThreshold: 1, ...more };
  const [row] = planHealth({ services: [{ name: service, selected: true, health }] }, lookup);
  const clock = manualClock();
  const deps: ProbeDeps = {
    readSecret: createReadSecret(env),
    readings: { values: () => [] },
    clock: {
      ...clock,
      monotonicMs() {
        onStep?.();
        return clock.monotonicMs();
      },
    },
    log: { write: () => {}, named: () => deps.log },
  };
  const probe = await row!.open(deps);
  return await probe.check(signal ?? AbortSignal.timeout(30_000), recalled);
}
