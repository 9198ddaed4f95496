import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { ReadSecret } from '../../core/access.ts';
import type { Clock } from '../../core/ports.ts';
import { objectStoreAddress as endpointFormat } from '../../core/text-formats.ts';
import { createTrace } from '../connection.ts';
import type { StoredObject } from '../object-store/answers.ts';
import { createBucket, createCredentialSource, objectStoreFailure } from '../object-store/object-store.ts';
import type { ObjectStoreOptions } from './block.ts';
import { type Artifact, type Evidence, unreadable } from './evidence.ts';
import { listBackupDirectory, timeOfName } from './files.ts';

/** A copy of a backup somewhere else: its name there and its size. */
export interface OffsiteCopy {
  name: string;
  sizeBytes: number;
}

export interface OffsiteStanding {
  /** End of the newest backup that has a copy, ms since the epoch. */
  newestMs?: number;
  /** Backups that have a copy. */
  copied?: readonly string[];
  /** Backups without a copy of the same size although the time for it is over. */
  missing: readonly string[];
  /** Why the other place cannot be read; the local backups are assessed nevertheless. */
  unreadable?: string;
  /** The file system of the directory in which copies were last found, by its device. */
  device?: number;
}

/**
 * Which backups have reached the other place. A copy has the backup's name and size; of a backup that is a directory,
 * the copies below its name add up to it. A backup has `maxLagMs` after its end to get there.
 */
export function compareOffsite(
  artifacts: readonly Artifact[],
  copies: readonly OffsiteCopy[],
  maxLagMs: number,
  nowMs: number,
): OffsiteStanding {
  const sizes = new Map<string, number>();
  for (const { name, sizeBytes } of copies) {
    const top = name.split('/')[0]!;
    sizes.set(top, (sizes.get(top) ?? 0) + sizeBytes);
  }
  const hasCopy = ({ id, sizeBytes }: Artifact) => sizes.get(id) === sizeBytes;
  const newest = artifacts.filter(hasCopy).at(-1);
  // Older copies may have been removed by a retention of their own; from the first copy on none may be missing.
  const firstWithCopy = artifacts.findIndex(hasCopy);
  const missing = artifacts
    .slice(Math.max(firstWithCopy, artifacts.length - 3, 0))
    .filter((artifact) => !hasCopy(artifact) && nowMs - artifact.endMs > maxLagMs);
  return {
    newestMs: newest?.endMs,
    copied: artifacts.filter(hasCopy).map(({ id }) => id),
    missing: missing.map(({ id }) => id),
  };
}

/**
 * The copies in a second directory: a mounted share, or another disk. Throws `evidence_unreadable`, also for a
 * directory that does not exist: it may be on a share that is not mounted.
 */
export async function copiesInDirectory(directory: string): Promise<OffsiteCopy[]> {
  const names = await listBackupDirectory(directory);
  if (names === undefined)
    throw unreadable(`${directory} does not exist; mount its file system, or create it`);
  const copies: OffsiteCopy[] = [];
  for (const name of names) {
    const stats = await stat(join(directory, name)).catch(() => undefined);
    if (stats?.isFile()) copies.push({ name, sizeBytes: stats.size });
    else if (stats?.isDirectory()) {
      for (const inside of (await listBackupDirectory(join(directory, name))) ?? []) {
        const below = await stat(join(directory, name, inside)).catch(() => undefined);
        if (below?.isFile()) copies.push({ name: `${name}/${inside}`, sizeBytes: below.size });
      }
    }
  }
  return copies;
}

/**
 * Objects of a bucket as backups whose content is not read: their times are those of the upload, unless the name has
 * a group `time`, and nothing is known of their integrity.
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
}

/** Pages of 1000 objects; more are an error rather than a partial picture. */
const mostPages = 50;

/**
 * All objects below the prefix. Throws ProbeError `evidence_unreadable` when they cannot be listed, and when there are
 * more than 50,000.
 */
export async function listObjects(options: ObjectStoreOptions, deps: EvidenceDeps): Promise<StoredObject[]> {
  const { region, bucket: name, prefix } = options;
  const { clock, signal } = deps;
  const place = endpointFormat.read(options.endpoint ?? `https://s3.${region}.amazonaws.com`);
  if (!place) throw unreadable(`${options.endpoint}: ${endpointFormat.fault}`);
  const objects: StoredObject[] = [];
  try {
    const credentials = await credentialsOf(options, deps);
    const trace = createTrace(clock);
    const bucket = createBucket(
      { endpoint: place, region, bucket: name, credentials },
      { clock, trace, signal },
    );
    try {
      let continuation: string | undefined;
      for (let page = 0; page === 0 || continuation !== undefined; page++) {
        if (page === mostPages)
          throw unreadable(`more than ${mostPages * 1000} objects below ${name}/${prefix}`);
        const listed = await bucket.list({ prefix, continuation });
        objects.push(...listed.objects);
        ({ continuation } = listed);
      }
    } finally {
      await bucket.close();
    }
  } catch (thrown) {
    const { message } = objectStoreFailure(thrown);
    throw unreadable(`bucket ${name}: ${message}`, thrown);
  }
  return objects.map((object) => ({ ...object, key: object.key.slice(prefix.length) }));
}

/** Keys of the configuration, else those of the SDK's provider chain. */
async function credentialsOf(
  { accessKey, secretKey, region }: ObjectStoreOptions,
  { readSecret, signal }: EvidenceDeps,
) {
  if (accessKey === undefined || secretKey === undefined) return createCredentialSource(region).read(signal);
  const [accessKeyId, secretAccessKey] = await Promise.all([readSecret(accessKey), readSecret(secretKey)]);
  return { accessKeyId: accessKeyId.trim(), secretAccessKey: secretAccessKey.trim() };
}
