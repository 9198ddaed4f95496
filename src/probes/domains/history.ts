import type { FailoverEntry } from './description.ts';
import { momentOf, textOf } from './values.ts';

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
