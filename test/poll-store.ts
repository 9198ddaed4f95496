import { systemClock } from '../src/core/clock.ts';
import { createTrace, type Trace } from '../src/probes/connection.ts';
import { createStoreServer } from '../src/probes/stores/store-connections.ts';
import type { StoreKind, StoreReport, StoreTarget } from '../src/probes/stores/store-report.ts';

/** A store, one of its databases, and the configured schema query if there is one. */
export type PollTarget = StoreTarget & { database?: string; schemaQuery?: string };

/** One poll over a separate connection, which is closed when this settles. Throws what the driver throws. */
export async function pollOnce(
  kind: StoreKind,
  { database, schemaQuery, ...target }: PollTarget,
  signal: AbortSignal,
): Promise<StoreReport & Pick<Trace, 'phasesMs'>> {
  const trace = createTrace();
  const server = createStoreServer({ intervalMs: Number.POSITIVE_INFINITY }, kind, systemClock);
  const report = await server.poll(target, { database, schema: { query: schemaQuery } }, trace, signal);
  return { ...report, phasesMs: trace.phasesMs };
}
