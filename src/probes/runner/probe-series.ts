import { type AgentMetricName, agentMetric } from '../../core/agent-metrics.ts';
import type { Counter, Gauge, RawTags } from '../../core/model.ts';
import {
  type ProbeFailureReason,
  type ProbeSkipReason,
  type ProbeState,
  probeSkipReasons,
  probeStates,
} from '../../core/reasons.ts';
import type { OpenIntake } from '../../core/registry/intake.ts';
import type { ProbeRow, Sample, SeriesName } from '../probe.ts';
import type { Outcome } from './probe-run.ts';

/**
 * The intakes for the series of probes, by service (`''`: none). An intake that stays the same across a reload continues its
 * counters; in a new intake they start at 0. Close an intake before its replacement is handed out here.
 */
export interface ProbeIntakes {
  /** Series that start again after a restart. */
  immediate(service: string): SeriesIntake;
  /** Totals that another program maintains. */
  kept(service: string): SeriesIntake;
  /** Series that survive a restart. */
  durable(service: string): DurableIntake;
}

type SeriesIntake = Pick<OpenIntake, 'counter' | 'gauge'>;
export type DurableIntake = SeriesIntake & Pick<OpenIntake, 'restore'>;

/** Events that are counted once across restarts; what they were counted from is remembered in the same step. */
const durableNames: ReadonlySet<AgentMetricName> = new Set<AgentMetricName>([
  'svc_domain_failovers_total',
  'svc_backup_runs_total',
  'svc_backup_failures_total',
]);

export const isDurable = ({ name }: SeriesName): boolean => durableNames.has(name);

/** Identifies a series. */
function textOf({ name, labels }: SeriesName): string {
  return JSON.stringify([name, Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1))]);
}

/** Opens a series of the agent's own metrics, with the kind and help of the table. */
function openSeries(intake: SeriesIntake, { name, labels }: SeriesName): Counter | Gauge {
  const { kind, help } = agentMetric(name);
  return kind === 'counter' ? intake.counter(name, labels, { help }) : intake.gauge(name, labels, { help });
}

/** Reopens the restored durable counters in an intake; returns a function that releases those that no probe opened. */
export function restoreDurable(intake: DurableIntake): () => void {
  const back: SeriesName[] = [];
  for (const name of durableNames) {
    const { kind, help, tags } = agentMetric(name);
    const found: readonly RawTags[] = intake.restore(kind, name, { help, tags });
    back.push(...found.map((labels) => ({ name, labels })));
  }
  return () => {
    // A probe that opened the series owns it, too. Without another owner the series ends here.
    for (const series of back) openSeries(intake, series).release();
  };
}

interface Gauges {
  /** Sets these gauges, and releases all others. */
  show(samples: readonly Sample[]): void;
}

function createGauges(intake: SeriesIntake): Gauges {
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

/** Counters, each opened once. */
interface Counters {
  /** The counter of a series; a new counter is at 0. */
  of(series: SeriesName): Counter;
  release(): void;
}

/** Creates the counters. `intake` is called for the first counter. */
function createCounters(intake: () => SeriesIntake): Counters {
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

/** One run, with everything that its series show. */
interface ShownOutcome extends Outcome {
  /** Wall clock, ms. */
  atMs: number;
  /** The new damped state, if it changed. */
  newState?: ProbeState;
}

interface ProbeSeries {
  show(shown: ShownOutcome): void;
  /** Shows gauges from before a restart until the first result. */
  recall(samples: readonly Sample[]): void;
  /** Removes the gauges until the next result. */
  vanish(): void;
  skipped(reason: ProbeSkipReason, runs: number): void;
  /** Moves the series to other intakes and releases the old ones. */
  reopen(row: ProbeRow, intakes: ProbeIntakes): ProbeSeries;
  /** Releases everything except durable totals, which stay in the state. */
  withdraw(): void;
  /** Releases everything, including durable totals. */
  discard(): void;
}

const within = ({ name, labels }: SeriesName, more: SeriesName['labels']): SeriesName => ({
  name,
  labels: { ...labels, ...more },
});
const sampled = (series: SeriesName | undefined, value: number): Sample[] =>
  series ? [{ ...series, value }] : [];

/** Every counter of a probe; each exists at 0 from the start. */
function* countersOf({ shows, reasons }: ProbeRow): Iterable<SeriesName> {
  const { failures, transitions, counters = [] } = shows;
  if (failures) for (const reason of reasons) yield within(failures, { reason });
  if (transitions) for (const to of probeStates) yield within(transitions, { to });
  yield* counters;
}

/** Opens the counters; `before` has the series that the same probe showed in other intakes. */
export function createProbeSeries(row: ProbeRow, intakes: ProbeIntakes, before?: ShownOutcome): ProbeSeries {
  const { shows } = row;
  const probe = { probe: row.name };
  const [own, ofService] = [intakes.immediate(''), intakes.immediate(row.service)];
  const gauges = { own: createGauges(own), immediate: createGauges(ofService) };
  const counters = {
    own: createCounters(() => own),
    immediate: createCounters(() => ofService),
    kept: createCounters(() => intakes.kept(row.service)),
    durable: createCounters(() => intakes.durable(row.service)),
  };
  const counterOf = (series: SeriesName) =>
    (isDurable(series) ? counters.durable : counters.immediate).of(series);
  const skippedOf = (reason: ProbeSkipReason) =>
    counters.own.of({ name: 'svc_probe_skipped_total', labels: { ...probe, reason } });
  const failedOf = (reason: ProbeFailureReason) =>
    counters.own.of({ name: 'svc_probe_failures_total', labels: { ...probe, reason } });
  let current = before;

  const showGauges = ({ finding, durationMs, atMs }: ShownOutcome) => {
    const { tlsNotAfterMs } = finding;
    gauges.own.show([
      { name: 'svc_probe_last_run_timestamp_seconds', labels: probe, value: atMs / 1e3 },
      ...(tlsNotAfterMs === undefined
        ? []
        : sampled({ name: 'svc_probe_tls_not_after_timestamp_seconds', labels: probe }, tlsNotAfterMs / 1e3)),
    ]);
    gauges.immediate.show([
      ...sampled(shows.up, finding.reason ? 0 : 1),
      ...sampled(shows.duration, durationMs / 1e3),
      ...(finding.gauges ?? []),
    ]);
  };
  const showTotals = ({ finding }: ShownOutcome) => {
    for (const total of finding.totals ?? []) counters.kept.of(total).set(total.value);
  };
  const vanish = () => {
    current = undefined;
    gauges.own.show([]);
    gauges.immediate.show([]);
  };
  const withdraw = () => {
    vanish();
    counters.own.release();
    counters.immediate.release();
    counters.kept.release();
  };
  const discard = () => {
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
      const { finding, newState } = shown;
      current = shown;
      if (finding.reason) {
        failedOf(finding.reason).add(1);
        if (shows.failures) counterOf(within(shows.failures, { reason: finding.reason })).add(1);
      }
      if (shows.transitions && newState) counterOf(within(shows.transitions, { to: newState })).add(1);
      for (const increase of finding.increases ?? []) counterOf(increase).add(increase.value);
      showTotals(shown);
      showGauges(shown);
    },
    recall: (samples) => gauges.immediate.show(samples),
    vanish,
    skipped: (reason, runs) => skippedOf(reason).add(runs),
    reopen(nextRow, nextIntakes) {
      // The new series are opened before the old ones are released: a series that both have always has an owner, and continues.
      const next = createProbeSeries(nextRow, nextIntakes, current);
      discard();
      return next;
    },
    withdraw,
    discard,
  };
}
