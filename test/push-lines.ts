import type { TagFormat } from '../src/reporters/block.ts';

/** What a receiver makes of a line. */
interface Received {
  name: string;
  tags: Record<string, string>;
  value: number;
  type: string;
}

const number = /^-?(?:\d+|\d+\.\d+)$/;

function pairs(texts: readonly string[], separator: string): Record<string, string> {
  const tags: Record<string, string> = {};
  for (const text of texts) {
    const at = text.indexOf(separator);
    if (at < 1 || text.slice(0, at) in tags) throw new Error(`bad tag: ${text}`);
    tags[text.slice(0, at)] = text.slice(at + separator.length);
  }
  return tags;
}

function nameOf(path: string, format: TagFormat): Pick<Received, 'name' | 'tags'> {
  if (format === 'dogstatsd') return { name: path, tags: {} };
  if (format === 'influx') {
    const [name = '', ...texts] = path.split(',');
    return { name, tags: pairs(texts, '=') };
  }
  const [name = '', ...segments] = path.split('.');
  if (segments.length % 2 !== 0) throw new Error(`a tag without a value: ${path}`);
  const texts = segments.flatMap((_, i) => (i % 2 === 0 ? [`${segments[i]}=${segments[i + 1]}`] : []));
  return { name, tags: pairs(texts, '=') };
}

/**
 * Parses a statsd line for tests, according to the formats' documents: `bucket:value|type` (statsd's metric_types.md), `|#k:v`
 * (DogStatsD datagram format), `name,k=v` (telegraf's statsd input), `name.k.v` (the service's enhanced reporter). It is strict:
 * it throws on everything else.
 */
export function decodeLine(line: string, format: TagFormat, prefix = ''): Received {
  const colon = line.indexOf(':');
  const [value = '', type = '', tagText, ...rest] = line.slice(colon + 1).split('|');
  const path = line.slice(0, colon);
  if (colon < 1 || !number.test(value) || !/^[cg]$/.test(type) || rest.length > 0) {
    throw new Error(`bad line: ${line}`);
  }
  if (!path.startsWith(prefix)) throw new Error(`no prefix: ${line}`);
  const { name, tags } = nameOf(path.slice(prefix.length), format);
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) throw new Error(`bad name: ${line}`);
  if (tagText !== undefined && (format !== 'dogstatsd' || !tagText.startsWith('#'))) {
    throw new Error(`bad tail: ${line}`);
  }
  const dog = tagText === undefined ? {} : pairs(tagText.slice(1).split(','), ':');
  return { name, tags: { ...tags, ...dog }, value: Number(value), type };
}

/** Adds lines up like an aggregator that never flushes: counters are summed, a signed gauge is a change. */
export function aggregate(lines: readonly string[], format: TagFormat, prefix = ''): Map<string, number> {
  const totals = new Map<string, number>();
  for (const line of lines) {
    const { name, tags, value, type } = decodeLine(line, format, prefix);
    const key = JSON.stringify([name, ...Object.entries(tags).sort(([a], [b]) => (a < b ? -1 : 1))]);
    const isChange = type === 'c' || /:[-+]/.test(line.replace(/\|#.*/, ''));
    totals.set(key, isChange ? (totals.get(key) ?? 0) + value : value);
  }
  return totals;
}
