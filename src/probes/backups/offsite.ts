import { opendir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ReadSecret } from '../../core/access.ts';
import type { Clock, Tracing } from '../../core/ports.ts';
import { objectStoreAddress as endpointFormat } from '../../core/text-formats.ts';
import { createTrace } from '../connection.ts';
import type { StoredObject } from '../object-store/answers.ts';
import {
  type Bucket,
  createBucket,
  createCredentialSource,
  objectStoreFailure,
} from '../object-store/object-store.ts';
import { ProbeError } from '../probe.ts';
import { type Artifact, type Evidence, unlessMissing, unreadable } from './evidence.ts';
import { measure, statOf, timeOfName } from './files.ts';
import type { ObjectStoreOptions } from './source-blocks.ts';

export interface OffsiteStanding {
  /** End of the newest backup that has a copy, ms since the epoch. */
  newestMs?: number;
  /** Snapshots on the node that have a copy. */
  copied?: readonly string[];
  /** Backups without a copy of the same size although the time for it is over. */
  missing: readonly string[];
  /** Why the off-site place cannot be read. The local backups are assessed nevertheless. */
  unreadable?: string;
  /** The device of the file system with the directory in which copies were last found. */
  device?: number;
  /** For a log: the last segment up to which every segment had a copy. */
  copiedTo?: string;
}

/** What may have a copy: a backup, or a segment of a log. */
export type Copied = Pick<Artifact, 'id' | 'endMs' | 'sizeBytes'> & {
  /** MD5 of the content, hexadecimal, if it was verified. */
  md5?: string;
};

/** A copy as the off-site place describes it. */
interface Copy {
  sizeBytes: number;
  /** MD5 of a file, if the place states it. */
  md5?: string;
}

const isCopyOf = ({ sizeBytes, md5 }: Copied, copy: Copy | undefined): boolean =>
  copy !== undefined &&
  copy.sizeBytes === sizeBytes &&
  (md5 === undefined || copy.md5 === undefined || md5 === copy.md5);

/** The copies in the off-site place. */
export interface Copies {
  /** Finds a copy; the size of a directory is the sum of all files below it. Undefined if there is none. */
  find(id: string): Promise<Copy | undefined>;
  /** Finds copies that are files, by their ids. */
  findAll(ids: readonly string[]): Promise<ReadonlyMap<string, Copy>>;
}

interface OffsiteComparison {
  maxLagMs: number;
  nowMs: number;
  snapshots?: readonly string[];
  /** Whether the backups are segments of a log, in which no segment may be missing between two others. */
  isLog?: boolean;
  /** The segment up to which all were copied, from the previous comparison. */
  copiedTo?: string;
}

/**
 * How many of the newest backups must have a copy, and how many older ones are searched for a copy that shows that copying had
 * begun.
 */
const newestInQuestion = 3;
const looksBack = 7;
/** How many segments one comparison looks up; the next comparison continues there. */
const mostSegments = 5_000;

type HasCopy = (backup: Copied) => Promise<boolean>;

/**
 * Which backups, ordered from the oldest, have reached the off-site place. A copy has the backup's name, its size and, if the
 * place states one, its checksum; a backup may take `maxLagMs` after its end to get there. Each segment of a log is looked up
 * once; of other backups, only a few of the newest are looked up.
 */
export async function compareOffsite(
  backups: readonly Copied[],
  copies: Copies,
  { maxLagMs, nowMs, snapshots = [], isLog = false, copiedTo }: OffsiteComparison,
): Promise<OffsiteStanding> {
  const known = new Map<string, boolean>();
  const hasCopy: HasCopy = async (backup) => {
    const has = known.get(backup.id) ?? isCopyOf(backup, await copies.find(backup.id));
    known.set(backup.id, has);
    return has;
  };
  const newest = await newestWith(backups, hasCopy);
  const due = backups.filter(({ endMs }) => nowMs - endMs > maxLagMs);
  const continued = isLog ? await missingAfter(due, copiedTo, copies, hasCopy) : undefined;
  const { missing, ...rest } = continued ?? (await missingOfNewest(due, newest, hasCopy));
  const copied: string[] = [];
  for (const backup of backups)
    if (snapshots.includes(backup.id) && (await hasCopy(backup))) copied.push(backup.id);
  return { newestMs: newest?.endMs, copied, missing: missing.map(({ id }) => id), ...(isLog && rest) };
}

interface Missing {
  missing: readonly Copied[];
  copiedTo: string | undefined;
}

/**
 * The missing segments after the segment up to which all were copied; undefined if that segment is not known, or its copy is
 * gone.
 */
async function missingAfter(
  due: readonly Copied[],
  copiedTo: string | undefined,
  copies: Copies,
  hasCopy: HasCopy,
): Promise<Missing | undefined> {
  const last = due.findLastIndex(({ id }) => id === copiedTo);
  if (last < 0 || !(await hasCopy(due[last]!))) return undefined;
  const inQuestion = due.slice(last + 1, last + 1 + mostSegments);
  const there = await copies.findAll(inQuestion.map(({ id }) => id));
  const missing = inQuestion.filter((segment) => !isCopyOf(segment, there.get(segment.id)));
  const whole = missing.length === 0 ? inQuestion : inQuestion.slice(0, inQuestion.indexOf(missing[0]!));
  return { missing, copiedTo: whole.at(-1)?.id ?? copiedTo };
}

async function missingOfNewest(
  due: readonly Copied[],
  newest: Copied | undefined,
  hasCopy: HasCopy,
): Promise<Missing> {
  const inQuestion = due.slice(-newestInQuestion);
  const without: Copied[] = [];
  for (const backup of inQuestion) if (!(await hasCopy(backup))) without.push(backup);
  // Older copies may have been removed by the place's own retention. From the first copy on, no copy may be missing.
  const isLater = newest !== undefined && newest.endMs >= (inQuestion[0]?.endMs ?? 0);
  const isBegun = isLater && without.includes(inQuestion[0]!) && !(await isAny(olderOf(due), hasCopy));
  const first = isBegun ? inQuestion.findIndex((backup) => !without.includes(backup)) : 0;
  const missing = first < 0 ? [] : without.filter((backup) => inQuestion.indexOf(backup) >= first);
  return { missing, copiedTo: missing.length === 0 && first >= 0 ? due.at(-1)?.id : undefined };
}

const olderOf = (due: readonly Copied[]) =>
  due.slice(-newestInQuestion - looksBack, -newestInQuestion).toReversed();

async function isAny<T>(all: readonly T[], is: (one: T) => Promise<boolean>): Promise<boolean> {
  for (const one of all) if (await is(one)) return true;
  return false;
}

/** The newest backup with a copy. Backups are copied in their order, so this is a binary search. */
async function newestWith(backups: readonly Copied[], hasCopy: HasCopy): Promise<Copied | undefined> {
  const last = backups.at(-1);
  if (last && (await hasCopy(last))) return last;
  let [low, high] = [0, backups.length - 1];
  let found: Copied | undefined;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (await hasCopy(backups[middle]!)) {
      found = backups[middle];
      low = middle + 1;
    } else high = middle;
  }
  return found;
}

/**
 * Copies in a second directory: a mounted share, or another disk. Throws `evidence_unreadable`, even for a directory that does
 * not exist, because it may be on a share that is not mounted.
 */
export function copiesInDirectory(directory: string): Copies & { isEmpty(): Promise<boolean> } {
  return {
    async find(id) {
      const stats = await statOf(join(directory, id));
      if (!stats?.isDirectory()) return stats && { sizeBytes: stats.size };
      return { sizeBytes: (await measure(join(directory, id))).sizeBytes };
    },
    async findAll(ids) {
      const found = new Map<string, Copy>();
      for (const id of ids) {
        const stats = await statOf(join(directory, id));
        if (stats) found.set(id, { sizeBytes: stats.size });
      }
      return found;
    },
    async isEmpty() {
      const opened = await unlessMissing(directory, opendir(directory));
      if (opened === undefined)
        throw unreadable(`${directory} does not exist; mount its file system, or create it`);
      const entry = await opened.read();
      await opened.close();
      return entry === null;
    },
  };
}

/**
 * Calls `use` with the copies in a bucket: the objects whose names begin with the name of the backup. Throws
 * `evidence_unreadable` if they cannot be listed.
 */
export async function withCopiesInBucket<T>(
  options: ObjectStoreOptions,
  deps: EvidenceDeps,
  use: (copies: Copies) => Promise<T>,
): Promise<T> {
  return withBucket(options, deps, (list) =>
    use({
      async find(id) {
        const objects = (await list({ begin: id })).filter(
          ({ key }) => key === id || key.startsWith(`${id}/`),
        );
        const [only] = objects;
        if (only === undefined) return undefined;
        const sizeBytes = objects.reduce((total, object) => total + object.sizeBytes, 0);
        return only.key === id ? { sizeBytes, md5: only.md5 } : { sizeBytes };
      },
      async findAll(ids) {
        const found = new Map<string, Copy>();
        const sorted = [...ids].sort();
        const [first, last] = [sorted[0], sorted.at(-1)];
        if (first === undefined || last === undefined) return found;
        // A list begins after the key that it names, so the key here is one character shorter.
        for (const { key, sizeBytes, md5 } of await list({ after: first.slice(0, -1), to: last }))
          found.set(key, { sizeBytes, md5 });
        return found;
      },
    }),
  );
}

/**
 * Objects of a bucket as backups whose content is not read. Their times are those of the upload, unless the name has a group
 * `time`, and nothing is known about their integrity.
 */
export function evidenceOfObjects(objects: readonly StoredObject[], pattern: string): Evidence {
  const matches = new RegExp(pattern, 'u');
  const artifacts = objects.flatMap(({ key, sizeBytes, lastModifiedMs }): Artifact[] => {
    const match = matches.exec(key);
    if (!match || (key.endsWith('/') && sizeBytes === 0)) return [];
    const startMs = Math.min(timeOfName(match.groups?.time) ?? lastModifiedMs, lastModifiedMs);
    const fingerprint = `${sizeBytes}:${lastModifiedMs}`;
    return [
      {
        id: key,
        startMs,
        endMs: lastModifiedMs,
        sizeBytes,
        fingerprint,
        method: 'other',
        verified: 'unknown',
      },
    ];
  });
  artifacts.sort((one, other) => one.startMs - other.startMs);
  return { artifacts, unfinished: [], failures: [] };
}

export interface EvidenceDeps {
  readSecret: ReadSecret;
  clock: Clock;
  signal: AbortSignal;
  tracing?: Tracing;
}

/** The maximum number of pages with 1000 objects each. More are an error: a part of them would be misleading. */
const mostPages = 50;

/**
 * All objects below the prefix. Throws ProbeError `evidence_unreadable` if they cannot be listed, or if there are more than
 * 50,000.
 */
export const listObjects = (options: ObjectStoreOptions, deps: EvidenceDeps): Promise<StoredObject[]> =>
  withBucket(options, deps, (list) => list({}));

/** A range of names, without the prefix of the configuration. */
interface ListedRange {
  /** Only names with this prefix are listed. */
  begin?: string;
  /** Only names after this one are listed. */
  after?: string;
  /** The last name that is needed. */
  to?: string;
}

async function withBucket<T>(
  options: ObjectStoreOptions,
  deps: EvidenceDeps,
  use: (list: (range: ListedRange) => Promise<StoredObject[]>) => Promise<T>,
): Promise<T> {
  const { region, bucket: name } = options;
  const { clock, signal, tracing } = deps;
  const place = endpointFormat.read(options.endpoint ?? `https://s3.${region}.amazonaws.com`);
  if (!place) throw unreadable(`${options.endpoint}: ${endpointFormat.fault}`);
  try {
    const credentials = await credentialsOf(options, deps);
    const trace = createTrace(clock);
    const bucket = createBucket(
      { endpoint: place, region, bucket: name, credentials },
      { clock, trace, signal, tracing },
    );
    try {
      return await use((range) => listBelow(bucket, options, range));
    } finally {
      await bucket.close();
    }
  } catch (thrown) {
    if (thrown instanceof ProbeError && thrown.reason === 'evidence_unreadable') throw thrown;
    const { message } = objectStoreFailure(thrown);
    throw unreadable(`bucket ${name}: ${message}`, thrown);
  }
}

async function listBelow(
  bucket: Bucket,
  { bucket: name, prefix }: ObjectStoreOptions,
  { begin = '', after, to }: ListedRange,
): Promise<StoredObject[]> {
  const objects: StoredObject[] = [];
  const startAfter = after && prefix + after;
  const isPast = ({ key }: StoredObject) => to !== undefined && key > prefix + to;
  let continuation: string | undefined;
  for (let page = 0; page === 0 || continuation !== undefined; page++) {
    if (page === mostPages)
      throw unreadable(`bucket ${name}: more than ${mostPages * 1000} objects below ${prefix}${begin}`);
    const listed = await bucket.list({ prefix: prefix + begin, startAfter, continuation });
    objects.push(...listed.objects);
    continuation = listed.objects.some(isPast) ? undefined : listed.continuation;
  }
  return objects.map((object) => ({ ...object, key: object.key.slice(prefix.length) }));
}

/** The keys of the configuration, or else those of the SDK's provider chain. */
async function credentialsOf(
  { accessKey, secretKey, region }: ObjectStoreOptions,
  { readSecret, signal }: EvidenceDeps,
) {
  if (accessKey === undefined || secretKey === undefined) return createCredentialSource(region).read(signal);
  const [accessKeyId, secretAccessKey] = await Promise.all([readSecret(accessKey), readSecret(secretKey)]);
  return { accessKeyId: accessKeyId.trim(), secretAccessKey: secretAccessKey.trim() };
}
