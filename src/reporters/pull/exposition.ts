import type { FamilyView, Kind, SeriesView, View } from '../../core/model.ts';

/** Renders views as pages. */
export interface Renderer {
  /**
   * The page of a view in pieces of a little more than 64 KiB. Yields to the event loop between two pieces after
   * 2 ms of work, because datagrams cannot wait longer.
   */
  render(view: View, format: Format): AsyncGenerator<Buffer, void, undefined>;
}

const pieceChars = 65_536;
const sliceMs = 2;

/** The texts of the series of a family, in the order of the last page that began with the same series. */
interface FamilyTexts {
  readonly series: SeriesView[];
  readonly texts: SeriesText[];
}

/**
 * Caches the text of each series. A look-up by position is several times faster than one in a `WeakMap`, which is
 * only needed where the order of series has changed.
 */
function createTextCache(prefix: string) {
  const bySeries = new WeakMap<SeriesView, SeriesText>();
  const byFirst = new WeakMap<SeriesView, FamilyTexts>();
  const internBounds = createBoundTexts();

  const find = (family: FamilyView, series: SeriesView): SeriesText => {
    const found = bySeries.get(series);
    if (found) return found;
    const made = seriesText(prefix + family.name, family.kind, series, internBounds);
    bySeries.set(series, made);
    return made;
  };
  return {
    /** The cached texts of a family. Positions are checked by `lookUp`. */
    family({ series }: FamilyView): FamilyTexts {
      const first = series[0]!;
      let cached = byFirst.get(first);
      // Series that are gone are not kept in memory.
      if (!cached || cached.series.length > 2 * series.length) cached = { series: [], texts: [] };
      byFirst.set(first, cached);
      return cached;
    },
    lookUp(cached: FamilyTexts, family: FamilyView, index: number): SeriesText {
      const series = family.series[index]!;
      if (cached.series[index] === series) return cached.texts[index]!;
      const text = find(family, series);
      cached.series[index] = series;
      cached.texts[index] = text;
      return text;
    },
  };
}

/**
 * A renderer of text exposition 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats) and OpenMetrics 1.0. It
 * caches the text of each series but for its numbers for as long as the series lives. `prefix` is put before every
 * name unchanged. An empty view is an empty page.
 */
export function createRenderer(prefix = ''): Renderer {
  const cache = createTextCache(prefix);

  /**
   * Joins many short texts at once: added up one by one they would leave a rope of small objects for the garbage
   * collector, which took longer than the rendering itself.
   */
  function* pieces(view: View, families: readonly FamilyView[], groupsOf: GroupsOf): Generator<string> {
    const texts: string[] = [];
    let chars = 0;
    for (const family of families) {
      const cached = cache.family(family);
      for (const { head, from, to } of groupsOf(family)) {
        texts.push(head);
        for (let index = 0; index < family.series.length; index++) {
          const series = family.series[index]!;
          const { boundHead, bounds, lines } = cache.lookUp(cached, family, index);
          const numbers = view.numbers(series);
          const count = bounds.length + lines.length;
          const start = from < 0 ? count + from : from;
          const end = to <= 0 ? count + to : to;
          for (let part = start; part < end; part++) {
            const isBound = part < bounds.length;
            const last = isBound ? bounds[part]! : lines[part - bounds.length]!;
            if (last === '') continue;
            if (isBound) texts.push(boundHead);
            const number = numberText(numbers[series.at + part]!);
            texts.push(last, number, '\n');
            chars += (isBound ? boundHead.length : 0) + last.length + number.length + 1;
          }
          if (chars >= pieceChars) {
            yield texts.join('');
            texts.length = 0;
            chars = 0;
          }
        }
      }
    }
    yield texts.join('');
  }

  return {
    async *render(view, format) {
      const families = view.families.filter(({ series }) => series.length > 0);
      const groupsOf = format === 'text' ? textGroups(prefix) : openMetricsGroups(prefix, families);
      let busySinceMs = performance.now();
      for (const piece of pieces(view, families, groupsOf)) {
        if (piece !== '') yield Buffer.from(piece);
        if (performance.now() - busySinceMs < sliceMs) continue;
        await new Promise((resolve) => setImmediate(resolve));
        busySinceMs = performance.now();
      }
      if (format === 'openmetrics') yield Buffer.from('# EOF\n');
    },
  };
}

/** Text exposition 0.0.4, or OpenMetrics 1.0. */
export type Format = 'text' | 'openmetrics';

/** `Content-Type` of each format. */
export const contentTypes: Readonly<Record<Format, string>> = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
};

/** Lines under one TYPE line: a family, or the part of one that has a type of its own. */
export interface MetadataGroup {
  /** HELP and TYPE, newlines included. */
  readonly head: string;
  /** Range of each series' numbers, `to` exclusive; 0 or less counts from the end, and a `to` of 0 is the end. */
  readonly from: number;
  readonly to: number;
}

/** The groups of a family on a page. */
export type GroupsOf = (family: FamilyView) => readonly MetadataGroup[];

const whole = { from: 0, to: 0 };
const histogramParts = [
  { suffix: '_bucket', from: 0, to: -2 },
  { suffix: '_sum', from: -2, to: -1 },
  { suffix: '_count', from: -1, to: 0 },
];
const summaryParts = [{ ...histogramParts[0]!, suffix: '' }, ...histogramParts.slice(1)];

/** Text exposition 0.0.4: one group per family. */
export function textGroups(prefix: string): GroupsOf {
  return ({ name, kind, help }) => {
    const shown = prefix + name;
    const helpLine = help && `# HELP ${shown} ${escapeHelp(help, 'text')}\n`;
    return [{ head: `${helpLine}# TYPE ${shown} ${kind}\n`, ...whole }];
  };
}

const suffixes: Readonly<Partial<Record<Kind, RegExp>>> = {
  histogram: /_(?:bucket|sum|count|created)$/,
  summary: /_(?:sum|count|created)$/,
};

/** Whether a name is that of a family or of one of its samples. */
function claims(kinds: ReadonlyMap<string, Kind>): (name: string) => boolean {
  return (name) => {
    if (kinds.has(name)) return true;
    const base = name.slice(0, Math.max(0, name.lastIndexOf('_')));
    if (suffixes[kinds.get(base) ?? 'gauge']?.test(name)) return true;
    return name.endsWith('_created') && kinds.get(`${base}_total`) === 'counter';
  };
}

/**
 * OpenMetrics 1.0 ("MetricFamily", "Suffixes"; ABNF): the family name of a counter is its name without `_total`, and
 * no name may be one that another family's samples could have (including `_created`, which is never sent). Every
 * sample keeps its name of text 0.0.4. A family that would break those rules is typed `unknown`: a counter as a
 * whole, a histogram or summary part by part.
 */
export function openMetricsGroups(prefix: string, families: readonly FamilyView[]): GroupsOf {
  const kinds = new Map(families.map(({ name, kind }) => [name, kind]));
  const claimed = claims(kinds);
  const head = (name: string, type: string, help: string): string => {
    const typeLine = `# TYPE ${prefix}${name} ${type}\n`;
    return help ? `${typeLine}# HELP ${prefix}${name} ${escapeHelp(help, 'openmetrics')}\n` : typeLine;
  };

  return ({ name, kind, help }) => {
    if (kind === 'counter') {
      const stem = name.endsWith('_total') ? name.slice(0, -'_total'.length) : '';
      const counts = stem !== '' && !claimed(stem) && !kinds.has(`${stem}_created`);
      return [{ head: counts ? head(stem, 'counter', help) : head(name, 'unknown', help), ...whole }];
    }
    if ((kind === 'histogram' || kind === 'summary') && kinds.has(`${name}_created`)) {
      const parts = kind === 'histogram' ? histogramParts : summaryParts;
      return parts.map(({ suffix, from, to }) => ({ head: head(name + suffix, 'unknown', help), from, to }));
    }
    return [{ head: head(name, kind === 'untyped' ? 'unknown' : kind, help), ...whole }];
  };
}

const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '"': '\\"' };
const escaped = (found: string): string => escapes[found]!;

/** OpenMetrics escapes quotes in HELP, text 0.0.4 does not. */
export function escapeHelp(help: string, format: Format): string {
  return help.replace(format === 'text' ? /[\\\n]/g : /[\\\n"]/g, escaped);
}

function escapeLabelValue(value: string): string {
  return value.replace(/[\\\n"]/g, escaped);
}

/** The shortest decimal that reads back as the same double; `NaN`, `+Inf`, `-Inf`. */
export function numberText(value: number): string {
  if (value - value === 0) return `${value}`;
  if (value > 0) return '+Inf';
  return value < 0 ? '-Inf' : 'NaN';
}

/**
 * The lines of a series up to their numbers, in the order of its numbers. Lines with a bound are kept as one head
 * and the texts of the bounds, which most histograms share: that takes a twentieth of the memory of whole lines.
 * The same text serves both formats: names, label escapes and `le` do not differ.
 */
interface SeriesText {
  /** What the lines with a bound begin with, up to the bound. */
  readonly boundHead: string;
  /** The bounds with what follows them: `0.5"} `. */
  readonly bounds: readonly string[];
  /** The other lines; a sum or count that the sender does not have is an empty text. */
  readonly lines: readonly string[];
}

type InternBounds = (bounds: readonly string[]) => readonly string[];

const maxBoundTexts = 256;

/** Gives the same texts for the same bounds. */
function createBoundTexts(): InternBounds {
  const known = new Map<string, readonly string[]>();
  return (bounds) => {
    const key = bounds.join('\n');
    const found = known.get(key);
    if (found) return found;
    const made = bounds.map((bound) => [escapeLabelValue(bound), '"} '].join(''));
    if (known.size >= maxBoundTexts) known.clear();
    known.set(key, made);
    return made;
  };
}

/** Joined and not concatenated: a rope would be walked again each time it is rendered. */
function seriesText(
  name: string,
  kind: Kind,
  { labels, bounds, hasSum, hasCount }: SeriesView,
  internBounds: InternBounds,
): SeriesText {
  const pairs = labels.map(([label, value]) => `${label}="${escapeLabelValue(value)}"`).join(',');
  const line = (lineName: string) => [lineName, pairs === '' ? '' : `{${pairs}}`, ' '].join('');
  if (kind !== 'histogram' && kind !== 'summary') return { boundHead: '', bounds: [], lines: [line(name)] };
  const isHistogram = kind === 'histogram';
  const open = pairs === '' ? '{' : `{${pairs},`;
  return {
    boundHead: [isHistogram ? `${name}_bucket` : name, open, isHistogram ? 'le="' : 'quantile="'].join(''),
    bounds: internBounds(isHistogram ? [...bounds, '+Inf'] : bounds),
    lines: [hasSum ? line(`${name}_sum`) : '', hasCount ? line(`${name}_count`) : ''],
  };
}
