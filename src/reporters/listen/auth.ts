import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { existsSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import type { ListenerAuth, ReadSecret, Secret } from '../../core/access.ts';

/** Authenticates the requests of a listener. */
export interface Authenticator {
  /** The values of `WWW-Authenticate` (RFC 9110, 11.6.1): the accepted schemes. */
  readonly challenges: string[];
  /**
   * Checks an `Authorization` header. `isRead`: the request changes nothing. In this case a bearer token also counts as the
   * password of basic authentication, with any user name, because a browser cannot be given a token. A browser also sends a
   * password with requests from other sites, so all other requests need the token itself. Rejects if the configured secret cannot
   * be read.
   */
  authenticate(authorization: string | undefined, isRead?: boolean): Promise<AuthResult>;
}

interface AuthenticatorDeps extends PasswordCheckDeps {
  readSecret: ReadSecret;
}

/** Parses user name and password (RFC 7617). */
function basicOf(credentials: string): { username: string; password: string } | undefined {
  const pair = Buffer.from(credentials, 'base64').toString('utf8');
  const colon = pair.indexOf(':');
  return colon < 0 ? undefined : { username: pair.slice(0, colon), password: pair.slice(colon + 1) };
}

/** A configured secret, without surrounding white space. */
async function textOf(secret: Secret, readSecret: ReadSecret): Promise<string> {
  const text = (await readSecret(secret)).trim();
  // An empty credential must not pass while the file is being replaced.
  if (text === '') throw new Error('the configured secret is empty');
  return text;
}

function challengesOf({ bearer, basic, basicAuthUsers }: ListenerAuth): string[] {
  const realm = 'realm="svc-agent"';
  return [
    ...(basic || basicAuthUsers || bearer !== undefined ? [`Basic ${realm}, charset="UTF-8"`] : []),
    ...(bearer === undefined ? [] : [`Bearer ${realm}`]),
  ];
}

/** Authenticates by bearer token, basic authentication, or users with bcrypt hashes. All comparisons take constant time. */
export function createAuthenticator(auth: ListenerAuth, deps: AuthenticatorDeps): Authenticator {
  const { bearer, basic, basicAuthUsers } = auth;
  const { readSecret } = deps;
  const digest = createDigest();
  const users = basicAuthUsers && createPasswordCheck(basicAuthUsers, deps);

  const checkBearer = async (token: string): Promise<AuthResult> => {
    if (bearer === undefined) return 'rejected';
    return timingSafeEqual(digest(token), digest(await textOf(bearer, readSecret))) ? 'accepted' : 'rejected';
  };

  const checkBasic = async (credentials: string, isRead: boolean): Promise<AuthResult> => {
    const shown = basicOf(credentials);
    if (!shown) return 'rejected';
    const { username, password } = shown;
    if (basic !== undefined) {
      const wanted = digest(basic.username, await textOf(basic.password, readSecret));
      if (timingSafeEqual(digest(username, password), wanted)) return 'accepted';
    }
    if (isRead && (await checkBearer(password)) === 'accepted') return 'accepted';
    return users ? users.check(username, password) : 'rejected';
  };

  return {
    challenges: challengesOf(auth),
    async authenticate(authorization = '', isRead = false) {
      const [, scheme = '', credentials = ''] = /^(\w+) +(.+)$/.exec(authorization) ?? [];
      if (scheme.toLowerCase() === 'bearer') return checkBearer(credentials);
      if (scheme.toLowerCase() === 'basic') return checkBasic(credentials, isRead);
      return 'rejected';
    },
  };
}

/** The result of a check. `busy`: too many passwords are being checked. */
type AuthResult = 'accepted' | 'rejected' | 'busy';

/** Checks passwords against the bcrypt hashes of users. */
interface PasswordCheck {
  check(username: string, password: string): Promise<AuthResult>;
}

interface PasswordCheckDeps {
  /** Compares a password with a hash; default: `bcryptMatches`. */
  matches?(password: string, hash: string): Promise<boolean>;
}

/** The number of passwords that may wait for their check. A password that was accepted before does not wait. */
const waitingChecks = 16;

/** Computes digests of secrets, for comparison in constant time. */
type Digest = (...parts: readonly string[]) => Buffer;

/** Creates digests with a random key of this process, so that secrets of any length compare in constant time. */
function createDigest(): Digest {
  const key = randomBytes(32);
  return (...parts) => createHmac('sha256', key).update(JSON.stringify(parts)).digest();
}

/** A hash that no password has, with the highest cost of all users. */
function unknownUserHash(hashes: readonly string[]): string {
  const cost = String(Math.max(...hashes.map(bcryptCost))).padStart(2, '0');
  const letters = [...randomBytes(53)].map((byte) => String.fromCharCode(0x61 + (byte % 26)));
  return `$2b$${cost}$${letters.join('')}`;
}

/**
 * Checks one password at a time. The last accepted password of a user is remembered as a digest, so that a scraper costs one
 * bcrypt hash in total. A wrong password or an unknown user costs one hash each time, so that the response time does not reveal
 * which users exist.
 */
export function createPasswordCheck(
  users: Readonly<Record<string, string>>,
  { matches = bcryptMatches }: PasswordCheckDeps = {},
): PasswordCheck {
  const hashes = new Map(Object.entries(users));
  const unknownUser = unknownUserHash([...hashes.values()]);
  const digest = createDigest();
  const never = digest('unknown user');
  const verified = new Map<string, Buffer>();
  let waiting = 0;
  let last: Promise<unknown> = Promise.resolve();

  const isVerified = (username: string, shown: Buffer): boolean =>
    timingSafeEqual(verified.get(username) ?? never, shown);

  return {
    async check(username, password) {
      const shown = digest(username, password);
      if (isVerified(username, shown)) return 'accepted';
      if (waiting >= waitingChecks) return 'busy';
      waiting += 1;
      const hash = hashes.get(username);
      const mine = last.then(() => isVerified(username, shown) || matches(password, hash ?? unknownUser));
      last = mine.catch(() => false).finally(() => (waiting -= 1));
      const isRight = (await mine) && hash !== undefined;
      if (isRight) verified.set(username, shown);
      return isRight ? 'accepted' : 'rejected';
    },
  };
}

const form = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/;
const costs = { least: 4, most: 16 };

/**
 * The form of valid password hashes. With a higher cost the check takes longer than a scraper waits (16: about 6 s, 10: 0.1 s).
 */
export const bcryptForm = {
  fault: `not a bcrypt hash of cost ${costs.least} to ${costs.most}; make one with htpasswd -nBC 10 ""`,
  holds: (hash: string): boolean => bcryptCost(hash) > 0,
};

/** The cost of a valid hash, which is the logarithm of its rounds; 0 for an invalid one. */
function bcryptCost(hash: string): number {
  const cost = Number(form.exec(hash)?.[1] ?? 0);
  return hash.length === 60 && cost >= costs.least && cost <= costs.most ? cost : 0;
}

/** The thread's input. */
export interface PasswordQuestion {
  password: string;
  hash: string;
}

/** The built thread, beside the bundle's entry or one level above its chunks; undefined if the program runs from source. */
function builtThread(): URL | undefined {
  if (import.meta.url.endsWith('.ts')) return undefined;
  return ['./password.js', '../password.js']
    .map((path) => new URL(path, import.meta.url))
    .find((url) => existsSync(url));
}

/**
 * Whether a password (its first 72 bytes) has this hash; false for an invalid hash. A separate thread does the
 * work, because it would block the event loop, and datagrams would be lost.
 */
export async function bcryptMatches(password: string, hash: string): Promise<boolean> {
  if (!bcryptForm.holds(hash)) return false;
  const thread = builtThread();
  if (!thread) return (await import('bcryptjs')).compare(password, hash);
  return new Promise((resolve, reject) => {
    const worker = new Worker(thread, { workerData: { password, hash } satisfies PasswordQuestion });
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) =>
      reject(new Error(`the password thread exited with ${code} without a result`)),
    );
  });
}
