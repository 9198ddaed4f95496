import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { existsSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import type { ListenerAuth, ReadSecret, Secret } from '../../core/access.ts';

/** Lets in whoever shows one of a listener's credentials. */
export interface Guard {
  /** Values of `WWW-Authenticate` (RFC 9110, 11.6.1): what would be taken. */
  readonly challenges: string[];
  /** Judges a request's `Authorization`. Rejects when the secret to compare with is not there. */
  judge(authorization: string | undefined): Promise<Verdict>;
}

export interface GuardDeps extends PasswordCheckDeps {
  readSecret: ReadSecret;
}

/** Name and password of RFC 7617. */
function basicOf(credentials: string): { username: string; password: string } | undefined {
  const pair = Buffer.from(credentials, 'base64').toString('utf8');
  const colon = pair.indexOf(':');
  return colon < 0 ? undefined : { username: pair.slice(0, colon), password: pair.slice(colon + 1) };
}

/** A secret of the configuration, spaces around it left out. */
async function textOf(secret: Secret, readSecret: ReadSecret): Promise<string> {
  const text = (await readSecret(secret)).trim();
  // Nobody gets in by showing nothing while somebody replaces the file.
  if (text === '') throw new Error('the secret of a listener is empty');
  return text;
}

function challengesOf({ bearer, basic, basicAuthUsers }: ListenerAuth): string[] {
  const realm = 'realm="svc-agent"';
  return [
    ...(basic || basicAuthUsers ? [`Basic ${realm}, charset="UTF-8"`] : []),
    ...(bearer === undefined ? [] : [`Bearer ${realm}`]),
  ];
}

/** A guard for what the configuration asks. All comparisons take the same time whatever differs. */
export function createGuard(auth: ListenerAuth, deps: GuardDeps): Guard {
  const { bearer, basic, basicAuthUsers } = auth;
  const { readSecret } = deps;
  const digest = createDigest();
  const users = basicAuthUsers && createPasswordCheck(basicAuthUsers, deps);

  const judgeBearer = async (token: string): Promise<Verdict> => {
    if (bearer === undefined) return 'wrong';
    return timingSafeEqual(digest(token), digest(await textOf(bearer, readSecret))) ? 'right' : 'wrong';
  };

  const judgeBasic = async (credentials: string): Promise<Verdict> => {
    const shown = basicOf(credentials);
    if (!shown) return 'wrong';
    const { username, password } = shown;
    if (basic !== undefined) {
      const wanted = digest(basic.username, await textOf(basic.password, readSecret));
      if (timingSafeEqual(digest(username, password), wanted)) return 'right';
    }
    return users ? users.check(username, password) : 'wrong';
  };

  return {
    challenges: challengesOf(auth),
    async judge(authorization = '') {
      const [, scheme = '', credentials = ''] = /^(\w+) +(.+)$/.exec(authorization) ?? [];
      if (scheme.toLowerCase() === 'bearer') return judgeBearer(credentials);
      if (scheme.toLowerCase() === 'basic') return judgeBasic(credentials);
      return 'wrong';
    },
  };
}

/** What became of a password: `busy` when too many others are being checked. */
export type Verdict = 'right' | 'wrong' | 'busy';

/** Passwords of users by their bcrypt hashes. */
export interface PasswordCheck {
  check(username: string, password: string): Promise<Verdict>;
}

export interface PasswordCheckDeps {
  /** Whether a password has a hash; `bcryptMatches` but for tests. */
  matches?(password: string, hash: string): Promise<boolean>;
}

/** Checks that wait at most; whoever was right before does not wait. */
const waitingChecks = 16;

/** Equal digests without telling by time how much of them is equal. */
export type Digest = (...parts: readonly string[]) => Buffer;

/** Digests that mean something to this process alone, so that secrets of any length compare in equal time. */
export function createDigest(): Digest {
  const key = randomBytes(32);
  return (...parts) => createHmac('sha256', key).update(JSON.stringify(parts)).digest();
}

/** A hash that is nobody's, as costly as the costliest of the users'. */
function nobodysHash(hashes: readonly string[]): string {
  const cost = String(Math.max(...hashes.map(bcryptCost))).padStart(2, '0');
  const letters = [...randomBytes(53)].map((byte) => String.fromCharCode(0x61 + (byte % 26)));
  return `$2b$${cost}$${letters.join('')}`;
}

/**
 * Checks one password at a time. A user's newest right one is remembered by a digest, so that a scraper costs one
 * hash; a wrong one costs a hash each time, and so does an unknown user: time does not tell who exists.
 */
export function createPasswordCheck(
  users: Readonly<Record<string, string>>,
  { matches = bcryptMatches }: PasswordCheckDeps = {},
): PasswordCheck {
  const hashes = new Map(Object.entries(users));
  const nobodys = nobodysHash([...hashes.values()]);
  const digest = createDigest();
  const nobody = digest('nobody');
  const verified = new Map<string, Buffer>();
  let waiting = 0;
  let last: Promise<unknown> = Promise.resolve();

  const isVerified = (username: string, shown: Buffer): boolean =>
    timingSafeEqual(verified.get(username) ?? nobody, shown);

  return {
    async check(username, password) {
      const shown = digest(username, password);
      if (isVerified(username, shown)) return 'right';
      if (waiting >= waitingChecks) return 'busy';
      waiting += 1;
      const hash = hashes.get(username);
      const mine = last.then(() => isVerified(username, shown) || matches(password, hash ?? nobodys));
      last = mine.catch(() => false).finally(() => (waiting -= 1));
      const isRight = (await mine) && hash !== undefined;
      if (isRight) verified.set(username, shown);
      return isRight ? 'right' : 'wrong';
    },
  };
}

const form = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/;
const costs = { least: 4, most: 16 };

/** What a password's hash may be; a cost above takes longer than a scraper waits (16: some 6 s, 10: 0.1 s). */
export const bcryptForm = {
  fault: `not a bcrypt hash of cost ${costs.least} to ${costs.most}; make one with htpasswd -nBC 10 ""`,
  holds: (hash: string): boolean => bcryptCost(hash) > 0,
};

/** The cost of a hash that `bcryptForm` holds for, the logarithm of its rounds; 0 for any other. */
export function bcryptCost(hash: string): number {
  const cost = Number(form.exec(hash)?.[1] ?? 0);
  return hash.length === 60 && cost >= costs.least && cost <= costs.most ? cost : 0;
}

/** What the thread is asked. */
export interface PasswordQuestion {
  password: string;
  hash: string;
}

/** The built thread beside the bundle's entry or one level above its chunks; none when run from source. */
function builtThread(): URL | undefined {
  if (import.meta.url.endsWith('.ts')) return undefined;
  return ['./password.js', '../password.js']
    .map((path) => new URL(path, import.meta.url))
    .find((url) => existsSync(url));
}

/**
 * Whether a password has this hash (of a password the first 72 bytes count). A thread of its own does the work:
 * what shares the event loop, datagrams above all, must not wait for it. False for what is no such hash.
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
      reject(new Error(`the password's thread ended with ${code} and no answer`)),
    );
  });
}
