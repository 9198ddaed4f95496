/**
 * A strict reader of OpenMetrics 1.0 text, written from the specification's ABNF and its MUSTs, without knowledge of the code
 * under test. Timestamps, exemplars and units are not in its grammar: the agent sends none.
 */
interface ReadSample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

interface ReadFamily {
  name: string;
  type: string;
  help: string | undefined;
  samples: ReadSample[];
}

const metricName = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const descriptor = new RegExp(`^# (TYPE|HELP) (${metricName}) (.*)$`, 's');
const sampleStart = new RegExp(`^(${metricName})(\\{|(?= ))`);
const label = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^\n"\\]|\\["n\\])*)"(,(?=[a-zA-Z_])|(?=\}))/;
const escapedString = /^(?:[^\n"\\]|\\["n\\])*$/;
const number = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;

const sampleSuffixes: Record<string, readonly string[]> = {
  counter: ['_total', '_created'],
  gauge: [''],
  unknown: [''],
  histogram: ['_bucket', '_sum', '_count', '_created'],
  summary: ['', '_sum', '_count', '_created'],
};

function fail(what: string, line: string): never {
  throw new Error(`${what}: ${JSON.stringify(line)}`);
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/g, (_, char: string) => (char === 'n' ? '\n' : char));
}

function readNumber(text: string, line: string): number {
  if (number.test(text)) return Number(text);
  const special: Record<string, number> = { NaN: Number.NaN, '+Inf': Infinity, '-Inf': -Infinity };
  return special[text] ?? fail('not a number', line);
}

function readSample(line: string): ReadSample {
  const start = sampleStart.exec(line) ?? fail('not a sample', line);
  const labels: Record<string, string> = {};
  let rest = line.slice(start[0].length);
  if (start[2] === '{') {
    while (!rest.startsWith('}')) {
      const [whole, name, value] = label.exec(rest) ?? fail('not a label', rest);
      if (Object.hasOwn(labels, name!)) fail('label twice', line);
      labels[name!] = unescaped(value!);
      rest = rest.slice(whole.length);
    }
    rest = rest.slice(1);
  }
  if (!rest.startsWith(' ')) fail('no space before the value', line);
  return { name: start[1]!, labels, value: readNumber(rest.slice(1), line) };
}

function checkHistogram({ name, samples }: ReadFamily): void {
  const points = new Map<string, ReadSample[]>();
  for (const sample of samples) {
    const { le, ...others } = sample.labels;
    const key = JSON.stringify(Object.entries(others).sort());
    points.set(key, [...(points.get(key) ?? []), sample]);
  }
  for (const point of points.values()) {
    const buckets = point.filter((sample) => sample.name === `${name}_bucket`);
    const bounds = buckets.map(({ labels }) => (labels.le === '+Inf' ? Infinity : Number(labels.le)));
    if (bounds.at(-1) !== Infinity) fail('no +Inf bucket', name);
    if (bounds.some((bound, i) => i > 0 && !(bound > bounds[i - 1]!))) fail('buckets out of order', name);
    const counts = buckets.map(({ value }) => value);
    if (counts.some((count, i) => i > 0 && count < counts[i - 1]!)) fail('buckets not cumulative', name);
    const count = point.find((sample) => sample.name === `${name}_count`);
    if (count && count.value !== counts.at(-1)) fail('count is not the +Inf bucket', name);
  }
}

/** Reads a whole page. Throws on everything that the specification forbids. */
export function readOpenMetrics(text: string): ReadFamily[] {
  if (!text.endsWith('# EOF\n')) throw new Error('no # EOF at the end');
  const families = new Map<string, ReadFamily>();
  const seen = new Set<string>();
  let current: ReadFamily | undefined;
  for (const line of text.slice(0, -'# EOF\n'.length).split('\n').slice(0, -1)) {
    const described = descriptor.exec(line);
    if (described) {
      const [, keyword, name, rest] = described as unknown as [string, string, string, string];
      if (current?.name !== name) {
        if (families.has(name)) fail('family twice, or not in one piece', line);
        current = { name, type: 'unknown', help: undefined, samples: [] };
        families.set(name, current);
      }
      if (current.samples.length > 0) fail('metadata after samples', line);
      if (keyword === 'TYPE' && !Object.hasOwn(sampleSuffixes, rest)) fail('unknown type', line);
      if (keyword === 'TYPE') current.type = rest;
      else if (escapedString.test(rest)) current.help = unescaped(rest);
      else fail('bad escape in HELP', line);
      continue;
    }
    const sample = readSample(line);
    if (!current || !sampleSuffixes[current.type]!.some((suffix) => sample.name === current!.name + suffix)) {
      fail('sample of no family', line);
    }
    const identity = JSON.stringify([sample.name, Object.entries(sample.labels).sort()]);
    if (seen.has(identity)) fail('series twice', line);
    seen.add(identity);
    if (current.type === 'counter' && !(sample.value >= 0)) fail('counter not a non-negative number', line);
    current.samples.push(sample);
  }
  const all = [...families.values()];
  const claimed = new Set<string>();
  for (const family of all) {
    for (const name of new Set([family.name, ...sampleSuffixes[family.type]!.map((s) => family.name + s)])) {
      if (claimed.has(name)) fail('name may clash', name);
      claimed.add(name);
    }
    if (family.type === 'histogram') checkHistogram(family);
  }
  return all;
}
