import { type AgentMetricName, agentMetric } from '../../core/agent-metrics.ts';
import type { OpenIntake } from '../../core/intake.ts';
import type { Counter, Gauge, RawTags } from '../../core/model.ts';
import type { SeriesName } from '../probe.ts';

/**
 * Where the series of probes go, by the key of the service that they belong to (`''`: none). An intake that is
 * still the same after a reload keeps its counters as they are; in the place of one that was closed they begin
 * at 0. Close an intake before another that stands for it is handed out here.
 */
export interface ProbeIntakes {
  /** What does not survive a restart. */
  immediate(service: string): SeriesIntake;
  /** Totals that somebody else keeps. */
  kept(service: string): SeriesIntake;
  /** What does. */
  durable(service: string): DurableIntake;
}

export type SeriesIntake = Pick<OpenIntake, 'counter' | 'gauge'>;
export type DurableIntake = SeriesIntake & Pick<OpenIntake, 'restore'>;

/** Events that are counted once across restarts. What they were counted from is remembered in the same step. */
const durableNames: ReadonlySet<AgentMetricName> = new Set<AgentMetricName>(['svc_domain_failovers_total']);

export const isDurable = ({ name }: SeriesName): boolean => durableNames.has(name);

/** Unambiguous text of a series. */
export function textOf({ name, labels }: SeriesName): string {
  return JSON.stringify([name, Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1))]);
}

/** A series of the agent's own, of the kind and with the help that the table says. */
export function openSeries(intake: SeriesIntake, { name, labels }: SeriesName): Counter | Gauge {
  const { kind, help } = agentMetric(name);
  return kind === 'counter' ? intake.counter(name, labels, { help }) : intake.gauge(name, labels, { help });
}

/** Claims durable counters in an intake, once; returns how to give up those that nobody has asked for since. */
export function restoreDurable(intake: DurableIntake): () => void {
  const back: SeriesName[] = [];
  for (const name of durableNames) {
    const { kind, help, tags } = agentMetric(name);
    const found: readonly RawTags[] = intake.restore(kind, name, { help, tags });
    back.push(...found.map((labels) => ({ name, labels })));
  }
  return () => {
    // Who has asked for it owns it too; without another owner the series goes.
    for (const series of back) openSeries(intake, series).release();
  };
}
