import type { LogFileReport, ProbeStatus, StatusReport } from '../../report.ts';
import type { HistoryHeader, Tick } from '../history.ts';

/** The plotted values by name, oldest first, NaN for missing values. */
export interface Plotted {
  atMs: number;
  stepMs: number;
  /** The number of values of each series. */
  length: number;
  series: ReadonlyMap<string, Float32Array>;
}

export interface Data {
  report: StatusReport | undefined;
  plotted: Plotted;
  /** When the last event arrived, by this machine's clock; undefined before the first. */
  lastMessageMs: number | undefined;
}

/** If no message arrives for this long, the page may be out of date. */
export const silentMs = 7_000;
const retryMs = 5_000;
const mostPoints = 2880;

/** The latest parts of the status, by their keys. */
type StatusParts = Map<string, unknown>;

const listed = (parts: StatusParts, list: string) => (parts.get(list) ?? []) as readonly string[];

/** Removes the entries of lists that are no longer in the lists. */
function removeUnlisted(parts: StatusParts): void {
  const lists = ['probes', 'logs'];
  const known = new Set(lists.flatMap((list) => listed(parts, list).map((name) => `${list}:${name}`)));
  for (const key of parts.keys()) if (/^(probes|logs):/.test(key) && !known.has(key)) parts.delete(key);
}

/** The whole status, from its parts. */
function reportOf(parts: StatusParts): StatusReport {
  const entriesOf = <T>(list: string): T[] =>
    listed(parts, list).flatMap((name) => (parts.get(`${list}:${name}`) as T) ?? []);
  const plain = [...parts].filter(([key]) => !key.includes(':'));
  return {
    ...(Object.fromEntries(plain) as unknown as StatusReport),
    probes: entriesOf<ProbeStatus>('probes'),
    logs: entriesOf<LogFileReport>('logs'),
  };
}

/** Parses what `History.packed` wrote. */
function unpacked(packed: ArrayBuffer): { tick: number; plotted: Plotted } {
  const length = new DataView(packed).getUint32(0, true);
  const text = new TextDecoder().decode(new Uint8Array(packed, 4, length));
  const { tick, atMs, stepMs, points, series: names } = JSON.parse(text) as HistoryHeader;
  const series = new Map<string, Float32Array>();
  for (const [i, name] of names.entries()) {
    const from = 4 + length + 4 * points * i;
    series.set(name, new Float32Array(packed.slice(from, from + 4 * points)));
  }
  return { tick, plotted: { atMs, stepMs, length: points, series } };
}

/** The plots with the values of one more step. A series without any value left is removed. */
function withTick({ stepMs, length, series: before }: Plotted, { atMs, values: newest }: Tick): Plotted {
  const next = Math.min(length + 1, mostPoints);
  const series = new Map<string, Float32Array>();
  for (const name of new Set([...before.keys(), ...Object.keys(newest)])) {
    const values = new Float32Array(next).fill(Number.NaN);
    const old = before.get(name);
    const kept = Math.min(old?.length ?? 0, next - 1);
    if (old) values.set(old.subarray(old.length - kept), next - 1 - kept);
    values[next - 1] = newest[name] ?? Number.NaN;
    if (name in newest || values.some((value) => !Number.isNaN(value))) series.set(name, values);
  }
  return { atMs, stepMs, length: next, series };
}

/** Follows the agent: the status by its stream of changes, the plots by their history and each tick after it. */
export function follow(changed: (data: Data, what: { ticked: boolean }) => void): Data {
  const parts: StatusParts = new Map();
  const data: Data = {
    report: undefined,
    plotted: { atMs: 0, stepMs: 5_000, length: 0, series: new Map() },
    lastMessageMs: undefined,
  };
  let tick = -1;
  let fetching = false;

  const load = async () => {
    if (fetching) return;
    fetching = true;
    try {
      const answer = await fetch('api/history');
      if (!answer.ok) return;
      const history = unpacked(await answer.arrayBuffer());
      tick = history.tick;
      data.plotted = history.plotted;
      changed(data, { ticked: true });
    } catch {
      // The next tick tries again.
    } finally {
      fetching = false;
    }
  };

  const advance = (newest: Tick) => {
    if (newest.tick === tick) return false;
    if (newest.tick !== tick + 1 || tick < 0) {
      void load();
      return false;
    }
    tick = newest.tick;
    data.plotted = withTick(data.plotted, newest);
    return true;
  };

  const open = () => {
    const source = new EventSource('api/events');
    source.onmessage = ({ data: text }) => {
      const version = data.report?.version;
      for (const [key, value] of Object.entries(JSON.parse(text as string) as Record<string, unknown>))
        parts.set(key, value);
      removeUnlisted(parts);
      data.report = reportOf(parts);
      // Another version of the agent has another version of this page.
      if (version !== undefined && version !== data.report.version) return location.reload();
      data.lastMessageMs = Date.now();
      const newest = parts.get('tick') as Tick | null;
      changed(data, { ticked: newest ? advance(newest) : false });
    };
    source.onerror = () => {
      // A browser does not reconnect if the response is not a stream.
      if (source.readyState !== EventSource.CLOSED) return;
      setTimeout(open, retryMs);
    };
  };
  open();
  void load();
  return data;
}
