import { existsSync } from 'node:fs';
import { Worker } from 'node:worker_threads';

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
