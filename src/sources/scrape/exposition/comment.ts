import { isUtf8 } from 'node:buffer';
import type { Kind } from '../../../core/model.ts';

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

/** A type as the agent's registry has it. Parts of a gauge histogram can fall, so they are untyped numbers. */
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

const typeLine = /^#[ \t]+TYPE[ \t]+([^ \t]+)[ \t]+([a-z]+)[ \t]*$/;
const helpLine = /^#[ \t]+HELP[ \t]+([^ \t]+)(?:[ \t](.*))?$/s;
const isType = (text: string): text is ExposedType => (exposedTypes as readonly string[]).includes(text);

/**
 * Reads the comment line in `bytes[start, end)`. Undefined for a comment that means nothing here (UNIT
 * included: a name carries its unit); `invalid` for a TYPE that is none, or text that is not UTF-8.
 */
export function readComment(bytes: Buffer, start: number, end: number): Comment | 'invalid' | undefined {
  if (!isUtf8(bytes.subarray(start, end))) return 'invalid';
  const line = bytes.toString('utf8', start, end);
  if (line === '# EOF') return { about: 'end' };
  const type = typeLine.exec(line);
  if (type !== null) {
    const [, name, text] = type;
    return isType(text!) ? { about: 'type', name: name!, type: text } : 'invalid';
  }
  if (/^#[ \t]+TYPE[ \t]/.test(line)) return 'invalid';
  const help = helpLine.exec(line);
  return help === null ? undefined : { about: 'help', name: help[1]!, help: unescapeHelp(help[2] ?? '') };
}

const escapes: Readonly<Record<string, string>> = { '\\\\': '\\', '\\n': '\n', '\\"': '"' };

function unescapeHelp(text: string): string {
  return text.includes('\\') ? text.replace(/\\[\\n"]/g, (pair) => escapes[pair]!) : text;
}
