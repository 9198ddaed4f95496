import { isSparse } from '../../../core/byte-table.ts';
import { wideHash } from '../../../core/hashes.ts';
import type { Kind, RawTags, Shape } from '../../../core/model.ts';
import { Handle } from '../../../core/registry/handles.ts';
import type { RefusedLines } from '../../../core/registry/refused-series.ts';
import type { Translated } from '../../../core/registry/resolver.ts';
import type { Slice } from '../../../core/slices.ts';
import type { MappedMetric } from '../../../core/vocabulary.ts';
import type { VocabularyDetector } from '../../../core/vocabulary-detector.ts';
import { type LineTable, type Page, packLines } from '../exposition/line-table.ts';
import { assemble, type SeriesAssembly, signatureOf } from './assembly.ts';
import { createFamilyCounts } from './family-counts.ts';
import { createLineGroups, type LineGroups, type ScrapedSeries, type SeriesParts } from './line-groups.ts';
import { type CounterChanges, createLineParts } from './line-parts.ts';

/** The registry's intake for a scraped target (`OpenIntake`). */
export interface PageIntake {
  parts(kind: Kind, name: string, tags: RawTags, shape?: Shape, key?: string): SeriesParts;
  /** The overflow series of a refused series. An intake that refuses nothing does not have this method. */
  overflowOf?(refused: SeriesParts): Handle | undefined;
}

/** The values of a target's series. Values that are set stay hidden until the swap. */
export interface PageVisibility {
  swap(): void;
  /** Hides all values until the next swap. */
  hide(): void;
}

interface PageSeriesDeps {
  intake: PageIntake;
  refusedLines: RefusedLines;
  /** Detects the vocabulary of the target, which the intake uses for translation. */
  detector: VocabularyDetector;
  slice: Slice;
}

/** The result of a page. */
export interface PageResult extends CounterChanges {
  series: number;
  /** The number of lines that form no series, and of lines that repeat another line's value. */
  refusedLines: number;
}

/**
 * Updates the series of one target in the registry with each page. Series are assembled at the end of a page, so that a TYPE line
 * may come after its samples. After that each known line sets its value without a look-up. A series that the registry refuses,
 * because it is over a limit, costs a hash and a number for each line.
 */
interface PageSeries {
  /** Opens and closes series in the registry until they are the series of the page. The values are not set yet. */
  arrange(page: Page): Promise<void>;
  /** Sets the values of an arranged page, in one step. */
  fill(page: Page): PageResult;
  /** Ends a page that was arranged, for the refused lines. */
  endPage(): void;
  /** Closes all series in the registry, in slices. The lines stay known, because the target may come back. */
  withdraw(): Promise<void>;
  /** The last values of a single-valued metric, by the target's name or the catalog's name. */
  values(family: string): { labels: RawTags; value: number }[];
  /** Every metric of the target, with its names in the catalog. */
  mapped(): MappedMetric[];
}

/** One value of a metric. */
interface LineReading {
  line: number;
  labels: RawTags;
  divisor: number;
}

/** How many names of refused families take part in the detection of the vocabulary. */
const maxRefusedFamilies = 10_000;

/** A `MappedMetric` with its names in a list: there are thousands of metrics, most with one name. */
interface Mapped {
  name: string;
  to: readonly string[];
  leftOut: boolean;
}

/** Records under which names a series of a family is relayed, or that it is left out. */
function addMapped(metrics: Map<string, Mapped>, name: string, translated: Translated | 'left_out'): void {
  const metric = metrics.get(name) ?? { name, to: [], leftOut: false };
  if (translated === 'left_out') metric.leftOut = true;
  else
    for (const to of translated.also ? [translated.name, translated.also.name] : [translated.name])
      if (!metric.to.includes(to)) metric.to = [...metric.to, to];
  metrics.set(name, metric);
}

/** Takes the lines of removed series out of the order of a page. Returns where the line at `at` is then. */
function takeRemovedOut(table: LineTable, page: Page, at: number): number {
  const { order } = page;
  let count = 0;
  let newAt = 0;
  for (let n = 0; n < page.count; n++) {
    if (n === at) newAt = count;
    if (table.keys.keyLength[order[n]!] !== -1) order[count++] = order[n]!;
  }
  if (at === page.count) newAt = count;
  page.count = count;
  return newAt;
}

export function createPageSeries(table: LineTable, deps: PageSeriesDeps): PageSeries {
  const { intake, refusedLines, detector, slice } = deps;
  const lineParts = createLineParts(table);
  const repeated = new Map<ScrapedSeries, number>();
  const groups = createLineGroups(table, { forget: lineParts.forget, slice });
  const catalog = createCatalogView(table, groups, detector);
  let removedLines = 0;
  let withdrawn = true;

  const counts = createFamilyCounts(table, groups, detector);
  /** Whether a series is left out while its twin counts. Such a series stays known, because it may count later. */
  const isCompared = ({ kind, tags }: SeriesAssembly, { family }: ScrapedSeries): boolean =>
    detector.compared.has(family) && detector.translate(kind, family, tags) === 'left_out';

  const close = (series: ScrapedSeries): void => {
    series.parts?.release();
    series.parts = undefined;
    series.signature = '';
    repeated.delete(series);
  };

  /** Reduces a series that the registry refused to hashes and values. */
  const keepRefused = (series: ScrapedSeries, parts: SeriesParts, { lines }: SeriesAssembly): void => {
    const { keyAt, keyLength, arenaView } = table.keys;
    // The look-up costs as much as the series has bounds, so it is made once and not for each line.
    const overflow = intake.overflowOf?.(parts);
    lines.forEach((id, index) => {
      if (id === -1) return;
      const hash = wideHash(arenaView, keyAt[id]!, keyAt[id]! + keyLength[id]!);
      refusedLines.add(hash, table.incoming[id]!, overflow?.share(), index);
    });
    overflow?.release();
    catalog.addRefused(series);
    removedLines += series.lines.length;
    repeated.delete(series);
    groups.remove(series);
    parts.release();
  };

  const update = (series: ScrapedSeries): void => {
    const assembly = assemble(groups.linesOf(series), groups.metadata.helps.get(series.family));
    const signature = assembly.parts === 0 ? '' : signatureOf(assembly);
    if (series.signature !== signature) close(series);
    if (assembly.refused.length > 0) repeated.set(series, assembly.refused.length);
    else repeated.delete(series);
    if (assembly.parts === 0) {
      for (const id of series.lines) lineParts.forget(id);
      return;
    }
    const { kind, tags, shape } = assembly;
    const parts = series.parts ?? intake.parts(kind, series.family, tags, shape, series.key);
    // A pair of series (`Translated.also`) is not reduced: each of the two has its own overflow series.
    if (
      parts instanceof Handle &&
      parts.refused &&
      !parts.waitsIn &&
      intake.overflowOf &&
      !isCompared(assembly, series)
    ) {
      series.parts = undefined;
      keepRefused(series, parts, assembly);
      return;
    }
    series.parts = parts;
    series.signature = signature;
    for (const id of series.lines) lineParts.forget(id);
    lineParts.bind(assembly, parts);
  };

  const namesOf = async (page: Page): Promise<ReadonlySet<string>> => {
    const families = await groups.families(page);
    for (const family of catalog.refused()) families.add(family);
    return families;
  };

  /** Closes the series whose translation changed, so that they are opened again. */
  const closeRetranslated = (retranslated: ReadonlySet<string>, affected: Set<ScrapedSeries>): void => {
    if (retranslated.size === 0) return;
    // Refused lines return as new lines on the next page, with their new translation.
    if (catalog.refused().some((family) => retranslated.has(family))) forgetRefused();
    for (const series of groups.series.values()) {
      if (!retranslated.has(series.family)) continue;
      close(series);
      affected.add(series);
    }
  };

  const forgetRefused = (): void => {
    refusedLines.clear();
    catalog.forgetRefused();
  };

  /** Takes the lines of removed series out of the page, and releases their memory. Returns where the line at `at` is then. */
  const compact = (page: Page, at = 0): number => {
    const newAt = takeRemovedOut(table, page, at);
    const { order, count } = page;
    const newIds = packLines(table);
    if (newIds !== undefined) {
      for (let n = 0; n < count; n++) order[n] = newIds[order[n]!]!;
      lineParts.renumber(newIds);
      groups.renumber(newIds);
      // `values` may be called in a pause.
      catalog.seriesChanged();
      counts.forget();
    }
    for (let n = 0; n < count; n++) table.position[order[n]!] = n;
    lineParts.shorten();
    removedLines = 0;
    return newAt;
  };

  /** While lines are refused, releases the memory of the lines before `at`. */
  const release = (page: Page, at: number): number =>
    removedLines > 0 && isSparse(table.keys) ? compact(page, at) : at;

  const updateLines = async (page: Page): Promise<Set<ScrapedSeries>> => {
    const affected = await groups.removeMissing(page);
    closeRetranslated(detector.detect(await namesOf(page)), affected);
    // Missing series are closed first, to make room for new series.
    for (const series of affected) {
      if (series.lines.length === 0) close(series);
      if (slice.isOver()) await slice.next();
    }
    for (const series of await groups.addNew(page, update, release)) affected.add(series);
    counts.forget();
    closeRetranslated(detector.weigh(counts.of), affected);
    return affected;
  };

  return {
    async arrange(page) {
      const affected = new Set<ScrapedSeries>();
      if (!page.changed) closeRetranslated(detector.weigh(counts.of), affected);
      if (!page.changed && !withdrawn && affected.size === 0) return;
      catalog.seriesChanged();
      if (page.changed) for (const series of await updateLines(page)) affected.add(series);
      if (withdrawn) for (const series of groups.series.values()) affected.add(series);
      withdrawn = false;
      for (const series of affected) {
        if (series.lines.length > 0) update(series);
        if (slice.isOver()) await slice.next();
      }
      if (removedLines > 0 || isSparse(table.keys)) compact(page);
      groups.keep(page);
      // `values` may have been called in a pause.
      catalog.seriesChanged();
      counts.forget();
    },
    fill(page) {
      const filled = lineParts.fill(page);
      let refused = groups.invalidLines;
      for (const lines of repeated.values()) refused += lines;
      return { series: groups.series.size, refusedLines: refused, ...filled };
    },
    endPage: () => refusedLines.endPage(),
    async withdraw() {
      if (withdrawn) return;
      withdrawn = true;
      forgetRefused();
      for (const series of groups.series.values()) {
        close(series);
        if (slice.isOver()) await slice.next();
      }
    },
    values: (family) => (withdrawn ? [] : catalog.values(family)),
    mapped: catalog.mapped,
  };
}

/** The series of a target under the names of the catalog. */
interface CatalogView extends Pick<PageSeries, 'values' | 'mapped'> {
  /** Records a series that is refused, or that the vocabulary leaves out, before it is removed. */
  addRefused(series: ScrapedSeries): void;
  /** The families of the series that were recorded with `addRefused`. */
  refused(): string[];
  forgetRefused(): void;
  /** Must be called when series were added or removed, or their translation changed. */
  seriesChanged(): void;
}

function createCatalogView(table: LineTable, groups: LineGroups, detector: VocabularyDetector): CatalogView {
  const refusedFamilies = new Map<string, Mapped>();
  /** The results of `values`, valid while the series are the same. */
  const readings = new Map<string, LineReading[]>();

  const read = (series: ScrapedSeries) => {
    const { kind, family, tags, parts } = assemble(groups.linesOf(series), undefined);
    const translated = detector.translate(kind, family, tags);
    return { parts, tags, translated: translated ?? { name: family, tags, divisor: 1 } };
  };

  /** The values of a metric. Going through all series is slow, so the result is cached. */
  const findReadings = (family: string): LineReading[] => {
    const found: LineReading[] = [];
    for (const series of groups.series.values()) {
      if (series.family !== family && !detector.isKnown(series.family)) continue;
      const { parts, tags, translated } = read(series);
      if (parts !== 1 || translated === 'left_out') continue;
      const line = series.lines[0]!;
      if (series.family === family) found.push({ line, labels: tags, divisor: 1 });
      else if (translated.name === family)
        found.push({ line, labels: translated.tags, divisor: translated.divisor ?? 1 });
    }
    return found;
  };

  return {
    addRefused(series) {
      if (refusedFamilies.has(series.family) || refusedFamilies.size < maxRefusedFamilies)
        addMapped(refusedFamilies, series.family, read(series).translated);
    },
    refused: () => [...refusedFamilies.keys()],
    forgetRefused: () => refusedFamilies.clear(),
    seriesChanged: () => readings.clear(),
    values(family) {
      const found = readings.get(family) ?? findReadings(family);
      readings.set(family, found);
      return found.map(({ line, labels, divisor }) => ({ labels, value: table.taken[line]! / divisor }));
    },
    mapped() {
      const metrics = new Map<string, Mapped>();
      for (const [name, refused] of refusedFamilies) metrics.set(name, { ...refused });
      for (const series of groups.series.values()) addMapped(metrics, series.family, read(series).translated);
      return Array.from(metrics.values(), (metric) => ({ ...metric, to: new Set(metric.to) }));
    },
  };
}
