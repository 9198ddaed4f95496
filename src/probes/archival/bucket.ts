import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import type { ReadSecret } from '../../core/access.ts';
import { errorText } from '../../core/errors.ts';
import type { Clock, Tracing } from '../../core/ports.ts';
import type { ObjectStoreAddress } from '../../core/text-formats.ts';
import { createTrace, type Trace } from '../connection.ts';
import type { ObjectPage } from '../object-store/answers.ts';
import {
  type Bucket,
  createBucket,
  createCredentialSource,
  credentialPlaces,
  objectStoreFailure,
} from '../object-store/object-store.ts';
import { type Finding, type Probe, ProbeError, timeText } from '../probe.ts';
import { type ArchiveTarget, later, newestGauge } from './archives.ts';

// Checks an archive in an object store: whether it answers a signed list request, whether it can be written to, if that is
// tested, and how old its newest object is.

interface BucketPlace {
  endpoint: ObjectStoreAddress;
  region: string;
  bucket: string;
  prefix: string;
}

interface BucketProbeDeps {
  clock: Clock;
  readSecret: ReadSecret;
  tracing?: Tracing;
}

/** The number of pages with 1000 objects per check: 14 million objects a day with a check each minute. */
const maxPages = 10;
/** After this time no further page is requested, so that a slow store still gives a result. */
const listMs = 10_000;

/**
 * The prefix of the object that is written, read and deleted. Its key is the same at each check, so that a killed agent leaves at
 * most one object.
 */
const testKeyPrefix = '.svc-agent-write-check-';
const testKey = `${testKeyPrefix}${createHash('sha256').update(hostname()).digest('hex').slice(0, 12)}`;

/** Creates the probe. Each check opens a new connection and reads the credentials again. */
export function createBucketProbe(
  place: BucketPlace,
  target: ArchiveTarget,
  { clock, readSecret, tracing }: BucketProbeDeps,
): Probe {
  const of = JSON.stringify(place);
  const { endpoint, region, bucket: name, prefix } = place;
  const source = createCredentialSource(region);
  return {
    async check(signal, recalled) {
      const trace = createTrace(clock);
      const progress: ListingProgress = { listing: resumedListing(recalled, of), pages: 0, objects: 0 };
      let bucket: Bucket | undefined;
      let isSigned = true;
      try {
        const credentials = await source.read(signal);
        isSigned = credentials !== undefined;
        const caFile = (await readSecret({ env: 'AWS_CA_BUNDLE' }).catch(() => '')) || undefined;
        bucket = createBucket(
          { endpoint, region, bucket: name, credentials, caFile },
          { clock, trace, signal, tracing },
        );
        await listObjects(bucket, prefix, progress, clock);
        if (target.writeCheck) await writeReadDelete(bucket, prefix, clock);
        const reading = target.readCheck ? await readBack(bucket, progress.listing) : undefined;
        const finding = found(progress, target);
        const msg = reading ? `${finding.msg}; ${reading}` : finding.msg;
        return { ...finding, msg, ...traced(trace) };
      } catch (error) {
        const { reason, message } = objectStoreFailure(error);
        const hint =
          reason === 'denied' && !isSigned ? `; the request was not signed: set ${credentialPlaces}` : '';
        return { reason, msg: `${message}${hint}`, remember: progress.listing, ...traced(trace) };
      } finally {
        await bucket?.close();
      }
    },
  };
}

const traced = ({ phasesMs, tlsNotAfterMs }: Trace) => ({ phasesMs, tlsNotAfterMs });

/**
 * Writes, reads and deletes the test object. Throws ProbeError `not_writable` if the store refuses, otherwise the error of the
 * store or the connection.
 */
async function writeReadDelete(bucket: Bucket, prefix: string, clock: Clock): Promise<void> {
  const key = `${prefix}${testKey}`;
  const body = Buffer.from(`svc-agent ${new Date(clock.nowMs()).toISOString()}\n`);
  const refused = (what: string) => (error: unknown) => {
    const failure = objectStoreFailure(error);
    const reason = failure.reason === 'denied' ? 'not_writable' : failure.reason;
    throw new ProbeError(reason, `${what} an object failed: ${errorText(failure)}`, error);
  };
  await bucket.put(key, body).catch(refused('writing'));
  const read = await bucket.get(key).catch(refused('reading'));
  await bucket.delete(key).catch(refused('deleting'));
  if (!read || !body.equals(read)) {
    throw new ProbeError('invalid_answer', 'an object that was written reads back with other content');
  }
}

/** How many bytes are read: enough to see that the content comes back. */
const readBytes = 4096;

/** Reads the beginning of the newest object. Throws ProbeError if it cannot be read, or is empty. */
async function readBack(bucket: Bucket, { whole, seenKey }: BucketListing): Promise<string | undefined> {
  const key = whole?.newestKey ?? seenKey;
  if (key === undefined) return undefined;
  const read = await bucket.get(key, readBytes).catch((error: unknown) => {
    const { reason, message } = objectStoreFailure(error);
    // The object was deleted after it was listed.
    if (reason === 'not_found') return undefined;
    throw new ProbeError(reason, `reading the newest object, ${key}, failed: ${message}`, error);
  });
  if (read === undefined) return 'it was deleted meanwhile';
  if (read.length === 0) throw new ProbeError('invalid_answer', `the newest object, ${key}, is empty`);
  return 'it can be read back';
}

/** What one check adds to the listing. */
interface ListingProgress {
  listing: BucketListing;
  pages: number;
  objects: number;
}

async function listObjects(
  bucket: Bucket,
  prefix: string,
  progress: ListingProgress,
  clock: Clock,
): Promise<void> {
  const untilMs = clock.monotonicMs() + listMs;
  const startAfter = progress.listing.after;
  let continuation: string | undefined;
  do {
    const page = await bucket.list({ prefix, startAfter, continuation });
    progress.listing = withPage(progress.listing, page);
    progress.pages++;
    progress.objects += page.objects.length;
    continuation = page.continuation;
  } while (continuation !== undefined && progress.pages < maxPages && clock.monotonicMs() < untilMs);
}

function found({ listing, pages, objects }: ListingProgress, target: ArchiveTarget): Finding {
  const newestMs = newestOf(listing);
  const writing = target.writeCheck ? 'writable' : 'readable';
  const untested = target.isWritten && !target.writeCheck ? ', writing is not tested' : '';
  return {
    msg: `${writing}${untested}; ${newestText(listing, newestMs)}`,
    gauges: newestGauge(target, newestMs),
    details: { pages, objects, complete: listing.after === undefined },
    remember: listing,
  };
}

function newestText(listing: BucketListing, newestMs: number | undefined): string {
  const goesOn = 'the list is long, and the next check continues it';
  if (listing.whole) {
    const newest = newestMs === undefined ? 'no object yet' : `newest object from ${timeText(newestMs)}`;
    return listing.after === undefined ? newest : `${newest}, or later; ${goesOn}`;
  }
  return listing.seenMs === undefined
    ? `no object seen yet; ${goesOn}`
    : `newest object seen from ${timeText(listing.seenMs)}; ${goesOn}`;
}

/**
 * A listing of all objects of an archive, which may take many checks: a list is in the order of names, so the newest object may
 * be anywhere in it. It is JSON, and is remembered across checks and restarts.
 */
export interface BucketListing {
  /** The archive that is listed. */
  of: string;
  /** The name after which the listing continues; missing at the beginning. */
  after?: string;
  /** The time of the newest object so far, ms since the epoch. */
  seenMs?: number;
  /** The key of that object. */
  seenKey?: string;
  /** Result of the last complete listing. */
  whole?: { newestMs?: number; newestKey?: string };
}

/** The listing that an earlier check remembered; a new one if there is none, or if it belongs to another archive. */
export function resumedListing(recalled: unknown, of: string): BucketListing {
  const listing = recalled as Partial<Record<keyof BucketListing, unknown>> | null | undefined;
  if (typeof listing !== 'object' || listing === null || listing.of !== of) return { of };
  const { after, seenMs, seenKey, whole } = listing;
  const isWhole = typeof whole === 'object' && whole !== null;
  const newest = (isWhole ? whole : {}) as Record<string, unknown>;
  return {
    of,
    ...(typeof after === 'string' ? { after, seenMs: timeOf(seenMs), seenKey: keyOf(seenKey) } : {}),
    ...(isWhole ? { whole: { newestMs: timeOf(newest.newestMs), newestKey: keyOf(newest.newestKey) } } : {}),
  };
}

/** The listing with one more page. After the last page it starts again. */
export function withPage(listing: BucketListing, { objects, continuation }: ObjectPage): BucketListing {
  let { seenMs, seenKey } = listing;
  for (const { key, lastModifiedMs } of objects.filter(isArchived)) {
    if (seenMs !== undefined && lastModifiedMs < seenMs) continue;
    seenMs = lastModifiedMs;
    seenKey = key;
  }
  if (continuation === undefined) return { of: listing.of, whole: { newestMs: seenMs, newestKey: seenKey } };
  return { ...listing, after: objects.at(-1)?.key ?? listing.after, seenMs, seenKey };
}

/**
 * Whether an object is archived data. Consoles create an empty object for a directory; another empty object may be from a write
 * check.
 */
function isArchived({ key, sizeBytes }: ObjectPage['objects'][number]): boolean {
  const isDirectory = key.endsWith('/') && sizeBytes === 0;
  return !isDirectory && !key.slice(key.lastIndexOf('/') + 1).startsWith(testKeyPrefix);
}

/** The time of the newest object, ms since the epoch; undefined until one listing is complete, and if there is no object. */
export function newestOf({ seenMs, whole }: BucketListing): number | undefined {
  return whole && later(whole.newestMs, seenMs);
}

const keyOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

const timeOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined;
