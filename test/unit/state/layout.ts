/** CRC-32 bit by bit (ISO 3309, polynomial 0xEDB88320), independent of the code under test. */
export function crcOf(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return (crc ^ 0xffffffff) >>> 0;
}

const u32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};
const f64 = (value: number) => {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return bytes;
};

export interface Parts {
  magic?: string;
  version?: number;
  table?: string;
  sequence?: number;
  values?: readonly number[];
  sections?: readonly (readonly [string, string])[];
}

/** A snapshot composed by hand, for a little-endian machine, without its checksum. */
export function bodyOf(parts: Parts): Buffer {
  const { magic = 'svcstatL', version = 1, table = '', sequence = 1, values = [], sections = [] } = parts;
  return Buffer.concat([
    Buffer.from(magic),
    u32(version),
    u32(Buffer.byteLength(table)),
    Buffer.from(table),
    f64(sequence),
    u32(values.length),
    u32(sections.length),
    ...values.map(f64),
    ...sections.flatMap(([name, text]) => [
      u32(Buffer.byteLength(name)),
      u32(Buffer.byteLength(text)),
      Buffer.from(name),
      Buffer.from(text),
    ]),
  ]);
}

export const sealed = (body: Uint8Array) => Buffer.concat([body, u32(crcOf(body))]);

export const snapshotOf = (parts: Parts) => sealed(bodyOf(parts));
