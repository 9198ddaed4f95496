import {
  type ProbeFailureReason,
  type ProbeSkipReason,
  type ProbeState,
  probeSkipReasons,
  probeStates,
} from '../../core/reasons.ts';
import type { ProbeRow, Sample, SeriesName } from '../probe.ts';
import type { Outcome } from './attempt.ts';
import { createCounters, createGauges } from './held.ts';
import { isDurable, type ProbeIntakes } from './intakes.ts';

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
