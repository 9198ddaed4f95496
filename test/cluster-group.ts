import type { Clock, Log, Readings } from '../src/core/ports.ts';
import type { ClusterGroupOptions, ClusterOptions } from '../src/probes/clusters/block.ts';
import type { ProbesOptions } from '../src/probes/plan.ts';
import type { Finding, ProbeDeps, ProbeRow } from '../src/probes/probe.ts';
import { manualClock } from './clock.ts';

/** A group with the clusters `dc1` (this one), `dc2`, … and the initial versions 0, 1, … with the increment ten. */
export function clusterGroup(...clusters: Partial<ClusterOptions>[]): ClusterGroupOptions {
  return {
    failoverVersionIncrement: 10,
    primaryClusterName: 'dc1',
    currentClusterName: 'dc1',
    clusters: clusters.map((cluster, index) => ({
      name: `dc${index + 1}`,
      enabled: true,
      initialFailoverVersion: index,
      ...cluster,
    })),
  };
}

export const probesOptions = (options: Partial<ProbesOptions>): ProbesOptions => ({
  services: [],
  stores: [],
  ...options,
});

interface TestDeps {
  readings?: Readings;
  clock?: Clock;
  /** Receives the log entries. */
  logged?: unknown[];
}

export function probeDeps({ readings, clock = manualClock(), logged = [] }: TestDeps = {}): ProbeDeps {
  const log: Log = { write: (level, msg, fields) => logged.push([level, msg, fields]), named: () => log };
  return {
    readings: readings ?? { values: () => [] },
    clock,
    log,
    readSecret: () => Promise.reject(new Error('there is no secret')),
  };
}

/** Opens the probe of a row and makes one check. */
export async function probeOnce(
  row: ProbeRow,
  deps: TestDeps & { signal?: AbortSignal; recalled?: unknown } = {},
): Promise<Finding> {
  const probe = await row.open(probeDeps(deps));
  return probe.check(deps.signal ?? AbortSignal.timeout(30_000), deps.recalled);
}

/** The samples of a finding in the form of the exposition: `name{label="value"} 1`, in order. */
export function samplesOf({ gauges = [], increases = [] }: Finding): string[] {
  return [...gauges, ...increases]
    .map(({ name, labels, value }) => {
      const pairs = Object.entries(labels).map(([label, text]) => `${label}="${text}"`);
      return `${name}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${value}`;
    })
    .sort();
}
