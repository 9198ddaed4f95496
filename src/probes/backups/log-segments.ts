import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { errorText, systemCode } from '../../core/errors.ts';
import type { IntegrityLevel } from '../../core/reasons.ts';
import { checkBinaryLogStart, verifyBinaryLog } from './binary-log.ts';
import {
  compressionOf,
  createByteReader,
  decompress,
  NoDecompressor,
  type Pace,
  readThrottled,
} from './byte-stream.ts';
import { headOf } from './manifest.ts';
import { Truncated } from './pgdump.ts';
import { archivedName, type SegmentsToVerify } from './segments.ts';
import { checkWalStart, UnknownFormat, verifyWalSegment, type WalCarry } from './wal-segment.ts';

interface Reading extends Pace {
  /** The directory of the segments. */
  path: string;
  level: IntegrityLevel;
}

export interface VerifiedSegments {
  /** What is wrong with each segment that is damaged, by name. */
  damaged: Readonly<Record<string, string>>;
  /** Why a segment cannot be verified. */
  unverified?: string;
  /** What was verified, for people. */
  verified: string;
}

/**
 * Verifies archived segments of a log in their order. `header`: each begins as its format and its name say.
 * `checksum` and `full`: every record and event matches its checksum; `full` also those that begin in one segment
 * and end in the next. One that is gone meanwhile is passed over.
 */
export async function verifySegments(
  request: Reading,
  segments: SegmentsToVerify,
): Promise<VerifiedSegments> {
  const damaged: Record<string, string> = {};
  let unverified: string | undefined;
  let said = '';
  let carry: WalCarry | undefined;
  const isFull = request.level === 'full' && segments.log === 'wal';
  const names = isFull && segments.before ? [segments.before, ...segments.names] : segments.names;
  for (const name of names) {
    try {
      const verified = await verifySegment(request, segments, name, isFull ? carry : undefined);
      carry = verified.carry;
      said = verified.msg;
    } catch (thrown) {
      carry = undefined;
      const code = systemCode(thrown);
      if (code === 'ENOENT' || name === segments.before) continue;
      if (code !== undefined && /^E(?!RR_)[A-Z]+$/.test(code)) throw thrown;
      if (thrown instanceof UnknownFormat || thrown instanceof NoDecompressor) unverified ??= thrown.message;
      else damaged[name] = thrown instanceof Truncated ? 'it is cut off' : errorText(thrown);
    }
  }
  const verified = names.length === 1 ? said : `${names.length} segments, the last: ${said}`;
  return { damaged, unverified, verified };
}

/** Suffixes whose content Node or a program reads; of others nothing is known. */
const readableSuffix = /\.(gz|zst|xz|bz2|lz4)$/;
const anySuffix = /\.[a-z][a-z0-9]*$/;

async function verifySegment(
  { path, level, ...pace }: Reading,
  { log, newest }: SegmentsToVerify,
  name: string,
  carry: WalCarry | undefined,
): Promise<{ msg: string; carry?: WalCarry }> {
  const file = join(path, name);
  const compression = compressionOf(await headOf(file, 8));
  if (!compression && readableSuffix.test(name)) throw new Error('it does not begin as its suffix says');
  if (!compression && anySuffix.test(name)) throw new UnknownFormat('the format is not known');
  const source = readThrottled(file, pace);
  const sha1 = /-([0-9a-f]{40})(?:\.|$)/.exec(name)?.[1];
  const hash = sha1 === undefined || level === 'header' ? undefined : createHash('sha1');
  const plain = compression ? decompress(source, compression) : source;
  const bytes = createByteReader(
    hash
      ? (async function* () {
          for await (const chunk of plain) {
            hash.update(chunk);
            yield chunk;
          }
        })()
      : plain,
  );
  if (level === 'header') {
    const head = await bytes.take(log === 'wal' ? 40 : 4);
    if (log === 'wal') checkWalStart(head, archivedName(name));
    else checkBinaryLogStart(head);
    await plain.return(undefined);
    return { msg: 'begins as its name says' };
  }
  const verified =
    log === 'wal'
      ? {
          msg: 'every record matches its checksum',
          carry: await verifyWalSegment(bytes, archivedName(name), carry),
        }
      : { msg: await verifyBinaryLog(bytes, name === newest) };
  if (hash && hash.digest('hex') !== sha1) throw new Error('it does not match the checksum in its name');
  return verified;
}
