import { homedir } from 'node:os';
import { join } from 'node:path';
import type { ReadSecret } from '../../core/access.ts';
import { errorText, systemCode } from '../../core/errors.ts';
import { ProbeError } from '../probe-error.ts';

/** A pair of keys, with the token that temporary ones have. */
export interface Credentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
}

/** Where credentials are looked for, as messages say it. */
export const credentialPlaces =
  'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the file that AWS_SHARED_CREDENTIALS_FILE names';

/**
 * Credentials as the tools of object stores find them: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
 * AWS_SESSION_TOKEN, else the profile AWS_PROFILE (`default`) of the file AWS_SHARED_CREDENTIALS_FILE
 * (`~/.aws/credentials`). Undefined when there are none. Throws ProbeError `credentials` for half a
 * pair, and for a file or a profile that is named and not there.
 */
export async function readCredentials(readSecret: ReadSecret): Promise<Credentials | undefined> {
  const accessKeyId = await readVariable(readSecret, 'AWS_ACCESS_KEY_ID');
  const secretAccessKey = await readVariable(readSecret, 'AWS_SECRET_ACCESS_KEY');
  if (accessKeyId === undefined && secretAccessKey === undefined) return readShared(readSecret);
  const sessionToken = await readVariable(readSecret, 'AWS_SESSION_TOKEN');
  return pair(
    { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey },
    sessionToken,
    'the environment',
  );
}

/** The file of certificates to trust instead of the usual ones, where AWS_CA_BUNDLE names one. */
export function readTrustedFile(readSecret: ReadSecret): Promise<string | undefined> {
  return readVariable(readSecret, 'AWS_CA_BUNDLE');
}

/** An empty variable is none. */
async function readVariable(readSecret: ReadSecret, env: string): Promise<string | undefined> {
  const text = await readSecret({ env }).catch(() => '');
  return text === '' ? undefined : text;
}

async function readNamed(readSecret: ReadSecret, file: string, variable: string): Promise<string> {
  return readSecret({ file }).catch((error: unknown) => {
    throw new ProbeError('credentials', `${variable}: ${errorText(error)}`, error);
  });
}

async function readShared(readSecret: ReadSecret): Promise<Credentials | undefined> {
  const named = await readVariable(readSecret, 'AWS_SHARED_CREDENTIALS_FILE');
  const profile = await readVariable(readSecret, 'AWS_PROFILE');
  const home = (await readVariable(readSecret, 'HOME')) ?? homedir();
  const file = named ?? join(home, '.aws', 'credentials');
  const text =
    named === undefined && profile === undefined
      ? await readSecret({ file }).catch(absent)
      : await readNamed(
          readSecret,
          file,
          named === undefined ? 'AWS_PROFILE' : 'AWS_SHARED_CREDENTIALS_FILE',
        );
  if (text === undefined) return undefined;
  const settings = profileOf(text, profile ?? 'default');
  if (settings) {
    const { aws_access_key_id, aws_secret_access_key, aws_session_token } = settings;
    return pair({ aws_access_key_id, aws_secret_access_key }, aws_session_token, file);
  }
  if (named === undefined && profile === undefined) return undefined;
  throw new ProbeError('credentials', `${file} has no profile ${profile ?? 'default'}`);
}

/** The usual file need not be there; one that may not be read is a fault. */
function absent(error: unknown): undefined {
  const cause = (error as { cause?: unknown } | null)?.cause ?? error;
  if (['ENOENT', 'ENOTDIR'].includes(systemCode(cause) ?? '')) return undefined;
  throw new ProbeError('credentials', errorText(error), error);
}

/** The settings of one profile of a file of sections `[name]` with lines `key = value`. */
function profileOf(text: string, profile: string): Readonly<Record<string, string>> | undefined {
  let settings: Record<string, string> | undefined;
  let isWanted = false;
  for (const line of text.split(/\r?\n/)) {
    const [, section] = /^\s*\[\s*(.*?)\s*\]\s*$/.exec(line) ?? [];
    if (section !== undefined) isWanted = section === profile;
    if (!isWanted) continue;
    settings ??= {};
    const [, key, value] = /^\s*(\w+)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (key !== undefined && value) settings[key.toLowerCase()] = value;
  }
  return settings;
}

/** Both keys, by the names they have where they stand. */
function pair(
  keys: Readonly<Record<string, string | undefined>>,
  sessionToken: string | undefined,
  where: string,
): Credentials {
  const missing = Object.keys(keys).find((name) => keys[name] === undefined);
  if (missing !== undefined) throw new ProbeError('credentials', `${where}: ${missing} is not set`);
  const [accessKeyId, secretAccessKey] = Object.values(keys) as [string, string];
  return { accessKeyId, secretAccessKey, sessionToken };
}
