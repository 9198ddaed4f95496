import type { FamilyView, Kind, Labels, SeriesView } from '../../../core/model.ts';
import { createProtobufWriter, fieldsOf, type ProtobufWriter, packedOf } from '../../../core/protobuf.ts';
import { compareText } from '../../../core/registry/labels.ts';
import { type BatchFormat, jobOf, type Origin, startTimeOf } from '../protocol.ts';

/** A label name, label value or help text, encoded once and shared by all samples that have it. */
interface Text {
  readonly bytes: Buffer;
  /** The message whose symbol table contains it, and its index there. */
  owner: object | undefined;
  ref: number;
}

const textOf = (bytes: Buffer): Text => ({ bytes, owner: undefined, ref: 0 });

/** The values of `Metadata.MetricType`, which are the same in both versions. */
const metricTypes = { untyped: 0, counter: 1, gauge: 2, histogram: 3, summary: 5 } as const;

export interface RemoteSample {
  /** Alternating names and values, sorted by name, including `__name__`. */
  labels: readonly Text[];
  type: number;
  help: Text;
  value: number;
  /** Whether the series has ended; then `value` is ignored. */
  stale: boolean;
  timeMs: number;
  /** The start timestamp of a total; 0 if there is no start. */
  startMs: number;
}

/** Builds the message of a request. */
export interface MessageBuilder {
  readonly format: BatchFormat;
  /** The number of samples. */
  readonly points: number;
  readonly bytes: number;
  add(sample: RemoteSample): void;
  /** Returns the message, uncompressed, and starts a new one. */
  take(): Buffer;
}

function writeValue(writer: ProtobufWriter, sample: RemoteSample): void {
  if (sample.stale) writer.staleMarker(1);
  // A NaN could have the bits of the stale marker by accident.
  else writer.double(1, Number.isNaN(sample.value) ? Number.NaN : sample.value);
  writer.varint(2, sample.timeMs);
}

/** Builds a `prometheus.WriteRequest`: prometheus.io/docs/specs/prw/remote_write_spec/. It has no types and start timestamps. */
function createMessageV1(): MessageBuilder {
  const writer = createProtobufWriter();
  let points = 0;
  return {
    format: 'rw1',
    get points() {
      return points;
    },
    get bytes() {
      return writer.bytes;
    },
    add(sample) {
      points += 1;
      writer.open(1);
      for (let i = 0; i < sample.labels.length; i += 2) {
        writer.open(1);
        writer.chunk(1, sample.labels[i]!.bytes);
        writer.chunk(2, sample.labels[i + 1]!.bytes);
        writer.close();
      }
      writer.open(2);
      writeValue(writer, sample);
      writer.close();
      writer.close();
    },
    take() {
      points = 0;
      return writer.take();
    },
  };
}

/**
 * Builds an `io.prometheus.write.v2.Request`: prometheus.io/docs/specs/prw/remote_write_spec_2_0/ (2.0-rc.4, in which the start
 * timestamp is part of the sample). Each text is stored once.
 */
function createMessageV2(): MessageBuilder {
  const series = createProtobufWriter();
  const symbols = createProtobufWriter();
  let owner = {};
  let nextRef = 0;
  let points = 0;

  const begin = (): void => {
    owner = {};
    symbols.chunk(4, Buffer.alloc(0));
    nextRef = 1;
    points = 0;
  };
  const refOf = (text: Text): number => {
    if (text.owner !== owner) {
      text.owner = owner;
      text.ref = text.bytes.length === 0 ? 0 : nextRef++;
      if (text.ref > 0) symbols.chunk(4, text.bytes);
    }
    return text.ref;
  };
  const writeMetadata = ({ type, help }: RemoteSample): void => {
    const ref = refOf(help);
    if (type === 0 && ref === 0) return;
    series.open(5);
    if (type > 0) series.varint(1, type);
    if (ref > 0) series.varint(3, ref);
    series.close();
  };

  begin();
  return {
    format: 'rw2',
    get points() {
      return points;
    },
    get bytes() {
      return series.bytes + symbols.bytes;
    },
    add(sample) {
      points += 1;
      series.open(5);
      series.open(1);
      for (const text of sample.labels) series.packed(refOf(text));
      series.close();
      series.open(2);
      writeValue(series, sample);
      if (sample.startMs > 0) series.varint(3, sample.startMs);
      series.close();
      writeMetadata(sample);
      series.close();
    },
    take() {
      const message = Buffer.concat([symbols.take(), series.take()]);
      begin();
      return message;
    },
  };
}

export const createMessage = (format: BatchFormat): MessageBuilder =>
  format === 'rw1' ? createMessageV1() : createMessageV2();

const noText = textOf(Buffer.alloc(0));

function isStale(bits: Buffer): boolean {
  return bits.readUInt32LE(0) === 2 && bits.readUInt32LE(4) === 0x7ff0_0000;
}

function readSample(bytes: Buffer, sample: RemoteSample): void {
  for (const { field, value, bytes: bits } of fieldsOf(bytes)) {
    if (field === 1) {
      sample.stale = isStale(bits);
      sample.value = bits.readDoubleLE(0);
    } else if (field === 2) sample.timeMs = value;
    else if (field === 3) sample.startMs = value;
  }
}

const emptySample = (): RemoteSample => ({
  labels: [],
  type: 0,
  help: noText,
  value: 0,
  stale: false,
  timeMs: 0,
  startMs: 0,
});

function sampleOfV1(message: Buffer): RemoteSample {
  const sample = emptySample();
  const labels: Text[] = [];
  for (const { field, bytes } of fieldsOf(message)) {
    if (field === 1) for (const part of fieldsOf(bytes)) labels.push(textOf(part.bytes));
    else if (field === 2) readSample(bytes, sample);
  }
  return { ...sample, labels };
}

function sampleOfV2(message: Buffer, symbols: readonly Text[]): RemoteSample {
  const sample = emptySample();
  const text = (ref: number): Text => {
    const found = symbols[ref];
    if (!found) throw new RangeError('not a remote write request: a symbol is missing');
    return found;
  };
  for (const { field, bytes } of fieldsOf(message)) {
    if (field === 1) sample.labels = [...packedOf(bytes)].map(text);
    else if (field === 2) readSample(bytes, sample);
    else if (field === 5) {
      for (const { field: part, value } of fieldsOf(bytes)) {
        if (part === 1) sample.type = value;
        else if (part === 3) sample.help = text(value);
      }
    }
  }
  return sample;
}

/** Decodes a message, to split it or to encode it in another version. Throws `RangeError` if it is corrupt. */
export function samplesOf(format: BatchFormat, message: Buffer): RemoteSample[] {
  const fields = [...fieldsOf(message)];
  if (format === 'rw1')
    return fields.filter(({ field }) => field === 1).map(({ bytes }) => sampleOfV1(bytes));
  const symbols = fields.filter(({ field }) => field === 4).map(({ bytes }) => textOf(bytes));
  return fields.filter(({ field }) => field === 5).map(({ bytes }) => sampleOfV2(bytes, symbols));
}

/** Turns series into samples. `take` gets the same object in each call, and must not store it. */
interface Sampler {
  /**
   * Calls `take` with all samples of a series; if `numbers` is undefined, with stale markers. These are dated 1 ms before the
   * report, so that they never collide with a sample of a series that replaced the ended series.
   */
  each(
    family: FamilyView,
    series: SeriesView,
    numbers: Float64Array | undefined,
    take: (sample: RemoteSample) => void,
  ): void;
  /** Begins a report with this time. Cached texts that are no longer used are dropped from time to time. */
  begin(timeMs: number): void;
}

/** What is cached per series between reports. */
interface CachedLabels {
  /** The labels of samples without `le` or `quantile`, and the index of the metric name. */
  readonly plain: Text[];
  readonly plainName: number;
  /** The labels of samples with `le` or `quantile`, and the indexes of the metric name and of that label's value. */
  readonly bounded: Text[];
  readonly boundedName: number;
  readonly boundedValue: number;
  readonly bounds: readonly Text[];
  readonly kind: Kind;
  /** Whether the series has a sum, and a count. */
  readonly has: readonly [sum: boolean, count: boolean];
}

const spareTexts = 1000;

export function createSampler(origin: Origin): Sampler {
  const cache = createLabelReferences(origin);
  let reportMs = 0;
  const sample = emptySample();

  const distribution = (
    name: string,
    cached: CachedLabels,
    value: (part: number) => number,
    take: (sample: RemoteSample) => void,
  ): void => {
    const { bounded, plain, bounds, kind, has } = cached;
    const startMs = sample.startMs;
    bounded[cached.boundedName] = cache.text(kind === 'histogram' ? `${name}_bucket` : name);
    sample.labels = bounded;
    // Quantiles are gauges.
    if (kind === 'summary') sample.startMs = 0;
    for (let part = 0; part < bounds.length; part++) {
      bounded[cached.boundedValue] = bounds[part]!;
      sample.value = value(part);
      take(sample);
    }
    sample.labels = plain;
    sample.startMs = startMs;
    for (const [i, ending] of ['_sum', '_count'].entries()) {
      if (!has[i]) continue;
      plain[cached.plainName] = cache.text(name + ending);
      sample.value = value(bounds.length + i);
      take(sample);
    }
  };

  return {
    begin(timeMs) {
      reportMs = timeMs;
      cache.age();
    },
    each(family, series, numbers, take) {
      const { kind } = family;
      const cached = cache.labels(kind, series);
      const name = origin.prefix + family.name;
      const { at } = series;
      sample.stale = numbers === undefined;
      sample.timeMs = numbers ? reportMs : reportMs - 1;
      sample.type = metricTypes[kind];
      sample.help = cache.text(family.help);
      sample.startMs = numbers ? startTimeOf(origin, kind, series, sample.timeMs) : 0;
      const value = (part: number): number => (numbers ? numbers[at + part]! : 0);
      if (kind === 'histogram' || kind === 'summary') return distribution(name, cached, value, take);
      cached.plain[cached.plainName] = cache.text(name);
      sample.labels = cached.plain;
      sample.value = value(0);
      take(sample);
    },
  };
}

/** Encoded texts, and the labels of series, which are reused between reports. */
interface LabelReferences {
  text(value: string): Text;
  labels(kind: Kind, series: SeriesView): CachedLabels;
  /** Begins a report. The cache starts again when most texts may be out of use. */
  age(): void;
}

function createLabelReferences(origin: Origin): LabelReferences {
  let texts = new Map<string, Text>();
  let known = new WeakMap<SeriesView, CachedLabels>();
  let mostTexts = spareTexts;
  let isReset = true;

  const textFor = (value: string): Text => {
    let text = texts.get(value);
    if (!text) {
      text = textOf(Buffer.from(value));
      texts.set(value, text);
    }
    return text;
  };
  const sorted = (pairs: Labels): { labels: Text[]; place(name: string): number } => {
    const inOrder = [...pairs].sort(([a], [b]) => compareText(a, b));
    return {
      labels: inOrder.flatMap(([name, value]) => [textFor(name), textFor(value)]),
      place: (name) => inOrder.findIndex(([other]) => other === name) * 2 + 1,
    };
  };

  return {
    text: textFor,
    labels(kind, series) {
      const remembered = known.get(series);
      if (remembered?.kind === kind) return remembered;
      const pairs = pairsOf(series, origin);
      const extra = kind === 'histogram' ? 'le' : 'quantile';
      const plain = sorted(pairs);
      const bounded = sorted([...pairs, [extra, '']]);
      const bounds = kind === 'histogram' ? [...series.bounds, '+Inf'] : series.bounds;
      const cached: CachedLabels = {
        plain: plain.labels,
        plainName: plain.place('__name__'),
        bounded: bounded.labels,
        boundedName: bounded.place('__name__'),
        boundedValue: bounded.place(extra),
        bounds: bounds.map(textFor),
        kind,
        has: [series.hasSum, series.hasCount],
      };
      known.set(series, cached);
      return cached;
    },
    age() {
      if (isReset) mostTexts = texts.size * 2 + spareTexts;
      isReset = texts.size > mostTexts;
      if (!isReset) return;
      texts = new Map();
      known = new WeakMap();
    },
  };
}

/** The labels of a series with `job`, `instance` and an empty name. */
function pairsOf(series: SeriesView, origin: Origin): [string, string][] {
  const pairs = series.labels.map(([name, value]): [string, string] => [name, value]);
  const add = (name: string, value: string) => {
    if (value !== '' && !pairs.some(([taken]) => taken === name)) pairs.push([name, value]);
  };
  add('job', jobOf(series));
  add('instance', origin.instance);
  return [...pairs, ['__name__', '']];
}
