import { isUtf8 } from 'node:buffer';
import type { Kind } from '../../../core/model.ts';
import type { LineTable, Page } from './line-table.ts';

/** The types of both text formats. */
export const exposedTypes = [
  'counter',
  'gauge',
  'histogram',
  'summary',
  'untyped',
  'unknown',
  'gaugehistogram',
  'info',
  'stateset',
] as const;
export type ExposedType = (typeof exposedTypes)[number];

/** The kind in the agent's registry. Parts of a gauge histogram can fall, so they are untyped numbers. */
export const kindOf: Readonly<Record<ExposedType, Kind>> = {
  counter: 'counter',
  gauge: 'gauge',
  histogram: 'histogram',
  summary: 'summary',
  untyped: 'untyped',
  unknown: 'untyped',
  gaugehistogram: 'untyped',
  info: 'gauge',
  stateset: 'gauge',
};

export type Comment =
  | { about: 'type'; name: string; type: ExposedType }
  | { about: 'help'; name: string; help: string }
  | { about: 'end' };

const typeLine = /^#[ \t]+TYPE[ \t]+("(?:[^"\\]|\\.)*"|[^ \t]+)[ \t]+([a-z]+)[ \t]*$/;
const helpLine = /^#[ \t]+HELP[ \t]+("(?:[^"\\]|\\.)*"|[^ \t]+)(?:[ \t](.*))?$/s;
const isType = (text: string): text is ExposedType => (exposedTypes as readonly string[]).includes(text);

/**
 * Reads the comment line in `bytes[start, end)`. Undefined for a comment without a meaning here (UNIT included:
 * names contain their unit). `invalid` for an unknown TYPE and for text that is not UTF-8.
 */
export function readComment(bytes: Buffer, start: number, end: number): Comment | 'invalid' | undefined {
  if (!isUtf8(bytes.subarray(start, end))) return 'invalid';
  const line = bytes.toString('utf8', start, end);
  if (line === '# EOF') return { about: 'end' };
  const type = typeLine.exec(line);
  if (type !== null) {
    const [, name, text] = type;
    return isType(text!) ? { about: 'type', name: unquoted(name!), type: text } : 'invalid';
  }
  if (/^#[ \t]+TYPE[ \t]/.test(line)) return 'invalid';
  const help = helpLine.exec(line);
  return help === null
    ? undefined
    : { about: 'help', name: unquoted(help[1]!), help: unescapeHelp(help[2] ?? '') };
}

const escapes: Readonly<Record<string, string>> = { '\\\\': '\\', '\\n': '\n', '\\"': '"' };

function unescapeHelp(text: string): string {
  return text.includes('\\') ? text.replace(/\\[\\n"]/g, (pair) => escapes[pair]!) : text;
}

/** Text 1.0.0 quotes names that are not identifiers. */
function unquoted(name: string): string {
  return name.startsWith('"') ? unescapeHelp(name.slice(1, -1)) : name;
}

/** The metadata of a page. Of two contradicting lines the first counts. */
export interface Metadata {
  /** Types by family name, as the page spells it. */
  types: ReadonlyMap<string, ExposedType>;
  helps: ReadonlyMap<string, string>;
}

export function metadataOf(table: LineTable, page: Page): Metadata {
  const types = new Map<string, ExposedType>();
  const helps = new Map<string, string>();
  const { keys } = table;
  for (let n = 0; n < page.count; n++) {
    const id = page.order[n]!;
    if (table.comment[id] === 0) continue;
    const at = keys.keyAt[id]!;
    const comment = readComment(keys.arena, at, at + keys.keyLength[id]!);
    if (comment === 'invalid' || comment === undefined || comment.about === 'end') continue;
    if (comment.about === 'help') {
      if (!helps.has(comment.name)) helps.set(comment.name, comment.help);
    } else if (!types.has(comment.name)) types.set(comment.name, comment.type);
  }
  return { types, helps };
}

/** Names whose type changed. */
export function changedTypes(before: Metadata, now: Metadata): Set<string> {
  const changed = new Set<string>();
  for (const [name, type] of now.types) if (before.types.get(name) !== type) changed.add(name);
  for (const name of before.types.keys()) if (!now.types.has(name)) changed.add(name);
  return changed;
}
