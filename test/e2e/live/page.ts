/** A number that stays the same or rises by itself. */
export interface Meter {
  set(value: number): void;
  /** From now on the number rises by this much per second. */
  rise(perSecond: number): void;
}

/** A histogram of calls. */
export interface Timings {
  /** From now on there are this many calls per second, each of `seconds`. */
  flow(perSecond: number, seconds: number): void;
}

type Labels = Readonly<Record<string, string>>;

/** A metrics page whose numbers the test controls; they change with the clock, whoever reads them. */
export interface Page {
  counter(name: string, labels?: Labels, perSecond?: number): Meter;
  gauge(name: string, labels?: Labels, value?: number): Meter;
  histogram(name: string, labels: Labels, perSecond: number, seconds: number): Timings;
  /** Hides a family, or shows it again. */
  show(name: string, isShown: boolean): void;
  text(): string;
}

interface Reading extends Meter {
  read(): number;
}

function createMeter(start = 0): Reading {
  let base = start;
  let rate = 0;
  let sinceMs = performance.now();
  const read = () => base + (rate * (performance.now() - sinceMs)) / 1000;
  const from = (value: number, perSecond: number) => {
    base = value;
    rate = perSecond;
    sinceMs = performance.now();
  };
  return { read, set: (value) => from(value, 0), rise: (perSecond) => from(read(), perSecond) };
}

interface Family {
  kind: 'counter' | 'gauge' | 'histogram';
  isShown: boolean;
  lines: (() => string)[];
}

const bounds = [0.1, 0.5, 1, 5, 10] as const;
const labelled = (name: string, labels: Labels) =>
  `${name}{${Object.entries(labels).map(([label, value]) => `${label}="${value}"`)}}`;

export function createPage(): Page {
  const families = new Map<string, Family>();
  const familyOf = (name: string, kind: Family['kind']): Family => {
    const family = families.get(name) ?? { kind, isShown: true, lines: [] };
    families.set(name, family);
    return family;
  };
  const single = (kind: 'counter' | 'gauge', name: string, labels: Labels, start: number): Reading => {
    const meter = createMeter(start);
    familyOf(name, kind).lines.push(() => `${labelled(name, labels)} ${meter.read()}`);
    return meter;
  };
  return {
    counter(name, labels = {}, perSecond = 0) {
      const meter = single('counter', name, labels, 1);
      meter.rise(perSecond);
      return meter;
    },
    gauge: (name, labels = {}, value = 0) => single('gauge', name, labels, value),
    histogram(name, labels, perSecond, seconds) {
      const buckets = [...bounds, Number.POSITIVE_INFINITY].map((bound) => ({ bound, meter: createMeter() }));
      const sum = createMeter();
      const le = (bound: number) => (bound === Number.POSITIVE_INFINITY ? '+Inf' : String(bound));
      const { lines } = familyOf(name, 'histogram');
      for (const { bound, meter } of buckets)
        lines.push(() => `${labelled(`${name}_bucket`, { ...labels, le: le(bound) })} ${meter.read()}`);
      lines.push(() => `${labelled(`${name}_sum`, labels)} ${sum.read()}`);
      lines.push(() => `${labelled(`${name}_count`, labels)} ${buckets.at(-1)!.meter.read()}`);
      const flow: Timings['flow'] = (calls, each) => {
        for (const { bound, meter } of buckets) meter.rise(each <= bound ? calls : 0);
        sum.rise(calls * each);
      };
      flow(perSecond, seconds);
      return { flow };
    },
    show(name, isShown) {
      families.get(name)!.isShown = isShown;
    },
    text: () =>
      [...families]
        .filter(([, { isShown }]) => isShown)
        .map(
          ([name, { kind, lines }]) =>
            `# TYPE ${name} ${kind}\n${lines.map((line) => `${line()}\n`).join('')}`,
        )
        .join(''),
  };
}
