import { systemClock } from '../src/core/clock.ts';
import { createStoreServer } from '../src/probes/stores/store-connections.ts';
import type { StoreKind, StoreReport, StoreTarget } from '../src/probes/stores/store-report.ts';

/** A store, one of its databases, and the configured schema query if there is one. */
export type PollTarget = StoreTarget & { database?: string; schemaQuery?: string };

/** One poll over a connection of its own, which is closed when this settles. Throws what the driver throws. */
export function pollOnce(
  kind: StoreKind,
  { database, schemaQuery, ...target }: PollTarget,
  signal: AbortSignal,
): Promise<StoreReport> {
  const server = createStoreServer({ intervalMs: Number.POSITIVE_INFINITY }, kind, systemClock);
  return server.poll(target, { database, schema: { query: schemaQuery } }, signal);
}
