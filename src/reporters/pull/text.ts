import type { FamilyView, SeriesView, View } from '../../core/model.ts';
import { type Blocks, openMetricsBlocks, textBlocks } from './blocks.ts';
import type { Format } from './format.ts';
import { linesOf, numberText } from './lines.ts';

/** Turns views into pages. */
export interface Renderer {
  /**
   * The page of a view in pieces of 64 KiB and a little more. Gives the event loop a turn between two pieces
   * once it has been busy for 2 ms: what it shares the loop with (datagrams) cannot wait longer.
   */
  render(view: View, format: Format): AsyncGenerator<Buffer, void, undefined>;
}

const pieceChars = 65_536;
const sliceMs = 2;

/**
 * A renderer of text exposition 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats) and OpenMetrics
 * 1.0. It keeps each series' lines up to their numbers for as long as the series lives, so that a known series
 * costs only its numbers. `prefix` comes before every name as it stands. An empty view is an empty text page.
 */
export function createRenderer(prefix = ''): Renderer {
  const known = new WeakMap<SeriesView, readonly string[]>();

  const lines = (family: FamilyView, series: SeriesView): readonly string[] => {
    const found = known.get(series);
    if (found) return found;
    const made = linesOf(prefix + family.name, family.kind, series);
    known.set(series, made);
    return made;
  };

  function* pieces(view: View, families: readonly FamilyView[], blocks: Blocks): Generator<string> {
    let text = '';
    for (const family of families) {
      for (const { head, from, to } of blocks(family)) {
        text += head;
        for (const series of family.series) {
          const prefixes = lines(family, series);
          const numbers = view.numbers(series);
          const start = from < 0 ? prefixes.length + from : from;
          const end = to <= 0 ? prefixes.length + to : to;
          for (let part = start; part < end; part++) {
            text += prefixes[part]!;
            text += numberText(numbers[series.at + part]!);
            text += '\n';
          }
          if (text.length >= pieceChars) {
            yield text;
            text = '';
          }
        }
      }
    }
    yield text;
  }

  return {
    async *render(view, format) {
      const families = view.families.filter(({ series }) => series.length > 0);
      const blocks = format === 'text' ? textBlocks(prefix) : openMetricsBlocks(prefix, families);
      let busySinceMs = performance.now();
      for (const piece of pieces(view, families, blocks)) {
        if (piece !== '') yield Buffer.from(piece);
        if (performance.now() - busySinceMs < sliceMs) continue;
        await new Promise((resolve) => setImmediate(resolve));
        busySinceMs = performance.now();
      }
      if (format === 'openmetrics') yield Buffer.from('# EOF\n');
    },
  };
}
