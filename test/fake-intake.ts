import type { Counter, Gauge, Histogram, Intake, RawTags, Shape, Summary } from '../src/core/model.ts';
import type { Drops } from '../src/core/ports.ts';

/** Series by their name and tags, as `name{a="1",b="2"}`. The value of a histogram is the list of its observations. */
export interface FakeIntake extends Intake {
  readonly values: Map<string, number>;
  readonly observed: Map<string, number[]>;
  readonly shapes: Map<string, Shape | undefined>;
  /** The series with at least one owner. */
  owned(): string[];
}

/** Creates an intake that stores numbers in maps: no names are sanitized, nothing is refused. */
export function createFakeIntake(): FakeIntake {
  const values = new Map<string, number>();
  const observed = new Map<string, number[]>();
  const shapes = new Map<string, Shape | undefined>();
  const owners = new Map<string, number>();

  const open = (name: string, tags: RawTags, shape?: Shape) => {
    const pairs = Object.entries(tags).sort(([a], [b]) => (a < b ? -1 : 1));
    const text = pairs.map(([tag, value]) => `${tag}=${JSON.stringify(value)}`).join(',');
    const key = text === '' ? name : `${name}{${text}}`;
    shapes.set(name, shape);
    owners.set(key, (owners.get(key) ?? 0) + 1);
    const release = () => {
      owners.set(key, owners.get(key)! - 1);
      if (owners.get(key) === 0) values.delete(key);
    };
    return { key, release };
  };
  const number = (name: string, tags: RawTags, shape?: Shape): Counter & Gauge => {
    const { key, release } = open(name, tags, shape);
    values.set(key, values.get(key) ?? 0);
    return {
      add: (delta) => values.set(key, (values.get(key) ?? 0) + delta),
      set: (value) => values.set(key, value),
      release,
    };
  };
  return {
    values,
    observed,
    shapes,
    owned: () => [...owners].filter(([, count]) => count > 0).map(([key]) => key),
    counter: number,
    gauge: number,
    untyped: number,
    histogram(name, tags, shape): Histogram {
      const { key, release } = open(name, tags, shape);
      observed.set(key, observed.get(key) ?? []);
      return { observe: (value) => observed.get(key)!.push(value), set() {}, release };
    },
    summary(name, tags, shape): Summary {
      return { set() {}, release: open(name, tags, shape).release };
    },
  };
}

/** Counts drops as `component/reason`. */
export function createFakeDrops(): Drops & { readonly counts: Map<string, number> } {
  const counts = new Map<string, number>();
  return {
    counts,
    count(component, reason, n = 1) {
      const key = `${component}/${reason}`;
      counts.set(key, (counts.get(key) ?? 0) + n);
    },
  };
}
