import { AgentError } from '../../../core/errors.ts';
import { headSums, headSumsInCommon } from './fingerprint.ts';
import { type LetGo, newTrackedFile, noBytes, type TrackedFile, type Tracker } from './tracked-file.ts';

/** Everything that the tailer needs after a restart. */
export interface Positions {
  /** Patterns that earlier scans looked at, from the root. */
  readonly patterns: readonly string[];
  readonly lastGeneration: number;
  readonly files: readonly TrackedFile[];
  readonly letGo: readonly LetGo[];
  /** Whether files that were let go are recorded; version 1 did not. */
  readonly hasLetGo: boolean;
}

const version = 3;

/*
 * Section `logs`, little-endian: version u32 · length u32 and JSON `{patterns, lastGeneration}` · count u32 · per tracked file
 * the length u32 of its record and the record · (from version 2 on) files that were let go: count of groups u32 · per group the
 * length u32 and the path as JSON · count u32 · per file a row of fixed length.
 *
 * Record of a tracked file: flags u8 · count of head sums u8 · length of tail u8 · 0 u8 · dev u64 · ino u64 · offset f64 ·
 * size f64 · mtime in ns i64 · generation f64 · lengths of path, home, real, rest, sinkState u32 each · head sums u32 each · tail ·
 * path · home · real · rest · sinkState · size as last looked up f64, which older sections lack. Paths are JSON strings,
 * which keep lone surrogates; `home` and `real` are left out where they equal `path`.
 *
 * Row: dev u64 · ino i64 · generation f64 · size f64 · mtime in ns i64 · offset f64 · tail sum u32 · tail length u8 · count of
 * head sums u8 · flags u16: a copy of the tracked file with that generation, given up, truncated · 24 head sums u32, in
 * version 2 twenty.
 */
const fixedBytes = 4 + 6 * 8 + 5 * 4;
const rowBytes = 6 * 8 + 8 + headSums * 4;
const rowBytesOfVersion2 = 6 * 8 + 8 + 20 * 4;
const flags = { compressed: 1, hasSinkState: 4, missing: 8, truncated: 16, blank: 32 } as const;

const rowFlags = { copy: 1, givenUp: 2, truncated: 4 } as const;

const pathBytes = (path: string, same: string) =>
  path === same ? noBytes : Buffer.from(JSON.stringify(path));

/**
 * The size of the generation, and that of the file as last looked up, which may be the next one's by then. A file of which
 * nothing is known that could identify it elsewhere is recorded as empty: after a restart its bytes are those of a new file,
 * wherever they are.
 */
function recordedSizes({ compressed, offset, restBytes, fingerprint, size, nowSize }: TrackedFile) {
  if (offset + restBytes === 0 && fingerprint.head.length === 0) return { size: 0, seen: 0 };
  return { size, seen: compressed ? size : Math.max(size, nowSize) };
}

/** The file's record, encoded anew only after it changed. */
export function recordOf(file: TrackedFile): Buffer {
  file.record ??= encodeRecord(file);
  return file.record;
}

function encodeRecord(file: TrackedFile): Buffer {
  const { fingerprint, rest } = file;
  const sinkState = file.sink ? file.sink.state() : file.sinkState;
  const parts = [
    pathBytes(file.path, ''),
    pathBytes(file.home, file.path),
    pathBytes(file.real, file.path),
    rest,
    sinkState ?? noBytes,
  ];
  const variable = parts.reduce(
    (sum, part) => sum + part.length,
    4 * fingerprint.head.length + fingerprint.tail.length,
  );
  const { size, seen } = recordedSizes(file);
  const bytes = Buffer.allocUnsafeSlow(fixedBytes + variable + 8);
  const isMissing = file.state === 'unlinked' || file.state === 'missing' ? flags.missing : 0;
  const isTruncated = file.state === 'missing' && file.lostBy === 'truncated' ? flags.truncated : 0;
  bytes[0] =
    (file.compressed ? flags.compressed : 0) |
    isMissing |
    isTruncated |
    (sinkState ? flags.hasSinkState : 0) |
    (file.isBlank ? flags.blank : 0);
  bytes[1] = fingerprint.head.length;
  bytes[2] = fingerprint.tail.length;
  bytes[3] = 0;
  let at = bytes.writeBigUInt64LE(file.dev, 4);
  at = bytes.writeBigUInt64LE(file.ino < 0n ? 0n : file.ino, at);
  at = bytes.writeDoubleLE(file.offset, at);
  at = bytes.writeDoubleLE(size, at);
  at = bytes.writeBigInt64LE(file.mtimeNs, at);
  at = bytes.writeDoubleLE(file.generation, at);
  for (const part of parts) at = bytes.writeUInt32LE(part.length, at);
  for (const sum of fingerprint.head) at = bytes.writeUInt32LE(sum, at);
  for (const part of [fingerprint.tail, ...parts]) {
    bytes.set(part, at);
    at += part.length;
  }
  bytes.writeDoubleLE(seen, at);
  return bytes;
}

/** Earlier versions took the sums of other lengths. */
const sharedSums = (head: readonly number[], written: number): readonly number[] =>
  written < 3 ? head.slice(0, headSumsInCommon) : head;

function decodeRecord(bytes: Buffer, written: number): TrackedFile {
  const [flag, headCount, tailLength] = [bytes.readUInt8(0), bytes.readUInt8(1), bytes.readUInt8(2)];
  const lengths = Array.from({ length: 5 }, (_, i) => bytes.readUInt32LE(52 + 4 * i));
  const head = Array.from({ length: headCount }, (_, i) => bytes.readUInt32LE(fixedBytes + 4 * i));
  let at = fixedBytes + 4 * headCount;
  const take = (length: number): Buffer => {
    if (at + length > bytes.length) throw new RangeError(`ends after ${bytes.length} bytes`);
    at += length;
    return Buffer.from(bytes.subarray(at - length, at));
  };
  const tail = take(tailLength);
  const [pathText, homeText, realText, rest, sinkState] = lengths.map(take) as [
    Buffer,
    Buffer,
    Buffer,
    Buffer,
    Buffer,
  ];
  const path = textOf(pathText, '');
  const names = { path, home: textOf(homeText, path), real: textOf(realText, path) };
  const size = bytes.readDoubleLE(28);
  const mtimeNs = bytes.readBigInt64LE(36);
  const stat = { dev: bytes.readBigUInt64LE(4), ino: bytes.readBigUInt64LE(12), size, mtimeNs };
  const file = newTrackedFile(names, stat, bytes.readDoubleLE(44), [], (flag & flags.compressed) !== 0);
  const offset = bytes.readDoubleLE(20);
  const sums = sharedSums(head, written);
  Object.assign(file, { offset, size, rest, restBytes: rest.length, fingerprint: { head: sums, tail } });
  if (at + 8 <= bytes.length) file.nowSize = bytes.readDoubleLE(at);
  file.state = names.real === names.home ? 'live' : 'rotated';
  file.isBlank = (flag & flags.blank) !== 0;
  if (flag & flags.missing) {
    // Its inode belongs to another file by now, or soon.
    file.state = 'missing';
    file.ino = BigInt(-file.generation);
    file.lostBy = flag & flags.truncated ? 'truncated' : 'vanished';
  }
  file.sinkState = flag & flags.hasSinkState ? sinkState : undefined;
  return file;
}

function textOf(json: Buffer, otherwise: string): string {
  if (json.length === 0) return otherwise;
  const text: unknown = JSON.parse(json.toString());
  if (typeof text !== 'string') throw new TypeError('a path is no string');
  return text;
}

function writeRow(bytes: Buffer, from: number, file: LetGo): number {
  let at = bytes.writeBigUInt64LE(file.dev, from);
  at = bytes.writeBigInt64LE(file.ino, at);
  at = bytes.writeDoubleLE(file.copyOf?.generation ?? file.generation, at);
  at = bytes.writeDoubleLE(file.size, at);
  at = bytes.writeBigInt64LE(file.mtimeNs, at);
  at = bytes.writeDoubleLE(file.offset, at);
  at = bytes.writeUInt32LE(file.tailSum, at);
  at = bytes.writeUInt8(file.tailLength, at);
  at = bytes.writeUInt8(file.head.length, at);
  const flag =
    (file.copyOf ? rowFlags.copy : 0) |
    (file.lostBy ? rowFlags.givenUp : 0) |
    (file.lostBy === 'truncated' ? rowFlags.truncated : 0);
  at = bytes.writeUInt16LE(flag, at);
  for (let i = 0; i < headSums; i++) at = bytes.writeUInt32LE(file.head[i] ?? 0, at);
  return at;
}

function readRow(row: Buffer, path: string, files: readonly TrackedFile[], written: number): LetGo {
  const headCount = row.readUInt8(53);
  if (headCount > headSums) throw new RangeError('too many sums');
  const generation = row.readDoubleLE(16);
  const flag = row.readUInt16LE(54);
  const isOriginal = (file: TrackedFile) => file.generation === generation && file.path === path;
  return {
    path,
    dev: row.readBigUInt64LE(0),
    ino: row.readBigInt64LE(8),
    generation,
    size: row.readDoubleLE(24),
    mtimeNs: row.readBigInt64LE(32),
    offset: row.readDoubleLE(40),
    tailSum: row.readUInt32LE(48),
    tailLength: row.readUInt8(52),
    head: sharedSums(
      Array.from({ length: headCount }, (_, i) => row.readUInt32LE(56 + 4 * i)),
      written,
    ),
    copyOf: flag & rowFlags.copy ? files.find(isOriginal) : undefined,
    lostBy: flag & rowFlags.givenUp ? (flag & rowFlags.truncated ? 'truncated' : 'vanished') : undefined,
    absences: 0,
  };
}

/** What was let go, encoded anew only after it changed. */
export function createLetGoEncoder(tracker: Pick<Tracker, 'letGoGroups' | 'letGoVersion'>): () => Buffer {
  let encoded: Buffer | undefined;
  let version = -1;
  return () => {
    if (encoded && version === tracker.letGoVersion) return encoded;
    version = tracker.letGoVersion;
    const groups = [...tracker.letGoGroups].map(([path, files]) => ({
      path: Buffer.from(JSON.stringify(path)),
      files,
    }));
    const length = groups.reduce((sum, { path, files }) => sum + 8 + path.length + rowBytes * files.size, 4);
    encoded = Buffer.allocUnsafeSlow(length);
    let at = encoded.writeUInt32LE(groups.length, 0);
    for (const { path, files } of groups) {
      at = encoded.writeUInt32LE(path.length, at);
      encoded.set(path, at);
      at = encoded.writeUInt32LE(files.size, at + path.length);
      for (const file of files) at = writeRow(encoded, at, file);
    }
    return encoded;
  };
}

export function encodePositions(
  { patterns, lastGeneration, files }: Pick<Positions, 'patterns' | 'lastGeneration' | 'files'>,
  letGo: Buffer,
): Uint8Array {
  const meta = Buffer.from(JSON.stringify({ patterns, lastGeneration }));
  const length = files.reduce(
    (sum, file) => sum + 4 + recordOf(file).length,
    12 + meta.length + letGo.length,
  );
  const bytes = Buffer.allocUnsafe(length);
  let at = bytes.writeUInt32LE(version, 0);
  at = bytes.writeUInt32LE(meta.length, at);
  bytes.set(meta, at);
  at = bytes.writeUInt32LE(files.length, at + meta.length);
  for (const file of files) {
    const record = recordOf(file);
    at = bytes.writeUInt32LE(record.length, at);
    bytes.set(record, at);
    at += record.length;
  }
  bytes.set(letGo, at);
  return bytes;
}

/** Encodes the positions of `files`; gives the bytes of the last call while nothing has changed. */
export function createPositionsEncoder(
  tracker: Tracker,
): (patterns: readonly string[], files: readonly TrackedFile[]) => Uint8Array {
  const encodeLetGo = createLetGoEncoder(tracker);
  let last: { bytes: Uint8Array; letGo: Buffer; patterns: number; records: readonly unknown[] } | undefined;
  return (patterns, files) => {
    const letGo = encodeLetGo();
    const isSame =
      last?.letGo === letGo &&
      last.patterns === patterns.length &&
      last.records.length === files.length &&
      files.every(({ record }, i) => record !== undefined && record === last?.records[i]);
    if (last && isSame) return last.bytes;
    const { lastGeneration } = tracker;
    const bytes = encodePositions({ patterns, lastGeneration, files }, letGo);
    last = { bytes, letGo, patterns: patterns.length, records: files.map(({ record }) => record) };
    return bytes;
  };
}

function unreadable(what: string, cause?: unknown): AgentError {
  return new AgentError('state_unreadable', { where: 'state section logs', what }, cause);
}

/** Throws `state_unreadable` on what it did not write. Reads versions 1 to 3. */
export function decodePositions(section: Uint8Array): Positions {
  const bytes = Buffer.from(section.buffer, section.byteOffset, section.byteLength);
  let at = 0;
  const take = (length: number) => {
    if (at + length > bytes.length) throw unreadable('cut off');
    at += length;
    return bytes.subarray(at - length, at);
  };
  const number = () => take(4).readUInt32LE(0);
  const written = number();
  if (written < 1 || written > version) throw unreadable('unknown version');
  const { patterns, lastGeneration } = metaOf(take(number()));
  try {
    const files: TrackedFile[] = [];
    for (let count = number(); count > 0; count--) files.push(decodeRecord(take(number()), written));
    const letGo: LetGo[] = [];
    const length = written === 2 ? rowBytesOfVersion2 : rowBytes;
    for (let groups = written === 1 ? 0 : number(); groups > 0; groups--) {
      const path = textOf(take(number()), '');
      for (let count = number(); count > 0; count--) letGo.push(readRow(take(length), path, files, written));
    }
    if (at !== bytes.length) throw unreadable('bytes after its end');
    return { patterns, lastGeneration, files, letGo, hasLetGo: written !== 1 };
  } catch (thrown) {
    if (thrown instanceof AgentError) throw thrown;
    throw unreadable('a file record cannot be read', thrown);
  }
}

function metaOf(json: Buffer): { patterns: string[]; lastGeneration: number } {
  try {
    const { patterns, lastGeneration } = JSON.parse(json.toString());
    if (Array.isArray(patterns) && Number.isSafeInteger(lastGeneration)) return { patterns, lastGeneration };
  } catch (thrown) {
    throw unreadable('broken head', thrown);
  }
  throw unreadable('broken head');
}
