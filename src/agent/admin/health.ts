import type { HealthState } from '../../core/reasons.ts';

/** The spec's health response. */
interface HealthResponse {
  ok: boolean;
  msg: string;
}

/** The agent's own health; it does not depend on a role, a store, a log or a destination (docs/http-api.md). */
export interface Health {
  /** Whether the agent is alive and works: for liveness probes and `svc-agent healthcheck`. */
  health(): HealthResponse;
  /** Whether the first positions are committed, so that responses are exact: for readiness probes. */
  ready(): HealthResponse;
  enter(state: HealthState): void;
}

/**
 * `degraded` returns the reason why the state cannot be written. The agent continues without it, so this is reported and is not a
 * failure.
 */
export function createHealth(degraded: () => string | undefined): Health {
  let state: HealthState = 'starting';
  return {
    health() {
      if (state === 'stopping') return { ok: false, msg: 'stopping' };
      const reason = degraded();
      return {
        ok: true,
        msg: reason ? `OK, but the state cannot be written (${reason})` : state === 'ready' ? 'OK' : state,
      };
    },
    ready: () => ({ ok: state === 'ready', msg: state === 'ready' ? 'OK' : state }),
    enter(next) {
      state = next;
    },
  };
}
