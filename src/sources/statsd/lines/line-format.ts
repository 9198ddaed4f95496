import { catalog } from '../../../core/catalog.ts';
import { parseValue } from '../../../core/decimal.ts';
import type { dropReasons } from '../../../core/reasons.ts';
import type { StatsdTagFormat } from '../block.ts';

export type StatsdDrop = (typeof dropReasons)['statsd'][number];

/** What a line's numbers are. A signed gauge changes the current value. */
export type StatsdType = 'counter' | 'gauge' | 'timer' | 'histogram';

/** A line without its numbers. */
export interface StatsdLine {
  name: string;
  tags: Readonly<Record<string, string>>;
  type: StatsdType;
  /** The number of events that each number represents: 1 / sample rate. */
  weight: number;
  /** Whether the tags were part of the name; their values may contain colons then. */
  hasSuffixTags: boolean;
}

export interface LineRules {
  tagFormat: StatsdTagFormat;
  tagKeys: ReadonlySet<string>;
  /** The prefixes, each with its dot. If several match, the longest is removed. */
  prefixes: readonly string[];
}

const types: Readonly<Record<string, StatsdType>> = {
  c: 'counter',
  g: 'gauge',
  ms: 'timer',
  h: 'histogram',
  d: 'histogram',
};
/**
 * Sections that are ignored: container, external data, cardinality, time, and what later versions of the protocol add
 * (`key:value`, or nothing). A bare word is the rest of another line that lost its newline.
 */
const asideSection = /^(?:[A-Za-z]\w*:|T\d+$|$)/;

/**
 * The form of tags that are not supported: in brackets (SignalFx: `name[key=value]`) or after semicolons (Graphite:
 * `name;key=value`).
 */
const unsupportedTags = /\[[^\]]*=|;[^;=]+=/;

const isFault = (line: object | StatsdDrop): line is StatsdDrop => typeof line === 'string';

type Tags = Record<string, string>;
const noTags = new Map<string, string>();

function hasTags(tags: Tags | undefined): boolean {
  for (const _ in tags) return true;
  return false;
}

/** Sets a tag. Assigning to `__proto__` would not make a tag of that name. */
function setTag(tags: Tags, key: string, value: string): void {
  if (key !== '__proto__') tags[key] = value;
  else Object.defineProperty(tags, key, { value, enumerable: true, writable: true, configurable: true });
}

/** Parses tags as `key=value` with commas between them (InfluxDB, Librato). */
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
 * Parses DogStatsD tags: `key:value`, where the value may have further colons; a bare `key` has the value `true`. Some clients
 * write a `#` before each tag and not only before the first.
 */
function colonTags(text: string, from: number, to: number): Tags | undefined {
  const tags: Tags = {};
  for (let start = from, end = from; start <= to; start = end + 1) {
    const comma = text.indexOf(',', start);
    end = comma === -1 || comma > to ? to : comma;
    if (text[start] === '#') start += 1;
    const found = text.indexOf(':', start);
    const colon = found === -1 || found >= end ? end : found;
    if (start === end) continue;
    if (colon === start) return undefined;
    setTag(tags, text.slice(start, colon), colon === end ? 'true' : text.slice(colon + 1, end));
  }
  return tags;
}

/** Splits the head into name and tags at the first of these signs, if there is any. */
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
  /** The tags; undefined if there are none. */
  tags: Tags | undefined;
}

/**
 * The lowest sample rate. No client samples one event in a billion; a lower rate would let one datagram spoil a total for good.
 */
const minRate = 1e-9;

function weightOf(rate: string): number {
  const sampled = parseValue(rate);
  return sampled !== undefined && sampled >= minRate && sampled <= 1 ? 1 / sampled : Number.POSITIVE_INFINITY;
}

/** Parses everything after the numbers: `|ms|@0.1|#key:value|c:container|T1700000000`. */
function readTail(tail: string, readsTags: boolean): Tail | StatsdDrop {
  const endOf = (from: number) => {
    const bar = tail.indexOf('|', from);
    return bar === -1 ? tail.length : bar;
  };
  let end = endOf(1);
  const letters = tail.slice(1, end);
  if (letters === '') return 'invalid_line';
  if (!Object.hasOwn(types, letters)) return 'unsupported_type';
  const read: Tail = { type: types[letters]!, weight: 1, tags: undefined };
  while (end < tail.length) {
    const from = end + 1;
    end = endOf(from);
    if (tail[from] === '@') {
      read.weight = weightOf(tail.slice(from + 1, end));
      if (!Number.isFinite(read.weight)) return 'invalid_rate';
    } else if (tail[from] === '#') {
      const tags = colonTags(tail, from + 1, end);
      if (tags === undefined) return 'invalid_line';
      if (readsTags) read.tags = tags;
    } else if (!asideSection.test(tail.slice(from, end))) return 'invalid_line';
  }
  return read;
}

function readHead(
  head: string,
  tail: Tail,
  rules: LineRules,
): (Tagged & { hasSuffixTags: boolean }) | StatsdDrop {
  const { tagFormat, tagKeys } = rules;
  const signs = tagSigns[tagFormat];
  const cut = signs && cutHead(head, signs);
  if (cut !== undefined && !isFault(cut)) return { ...cut, hasSuffixTags: false };
  const mayHaveSuffixTags = (tagFormat === 'auto' || tagFormat === 'suffix') && !hasTags(tail.tags);
  if (!mayHaveSuffixTags) return cut ?? { name: head, tags: noTags, hasSuffixTags: false };
  const tags = new Map<string, string>();
  const bucket = tail.type === 'counter' ? bucketOf(head) : undefined;
  const found = parseSuffixTags(bucket?.rest ?? head, tagKeys);
  if (found === undefined && cut !== undefined) return cut;
  const tagged = found ?? { name: bucket?.rest ?? head, tags };
  if (bucket !== undefined) {
    tagged.name += '.samples';
    tagged.tags.set('bucket', bucket.bucket);
  }
  return { ...tagged, hasSuffixTags: found !== undefined };
}

/**
 * Parses a line without its numbers: `head` is the part before the first colon, `tail` begins with the bar after the numbers.
 * Forms: statsd (docs/metric_types.md of statsd/statsd), DogStatsD 1.0 to 1.3, InfluxDB's and Librato's tags, and the suffixes of
 * the service's enhanced reporter. Tags of the suffix form are looked for only if no other form is used.
 *
 * Discarded on purpose: container and time of DogStatsD. A bucket of the service's own histograms becomes the counter
 * `<name>.samples` with the tag `bucket`: no line says which buckets there are, nor the sum, so that no correct histogram can be
 * built from them.
 */
export function readLine(head: string, tail: string, rules: LineRules): StatsdLine | StatsdDrop {
  if (head.startsWith('_e{')) return 'unsupported_type';
  if (head === '' || head.includes('|')) return 'invalid_line';
  const read = readTail(tail, rules.tagFormat === 'auto' || rules.tagFormat === 'dogstatsd');
  if (isFault(read)) return read;
  if (unsupportedTags.test(head)) return 'unsupported_tags';
  const front = rules.prefixes.find((prefix) => head.startsWith(prefix)) ?? '';
  const bare = head.slice(front.length);
  const tagged = readHead(bare, read, rules);
  if (isFault(tagged)) return tagged;
  const { name, hasSuffixTags } = tagged;
  if (name === '') return 'invalid_line';
  const { type, weight } = read;
  const tags =
    tagged.tags.size === 0 ? (read.tags ?? {}) : { ...Object.fromEntries(tagged.tags), ...read.tags };
  return { name, tags, type, weight, hasSuffixTags };
}

/** A name and the tags that were part of it. */
interface Tagged {
  name: string;
  tags: Map<string, string>;
}

/** Tag names that products of this kind use in addition to the catalog's (reference list: their metric definitions). */
const productTags = [
  'active_cluster',
  'activityType',
  'cache_type',
  'cadence_role',
  'cadence_service',
  'caller',
  'cluster_group',
  'decisionType',
  'domain',
  'domain_type',
  'histogram_end',
  'histogram_scale',
  'histogram_start',
  'host',
  'instance',
  'is_retry',
  'isolation_group',
  'namespace',
  'operation',
  'service_name',
  'service_role',
  'shard_id',
  'source_cluster',
  'stats_type',
  'svc_service',
  'target_cluster',
  'task_category',
  'taskqueue',
  'tasklist',
  'tasklistType',
  'transport',
  'type',
  'workflowType',
];

/** The tag names that the suffix form may contain. */
export function tagKeysWith(more: readonly string[] = []): ReadonlySet<string> {
  return new Set([...catalog.flatMap(({ tags }) => tags), ...productTags, ...more]);
}

/**
 * Parses `name.key.value.key.value`, the form of the service's enhanced reporter: tags in the order of their
 * names, nothing escaped. A part is a key if it is known, sorts after the last key, and is not the last part; any
 * other part belongs to the value before it, dots included. Undefined if no tag is found. A metric name that
 * contains a known key cannot be distinguished from a name with a tag.
 */
function parseSuffixTags(text: string, keys: ReadonlySet<string>): Tagged | undefined {
  const parts = text.split('.');
  const tags = new Map<string, string>();
  const keyAt = (i: number, behind: string) =>
    i < parts.length - 1 && parts[i]! > behind && keys.has(parts[i]!) ? parts[i] : undefined;
  let i = 1;
  while (i < parts.length && keyAt(i, '') === undefined) i++;
  const name = parts.slice(0, i).join('.');
  for (let key = keyAt(i, ''); key !== undefined; key = keyAt(i, key)) {
    const from = ++i;
    do i++;
    while (i < parts.length && keyAt(i, key) === undefined);
    tags.set(key, parts.slice(from, i).join('.'));
  }
  return tags.size === 0 || name === '' ? undefined : { name, tags };
}

const duration = '-?(?:\\d+(?:\\.\\d+)?(?:ns|us|µs|ms|s|m|h))+';
const bound = `(?:-?infinity|-?\\d+\\.\\d{6}|${duration})`;
const bucketEnding = new RegExp(`^(.+?)\\.(${bound}-${bound})$`, 'u');

/**
 * Cuts off the bucket that the service's own reporter writes behind name and tags (`N.1ms-5ms:3|c`, one counter for each bucket
 * of a histogram). Undefined if there is no bucket.
 */
function bucketOf(text: string): { rest: string; bucket: string } | undefined {
  const [, rest, bucket] = bucketEnding.exec(text) ?? [];
  return rest === undefined || bucket === undefined ? undefined : { rest, bucket };
}
