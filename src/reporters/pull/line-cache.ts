import type { FamilyView, Kind, SeriesView } from '../../core/model.ts';

const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '"': '\\"' };

export const escapeText = (text: string, special: RegExp): string =>
  text.replace(special, (found) => escapes[found]!);

const escapeLabelValue = (value: string): string => escapeText(value, /[\\\n"]/g);

/**
 * Texts as UTF-8, one after the other. As strings, the lines of 100,000 series take several times the memory, keep the garbage
 * collector busy, and take longer to join than to copy from here.
 */
export interface Texts {
  bytes: Buffer;
  /** A view of `bytes`, for `getFloat64`. */
  view: DataView;
  ends: Uint32Array;
  count: number;
}

function createTexts(texts: number, bytes: number): Texts {
  const buffer = Buffer.allocUnsafeSlow(bytes);
  const view = new DataView(buffer.buffer, buffer.byteOffset, bytes);
  return { bytes: buffer, view, ends: new Uint32Array(texts), count: 0 };
}

const endOf = (texts: Texts, count: number): number => (count === 0 ? 0 : texts.ends[count - 1]!);

function makeRoom(texts: Texts, bytes: number): number {
  const end = endOf(texts, texts.count);
  if (end + bytes > texts.bytes.length) {
    const larger = createTexts(0, Math.max(end + bytes, 2 * texts.bytes.length));
    larger.bytes.set(texts.bytes.subarray(0, end));
    texts.bytes = larger.bytes;
    texts.view = larger.view;
  }
  return end;
}

function add(texts: Texts, text: string): void {
  // A UTF-16 unit takes at most three bytes.
  const end = makeRoom(texts, 3 * text.length);
  texts.ends[texts.count++] = end + texts.bytes.write(text, end);
}

function addFrom(texts: Texts, other: Texts, from: number, count: number): void {
  const begin = endOf(other, from);
  const end = makeRoom(texts, endOf(other, from + count) - begin);
  texts.bytes.set(other.bytes.subarray(begin, endOf(other, from + count)), end);
  for (let n = from; n < from + count; n++) texts.ends[texts.count++] = other.ends[n]! - begin + end;
}

/**
 * The lines of a family's series up to their numbers, in the order of the series. A series has its line as its only text; a
 * distribution has the beginning of its lines with a bound, the line of its sum and the line of its count. A sum or count that
 * the sender does not have is an empty text. Both formats use the same texts: names, label escapes and `le` do not differ.
 */
export interface FamilyLines {
  readonly series: SeriesView[];
  readonly texts: Texts;
  /** For distributions, the bounds of each series with the text that follows them: `0.5"} `. Most series share them. */
  readonly bounds: Texts[];
  /** The lines of the last page, the position at which the search in them continues, and how often it failed. */
  search?: { readonly last: FamilyLines; at: number; misses: number };
}

/** The number of texts of a series of this kind. */
export const textsPerSeries = (kind: Kind): number => (kind === 'histogram' || kind === 'summary' ? 3 : 1);

const maxBounds = 256;
/** If this many series were not found among those of the last page, all further ones count as new. */
const maxMisses = 64;
/**
 * Families with fewer series are written again for each page: a target may have tens of thousands of them, and buffers for each
 * would take several times the memory of their text.
 */
const leastCached = 4;

/** Creates lines for families that are not cached, which are written one after the other. */
export const createScratch = (): FamilyLines => ({
  series: [],
  texts: createTexts(3 * leastCached, 1024),
  bounds: [],
});

function emptied(scratch: FamilyLines): FamilyLines {
  scratch.series.length = 0;
  scratch.bounds.length = 0;
  scratch.texts.count = 0;
  return scratch;
}

/** Caches lines. Series have the same order on each page, so that lines are found by position. */
interface LineCache {
  /**
   * Begins the lines of a family: the lines of the last page if the series are the same, otherwise no lines. `scratch` belongs to
   * the page and is used for small families, until the next family begins.
   */
  begin(family: FamilyView, scratch: FamilyLines): FamilyLines;
  /** Adds the next series that `lines` does not have. */
  addNext(lines: FamilyLines, family: FamilyView): void;
}

export function createLineCache(prefix: string): LineCache {
  const byFirst = new WeakMap<SeriesView, FamilyLines>();
  const knownBounds = new Map<string, Texts>();
  /** The texts of bounds, which are the same object for the same bounds. */
  const boundTexts = (bounds: readonly string[]): Texts => {
    const key = bounds.join('\n');
    const found = knownBounds.get(key);
    if (found) return found;
    const texts = createTexts(bounds.length, 8 * bounds.length);
    for (const bound of bounds) add(texts, `${escapeLabelValue(bound)}"} `);
    if (knownBounds.size >= maxBounds) knownBounds.clear();
    knownBounds.set(key, texts);
    return texts;
  };

  const addNew = ({ texts, bounds }: FamilyLines, { name: family, kind }: FamilyView, series: SeriesView) => {
    const name = prefix + family;
    const pairs = series.labels.map(([label, value]) => `${label}="${escapeLabelValue(value)}"`).join(',');
    const line = (suffix: string) => `${name}${suffix}${pairs === '' ? '' : `{${pairs}}`} `;
    if (textsPerSeries(kind) === 1) return add(texts, line(''));
    const isHistogram = kind === 'histogram';
    bounds.push(boundTexts(isHistogram ? [...series.bounds, '+Inf'] : series.bounds));
    const open = pairs === '' ? '{' : `{${pairs},`;
    add(texts, isHistogram ? `${name}_bucket${open}le="` : `${name}${open}quantile="`);
    add(texts, series.hasSum ? line('_sum') : '');
    add(texts, series.hasCount ? line('_count') : '');
  };

  const addKnown = (
    lines: FamilyLines,
    last: FamilyLines,
    from: number,
    count: number,
    perSeries: number,
  ) => {
    addFrom(lines.texts, last.texts, from * perSeries, count * perSeries);
    for (let n = from; n < from + count; n++) {
      lines.series.push(last.series[n]!);
      if (perSeries > 1) lines.bounds.push(last.bounds[n]!);
    }
  };

  /** Stores complete lines. Incomplete lines are not shared: another page may have other series. */
  const keepIfComplete = (lines: FamilyLines, series: readonly SeriesView[]): void => {
    if (lines.series.length < series.length || series.length < leastCached) return;
    lines.search = undefined;
    byFirst.set(series[0]!, lines);
  };

  return {
    begin({ series, kind }, scratch) {
      if (series.length < leastCached) return emptied(scratch);
      const last = byFirst.get(series[0]!);
      const same = last ? equalFrom(last.series, series) : 0;
      if (last && same === series.length && same === last.series.length) return last;
      const perSeries = textsPerSeries(kind);
      const bytes = last ? last.texts.bytes.length : 128 * perSeries * Math.min(series.length, 64);
      const lines: FamilyLines = {
        series: [],
        texts: createTexts(perSeries * series.length, bytes),
        bounds: [],
        search: last && { last, at: same, misses: 0 },
      };
      if (last) addKnown(lines, last, 0, same, perSeries);
      keepIfComplete(lines, series);
      return lines;
    },
    addNext(lines, family) {
      const series = family.series[lines.series.length]!;
      const { search } = lines;
      const found = search && search.misses < maxMisses ? search.last.series.indexOf(series, search.at) : -1;
      if (search && found >= 0) {
        addKnown(lines, search.last, found, 1, textsPerSeries(family.kind));
        search.at = found + 1;
      } else {
        if (search) search.misses += 1;
        addNew(lines, family, series);
        lines.series.push(series);
      }
      keepIfComplete(lines, family.series);
    },
  };
}

/** The number of series at the beginning that are the same. */
function equalFrom(some: readonly SeriesView[], others: readonly SeriesView[]): number {
  let n = 0;
  while (n < some.length && n < others.length && some[n] === others[n]) n++;
  return n;
}
