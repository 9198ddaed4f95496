import type { FamilyView, Kind } from '../../core/model.ts';
import { escapeHelp } from './lines.ts';

/** A run of lines under one metadata head: a family, or the part of it that is typed by itself. */
export interface Block {
  /** HELP and TYPE, newlines included. */
  readonly head: string;
  /** First and past-the-last number of each series; 0 or less counts from the end, as a `to` of 0 is the end. */
  readonly from: number;
  readonly to: number;
}

/** The blocks of one family among those it is shown with. */
export type Blocks = (family: FamilyView) => readonly Block[];

const whole = { from: 0, to: 0 };
const histogramParts = [
  { suffix: '_bucket', from: 0, to: -2 },
  { suffix: '_sum', from: -2, to: -1 },
  { suffix: '_count', from: -1, to: 0 },
];
const summaryParts = [{ ...histogramParts[0]!, suffix: '' }, ...histogramParts.slice(1)];

/** Text exposition 0.0.4: one block, named as its family. */
export function textBlocks(prefix: string): Blocks {
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

/** Whether a name is a family's, or one that a family's type lets its samples have. */
function claims(kinds: ReadonlyMap<string, Kind>): (name: string) => boolean {
  return (name) => {
    if (kinds.has(name)) return true;
    const base = name.slice(0, Math.max(0, name.lastIndexOf('_')));
    if (suffixes[kinds.get(base) ?? 'gauge']?.test(name)) return true;
    return name.endsWith('_created') && kinds.get(`${base}_total`) === 'counter';
  };
}

/**
 * OpenMetrics 1.0 ("MetricFamily", "Suffixes"; ABNF): a counter is headed by its name less `_total`, and no
 * name may be one that another family's samples could have (`_created` included, though none is sent). Every
 * sample keeps the name it has in text 0.0.4, so what would break those rules is typed `unknown`: a counter
 * as a whole, a histogram or summary part by part.
 */
export function openMetricsBlocks(prefix: string, families: readonly FamilyView[]): Blocks {
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
