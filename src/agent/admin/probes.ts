import type { ProbeReport, ProbeResult } from '../../probes/runner/report.ts';

type Told<T extends { atMs: number }> = Omit<T, 'atMs'> & { at: string };

/** How a probe is doing, as `/probes` and the status show it. */
export type ProbeStatus = Omit<ProbeReport, 'sinceMs' | 'nextRunMs' | 'last' | 'history' | 'failures'> & {
  since?: string;
  nextRun: string;
  last?: Told<ProbeResult>;
};

/** With the last results and the last failures, newest first. */
export type ProbeDebug = ProbeStatus & { failures: Told<ProbeResult>[]; history: Told<ProbeResult>[] };

const timeOf = (ms: number) => new Date(ms).toISOString();

function told({ atMs, ...rest }: ProbeResult): Told<ProbeResult> {
  return { at: timeOf(atMs), ...rest };
}

export function probeStatus(report: ProbeReport): ProbeStatus {
  const { sinceMs, nextRunMs, last, history: _, failures: __, ...rest } = report;
  return {
    ...rest,
    since: sinceMs === undefined ? undefined : timeOf(sinceMs),
    nextRun: timeOf(nextRunMs),
    last: last && told(last),
  };
}

export function probeDebug(report: ProbeReport): ProbeDebug {
  const newestFirst = (results: readonly ProbeResult[]) => results.toReversed().map(told);
  return {
    ...probeStatus(report),
    failures: newestFirst(report.failures),
    history: newestFirst(report.history),
  };
}
