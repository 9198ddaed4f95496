import type { ReadSecret } from '../../core/access.ts';
import type { Clock } from '../../core/ports.ts';
import { objectStoreAddress as endpointFormat } from '../../core/text-formats.ts';
import { createTrace } from '../connection.ts';
import type { StoredObject } from '../object-store/answers.ts';
import { createCredentialSource } from '../object-store/credentials.ts';
import { createBucket, failureOf } from '../object-store/object-store.ts';
import { unreadable } from './evidence.ts';
import type { ObjectStoreOptions } from './options.ts';

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
    const { message } = failureOf(thrown);
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
