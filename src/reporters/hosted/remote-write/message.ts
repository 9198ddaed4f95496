import { fieldsOf, packedOf } from '../../../core/protobuf-fields.ts';
import type { Form } from '../protocol.ts';
import { createWriter, type Writer } from '../wire/protobuf.ts';

/** A label's name or value, or a help text, encoded once and shared by all rows that have it. */
export interface Word {
  readonly bytes: Buffer;
  /** The body whose table of symbols has it, and its place there. */
  owner: object | undefined;
  ref: number;
}

export const wordOf = (bytes: Buffer): Word => ({ bytes, owner: undefined, ref: 0 });

/** Values of `Metadata.MetricType`, the same in both versions. */
export const metricTypes = { untyped: 0, counter: 1, gauge: 2, histogram: 3, summary: 5 } as const;

/** One sample of one series, as remote write knows it. */
export interface Row {
  /** Names and values by turns, sorted by name, `__name__` among them. */
  labels: readonly Word[];
  type: number;
  help: Word;
  value: number;
  /** The series has ended; `value` does not count. */
  stale: boolean;
  timeMs: number;
  /** When its counter began; 0 for what is no counter. */
  startMs: number;
}

/** A request's message in the making. */
export interface Body {
  readonly form: Form;
  /** Rows in it. */
  readonly points: number;
  readonly bytes: number;
  add(row: Row): void;
  /** The message, not compressed; the body begins anew. */
  take(): Buffer;
}

function writeValue(writer: Writer, row: Row): void {
  if (row.stale) writer.staleMarker(1);
  // A NaN might be the stale marker by accident of its bits.
  else writer.double(1, Number.isNaN(row.value) ? Number.NaN : row.value);
  writer.varint(2, row.timeMs);
}

/** `prometheus.WriteRequest`: prometheus.io/docs/specs/prw/remote_write_spec/. It has no room for types and start times. */
export function createBody1(): Body {
  const writer = createWriter();
  let points = 0;
  return {
    form: 'rw1',
    get points() {
      return points;
    },
    get bytes() {
      return writer.bytes;
    },
    add(row) {
      points += 1;
      writer.open(1);
      for (let i = 0; i < row.labels.length; i += 2) {
        writer.open(1);
        writer.chunk(1, row.labels[i]!.bytes);
        writer.chunk(2, row.labels[i + 1]!.bytes);
        writer.close();
      }
      writer.open(2);
      writeValue(writer, row);
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
 * start time stands in the sample). Each text is in it once.
 */
export function createBody2(): Body {
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
  const refOf = (word: Word): number => {
    if (word.owner !== owner) {
      word.owner = owner;
      word.ref = word.bytes.length === 0 ? 0 : nextRef++;
      if (word.ref > 0) symbols.chunk(4, word.bytes);
    }
    return word.ref;
  };
  const writeMetadata = ({ type, help }: Row): void => {
    const ref = refOf(help);
    if (type === 0 && ref === 0) return;
    series.open(5);
    if (type > 0) series.varint(1, type);
    if (ref > 0) series.varint(3, ref);
    series.close();
  };

  begin();
  return {
    form: 'rw2',
    get points() {
      return points;
    },
    get bytes() {
      return series.bytes + symbols.bytes;
    },
    add(row) {
      points += 1;
      series.open(5);
      series.open(1);
      for (const word of row.labels) series.packed(refOf(word));
      series.close();
      series.open(2);
      writeValue(series, row);
      if (row.startMs > 0) series.varint(3, row.startMs);
      series.close();
      writeMetadata(row);
      series.close();
    },
    take() {
      const message = Buffer.concat([symbols.take(), series.take()]);
      begin();
      return message;
    },
  };
}

export const createBody = (form: Form): Body => (form === 'rw1' ? createBody1() : createBody2());

const noWord = wordOf(Buffer.alloc(0));

function isStale(bits: Buffer): boolean {
  return bits.readUInt32LE(0) === 2 && bits.readUInt32LE(4) === 0x7ff0_0000;
}

function readSample(bytes: Buffer, row: Row): void {
  for (const { field, value, bytes: bits } of fieldsOf(bytes)) {
    if (field === 1) {
      row.stale = isStale(bits);
      row.value = bits.readDoubleLE(0);
    } else if (field === 2) row.timeMs = value;
    else if (field === 3) row.startMs = value;
  }
}

const emptyRow = (): Row => ({
  labels: [],
  type: 0,
  help: noWord,
  value: 0,
  stale: false,
  timeMs: 0,
  startMs: 0,
});

function row1(message: Buffer): Row {
  const row = emptyRow();
  const labels: Word[] = [];
  for (const { field, bytes } of fieldsOf(message)) {
    if (field === 1) for (const part of fieldsOf(bytes)) labels.push(wordOf(part.bytes));
    else if (field === 2) readSample(bytes, row);
  }
  return { ...row, labels };
}

function row2(message: Buffer, symbols: readonly Word[]): Row {
  const row = emptyRow();
  const word = (ref: number): Word => {
    const found = symbols[ref];
    if (!found) throw new RangeError('a symbol is missing');
    return found;
  };
  for (const { field, bytes } of fieldsOf(message)) {
    if (field === 1) row.labels = [...packedOf(bytes)].map(word);
    else if (field === 2) readSample(bytes, row);
    else if (field === 5) {
      for (const { field: part, value } of fieldsOf(bytes)) {
        if (part === 1) row.type = value;
        else if (part === 3) row.help = word(value);
      }
    }
  }
  return row;
}

/** What a body of ours says, to say it in other words. Throws `RangeError` on bytes that are none. */
export function rowsOf(form: Form, message: Buffer): Row[] {
  const fields = [...fieldsOf(message)];
  if (form === 'rw1') return fields.filter(({ field }) => field === 1).map(({ bytes }) => row1(bytes));
  const symbols = fields.filter(({ field }) => field === 4).map(({ bytes }) => wordOf(bytes));
  return fields.filter(({ field }) => field === 5).map(({ bytes }) => row2(bytes, symbols));
}
