import type { StoreState } from './store/store.ts';

/** What a role says of itself (spec, Health response). */
export interface Health {
  ok: boolean;
  msg: string;
}

const warmUpMs = 5000;

/** A role begins its work some seconds after it was started, and not before the store was there once. */
export function healthOf({
  ageMs,
  store,
  isLost = false,
}: {
  ageMs: number;
  store: StoreState;
  /** Its cluster is lost. */
  isLost?: boolean;
}): Health {
  if (isLost) return { ok: false, msg: 'membership: the ring is lost' };
  if (ageMs < warmUpMs || store === 'starting') return { ok: false, msg: 'warming up' };
  if (store === 'down') return { ok: false, msg: 'persistence: the store refuses connections' };
  return { ok: true, msg: 'OK' };
}
