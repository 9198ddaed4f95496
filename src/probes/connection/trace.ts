import { systemClock } from '../../core/clock.ts';
import type { Clock } from '../../core/ports.ts';

/** The steps to an answer, in their order. */
export type Phase = 'resolve' | 'connect' | 'tls' | 'first_byte' | 'body';

/** How far one look has come: known also, and above all, when it fails. */
export interface Trace {
  /** The step that it is in, or was in last. */
  readonly phase: Phase;
  /** How long each step took that was begun; one that is begun twice adds up. */
  readonly phasesMs: Readonly<Partial<Record<Phase, number>>>;
  /** `host:port` that was dialled, the host as a number. */
  dialled?: string;
  /** Earliest end of a certificate met, ms since the epoch. */
  tlsNotAfterMs?: number;
  /** Ends the step before. */
  enter(phase: Phase): void;
  end(): void;
}

/** Microseconds are exact enough for a network. */
const rounded = (ms: number): number => Math.round(ms * 1000) / 1000;

export function createTrace(clock: Pick<Clock, 'monotonicMs'> = systemClock): Trace {
  const phasesMs: Partial<Record<Phase, number>> = {};
  let phase: Phase = 'resolve';
  let sinceMs: number | undefined;
  const end = (): void => {
    if (sinceMs === undefined) return;
    phasesMs[phase] = rounded((phasesMs[phase] ?? 0) + clock.monotonicMs() - sinceMs);
    sinceMs = undefined;
  };
  return {
    phasesMs,
    get phase() {
      return phase;
    },
    enter(next) {
      end();
      phase = next;
      sinceMs = clock.monotonicMs();
    },
    end,
  };
}
