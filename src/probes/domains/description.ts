import { parseDuration } from '../../core/text-formats.ts';

/** One recorded failover; what the entry does not say is left out. */
export interface FailoverEntry {
  /** The same for the same failover, however often it is read. */
  key: string;
  /** ms since the epoch. */
  atMs?: number;
  /** The cluster it went to. */
  to?: string;
}

export const archives = ['history', 'visibility'] as const;
export type Archive = (typeof archives)[number];

/** A domain as a cluster describes it; what the answer does not show is left out. */
export interface DomainDescription {
  name?: string;
  activeCluster?: string;
  clusters?: readonly string[];
  global?: boolean;
  failoverVersion?: number;
  /** Active in several clusters at once: one failover version and one name do not tell where. */
  activeActive?: boolean;
  retentionMs?: number;
  archival: Partial<Record<Archive, boolean>>;
  /** Newest first; empty when none is recorded, missing when the answer cannot show any. */
  failoverHistory?: readonly FailoverEntry[];
}

/** Readers of single values as clients print them, JSON or text; undefined for what is not of the kind. */

/** Longer text is no name and no number. */
const longestText = 1000;

export function textOf(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > longestText) return undefined;
  const trimmed = value.trim();
  return trimmed === '' ? undefined : trimmed;
}

/** Integers of 64 bits come as text in JSON made of proto. */
export function integerOf(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^\s*-?\d+\s*$/.test(value) ? Number(value) : value;
  return Number.isSafeInteger(number) ? (number as number) : undefined;
}

export function booleanOf(value: unknown): boolean | undefined {
  if (typeof value === 'boolean') return value;
  const word = textOf(value)?.toLowerCase();
  return word === 'true' ? true : word === 'false' ? false : undefined;
}

/** No group has more clusters. */
const mostNames = 100;

/** `[a b]`, `a, b`, a list of names, or a list of maps with the name; undefined when none is named. */
export function namesOf(value: unknown): string[] | undefined {
  const items =
    typeof value === 'string' && !/^n\/a\b/i.test(value.trim())
      ? value.replace(/[[\]]/g, ' ').split(/[\s,]+/)
      : Array.isArray(value)
        ? value.map(nameIn)
        : [];
  const names = items.flatMap((item) => textOf(item) ?? []).slice(0, mostNames);
  return names.length === 0 ? undefined : names;
}

function nameIn(item: unknown): unknown {
  if (typeof item !== 'object' || item === null) return item;
  const found = Object.entries(item).find(([key]) => /^(?:cluster_?)?name$/i.test(key));
  return found?.[1];
}

/** A word that ends in `enabled` is on, any other is off (`paused`, `ARCHIVAL_STATUS_DISABLED`); 1 is on, 0 off. */
export function enabledOf(value: unknown): boolean | undefined {
  const number = integerOf(value);
  if (number !== undefined) return number === 0 || number === 1 ? number === 1 : undefined;
  const word = textOf(value)?.toLowerCase();
  return word === undefined ? undefined : /(?:^|_)enabled$/.test(word);
}

const dayMs = 864e5;

/** A span in ms: a plain number is of days, as the service counts retention; text may have a unit. */
export function retentionOf(value: unknown): number | undefined {
  const days = integerOf(value);
  if (days !== undefined) return days >= 0 ? days * dayMs : undefined;
  const text = textOf(value)?.replace(/\s*days?$/i, 'd');
  if (text === undefined) return undefined;
  try {
    return parseDuration(text);
  } catch {
    return undefined;
  }
}

/** Times before and after are taken for something else. */
const [earliestMs, latestMs] = [Date.UTC(2001), Date.UTC(2100)];
const perMs = [1e-3, 1, 1e3, 1e6];

/** A moment in ms since the epoch: RFC 3339, or a number of s, ms, µs or ns, which its size tells apart. */
export function momentOf(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  const candidates =
    typeof number === 'number'
      ? perMs.map((per) => Math.floor(number / per))
      : typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value)
        ? [Date.parse(value)]
        : [];
  return candidates.find((ms) => ms >= earliestMs && ms < latestMs);
}

/** Values by path; each step of a path is its letters and digits in lower case, so that spellings meet. */
export type Fields = ReadonlyMap<string, unknown>;

const deepest = 4;
const plainKey = (key: string): string => key.toLowerCase().replace(/[^a-z0-9]/g, '');
const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Every value of an object, those of the objects in it below them; lists are values. */
export function fieldsOf(object: Record<string, unknown>): Fields {
  const fields = new Map<string, unknown>();
  const walk = (of: Record<string, unknown>, prefix: string, depth: number) => {
    for (const [key, value] of Object.entries(of)) {
      if (value === null) continue;
      const path = prefix + plainKey(key);
      fields.set(path, value);
      if (isMap(value) && depth < deepest) walk(value, `${path}.`, depth + 1);
    }
  };
  walk(object, '', 1);
  return fields;
}

/**
 * Every `Key: value` line. Of equal keys the last counts, as what precedes the service's own lines may be free
 * text (a description of several lines), but the name comes before all of that.
 */
export function fieldsOfLines(text: string): Fields {
  const fields = new Map<string, unknown>();
  for (const line of text.split('\n')) {
    const [, key, value] = /^\s*([A-Za-z][\w().-]*)\s*:(?:\s+(.*))?$/.exec(line) ?? [];
    if (key === undefined) continue;
    const path = plainKey(key);
    if (path !== 'name' || !fields.has(path)) fields.set(path, value?.trim() ?? '');
  }
  return fields;
}

/** The first of these paths whose value can be read. */
export function firstOf<T>(
  fields: Fields,
  paths: readonly string[],
  read: (value: unknown) => T | undefined,
): T | undefined {
  for (const path of paths) {
    const value = fields.has(path) ? read(fields.get(path)) : undefined;
    if (value !== undefined) return value;
  }
  return undefined;
}

/** More than any service keeps; the rest of a longer list is older. */
const mostEntries = 50;
const longestKey = 300;

/** A failover history: a list of entries, or its JSON as text; undefined for anything else. */
export function historyOf(value: unknown): FailoverEntry[] | undefined {
  const list = typeof value === 'string' ? parsed(value) : value;
  return Array.isArray(list) ? list.slice(0, mostEntries).map(entryOf) : undefined;
}

/** The history inside the text of a map as Go prints it: `map[FailoverHistory:[{…}] other:text]`. */
export function historyInMapText(text: string): FailoverEntry[] | undefined {
  if (!/^map\[.*\]$/s.test(text)) return undefined;
  const start = /[[ ]FailoverHistory:(?=\[)/.exec(text);
  if (!start) return /[[ ]FailoverHistory:/.test(text) ? undefined : [];
  return historyOf(listAt(text, start.index + start[0].length));
}

/** The JSON list that begins here, up to its own end. */
function listAt(text: string, from: number): string {
  let depth = 0;
  let quoted = false;
  for (let at = from; at < text.length; at++) {
    const character = text[at];
    if (quoted) {
      if (character === '\\') at++;
      else if (character === '"') quoted = false;
    } else if (character === '"') quoted = true;
    else if (character === '[' || character === '{') depth++;
    else if ((character === ']' || character === '}') && --depth === 0) return text.slice(from, at + 1);
  }
  return '';
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

type Member = Record<string, unknown>;

/** Which fields an entry has is not laid down: its time and clusters are taken where they are known by name. */
function entryOf(entry: unknown): FailoverEntry {
  const fields: Member = typeof entry === 'object' && entry !== null ? (entry as Member) : {};
  const first = Array.isArray(fields.clusterFailovers) ? (fields.clusterFailovers[0] as Member | null) : null;
  const atMs = momentOf(fields.eventTime ?? fields.failoverTime ?? fields.createdTime);
  const from = clusterOf(fields.fromCluster ?? first?.fromCluster);
  const to = clusterOf(fields.toCluster ?? first?.toCluster);
  const key = atMs === undefined ? JSON.stringify(entry).slice(0, longestKey) : `${atMs} ${from} ${to}`;
  return { key, atMs, to };
}

function clusterOf(value: unknown): string | undefined {
  return textOf(typeof value === 'object' && value !== null ? (value as Member).activeClusterName : value);
}

/** The spec's words, then those that clients and the raw answers of real services use. */
const paths = {
  name: ['name', 'domainname', 'domaininfo.name', 'namespaceinfo.name'],
  activeCluster: [
    'activecluster',
    'activeclustername',
    'replicationconfig.activeclustername',
    'replicationconfiguration.activeclustername',
  ],
  clusters: ['clusters', 'replicationconfig.clusters', 'replicationconfiguration.clusters'],
  global: ['globaldomain', 'isglobal', 'isglobaldomain', 'isglobalxdcdomain', 'isglobalnamespace'],
  failoverVersion: ['failoverversion', 'failoverinfo.failoverversion'],
  activeActive: ['isactiveactivedomain'],
  retention: [
    'retention',
    'retentiondays',
    'retentionindays',
    'configuration.workflowexecutionretentionperiodindays',
    'workflowexecutionretentionperiod',
    'config.workflowexecutionretentionttl',
  ],
  failoverHistory: ['failoverhistory', 'domaindata.failoverhistory', 'domaininfo.data.failoverhistory'],
} as const;

const archivalPaths = (archive: string) => [
  `${archive}archivalstatus`,
  `configuration.${archive}archivalstatus`,
  `config.${archive}archivalstate`,
  `archival.${archive}.status`,
];

/** Where free entries of a domain stand, of which the failover history may be one. */
const dataPaths = ['domaindata', 'domaininfo.data', 'data'];

/** Raw answers leave out what is false, zero or empty. */
const rawPaths = ['domaininfo', 'namespaceinfo'];

/** Reads what a client printed about a domain, JSON or text; undefined for an unknown shape. */
export function describingOf(printed: string): DomainDescription | undefined {
  const object = objectIn(printed);
  if (object === undefined) return known(descriptionOf(fieldsOfLines(printed), false));
  const inner = [object.domain, object.namespace].find(
    (value) => typeof value === 'object' && value !== null,
  );
  const fields = fieldsOf((inner ?? object) as Record<string, unknown>);
  const raw = inner !== undefined || rawPaths.some((path) => fields.has(path));
  return known(descriptionOf(fields, raw));
}

/** Lines before the answer, such as warnings, are passed over; so many of them may look like its beginning. */
const mostBeginnings = 20;

function objectIn(printed: string): Record<string, unknown> | undefined {
  const end = Math.max(printed.lastIndexOf('}'), printed.lastIndexOf(']')) + 1;
  const beginnings = [...printed.slice(0, end).matchAll(/^[ \t]*[{[]/gm)].slice(0, mostBeginnings);
  for (const { index } of beginnings) {
    try {
      const value: unknown = JSON.parse(printed.slice(index, end));
      const only: unknown = Array.isArray(value) && value.length === 1 ? value[0] : value;
      if (typeof only === 'object' && only !== null && !Array.isArray(only)) {
        return only as Record<string, unknown>;
      }
    } catch {
      // A line that only looks like the beginning.
    }
  }
  return undefined;
}

function descriptionOf(fields: Fields, raw: boolean): DomainDescription {
  const archival = (archive: string) =>
    firstOf(fields, archivalPaths(archive), enabledOf) ?? (raw ? false : undefined);
  const global = firstOf(fields, paths.global, booleanOf) ?? (raw ? false : undefined);
  const failoverVersion = firstOf(fields, paths.failoverVersion, integerOf);
  return {
    name: firstOf(fields, paths.name, textOf),
    activeCluster: firstOf(fields, paths.activeCluster, textOf),
    clusters: firstOf(fields, paths.clusters, namesOf),
    global,
    failoverVersion: failoverVersion ?? (raw && global ? 0 : undefined),
    activeActive: firstOf(fields, paths.activeActive, booleanOf),
    retentionMs: firstOf(fields, paths.retention, retentionOf),
    archival: { history: archival('history'), visibility: archival('visibility') },
    failoverHistory: historyIn(fields),
  };
}

function historyIn(fields: Fields): readonly FailoverEntry[] | undefined {
  const history = firstOf(fields, paths.failoverHistory, historyOf);
  if (history || paths.failoverHistory.some((path) => fields.has(path))) return history;
  const data = firstOf(fields, dataPaths, (value) => value);
  if (typeof data === 'string') return historyInMapText(data);
  return data === undefined ? undefined : [];
}

/** Of an unknown shape nothing is believed: it must say where the domain is active, or what domain it is. */
function known(description: DomainDescription): DomainDescription | undefined {
  const { name, activeCluster, global, clusters } = description;
  return activeCluster !== undefined || (name !== undefined && (global ?? clusters) !== undefined)
    ? description
    : undefined;
}
