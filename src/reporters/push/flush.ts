import { findMetric } from '../../core/catalog.ts';
import type { FamilyView, SeriesView, View } from '../../core/model.ts';
import type { Drops } from '../../core/ports.ts';
import type { Baseline, Entry } from './baseline.ts';
import { counterLine, type Form, type Former, formsOf, gaugeLine, totalsOf } from './statsd-lines.ts';

/** One total of one series, and the line that it goes to. */
interface Share {
  readonly entry: Entry;
  readonly total: number;
  readonly form: Form;
}

/** A line, or two that belong together, ready to leave. */
export interface Line {
  readonly text: string;
  /** Of its UTF-8. */
  readonly bytes: number;
  /** Whose increases it carries; none: it is a gauge. */
  readonly shares: readonly Share[];
  /** How much of each. */
  readonly amounts: readonly number[];
}

const lineOf = (text: string, shares: readonly Share[] = [], amounts: readonly number[] = []): Line => ({
  text,
  bytes: Buffer.byteLength(text),
  shares,
  amounts,
});

/** How a series is written; kept as long as it lives. */
interface Plan {
  readonly forms: readonly Form[];
  /** The first of the totals. Gauges, where there are any, come before. */
  readonly first: number;
  readonly gauges: number;
  entry: Entry | undefined;
  shares: readonly Share[];
}

/** What a gauge's line says: the sum of the series that meet in it. */
interface Gauge {
  readonly form: Form;
  readonly additive: boolean;
  value: number;
  series: number;
}

export interface DraftsDeps {
  baseline: Baseline;
  former: Former;
  drops: Drops;
}

const sliceMs = 2;
/** The clock is looked at once in so many steps. */
const stepsPerLook = 32;

/** Lets others have the event loop whenever it has been busy for 2 ms. */
function createPause() {
  let sinceMs = performance.now();
  let steps = 0;
  return {
    isDue: () => ++steps % stepsPerLook === 0 && performance.now() - sinceMs > sliceMs,
    async take() {
      await new Promise((resolve) => setImmediate(resolve));
      sinceMs = performance.now();
    },
  };
}

/** Lines of one flush by their keys. Totals that meet in a key are added up; gauges only where that has a meaning. */
function createDrafts({ baseline, drops }: DraftsDeps) {
  const counters = new Map<string, Share[]>();
  const gauges = new Map<string, Gauge>();
  return {
    addTotals(shares: readonly Share[]) {
      for (const share of shares) {
        if (!(baseline.owed(share.entry, share.total) > 0)) continue;
        const met = counters.get(share.form.key);
        if (met) met.push(share);
        else counters.set(share.form.key, [share]);
      }
    },
    addGauge(form: Form, value: number, family: string) {
      if (!Number.isFinite(value)) return drops.count('push', 'not_finite');
      const met = gauges.get(form.key);
      if (met) {
        met.value += value;
        met.series += 1;
      } else {
        gauges.set(form.key, { form, value, series: 1, additive: findMetric(family)?.additive ?? false });
      }
    },
    *lines(): Generator<Line, void, undefined> {
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
 * Turns views into the lines of a flush. What a line carries stays owed in the baseline until it is settled.
 * The event loop has a turn every 2 ms.
 */
export function createDrafting(deps: DraftsDeps): { draft(view: View): Promise<Line[]> } {
  const { baseline, former } = deps;
  const plans = new WeakMap<SeriesView, Plan>();
  /** By entry: one that is gone for a while may still have to say something. */
  const sharesOf = new WeakMap<Entry, readonly Share[]>();

  const planFor = (family: FamilyView, series: SeriesView): Plan => {
    const found = plans.get(series);
    if (found) return found;
    const forms = formsOf(former, family, series);
    const { first, count } = totalsOf(family.kind, series);
    const plan = { forms, first, gauges: forms.length - count, entry: undefined, shares: [] };
    plans.set(series, plan);
    return plan;
  };
  const sharesFor = (plan: Plan, entry: Entry): readonly Share[] => {
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
      const pause = createPause();
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
          if (pause.isDue()) await pause.take();
        }
      }
      baseline.end();
      for (const entry of baseline.absent()) drafts.addTotals(sharesOf.get(entry) ?? []);
      const lines: Line[] = [];
      for (const line of drafts.lines()) {
        lines.push(line);
        if (pause.isDue()) await pause.take();
      }
      return lines;
    },
  };
}

/** Lines that leave together, joined by `\n`, without one at the end. */
export interface Packet<L> {
  readonly lines: readonly L[];
}

export interface Packed<L> {
  readonly packets: readonly Packet<L>[];
  /** Lines longer than a packet may be. */
  readonly tooLong: readonly L[];
}

/** Fills packets of at most `flushBytes` in the order of the lines, whose `bytes` are those of UTF-8; none is split. */
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
