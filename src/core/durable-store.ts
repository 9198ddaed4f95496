import { Cells } from './cells.ts';
import type { DurableValues, Frozen } from './durable.ts';
import { lineOf, readTable, widthOf } from './durable-rows.ts';
import { createTable } from './durable-table.ts';
import { AgentError } from './errors.ts';
import { type Entry, type Ledger, nextStoreId, type Store } from './store.ts';

/** The values behind "commit before expose", and the store that intakes write to. */
export interface DurableStore extends Store, DurableValues {
  readonly ledger: Ledger;
  /** Series that are kept in the state and shown nowhere. */
  readonly parkedCount: number;
  /** Gives up what is still parked for a service (`''`: none): nothing asks for it any more. */
  forget(service: string): void;
}

const nothing = new Float64Array(0);

export function serviceOf(labels: Entry['labels']): string {
  return labels.find(([name]) => name === 'svc_service')?.[1] ?? '';
}

/** The park: series by family, then by identity. */
function createPark() {
  let families = new Map<string, Map<string, Entry>>();
  return {
    fill(all: typeof families) {
      families = all;
    },
    add(parked: Entry) {
      const family = families.get(parked.family) ?? new Map<string, Entry>();
      families.set(parked.family, family.set(parked.identity, parked));
    },
    remove({ family, identity }: Entry) {
      const members = families.get(family);
      members?.delete(identity);
      if (members?.size === 0) families.delete(family);
    },
    of: (family: string): Entry[] => [...(families.get(family)?.values() ?? [])],
    all: (): Entry[] => [...families.values()].flatMap((members) => [...members.values()]),
    find: (family: string, identity: string) => families.get(family)?.get(identity),
  };
}

export function createDurableStore(): DurableStore {
  const cells = new Cells();
  const table = createTable();
  const park = createPark();
  let step = 0;
  let published: Frozen | undefined;
  let lastBirth = 0;
  let sight = 0;

  const strike = (at: number, width: number) => {
    table.strike(at);
    cells.give(at, width);
  };
  const giveUp = (parked: Entry) => {
    park.remove(parked);
    strike(parked.at, widthOf(parked.kind, parked.texts));
  };
  const ledger: Ledger = {
    enter(series) {
      const entry = series.entry();
      table.add(entry.at, lineOf(entry));
    },
    strike,
    park: (series) => park.add(series.entry()),
    parked: park.of,
    find: park.find,
    adopt: park.remove,
    giveUp,
  };

  return {
    id: nextStoreId(),
    cells,
    ledger,
    get shownStep() {
      return published?.seq ?? 0;
    },
    get sight() {
      return sight;
    },
    birth() {
      lastBirth = step;
      return step;
    },
    hold: () => ({ values: published?.values ?? nothing, release: () => {} }),
    restarted(series, nowMs) {
      series.beginAt(nowMs);
      ledger.enter(series);
    },
    freeze() {
      step += 1;
      return { seq: step, values: cells.copy(), table: table.bytes() };
    },
    publish(frozen) {
      if (published && frozen.seq <= published.seq) return;
      if (lastBirth >= (published?.seq ?? 0)) sight += 1;
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
      park.fill(rows.families);
    },
    get parkedCount() {
      return park.all().length;
    },
    forget(service) {
      for (const parked of park.all()) if (serviceOf(parked.labels) === service) giveUp(parked);
    },
  };
}
