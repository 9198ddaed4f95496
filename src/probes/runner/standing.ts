import type { Log } from '../../core/ports.ts';
import type { ProbeState } from '../../core/reasons.ts';
import type { ProbeRow } from '../probe.ts';
import { createDamping } from './damping.ts';
import { createFlapping } from './flapping.ts';
import type { ProbeReport, ProbeResult } from './report.ts';
import { createRing } from './ring.ts';

export interface HistoryOptions {
  /** How many results are kept of each probe, and how many that failed. Default 100 and 20. */
  history?: number;
  failures?: number;
}

/** What all looks of one probe come to. Says in the log when that changes, not what each look found. */
export interface Standing {
  /** Takes one result; returns the state that it turned to, if it turned from another. */
  take(result: ProbeResult): ProbeState | undefined;
  report(): Pick<
    ProbeReport,
    'state' | 'sinceMs' | 'flapping' | 'last' | 'consecutiveFailures' | 'history' | 'failures'
  >;
}

export function createStanding(
  { name, kind, target, schedule }: ProbeRow,
  { history = 100, failures = 20 }: HistoryOptions,
  log: Log,
): Standing {
  const damping = createDamping(schedule);
  const flapping = createFlapping();
  const results = createRing<ProbeResult>(history);
  const failed = createRing<ProbeResult>(failures);
  let last: ProbeResult | undefined;
  let sinceMs: number | undefined;
  const probe = { probe: name, kind, target };

  const noteState = (to: ProbeState, before: ProbeState | undefined, { reason, msg }: ProbeResult) => {
    const fields = { ...probe, reason, found: msg };
    if (to === 'down') log.write('warn', 'what a probe looks at is down', fields);
    else if (before) log.write('info', 'what a probe looks at is up again', fields);
  };
  const noteFlapping = (change: ReturnType<typeof flapping.take>) => {
    if (change === 'began') log.write('warn', 'what a probe looks at goes up and down', probe);
    if (change === 'ended') log.write('info', 'what a probe looks at has come to rest', probe);
  };

  return {
    take(result) {
      const before = damping.state;
      const to = damping.take(result.ok);
      last = result;
      results.push(result);
      if (!result.ok) failed.push(result);
      noteFlapping(flapping.take(result.ok));
      if (!to) return undefined;
      sinceMs = result.atMs;
      noteState(to, before, result);
      return before && to;
    },
    report: () => ({
      state: damping.state,
      sinceMs,
      flapping: flapping.isFlapping,
      last,
      consecutiveFailures: damping.consecutiveFailures,
      history: results.all(),
      failures: failed.all(),
    }),
  };
}
