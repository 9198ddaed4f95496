import { fieldsOf, packedOf } from '../../../core/protobuf-fields.ts';
import type { BatchFormat } from '../protocol.ts';
import { createWriter, type Writer } from '../wire/protobuf.ts';

/** A label name, label value or help text, encoded once and shared by all samples that have it. */
export interface Text {
  readonly bytes: Buffer;
  /** The message whose symbol table contains it, and its index there. */
  owner: object | undefined;
  ref: number;
}

export const textOf = (bytes: Buffer): Text => ({ bytes, owner: undefined, ref: 0 });

/** Values of `Metadata.MetricType`, which are the same in both versions. */
export const metricTypes = { untyped: 0, counter: 1, gauge: 2, histogram: 3, summary: 5 } as const;

/** One sample of one series. */
export interface Sample {
  /** Alternating names and values, sorted by name, including `__name__`. */
  labels: readonly Text[];
  type: number;
  help: Text;
  value: number;
  /** The series has ended; `value` is ignored. */
  stale: boolean;
  timeMs: number;
  /** Start timestamp of a total; 0 for none. */
  startMs: number;
}

/** Builds the message of a request. */
export interface MessageBuilder {
  readonly format: BatchFormat;
  /** Number of samples. */
  readonly points: number;
  readonly bytes: number;
  add(sample: Sample): void;
  /** Returns the message, uncompressed, and starts a new one. */
  take(): Buffer;
}

function writeValue(writer: Writer, sample: Sample): void {
  if (sample.stale) writer.staleMarker(1);
  // A NaN could have the bits of the stale marker by accident.
  else writer.double(1, Number.isNaN(sample.value) ? Number.NaN : sample.value);
  writer.varint(2, sample.timeMs);
}

/** `prometheus.WriteRequest`: prometheus.io/docs/specs/prw/remote_write_spec/. It has no types and start timestamps. */
export function createMessageV1(): MessageBuilder {
  const writer = createWriter();
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
 * `io.prometheus.write.v2.Request`: prometheus.io/docs/specs/prw/remote_write_spec_2_0/ (2.0-rc.4, where the
 * start timestamp is part of the sample). Each text is stored once.
 */
export function createMessageV2(): MessageBuilder {
  const series = createWriter();
  const symbols = createWriter();
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
  const writeMetadata = ({ type, help }: Sample): void => {
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

function readSample(bytes: Buffer, sample: Sample): void {
  for (const { field, value, bytes: bits } of fieldsOf(bytes)) {
    if (field === 1) {
      sample.stale = isStale(bits);
      sample.value = bits.readDoubleLE(0);
    } else if (field === 2) sample.timeMs = value;
    else if (field === 3) sample.startMs = value;
  }
}

const emptySample = (): Sample => ({
  labels: [],
  type: 0,
  help: noText,
  value: 0,
  stale: false,
  timeMs: 0,
  startMs: 0,
});

function sampleOfV1(message: Buffer): Sample {
  const sample = emptySample();
  const labels: Text[] = [];
  for (const { field, bytes } of fieldsOf(message)) {
    if (field === 1) for (const part of fieldsOf(bytes)) labels.push(textOf(part.bytes));
    else if (field === 2) readSample(bytes, sample);
  }
  return { ...sample, labels };
}

function sampleOfV2(message: Buffer, symbols: readonly Text[]): Sample {
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
export function samplesOf(format: BatchFormat, message: Buffer): Sample[] {
  const fields = [...fieldsOf(message)];
  if (format === 'rw1')
    return fields.filter(({ field }) => field === 1).map(({ bytes }) => sampleOfV1(bytes));
  const symbols = fields.filter(({ field }) => field === 4).map(({ bytes }) => textOf(bytes));
  return fields.filter(({ field }) => field === 5).map(({ bytes }) => sampleOfV2(bytes, symbols));
}
