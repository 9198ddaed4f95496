import type { Durable } from '../../../src/core/ports.ts';
import type { DurableValues, Frozen } from '../../../src/core/registry/durable-store.ts';

/** The simplest durable values: named counters, with a table of their names as JSON. */
export interface NamedCounters extends DurableValues {
  add(name: string, delta: number): void;
  /** What views show: only what was published. */
  shown(): Readonly<Record<string, number>>;
  /** What was counted or restored, whether it is shown or not. */
  counted(): Readonly<Record<string, number>>;
}

export function namedCounters(): NamedCounters {
  let live: Record<string, number> = {};
  let shown: Readonly<Record<string, number>> = {};
  let seq = 0;
  let table: Uint8Array = Buffer.from('[]');
  const namesIn = (bytes: Uint8Array): string[] => JSON.parse(Buffer.from(bytes).toString());
  const pairs = (bytes: Uint8Array, values: Float64Array) =>
    Object.fromEntries(namesIn(bytes).map((name, at) => [name, values[at]!]));
  return {
    add(name, delta) {
      live[name] = (live[name] ?? 0) + delta;
      if (namesIn(table).length < Object.keys(live).length)
        table = Buffer.from(JSON.stringify(Object.keys(live)));
    },
    shown: () => shown,
    counted: () => ({ ...live }),
    freeze: () => ({ seq: ++seq, values: Float64Array.from(Object.values(live)), table }),
    publish(frozen: Frozen) {
      shown = pairs(frozen.table, frozen.values);
    },
    restore(bytes, values) {
      live = pairs(bytes, values);
      table = bytes.slice();
    },
  };
}

/** A durable whose section is a text that tests set. */
interface NotedText extends Durable {
  text: string;
}

export function notedText(name: string, text = ''): NotedText {
  return {
    name,
    text,
    freeze() {
      return Buffer.from(this.text);
    },
    restore(section) {
      this.text = Buffer.from(section).toString();
    },
  };
}
