import type { StoreCheck } from '../src/core/reasons.ts';
import type { StoreFault, StoreLook, StoreTarget, StoreVerdict } from '../src/probes/stores/store.ts';
import { widecolumn } from '../src/probes/stores/widecolumn/widecolumn.ts';

/** What a look found, or why it failed. */
export interface Seen {
  found?: StoreLook;
  fault?: StoreFault;
}

/** One look at a port of loopback, with the service's usual table of schema versions. */
export async function look(
  { port, ...target }: Partial<StoreTarget> & { port: number },
  signal: AbortSignal = AbortSignal.timeout(50_000),
): Promise<Seen> {
  const usual = {
    store: 'main',
    address: { host: '127.0.0.1', port },
    schemaQuery: 'SELECT curr_version FROM schema_version WHERE keyspace_name = {database}',
  };
  const { schemaQuery = usual.schemaQuery, ...others } = target;
  try {
    return { found: await widecolumn.look({ ...usual, ...others, schemaQuery }, signal) };
  } catch (thrown) {
    return { fault: widecolumn.faultOf(thrown) };
  }
}

export const verdict = (found: StoreLook | undefined, check: StoreCheck): StoreVerdict | undefined =>
  found?.verdicts.find((each) => each.check === check);
