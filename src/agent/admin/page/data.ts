import type { HistoryEvent, HistoryHeader, Tick } from '../history.ts';
import type { LogFileReport, ProbeStatus, StatusReport } from '../report.ts';

/** What is plotted: values by name, oldest first, NaN where there is none. */
export interface Plotted {
  atMs: number;
  stepMs: number;
  /** Values that each series has. */
  length: number;
  series: ReadonlyMap<string, Float32Array>;
}

export interface Data {
  report: StatusReport | undefined;
  events: readonly HistoryEvent[];
  plotted: Plotted;
  /** When the last event came, by this machine's clock; undefined before the first. */
  lastMessageMs: number | undefined;
}

/** Without a message for this long, the page may be out of date. */
export const silentMs = 7_000;
const retryMs = 5_000;
const mostPoints = 2880;

/** Follows the agent: the status by its stream of changes, the plots by their history and each tick after it. */
export function follow(changed: (data: Data, what: { ticked: boolean }) => void): Data {
  const cells = new Map<string, unknown>();
  const data: Data = {
    report: undefined,
    events: [],
    plotted: { atMs: 0, stepMs: 5_000, length: 0, series: new Map() },
    lastMessageMs: undefined,
  };
  let tick = -1;
  let fetching = false;

  const all = <T>(list: string): T[] =>
    ((cells.get(list) ?? []) as string[]).flatMap((name) => (cells.get(`${list}:${name}`) as T) ?? []);
  const assemble = () => {
    const known = new Set(
      ['probes', 'logs'].flatMap((list) =>
        ((cells.get(list) ?? []) as string[]).map((name) => `${list}:${name}`),
      ),
    );
    for (const key of cells.keys()) if (/^(probes|logs):/.test(key) && !known.has(key)) cells.delete(key);
    const plain = [...cells].filter(([key]) => !key.includes(':'));
    data.report = {
      ...(Object.fromEntries(plain) as unknown as StatusReport),
      probes: all<ProbeStatus>('probes'),
      logs: all<LogFileReport>('logs'),
    };
    data.events = (cells.get('events') ?? []) as HistoryEvent[];
  };

  const load = async () => {
    if (fetching) return;
    fetching = true;
    try {
      const answer = await fetch('api/history');
      if (!answer.ok) return;
      const packed = await answer.arrayBuffer();
      const length = new DataView(packed).getUint32(0, true);
      const header = JSON.parse(new TextDecoder().decode(new Uint8Array(packed, 4, length))) as HistoryHeader;
      const series = new Map<string, Float32Array>();
      for (const [i, name] of header.series.entries()) {
        const from = 4 + length + 4 * header.points * i;
        series.set(name, new Float32Array(packed.slice(from, from + 4 * header.points)));
      }
      tick = header.tick;
      data.plotted = { atMs: header.atMs, stepMs: header.stepMs, length: header.points, series };
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
    const { stepMs, length, series: before } = data.plotted;
    const next = Math.min(length + 1, mostPoints);
    const series = new Map<string, Float32Array>();
    for (const name of new Set([...before.keys(), ...Object.keys(newest.values)])) {
      const values = new Float32Array(next).fill(Number.NaN);
      const old = before.get(name);
      if (old)
        values.set(
          old.subarray(Math.max(0, old.length - (next - 1))),
          next - 1 - Math.min(old.length, next - 1),
        );
      values[next - 1] = newest.values[name] ?? Number.NaN;
      if (name in newest.values || values.some((value) => !Number.isNaN(value))) series.set(name, values);
    }
    tick = newest.tick;
    data.plotted = { atMs: newest.atMs, stepMs, length: next, series };
    return true;
  };

  const open = () => {
    const source = new EventSource('api/events');
    source.onmessage = ({ data: text }) => {
      const version = data.report?.version;
      for (const [key, value] of Object.entries(JSON.parse(text as string) as Record<string, unknown>))
        cells.set(key, value);
      assemble();
      // Another version of the agent has another version of this page.
      if (version !== undefined && version !== data.report?.version) return location.reload();
      data.lastMessageMs = Date.now();
      const newest = cells.get('tick') as Tick | null;
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
