import type { ReadSecret } from '../../core/access.ts';
import type { Clock } from '../../core/ports.ts';
import { createTrace, type Trace } from '../connection/connect.ts';
import { type Bucket, createBucket } from '../object-store/bucket.ts';
import { credentialPlaces, readCredentials, readTrustedFile } from '../object-store/credentials.ts';
import type { Endpoint } from '../object-store/endpoint.ts';
import { failureOf } from '../object-store/failure.ts';
import type { Finding, Probe } from '../probe.ts';
import { newestOf, type ObjectWalk, resumedWalk, walkOn } from './object-walk.ts';
import { type ArchiveTarget, newestGauge, timeText } from './target.ts';

export interface BucketPlace {
  endpoint: Endpoint;
  region: string;
  bucket: string;
  prefix: string;
}

export interface BucketProbeDeps {
  clock: Clock;
  readSecret: ReadSecret;
}

/** Pages of 1000 objects that one look asks for at most: 14 million objects in a day of looks each minute. */
const maxPages = 10;
/** No further page is asked for then, so that a slow store is still up. */
const walkMs = 10_000;

/**
 * An archive in an object store: whether it answers a signed list request, and the time of its newest object,
 * which is known once all objects have been listed. Each look opens a connection of its own and reads the
 * credentials again.
 */
export function createBucketProbe(
  place: BucketPlace,
  target: ArchiveTarget,
  { clock, readSecret }: BucketProbeDeps,
): Probe {
  const of = JSON.stringify(place);
  const { endpoint, region, bucket: name, prefix } = place;
  return {
    async check(signal, recalled) {
      const trace = createTrace(clock);
      const turn: Turn = { walk: resumedWalk(recalled, of), pages: 0, objects: 0 };
      let bucket: Bucket | undefined;
      let isSigned = true;
      try {
        const credentials = await readCredentials(readSecret);
        isSigned = credentials !== undefined;
        const caFile = await readTrustedFile(readSecret);
        const options = { endpoint, region, bucket: name, credentials, caFile };
        bucket = createBucket(options, { clock, trace, signal });
        await walkThrough(bucket, prefix, turn, clock);
        return { ...found(turn, target), ...traced(trace) };
      } catch (error) {
        const { reason, message } = failureOf(error);
        const hint = reason === 'denied' && !isSigned ? `; it was not signed: set ${credentialPlaces}` : '';
        return { reason, msg: `${message}${hint}`, remember: turn.walk, ...traced(trace) };
      } finally {
        await bucket?.close();
      }
    },
  };
}

const traced = ({ phasesMs, tlsNotAfterMs }: Trace) => ({ phasesMs, tlsNotAfterMs });

/** What one look adds to the walk. */
interface Turn {
  walk: ObjectWalk;
  pages: number;
  objects: number;
}

async function walkThrough(bucket: Bucket, prefix: string, turn: Turn, clock: Clock): Promise<void> {
  const untilMs = clock.monotonicMs() + walkMs;
  const startAfter = turn.walk.after;
  let continuation: string | undefined;
  do {
    const page = await bucket.list({ prefix, startAfter, continuation });
    turn.walk = walkOn(turn.walk, page);
    turn.pages++;
    turn.objects += page.objects.length;
    continuation = page.continuation;
  } while (continuation !== undefined && turn.pages < maxPages && clock.monotonicMs() < untilMs);
}

function found({ walk, pages, objects }: Turn, target: ArchiveTarget): Finding {
  const newestMs = newestOf(walk);
  return {
    msg: `it answers; ${newestText(walk, newestMs)}`,
    gauges: newestGauge(target, newestMs),
    details: { pages, objects, complete: walk.after === undefined },
    remember: walk,
  };
}

function newestText(walk: ObjectWalk, newestMs: number | undefined): string {
  const isCut = walk.after !== undefined;
  const on = 'the list is in the order of names, and the next look goes on with it';
  if (walk.whole) {
    const newest = newestMs === undefined ? 'no object yet' : `newest object is of ${timeText(newestMs)}`;
    return isCut ? `${newest}, or of later; ${on}` : newest;
  }
  return walk.seenMs === undefined
    ? `no object seen yet; ${on}`
    : `newest object is at least of ${timeText(walk.seenMs)}; ${on}`;
}
