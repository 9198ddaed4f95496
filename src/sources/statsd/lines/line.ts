import { parseValue } from '../../../core/decimal.ts';
import type { dropReasons } from '../../../core/reasons.ts';
import type { StatsdTagFormat } from '../options.ts';
import { bucketOf, type Tagged, untangle } from './suffix.ts';

export type StatsdDrop = (typeof dropReasons)['statsd'][number];

/** What a line's numbers are. Signed gauges change what is there. */
export type StatsdType = 'counter' | 'gauge' | 'timer' | 'histogram';

/** A line without its numbers. */
export interface Line {
  name: string;
  tags: Readonly<Record<string, string>>;
  type: StatsdType;
  /** How many events each number stands for: 1 over the sample rate. */
  weight: number;
  /** Its tags stood in its name, whose values may hold colons too. */
  untangled: boolean;
}

export interface LineRules {
  tagFormat: StatsdTagFormat;
  tagKeys: ReadonlySet<string>;
  /** With its dot; empty for none. */
  prefix: string;
}

const types: Readonly<Record<string, StatsdType>> = {
  c: 'counter',
  g: 'gauge',
  ms: 'timer',
  h: 'histogram',
  d: 'histogram',
};
/** Container, external data, cardinality, time: said of the sender or of when, and left out. */
const asideSection = /^(?:c:|e:|card:|T\d+$)/;

/** Tags in brackets (SignalFx: `name[key=value]`) or after semicolons (Graphite: `name;key=value`). */
const unsupportedTags = /\[[^\]]*=|;[^;=]+=/;

const isFault = (line: object | StatsdDrop): line is StatsdDrop => typeof line === 'string';

/** Tags as `key=value` with commas between (InfluxDB, Librato). */
function pairsOf(text: string): Map<string, string> | undefined {
  const tags = new Map<string, string>();
  for (const pair of text.split(',')) {
    const at = pair.indexOf('=');
    if (at <= 0) return undefined;
    tags.set(pair.slice(0, at), pair.slice(at + 1));
  }
  return tags;
}

/**
 * DogStatsD tags: `key:value`, the value with any further colons; a bare `key` has the value `true`. Some clients
 * write a `#` before each tag and not only before the first.
 */
function colonTags(text: string): Map<string, string> | undefined {
  const tags = new Map<string, string>();
  for (const written of text.split(',')) {
    const tag = written.startsWith('#') ? written.slice(1) : written;
    const at = tag.indexOf(':');
    if (tag === '') continue;
    if (at === 0) return undefined;
    tags.set(at === -1 ? tag : tag.slice(0, at), at === -1 ? 'true' : tag.slice(at + 1));
  }
  return tags;
}

/** The name with tags behind the first of these signs, if there is one. */
function cutHead(head: string, signs: RegExp): Tagged | StatsdDrop | undefined {
  const at = head.search(signs);
  if (at === -1) return undefined;
  const tags = pairsOf(head.slice(at + 1));
  return tags === undefined || at === 0 ? 'invalid_line' : { name: head.slice(0, at), tags };
}

const tagSigns: Readonly<Partial<Record<StatsdTagFormat, RegExp>>> = {
  auto: /[,#]/,
  influx: /,/,
  librato: /#/,
};

interface Tail {
  type: StatsdType;
  weight: number;
  tags: Map<string, string>;
}

/** No client samples one event in a billion; a smaller rate would let one datagram spoil a total for good. */
const minRate = 1e-9;

function weightOf(rate: string): number {
  const sampled = parseValue(rate);
  return sampled !== undefined && sampled >= minRate && sampled <= 1 ? 1 / sampled : Number.POSITIVE_INFINITY;
}

/** Everything behind the numbers: `|ms|@0.1|#key:value|c:container|T1700000000`. */
function readTail(tail: string, readsTags: boolean): Tail | StatsdDrop {
  const [, letters = '', ...sections] = tail.split('|');
  if (letters === '') return 'invalid_line';
  if (!Object.hasOwn(types, letters)) return 'unsupported_type';
  const read: Tail = { type: types[letters]!, weight: 1, tags: new Map() };
  for (const section of sections) {
    if (section.startsWith('@')) {
      read.weight = weightOf(section.slice(1));
      if (!Number.isFinite(read.weight)) return 'invalid_rate';
    } else if (section.startsWith('#')) {
      const tags = colonTags(section.slice(1));
      if (tags === undefined) return 'invalid_line';
      if (readsTags) read.tags = tags;
    } else if (!asideSection.test(section)) return 'invalid_line';
  }
  return read;
}

function readHead(
  head: string,
  tail: Tail,
  rules: LineRules,
): (Tagged & { untangled: boolean }) | StatsdDrop {
  const { tagFormat, tagKeys } = rules;
  const signs = tagSigns[tagFormat];
  const cut = signs && cutHead(head, signs);
  if (cut !== undefined && !isFault(cut)) return { ...cut, untangled: false };
  const tags = new Map<string, string>();
  const mayUntangle = (tagFormat === 'auto' || tagFormat === 'suffix') && tail.tags.size === 0;
  if (!mayUntangle) return cut ?? { name: head, tags, untangled: false };
  const bucket = tail.type === 'counter' ? bucketOf(head) : undefined;
  const found = untangle(bucket?.rest ?? head, tagKeys);
  if (found === undefined && cut !== undefined) return cut;
  const tagged = found ?? { name: bucket?.rest ?? head, tags };
  if (bucket !== undefined) {
    tagged.name += '.samples';
    tagged.tags.set('bucket', bucket.bucket);
  }
  return { ...tagged, untangled: found !== undefined };
}

/**
 * Reads a line less its numbers: `head` is what stands in front of the first colon, `tail` begins with the bar
 * behind the numbers. Forms: statsd (docs/metric_types.md of statsd/statsd), DogStatsD 1.0 to 1.3, InfluxDB's and
 * Librato's tags, and the suffixes of the service's enhanced reporter. Tags of the suffix form are looked for
 * only where no other form is used.
 *
 * Lost on purpose: container and time of DogStatsD. A bucket of the service's own histograms becomes the counter
 * `<name>.samples` with the tag `bucket`: no line says which buckets there are, nor the sum, so that no honest
 * histogram can be made of them.
 */
export function readLine(head: string, tail: string, rules: LineRules): Line | StatsdDrop {
  if (head.startsWith('_e{')) return 'unsupported_type';
  if (head === '' || head.includes('|')) return 'invalid_line';
  const read = readTail(tail, rules.tagFormat === 'auto' || rules.tagFormat === 'dogstatsd');
  if (isFault(read)) return read;
  if (unsupportedTags.test(head)) return 'unsupported_tags';
  const bare = rules.prefix !== '' && head.startsWith(rules.prefix) ? head.slice(rules.prefix.length) : head;
  const tagged = readHead(bare, read, rules);
  if (isFault(tagged)) return tagged;
  const { name, tags, untangled } = tagged;
  for (const [key, value] of read.tags) tags.set(key, value);
  if (name === '') return 'invalid_line';
  return { name, tags: Object.fromEntries(tags), type: read.type, weight: read.weight, untangled };
}
