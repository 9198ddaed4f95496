import { findMetric } from '../../core/catalog.ts';
import type { FamilyView, SeriesView, View } from '../../core/model.ts';
import type { Drops } from '../../core/ports.ts';
import { createSeriesSlice } from '../../core/slices.ts';
import type { Baseline, BaselineEntry } from './baseline.ts';
import {
  counterLine,
  formsOf,
  gaugeLine,
  type LineFormat,
  type LineFormatter,
  totalsOf,
} from './statsd-lines.ts';

/** One total of one series, and its line. */
interface Share {
  readonly entry: BaselineEntry;
  readonly total: number;
  readonly form: LineFormat;
}

/** A line, or two that belong together, ready to be sent. */
export interface PushLine {
  readonly text: string;
  /** The length in UTF-8. */
  readonly bytes: number;
  /** The totals whose increases it contains; empty for a gauge. */
  readonly shares: readonly Share[];
  /** The increase of each share. */
  readonly amounts: readonly number[];
}

const lineOf = (text: string, shares: readonly Share[] = [], amounts: readonly number[] = []): PushLine => ({
  text,
  bytes: Buffer.byteLength(text),
  shares,
  amounts,
});

/** The cached line formats of a series. */
interface SeriesLines {
  readonly forms: readonly LineFormat[];
  /** The index of the first total; gauges come before it. */
  readonly first: number;
  readonly gauges: number;
  entry: BaselineEntry | undefined;
  shares: readonly Share[];
}

/** The value of a gauge's line: the sum of the series that share it. */
interface GaugeLine {
  readonly form: LineFormat;
  readonly additive: boolean;
  value: number;
  series: number;
}

interface DraftsDeps {
  baseline: Baseline;
  formatter: LineFormatter;
  drops: Drops;
}

/** The lines of one flush by key. Totals that share a key are added; gauges only if they are additive. */
function createDrafts({ baseline, drops }: DraftsDeps) {
  const counters = new Map<string, Share[]>();
  const gauges = new Map<string, GaugeLine>();
  return {
    addTotals(shares: readonly Share[]) {
      for (const share of shares) {
        if (!(baseline.owed(share.entry, share.total) > 0)) continue;
        const existing = counters.get(share.form.key);
        if (existing) existing.push(share);
        else counters.set(share.form.key, [share]);
      }
    },
    addGauge(form: LineFormat, value: number, family: string) {
      if (!Number.isFinite(value)) return drops.count('push', 'not_finite');
      const existing = gauges.get(form.key);
      if (existing) {
        existing.value += value;
        existing.series += 1;
      } else {
        gauges.set(form.key, { form, value, series: 1, additive: findMetric(family)?.additive ?? false });
      }
    },
    *lines(): Generator<PushLine, void, undefined> {
      for (const shares of counters.values()) {
        const amounts = shares.map(({ entry, total }) => baseline.owed(entry, total));
        const delta = amounts.reduce((sum, amount) => sum + amount, 0);
        yield lineOf(counterLine(shares[0]!.form, Math.min(delta, Number.MAX_VALUE)), shares, amounts);
      }
      for (const { form, value, series, additive } of gauges.values()) {
        if (series > 1 && !additive) drops.count('push', 'not_additive', series);
        else if (!Number.isFinite(value)) drops.count('push', 'not_finite', series);
        else yield lineOf(gaugeLine(form, value));
      }
    },
  };
}

/**
 * Turns views into the lines of a flush. Their increases stay owed in the baseline until they are settled. Yields to
 * the event loop every 2 ms.
 */
export function createDrafting(deps: DraftsDeps): { draft(view: View): Promise<PushLine[]> } {
  const { baseline, formatter } = deps;
  const plans = new WeakMap<SeriesView, SeriesLines>();
  /** The shares by entry: a series that is gone may still have increases to send. */
  const sharesOf = new WeakMap<BaselineEntry, readonly Share[]>();

  const planFor = (family: FamilyView, series: SeriesView): SeriesLines => {
    const found = plans.get(series);
    if (found) return found;
    const forms = formsOf(formatter, family, series);
    const { first, count } = totalsOf(family.kind, series);
    const plan = { forms, first, gauges: forms.length - count, entry: undefined, shares: [] };
    plans.set(series, plan);
    return plan;
  };
  const sharesFor = (plan: SeriesLines, entry: BaselineEntry): readonly Share[] => {
    if (plan.entry === entry) return plan.shares;
    const made = () =>
      Array.from({ length: entry.count }, (_, total) => ({
        entry,
        total,
        form: plan.forms[plan.first + total]!,
      }));
    plan.entry = entry;
    plan.shares = sharesOf.get(entry) ?? made();
    sharesOf.set(entry, plan.shares);
    return plan.shares;
  };

  return {
    async draft(view) {
      const slice = createSeriesSlice();
      const drafts = createDrafts(deps);
      baseline.begin();
      for (const family of view.families) {
        for (const series of family.series) {
          const plan = planFor(family, series);
          const numbers = view.numbers(series);
          const entry = baseline.take(family, series, numbers);
          if (entry?.owes) drafts.addTotals(sharesFor(plan, entry));
          for (let part = 0; part < plan.gauges; part++) {
            drafts.addGauge(plan.forms[part]!, numbers[series.at + part]!, family.name);
          }
          if (slice.isOver()) await slice.next();
        }
      }
      baseline.end();
      for (const entry of baseline.absent()) drafts.addTotals(sharesOf.get(entry) ?? []);
      const lines: PushLine[] = [];
      for (const line of drafts.lines()) {
        lines.push(line);
        if (slice.isOver()) await slice.next();
      }
      return lines;
    },
  };
}

/** The lines of one datagram, with `\n` between them and no `\n` at the end. */
export interface Packet<L> {
  readonly lines: readonly L[];
}

interface Packed<L> {
  readonly packets: readonly Packet<L>[];
  /** The lines that are longer than a packet may be. */
  readonly tooLong: readonly L[];
}

/** Fills packets of at most `flushBytes` in the order of the lines. Lines are never split. */
export function packLines<L extends { readonly bytes: number }>(
  lines: readonly L[],
  flushBytes: number,
): Packed<L> {
  const packets: Packet<L>[] = [];
  const tooLong: L[] = [];
  let filling: L[] = [];
  let filledBytes = 0;
  for (const line of lines) {
    const { bytes } = line;
    if (bytes > flushBytes) {
      tooLong.push(line);
      continue;
    }
    if (filling.length > 0 && filledBytes + 1 + bytes > flushBytes) {
      packets.push({ lines: filling });
      filling = [];
      filledBytes = 0;
    }
    filledBytes += (filling.length > 0 ? 1 : 0) + bytes;
    filling.push(line);
  }
  if (filling.length > 0) packets.push({ lines: filling });
  return { packets, tooLong };
}

export function datagramOf({ lines }: Packet<{ readonly text: string }>): Buffer {
  return Buffer.from(lines.map(({ text }) => text).join('\n'));
}
