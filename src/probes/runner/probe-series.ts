import { type AgentMetricName, agentMetric } from '../../core/agent-metrics.ts';
import type { OpenIntake } from '../../core/intake.ts';
import type { Counter, Gauge, RawTags } from '../../core/model.ts';
import {
  type ProbeFailureReason,
  type ProbeSkipReason,
  type ProbeState,
  probeSkipReasons,
  probeStates,
} from '../../core/reasons.ts';
import type { ProbeRow, Sample, SeriesName } from '../probe.ts';
import type { Outcome } from './probe-run.ts';

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
const durableNames: ReadonlySet<AgentMetricName> = new Set<AgentMetricName>([
  'svc_domain_failovers_total',
  'svc_backup_runs_total',
  'svc_backup_failures_total',
]);

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

/** Gauges that one look sets. */
export interface Gauges {
  /** These, and no others any more. */
  show(samples: readonly Sample[]): void;
}

export function createGauges(intake: SeriesIntake): Gauges {
  let held = new Map<string, Gauge>();
  return {
    show(samples) {
      const next = new Map<string, Gauge>();
      for (const sample of samples) {
        const text = textOf(sample);
        const gauge = next.get(text) ?? held.get(text) ?? openSeries(intake, sample);
        gauge.set(sample.value);
        next.set(text, gauge);
      }
      for (const [text, gauge] of held) if (!next.has(text)) gauge.release();
      held = next;
    },
  };
}

/** Counters, opened once each. */
export interface Counters {
  /** The counter, at 0 if it is new. */
  of(series: SeriesName): Counter;
  release(): void;
}

/** The intake is asked for with the first counter. */
export function createCounters(intake: () => SeriesIntake): Counters {
  const held = new Map<string, Counter>();
  return {
    of(series) {
      const text = textOf(series);
      const counter = held.get(text) ?? openSeries(intake(), series);
      held.set(text, counter);
      return counter;
    },
    release() {
      for (const counter of held.values()) counter.release();
      held.clear();
    },
  };
}

/** One look, with all that its series say of it. */
export interface ShownLook extends Outcome {
  /** Wall clock, ms. */
  atMs: number;
  /** What the damped state turned to. */
  turned?: ProbeState;
}

/** The series of one probe. */
export interface ProbeSeries {
  show(shown: ShownLook): void;
  /** There has been no result for too long: gauges go until the next. */
  vanish(): void;
  skipped(reason: ProbeSkipReason, runs: number): void;
  /** The same series, from other intakes where those have changed; the old ones are given back. */
  reopen(row: ProbeRow, intakes: ProbeIntakes): ProbeSeries;
  /** The agent stops: durable totals stay in the state. */
  withdraw(): void;
  /** The probe is gone, and its totals with it. */
  giveUp(): void;
}

const within = ({ name, labels }: SeriesName, more: SeriesName['labels']): SeriesName => ({
  name,
  labels: { ...labels, ...more },
});
const sampled = (series: SeriesName | undefined, value: number): Sample[] =>
  series ? [{ ...series, value }] : [];

/** All that can be counted of a probe, so that it is there at 0 before it happens. */
function* countersOf({ shows, reasons }: ProbeRow): Iterable<SeriesName> {
  const { failures, transitions, counters = [] } = shows;
  if (failures) for (const reason of reasons) yield within(failures, { reason });
  if (transitions) for (const to of probeStates) yield within(transitions, { to });
  yield* counters;
}

/** Opens what is there from the start; `before` is what the same probe showed in other intakes. */
export function createProbeSeries(row: ProbeRow, intakes: ProbeIntakes, before?: ShownLook): ProbeSeries {
  const { shows } = row;
  const probe = { probe: row.name };
  const [own, told] = [intakes.immediate(''), intakes.immediate(row.service)];
  const gauges = { own: createGauges(own), told: createGauges(told) };
  const counters = {
    own: createCounters(() => own),
    told: createCounters(() => told),
    kept: createCounters(() => intakes.kept(row.service)),
    durable: createCounters(() => intakes.durable(row.service)),
  };
  const counterOf = (series: SeriesName) => (isDurable(series) ? counters.durable : counters.told).of(series);
  const skippedOf = (reason: ProbeSkipReason) =>
    counters.own.of({ name: 'svc_probe_skipped_total', labels: { ...probe, reason } });
  const failedOf = (reason: ProbeFailureReason) =>
    counters.own.of({ name: 'svc_probe_failures_total', labels: { ...probe, reason } });
  let current = before;

  const showGauges = ({ finding, durationMs, atMs }: ShownLook) => {
    const { tlsNotAfterMs } = finding;
    gauges.own.show([
      { name: 'svc_probe_last_run_timestamp_seconds', labels: probe, value: atMs / 1e3 },
      ...(tlsNotAfterMs === undefined
        ? []
        : sampled({ name: 'svc_probe_tls_not_after_timestamp_seconds', labels: probe }, tlsNotAfterMs / 1e3)),
    ]);
    gauges.told.show([
      ...sampled(shows.up, finding.reason ? 0 : 1),
      ...sampled(shows.duration, durationMs / 1e3),
      ...(finding.gauges ?? []),
    ]);
  };
  const showTotals = ({ finding }: ShownLook) => {
    for (const total of finding.totals ?? []) counters.kept.of(total).set(total.value);
  };
  const vanish = () => {
    current = undefined;
    gauges.own.show([]);
    gauges.told.show([]);
  };
  const withdraw = () => {
    vanish();
    counters.own.release();
    counters.told.release();
    counters.kept.release();
  };
  const giveUp = () => {
    withdraw();
    counters.durable.release();
  };

  for (const series of countersOf(row)) counterOf(series);
  for (const reason of row.reasons) failedOf(reason);
  for (const reason of probeSkipReasons) skippedOf(reason);
  if (before) {
    showGauges(before);
    showTotals(before);
  }

  return {
    show(shown) {
      const { finding, turned } = shown;
      current = shown;
      if (finding.reason) {
        failedOf(finding.reason).add(1);
        if (shows.failures) counterOf(within(shows.failures, { reason: finding.reason })).add(1);
      }
      if (shows.transitions && turned) counterOf(within(shows.transitions, { to: turned })).add(1);
      for (const increase of finding.increases ?? []) counterOf(increase).add(increase.value);
      showTotals(shown);
      showGauges(shown);
    },
    vanish,
    skipped: (reason, runs) => skippedOf(reason).add(runs),
    reopen(nextRow, nextIntakes) {
      // Opened before the old ones go: what both have is never without an owner, and goes on.
      const next = createProbeSeries(nextRow, nextIntakes, current);
      giveUp();
      return next;
    },
    withdraw,
    giveUp,
  };
}
