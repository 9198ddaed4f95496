import type { StoreCheck } from '../src/core/check-severity.ts';
import { cassandra } from '../src/probes/stores/cassandra-poll.ts';
import type { CheckResult, StoreFault, StoreReport } from '../src/probes/stores/store-report.ts';
import { type PollTarget, pollOnce } from './poll-store.ts';

/** What a check found, or why it failed. */
export interface Seen {
  found?: StoreReport;
  fault?: StoreFault;
}

/** One check of a port on loopback, with the service's usual table of schema versions. */
export async function pollCassandra(
  { port, ...target }: Partial<PollTarget> & { port: number },
  signal: AbortSignal = AbortSignal.timeout(50_000),
): Promise<Seen> {
  const usual = {
    store: 'main',
    address: { host: '127.0.0.1', port },
    databases: [],
    timeoutMs: 10_000,
  };
  try {
    return { found: await pollOnce(cassandra, { ...usual, ...target }, signal) };
  } catch (thrown) {
    return { fault: cassandra.faultOf(thrown) };
  }
}

export const verdict = (found: StoreReport | undefined, check: StoreCheck): CheckResult | undefined =>
  found?.checks.find((each) => each.check === check);
