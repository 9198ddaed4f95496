import { AgentError } from '../errors.ts';
import { createTable, lineOf, readTable, widthOf } from './durable-table.ts';
import { identityOf } from './labels.ts';
import { Cells, nextStoreId, type SeriesIndex, type SeriesRecord, type Store } from './value-stores.ts';

/** A copy of all durable values, taken in one synchronous step. */
export interface Frozen {
  /** The number of the freeze, which increases by one each time. */
  readonly seq: number;
  readonly values: Float64Array;
  /** The encoded identities of the series in `values`; the same array object until series change. */
  readonly table: Uint8Array;
}

/**
 * The values behind "commit before expose" (docs/guarantees.md): handles write the live values, reporters read the published
 * values, and only `publish` changes the published ones.
 */
export interface DurableValues {
  freeze(): Frozen;
  /** From now on, views show this freeze. */
  publish(frozen: Frozen): void;
  /**
   * Restores values from a snapshot, once, before any intake opens. Throws `snapshot_corrupt` for a table that it cannot read.
   */
  restore(table: Uint8Array, values: Float64Array): void;
}

/** The store to which intakes write durable series, with the values behind "commit before expose". */
export interface DurableStore extends Store, DurableValues {
  readonly index: SeriesIndex;
  /** The number of series that are in the state and that no view shows. */
  readonly retainedCount: number;
  /** Discards the retained series of a service (`''`: none), because no source asks for them any more. */
  forget(service: string): void;
}

const nothing = new Float64Array(0);

export function serviceOf(labels: SeriesRecord['labels']): string {
  return labels.find(([name]) => name === 'svc_service')?.[1] ?? '';
}

/** Series that are in the state and that no view shows: by family, then by identity. */
function createRetained() {
  let families = new Map<string, Map<string, SeriesRecord>>();
  return {
    fill(all: typeof families) {
      families = all;
    },
    add(series: SeriesRecord) {
      const family = families.get(series.family) ?? new Map<string, SeriesRecord>();
      families.set(series.family, family.set(series.identity, series));
    },
    remove({ family, identity }: SeriesRecord) {
      const members = families.get(family);
      members?.delete(identity);
      if (members?.size === 0) families.delete(family);
    },
    of: (family: string): SeriesRecord[] => [...(families.get(family)?.values() ?? [])],
    all: (): SeriesRecord[] => [...families.values()].flatMap((members) => [...members.values()]),
    find: (family: string, identity: string) => families.get(family)?.get(identity),
  };
}

export function createDurableStore(): DurableStore {
  const cells = new Cells();
  const table = createTable();
  const retained = createRetained();
  let step = 0;
  let published: Frozen | undefined;
  let lastOpenedStep = 0;
  let visibility = 0;

  const remove = (at: number, width: number) => {
    table.remove(at);
    cells.give(at, width);
  };
  const discard = (series: SeriesRecord) => {
    retained.remove(series);
    remove(series.at, widthOf(series.kind, series.texts));
  };
  const index: SeriesIndex = {
    add(series) {
      const record = series.record();
      table.add(record.at, lineOf(record));
    },
    remove,
    retain: (series) => retained.add(series.record()),
    retainedOf: retained.of,
    retained: retained.all,
    relabel(series, labels) {
      const record = { ...series, labels, identity: identityOf(labels) };
      retained.remove(series);
      retained.add(record);
      table.add(record.at, lineOf(record));
      return record;
    },
    find: retained.find,
    reclaim: retained.remove,
    discard,
  };

  return {
    id: nextStoreId(),
    cells,
    index,
    get shownStep() {
      return published?.seq ?? 0;
    },
    get visibility() {
      return visibility;
    },
    noteOpening() {
      lastOpenedStep = step;
      return step;
    },
    hold: () => ({ values: published?.values ?? nothing, release: () => {} }),
    restarted(series, nowMs) {
      series.beginAt(nowMs);
      index.add(series);
    },
    freeze() {
      step += 1;
      return { seq: step, values: cells.copy(), table: table.bytes() };
    },
    publish(frozen) {
      if (published && frozen.seq <= published.seq) return;
      if (lastOpenedStep >= (published?.seq ?? 0)) visibility += 1;
      published = frozen;
    },
    restore(bytes, values) {
      if (cells.used > 0) {
        const fault = { where: 'state: series table', what: 'restored after a series had been opened' };
        throw new AgentError('internal', fault);
      }
      const rows = readTable(bytes, values.length);
      cells.take(rows.width);
      for (const [i, { at, kind, texts }] of rows.entries.entries()) {
        const from = rows.from[i]!;
        for (let n = widthOf(kind, texts) - 1; n >= 0; n--) cells.live[at + n] = values[from + n]!;
      }
      table.take(bytes, rows);
      retained.fill(rows.families);
    },
    get retainedCount() {
      return retained.all().length;
    },
    forget(service) {
      for (const series of retained.all()) if (serviceOf(series.labels) === service) discard(series);
    },
  };
}
