import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { bcryptCost, bcryptMatches } from './bcrypt.ts';

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
