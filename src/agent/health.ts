import type { HealthState } from '../core/reasons.ts';

/** The spec's health response. */
export interface HealthAnswer {
  ok: boolean;
  msg: string;
}

/** The agent's own health; it never speaks of a role, a store, a log or a destination (CONTRACT, HTTP). */
export interface Health {
  /** Alive and at work: for liveness probes and `svc-agent healthcheck`. */
  health(): HealthAnswer;
  /** First positions are committed and answers are exact: for readiness probes. */
  ready(): HealthAnswer;
  enter(state: HealthState): void;
}

/** `degraded` says why the state cannot be written; the agent works on without it, so it is told, not failed. */
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
