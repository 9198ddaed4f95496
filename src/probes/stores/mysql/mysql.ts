import type { StoreKindRow } from '../store.ts';
import { examine } from './examine.ts';
import { faultOf } from './fault.ts';
import { withSession } from './session.ts';

/** Servers that speak MySQL's protocol: MySQL itself, MariaDB, and what calls itself so. */
export const mysql: StoreKindRow = {
  look: (target, signal) =>
    withSession(target, signal, async (ask, trace) => {
      const look = await examine(ask, target);
      return { ...look, tlsNotAfterMs: trace.tlsNotAfterMs, phasesMs: trace.phasesMs };
    }),
  faultOf,
};
