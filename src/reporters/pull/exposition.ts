import type { FamilyView, Kind, View } from '../../core/model.ts';
import { createSlice } from '../../core/slices.ts';
import {
  createLineCache,
  createScratch,
  escapeText,
  type FamilyLines,
  type Texts,
  textsPerSeries,
} from './line-cache.ts';

/** Renders views as pages. */
export interface Renderer {
  /**
   * Renders the page of a view in pieces of a little more than 256 KiB. Yields to the event loop between two pieces after 2 ms of
   * work, because datagrams cannot wait longer. Each piece has its own memory, which is taken from `spare` while there is any.
   */
  render(view: View, format: Format, spare?: ArrayBuffer[]): AsyncGenerator<Buffer, void, undefined>;
}

const pieceBytes = 262_144;
/** Longer than any number: `-2.2250738585072014e-308` has 24 bytes. */
const longestNumber = 32;

/**
 * Creates a renderer of text exposition 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats) and OpenMetrics 1.0. It
 * caches the text of each series without its numbers for as long as the series exists. `prefix` is put before every name
 * unchanged. An empty view is an empty page.
 */
export function createRenderer(prefix = ''): Renderer {
  const cache = createLineCache(prefix);

  function* pieces(
    view: View,
    families: readonly FamilyView[],
    groupsOf: GroupsOf,
    end: string,
    spare: ArrayBuffer[],
  ): Generator<Buffer> {
    let piece = createPiece(spare.pop());
    const scratch = createScratch();
    for (const family of families) {
      const lines = cache.begin(family, scratch);
      const writeSeries = textsPerSeries(family.kind) === 1 ? writeNumber : writeDistribution;
      for (const group of groupsOf(family)) {
        writeText(piece, group.head);
        for (let index = 0; index < family.series.length; index++) {
          if (index === lines.series.length) cache.addNext(lines, family);
          const series = family.series[index]!;
          writeSeries(piece, lines, index, group, view.numbers(series), series.at);
          if (piece.end < pieceBytes) continue;
          yield piece.bytes.subarray(0, piece.end);
          piece = createPiece(spare.pop());
        }
      }
    }
    writeText(piece, end);
    if (piece.end > 0) yield piece.bytes.subarray(0, piece.end);
  }

  return {
    async *render(view, format, spare = []) {
      const families = view.families.filter(({ series }) => series.length > 0);
      const groupsOf = format === 'text' ? textGroups(prefix) : openMetricsGroups(prefix, families);
      const end = format === 'text' ? '' : '# EOF\n';
      const slice = createSlice();
      for (const piece of pieces(view, families, groupsOf, end, spare)) {
        yield piece;
        if (slice.isOver()) await slice.next();
      }
    },
  };
}

/** The format: text exposition 0.0.4, or OpenMetrics 1.0. */
export type Format = 'text' | 'openmetrics';

export const contentTypes: Readonly<Record<Format, string>> = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
};

/** The lines below one TYPE line: a family, or a part of one with its own type. */
interface MetadataGroup {
  /** HELP and TYPE, including newlines. */
  readonly head: string;
  /** The range of each series' numbers, `to` exclusive. 0 or less counts from the end, and a `to` of 0 is the end. */
  readonly from: number;
  readonly to: number;
}

type GroupsOf = (family: FamilyView) => readonly MetadataGroup[];

const whole = { from: 0, to: 0 };
const histogramParts = [
  { suffix: '_bucket', from: 0, to: -2 },
  { suffix: '_sum', from: -2, to: -1 },
  { suffix: '_count', from: -1, to: 0 },
];
const summaryParts = [{ ...histogramParts[0]!, suffix: '' }, ...histogramParts.slice(1)];

/** The groups of text exposition 0.0.4: one group per family. */
function textGroups(prefix: string): GroupsOf {
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

/** Returns a function that tells whether a family, or a sample of a family, has a name. */
function takenNames(kinds: ReadonlyMap<string, Kind>): (name: string) => boolean {
  return (name) => {
    if (kinds.has(name)) return true;
    const base = name.slice(0, Math.max(0, name.lastIndexOf('_')));
    if (suffixes[kinds.get(base) ?? 'gauge']?.test(name)) return true;
    return name.endsWith('_created') && kinds.get(`${base}_total`) === 'counter';
  };
}

/**
 * The groups of OpenMetrics 1.0 ("MetricFamily", "Suffixes"; ABNF): the family name of a counter is its name without `_total`, and
 * no name may be a name that another family's samples could have (including `_created`, which is never sent). Every sample has the
 * same name as in text 0.0.4. A family that would break these rules is typed `unknown`: a counter as a whole, a histogram or
 * summary part by part.
 */
function openMetricsGroups(prefix: string, families: readonly FamilyView[]): GroupsOf {
  const kinds = new Map(families.map(({ name, kind }) => [name, kind]));
  const isTaken = takenNames(kinds);
  const head = (name: string, type: string, help: string): string => {
    const typeLine = `# TYPE ${prefix}${name} ${type}\n`;
    return help ? `${typeLine}# HELP ${prefix}${name} ${escapeHelp(help, 'openmetrics')}\n` : typeLine;
  };

  return ({ name, kind, help }) => {
    if (kind === 'counter') {
      const stem = name.endsWith('_total') ? name.slice(0, -'_total'.length) : '';
      const counts = stem !== '' && !isTaken(stem) && !kinds.has(`${stem}_created`);
      return [{ head: counts ? head(stem, 'counter', help) : head(name, 'unknown', help), ...whole }];
    }
    if ((kind === 'histogram' || kind === 'summary') && kinds.has(`${name}_created`)) {
      const parts = kind === 'histogram' ? histogramParts : summaryParts;
      return parts.map(({ suffix, from, to }) => ({ head: head(name + suffix, 'unknown', help), from, to }));
    }
    return [{ head: head(name, kind === 'untyped' ? 'unknown' : kind, help), ...whole }];
  };
}

/** The escaped text of HELP. OpenMetrics escapes quotes in it; text 0.0.4 does not. */
function escapeHelp(help: string, format: Format): string {
  return escapeText(help, format === 'text' ? /[\\\n]/g : /[\\\n"]/g);
}

/** A number as the shortest decimal that reads back as the same double; `NaN`, `+Inf`, `-Inf`. */
function numberText(value: number): string {
  if (value - value === 0) return `${value}`;
  if (value > 0) return '+Inf';
  return value < 0 ? '-Inf' : 'NaN';
}

/** The bytes of a page, which are written one after the other. */
interface PagePiece {
  bytes: Buffer;
  /** A view of `bytes`, for `setFloat64`. */
  view: DataView;
  end: number;
}

function createPiece(memory: ArrayBuffer = memoryOf(pieceBytes + 4_096)): PagePiece {
  return { bytes: Buffer.from(memory), view: new DataView(memory), end: 0 };
}

/** Allocates memory, which is not filled with zeros. */
const memoryOf = (bytes: number): ArrayBuffer => Buffer.allocUnsafeSlow(bytes).buffer as ArrayBuffer;

function makeRoom(piece: PagePiece, bytes: number): void {
  if (piece.end + bytes <= piece.bytes.length) return;
  const larger = createPiece(memoryOf(2 * (piece.end + bytes)));
  larger.bytes.set(piece.bytes.subarray(0, piece.end));
  piece.bytes = larger.bytes;
  piece.view = larger.view;
}

function writeText(piece: PagePiece, text: string): void {
  makeRoom(piece, 3 * text.length);
  piece.end += piece.bytes.write(text, piece.end);
}

/** Copies a text, and writes a number and the end of the line after it. */
function writeLine(
  piece: PagePiece,
  { ends, bytes: from, view: words }: Texts,
  index: number,
  value: number,
): void {
  writeCopy(piece, ends, from, words, index);
  makeRoom(piece, longestNumber + 1);
  const { bytes } = piece;
  let { end } = piece;
  if (value >= 0 && value <= 0x7fffffff && value === (value | 0)) {
    // Most values are whole numbers: this is several times faster than by way of a string.
    let rest = value | 0;
    let digits = 1;
    for (let power = 10; power <= rest; power *= 10) digits++;
    end += digits;
    for (let at = end - 1; digits > 0; digits--, at--) {
      const tenth = (rest / 10) | 0;
      bytes[at] = 0x30 + rest - 10 * tenth;
      rest = tenth;
    }
  } else {
    const text = numberText(value);
    for (let at = 0; at < text.length; at++) bytes[end++] = text.charCodeAt(at);
  }
  bytes[end++] = 0x0a;
  piece.end = end;
}

/**
 * Copies eight bytes at a time: lines are too short for a call of `set`, which costs more than the copy. The bytes do not change as
 * a double, because no UTF-8 text is a NaN: it would have a byte of 0xff, or a 0x7f after a byte above 0xef.
 */
function writeCopy(piece: PagePiece, ends: Uint32Array, from: Buffer, words: DataView, index: number): void {
  let at = index === 0 ? 0 : ends[index - 1]!;
  const to = ends[index]!;
  makeRoom(piece, to - at);
  const { bytes, view } = piece;
  let { end } = piece;
  for (; at + 8 <= to; at += 8, end += 8) view.setFloat64(end, words.getFloat64(at, true), true);
  for (; at < to; at++) bytes[end++] = from[at]!;
  piece.end = end;
}

type WriteSeries = (
  piece: PagePiece,
  lines: FamilyLines,
  index: number,
  group: MetadataGroup,
  numbers: Float64Array,
  at: number,
) => void;

const writeNumber: WriteSeries = (piece, { texts }, index, _group, numbers, at) =>
  writeLine(piece, texts, index, numbers[at]!);

const writeDistribution: WriteSeries = (piece, { texts, bounds: all }, index, { from, to }, numbers, at) => {
  const bounds = all[index]!;
  const count = bounds.count + 2;
  const end = to <= 0 ? count + to : to;
  for (let part = from < 0 ? count + from : from; part < end; part++) {
    const value = numbers[at + part]!;
    if (part < bounds.count) {
      writeCopy(piece, texts.ends, texts.bytes, texts.view, 3 * index);
      writeLine(piece, bounds, part, value);
    } else {
      const line = 3 * index + 1 + part - bounds.count;
      if (texts.ends[line] !== texts.ends[line - 1]) writeLine(piece, texts, line, value);
    }
  }
};
