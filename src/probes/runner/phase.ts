import { createHash } from 'node:crypto';

/** When a probe runs, as delays from now. */
export interface Phase {
  /** The first run, soon after the start. */
  firstMs: number;
  /** The first of the regular runs, an interval apart from then on. */
  thenMs: number;
}

export interface PhaseOptions {
  /** The agent's name. */
  instance: string;
  /** The probe's name. */
  name: string;
  intervalMs: number;
}

/** Over how long first runs are spread. */
const spreadMs = 10_000;

/** From 0 up to 1: always the same for this probe of this agent, and evenly spread over probes and agents. */
export function shareOf(instance: string, name: string): number {
  const digest = createHash('sha256')
    .update(JSON.stringify([instance, name]))
    .digest();
  return digest.readUIntBE(0, 6) / 2 ** 48;
}

/**
 * Regular runs stand on the wall clock: at its moments `share × interval` past a multiple of the interval, so
 * that a restart finds them again, as does an agent that starts at the same time as a hundred others. The clock
 * is read here only; later jumps move nothing. Regular runs begin at least half an interval after the first run.
 */
export function phaseOf({ instance, name, intervalMs }: PhaseOptions, nowMs: number): Phase {
  const share = shareOf(instance, name);
  const firstMs = Math.floor(share * Math.min(intervalMs, spreadMs));
  const phaseMs = Math.floor(share * intervalMs);
  const earliestMs = Math.ceil(firstMs + intervalMs / 2);
  const pastMs = (nowMs + earliestMs - phaseMs) % intervalMs;
  return { firstMs, thenMs: pastMs === 0 ? earliestMs : earliestMs + intervalMs - pastMs };
}
