import type { Form } from '../batch.ts';
import { createWriter, type Writer } from '../wire/protobuf.ts';
import type { Row, Word } from './row.ts';

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
