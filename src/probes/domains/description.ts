import { parseDuration } from '../../core/text-formats.ts';
import type { ClusterOptions } from '../clusters/block.ts';

const placeholder = /\{(domain|cluster|address)\}/g;

/** Which placeholders the arguments of a command have. */
export function placeholdersIn([, ...args]: readonly string[]): Record<
  'domain' | 'cluster' | 'address',
  boolean
> {
  const has = (name: string) => args.some((arg) => arg.includes(`{${name}}`));
  return { domain: has('domain'), cluster: has('cluster'), address: has('address') };
}

/** Whether the command runs once for each cluster of the group. */
export function isPerCluster(command: readonly string[]): boolean {
  const { cluster, address } = placeholdersIn(command);
  return cluster || address;
}

/** The argument list for one domain through one cluster; a placeholder without a value stays. */
export function commandFor(
  [program = '', ...args]: readonly string[],
  domain: string,
  through?: Pick<ClusterOptions, 'name' | 'rpcAddress'>,
): string[] {
  const values: Record<string, string | undefined> = {
    domain,
    cluster: through?.name,
    address: through?.rpcAddress,
  };
  return [
    program,
    ...args.map((arg) => arg.replace(placeholder, (written, name: string) => values[name] ?? written)),
  ];
}

/** One failover of the history. Fields that the entry lacks are left out. */
export interface FailoverEntry {
  /** Identifies the failover. */
  key: string;
  /** The time of the failover, ms since the epoch. */
  atMs?: number;
  /** The cluster that became active. */
  to?: string;
}

export const archives = ['history', 'visibility'] as const;
export type Archive = (typeof archives)[number];

/** A domain as a cluster describes it. What the output does not show is left out. */
export interface DomainDescription {
  name?: string;
  activeCluster?: string;
  clusters?: readonly string[];
  global?: boolean;
  failoverVersion?: number;
  /** Whether the domain is active in several clusters at once, each with its own failover version. */
  activeActive?: boolean;
  /** The owner's free text. */
  description?: string;
  retentionMs?: number;
  archival: Partial<Record<Archive, boolean>>;
  archivalUris?: Partial<Record<Archive, string>>;
  /** The failovers, newest first; empty if none is recorded, missing if the output has no history. */
  failoverHistory?: readonly FailoverEntry[];
}

// Parsers of single values as clients print them, JSON or text; undefined for anything else.

/** The maximum length of a name or number. */
const longestText = 1000;

function textOf(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > longestText) return undefined;
  const trimmed = value.trim();
  return trimmed === '' || noValue.test(trimmed) ? undefined : trimmed;
}

/** What Go prints for a value that is not there, for example in the text of a client that could not ask. */
const noValue = /^<(?:nil|no value)>$/;

/** Parses an integer: 64-bit integers are strings in proto3 JSON. */
function integerOf(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^\s*-?\d+\s*$/.test(value) ? Number(value) : value;
  return Number.isSafeInteger(number) ? (number as number) : undefined;
}

function booleanOf(value: unknown): boolean | undefined {
  if (typeof value === 'boolean') return value;
  const word = textOf(value)?.toLowerCase();
  return word === 'true' ? true : word === 'false' ? false : undefined;
}

/** The maximum number of names, for the clusters of a group. */
const mostNames = 100;

/** Parses names: `[a b]`, `a, b`, a list of names, or a list of maps with the name; undefined without a name. */
function namesOf(value: unknown): string[] | undefined {
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

/**
 * Parses a switch: a word that ends in `enabled` is on, any other word is off (`paused`, `ARCHIVAL_STATUS_DISABLED`); 1 is on, 0
 * off.
 */
function enabledOf(value: unknown): boolean | undefined {
  const number = integerOf(value);
  if (number !== undefined) return number === 0 || number === 1 ? number === 1 : undefined;
  const word = textOf(value)?.toLowerCase();
  return word === undefined ? undefined : /(?:^|_)enabled$/.test(word);
}

const dayMs = 864e5;

/** Parses a duration into ms. A plain number is in days, the service's unit of retention; text may have a unit. */
function retentionOf(value: unknown): number | undefined {
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

/** Numbers outside of this range are not times. */
const [earliestMs, latestMs] = [Date.UTC(2001), Date.UTC(2100)];
const perMs = [1e-3, 1, 1e3, 1e6];

/** Parses a time into ms since the epoch: RFC 3339, or a number in s, ms, µs or ns, distinguished by its size. */
function momentOf(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  const candidates =
    typeof number === 'number'
      ? perMs.map((per) => Math.floor(number / per))
      : typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value)
        ? [Date.parse(value)]
        : [];
  return candidates.find((ms) => ms >= earliestMs && ms < latestMs);
}

/** Values by path. Each key is reduced to its letters and digits in lower case, so that spellings do not matter. */
type DescriptionFields = ReadonlyMap<string, unknown>;

const deepest = 4;
const plainKey = (key: string): string => key.toLowerCase().replace(/[^a-z0-9]/g, '');
const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Every value of an object and of the objects in it. A list is one value. */
function fieldsOf(object: Record<string, unknown>): DescriptionFields {
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
 * Reads every `Key: value` line. The last line of a key is used, because free text (a description of several lines) comes before
 * the service's own lines; but the first name is used, because it comes before the free text.
 */
function fieldsOfLines(text: string): DescriptionFields {
  const fields = new Map<string, unknown>();
  for (const line of text.split('\n')) {
    const [, key, value] = /^\s*([A-Za-z][\w().-]*)\s*:(?:\s+(.*))?$/.exec(line) ?? [];
    if (key === undefined) continue;
    const path = plainKey(key);
    if (path !== 'name' || !fields.has(path)) fields.set(path, value?.trim() ?? '');
  }
  return fields;
}

/** The parsed value of the first of these paths whose value can be parsed. */
function firstOf<T>(
  fields: DescriptionFields,
  paths: readonly string[],
  read: (value: unknown) => T | undefined,
): T | undefined {
  for (const path of paths) {
    const value = fields.has(path) ? read(fields.get(path)) : undefined;
    if (value !== undefined) return value;
  }
  return undefined;
}

/** No service stores more entries than this; further entries are older. */
const mostEntries = 50;
const longestKey = 300;

/** Parses a failover history: a list of entries, or its JSON as text; undefined for anything else. */
function historyOf(value: unknown): FailoverEntry[] | undefined {
  const list = typeof value === 'string' ? parsed(value) : value;
  return Array.isArray(list) ? list.slice(0, mostEntries).map(entryOf) : undefined;
}

/** Finds the history inside the text of a map as Go prints it: `map[FailoverHistory:[{…}] other:text]`. */
function historyInMapText(text: string): FailoverEntry[] | undefined {
  if (!/^map\[.*\]$/s.test(text)) return undefined;
  const start = /[[ ]FailoverHistory:(?=\[)/.exec(text);
  if (!start) return /[[ ]FailoverHistory:/.test(text) ? undefined : [];
  return historyOf(listAt(text, start.index + start[0].length));
}

/** The JSON list that starts at `from`. */
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

/** Parses an entry. Its fields are not specified, so known names for its time and clusters are used. */
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

/** The paths of each value: the spec's names, then those of real clients and raw API responses. */
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
  description: ['description', 'domaininfo.description', 'namespaceinfo.description'],
  failoverHistory: ['failoverhistory', 'domaindata.failoverhistory', 'domaininfo.data.failoverhistory'],
} as const;

const archivalPaths = (archive: string) => [
  `${archive}archivalstatus`,
  `configuration.${archive}archivalstatus`,
  `config.${archive}archivalstate`,
  `archival.${archive}.status`,
];

const archivalUriPaths = (archive: string) => [
  `${archive}archivaluri`,
  `configuration.${archive}archivaluri`,
  `config.${archive}archivaluri`,
  `archival.${archive}.uri`,
];

/** The paths of a domain's free-form data, which may contain the failover history. */
const dataPaths = ['domaindata', 'domaininfo.data', 'data'];

/** Paths that show a raw API response, which leaves out what is false, zero or empty. */
const rawPaths = ['domaininfo', 'namespaceinfo'];

/** Parses a client's output about a domain, JSON or text; undefined for an unknown shape. */
export function parseDescription(output: string): DomainDescription | undefined {
  // Clients on Windows write a byte-order mark and CRLF.
  const printed = output.replace(/^\ufeff/, '').replace(/\r\n?/g, '\n');
  const object = objectIn(printed);
  if (object === undefined) return known(descriptionOf(fieldsOfLines(printed), false));
  const inner = [object.domain, object.namespace].find(
    (value) => typeof value === 'object' && value !== null,
  );
  const fields = fieldsOf((inner ?? object) as Record<string, unknown>);
  const raw = inner !== undefined || rawPaths.some((path) => fields.has(path));
  return known(descriptionOf(fields, raw));
}

/** Lines before the JSON, such as warnings, are skipped. At most this many of them may look like its start. */
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
      // This line is not the start of the JSON.
    }
  }
  return undefined;
}

function descriptionOf(fields: DescriptionFields, raw: boolean): DomainDescription {
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
    description: firstOf(fields, paths.description, textOf),
    retentionMs: firstOf(fields, paths.retention, retentionOf),
    archival: { history: archival('history'), visibility: archival('visibility') },
    ...urisIn(fields),
    failoverHistory: historyIn(fields),
  };
}

function urisIn(fields: DescriptionFields): Pick<DomainDescription, 'archivalUris'> {
  const uris = archives.flatMap((archive) => {
    const uri = firstOf(fields, archivalUriPaths(archive), textOf);
    return uri === undefined ? [] : [[archive, uri] as const];
  });
  return uris.length === 0 ? {} : { archivalUris: Object.fromEntries(uris) };
}

function historyIn(fields: DescriptionFields): readonly FailoverEntry[] | undefined {
  const history = firstOf(fields, paths.failoverHistory, historyOf);
  if (history || paths.failoverHistory.some((path) => fields.has(path))) return history;
  const data = firstOf(fields, dataPaths, (value) => value);
  if (typeof data === 'string') return historyInMapText(data);
  return data === undefined ? undefined : [];
}

/** The description if it says where the domain is active, or which domain it is; anything else is an unknown shape. */
function known(description: DomainDescription): DomainDescription | undefined {
  const { name, activeCluster, global, clusters } = description;
  return activeCluster !== undefined || (name !== undefined && (global ?? clusters) !== undefined)
    ? description
    : undefined;
}
