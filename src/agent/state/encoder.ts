import { crc32 } from 'node:zlib';
import { AgentError } from '../../core/errors.ts';
import {
  bytesOf,
  type Content,
  checksumBytes,
  magic,
  maxSnapshotBytes,
  numbersBytes,
  sameBytes,
  sectionHeadBytes,
  snapshotVersion,
  tableAt,
} from './snapshot.ts';

export interface Encoder {
  /**
   * The content as a snapshot, in a buffer that the next call writes over; a table that is the same array as
   * last time is neither copied nor summed again. Throws `internal` if it would be over `maxSnapshotBytes`.
   */
  encode(content: Content, sequence: number): Uint8Array;
  /** Whether the last snapshot encoded has this very content, whatever its sequence. */
  holds(content: Content): boolean;
}

interface Placed {
  readonly name: Buffer;
  readonly at: number;
  readonly bytes: Uint8Array;
}

interface Layout {
  readonly valuesAt: number;
  readonly sections: readonly Placed[];
  readonly endAt: number;
}

function layoutOf({ table, values, sections }: Content): Layout {
  const valuesAt = tableAt + table.length + numbersBytes;
  let at = valuesAt + values.byteLength;
  const placed: Placed[] = [];
  for (const [key, bytes] of sections) {
    const name = Buffer.from(key, 'utf8');
    placed.push({ name, at, bytes });
    at += sectionHeadBytes + name.length + bytes.length;
  }
  return { valuesAt, sections: placed, endAt: at };
}

function tooLarge(got: number): AgentError {
  const fault = {
    where: 'state snapshot',
    what: 'too large',
    got,
    allowed: `at most ${maxSnapshotBytes} bytes`,
  };
  return new AgentError('internal', fault);
}

function writeSection(buffer: Buffer, { name, at, bytes }: Placed): void {
  buffer.writeUInt32LE(name.length, at);
  buffer.writeUInt32LE(bytes.length, at + 4);
  buffer.set(name, at + sectionHeadBytes);
  buffer.set(bytes, at + sectionHeadBytes + name.length);
}

function sameSection(buffer: Buffer, { name, at, bytes }: Placed): boolean {
  const bytesAt = at + sectionHeadBytes + name.length;
  return (
    buffer.readUInt32LE(at) === name.length &&
    buffer.readUInt32LE(at + 4) === bytes.length &&
    sameBytes(buffer, at + sectionHeadBytes, name) &&
    sameBytes(buffer, bytesAt, bytes)
  );
}

export function createEncoder(): Encoder {
  let buffer = Buffer.alloc(0);
  let usedBytes = 0;
  let table: Uint8Array | undefined;
  let tableCrc = 0;

  const reserve = (wantedBytes: number): void => {
    if (wantedBytes <= buffer.length && wantedBytes * 4 > buffer.length) return;
    buffer = Buffer.allocUnsafeSlow(Math.ceil(wantedBytes * 1.25));
    table = undefined;
  };
  const writeTable = (next: Uint8Array): void => {
    if (table === next) return;
    buffer.set(magic);
    buffer.writeUInt32LE(snapshotVersion, magic.length);
    buffer.writeUInt32LE(next.length, magic.length + 4);
    buffer.set(next, tableAt);
    tableCrc = crc32(buffer.subarray(0, tableAt + next.length));
    table = next;
  };

  return {
    encode(content, sequence) {
      const { valuesAt, sections, endAt } = layoutOf(content);
      usedBytes = endAt + checksumBytes;
      if (usedBytes > maxSnapshotBytes) throw tooLarge(usedBytes);
      reserve(usedBytes);
      writeTable(content.table);
      const numbersAt = valuesAt - numbersBytes;
      buffer.writeDoubleLE(sequence, numbersAt);
      buffer.writeUInt32LE(content.values.length, numbersAt + 8);
      buffer.writeUInt32LE(sections.length, numbersAt + 12);
      buffer.set(bytesOf(content.values), valuesAt);
      for (const section of sections) writeSection(buffer, section);
      buffer.writeUInt32LE(crc32(buffer.subarray(numbersAt, endAt), tableCrc), endAt);
      return buffer.subarray(0, usedBytes);
    },
    holds(content) {
      const { valuesAt, sections, endAt } = layoutOf(content);
      return (
        table === content.table &&
        usedBytes === endAt + checksumBytes &&
        buffer.readUInt32LE(valuesAt - 8) === content.values.length &&
        sameBytes(buffer, valuesAt, bytesOf(content.values)) &&
        sections.every((section) => sameSection(buffer, section))
      );
    },
  };
}
