import type { FamilyView, Kind, Labels, SeriesView, View } from '../src/core/model.ts';
import { createRenderer } from '../src/reporters/pull/exposition.ts';

/** A series in the notation of a test: its numbers are in the order of `SeriesView.at`. */
export interface SeriesSpec {
  labels?: Readonly<Record<string, string>>;
  service?: string;
  relayed?: boolean;
  bounds?: readonly string[];
  hasSum?: boolean;
  hasCount?: boolean;
  startMs?: number;
  numbers: readonly number[];
}

export interface FamilySpec {
  name: string;
  kind: Kind;
  help?: string;
  series: readonly SeriesSpec[];
}

/** The page of a view as one text. */
export async function pageOf(
  view: View,
  format: 'text' | 'openmetrics' = 'text',
  renderer = createRenderer(),
): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of renderer.render(view, format)) pieces.push(Buffer.from(piece));
  return Buffer.concat(pieces).toString();
}

/** A view that counts how often it was released, and how many series were read. */
export interface TestView extends View {
  readonly released: number;
  readonly looked: number;
}

function sorted(labels: Readonly<Record<string, string>>): Labels {
  return Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
}

/** A view of families in the notation of a test, with all numbers in one array. */
export function viewOf(specs: readonly FamilySpec[]): TestView {
  const all: number[] = [];
  let released = 0;
  let looked = 0;
  const families = specs.map(({ name, kind, help = '', series }): FamilyView => {
    const views = series.map((spec): SeriesView => {
      const at = all.length;
      all.push(...spec.numbers);
      const {
        labels = {},
        service = '',
        relayed = false,
        bounds = [],
        hasSum = true,
        hasCount = true,
        startMs = 0,
      } = spec;
      return { labels: sorted(labels), service, relayed, at, bounds, hasSum, hasCount, startMs };
    });
    return { name, kind, help, series: views };
  });
  const values = Float64Array.from(all);
  return {
    families,
    numbers() {
      looked += 1;
      return values;
    },
    release() {
      released += 1;
    },
    get released() {
      return released;
    },
    get looked() {
      return looked;
    },
  };
}
