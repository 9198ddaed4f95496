import { lookup as systemLookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { isLoopback } from '../../core/address.ts';
import { ConnectionFailure } from './failure.ts';

/** The addresses of a name, the preferred one first; rejects as `dns.lookup` does. */
export type Lookup = (host: string) => Promise<readonly string[]>;

const underWay = new Map<string, Promise<readonly string[]>>();

async function ask(host: string): Promise<readonly string[]> {
  const found = await systemLookup(host, { all: true });
  return found.map(({ address }) => address);
}

/**
 * The system's own look-up, its file of hosts included. It cannot be called back, and while it hangs it holds one
 * of the few threads of the process: so whoever asks for the same name meanwhile waits for the same answer.
 */
export const lookupOfSystem: Lookup = (host) => {
  let asked = underWay.get(host);
  if (asked === undefined) {
    asked = ask(host).finally(() => underWay.delete(host));
    underWay.set(host, asked);
  }
  return asked;
};

/** Settles as `work` does, or rejects once the signal aborts. */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

/**
 * The one address that is dialled: the first, as the system orders them. A second is never tried, so that a host of
 * which one address is dead does not look well. Only for the machine's own name IPv4 goes first: it is where
 * services listen that are told `localhost`.
 */
export async function chosenAddress(host: string, lookup: Lookup, signal: AbortSignal): Promise<string> {
  if (isIP(host) !== 0) return host;
  const addresses = await untilAborted(lookup(host), signal);
  const four = isLoopback(host) ? addresses.find((address) => isIP(address) === 4) : undefined;
  const chosen = four ?? addresses[0];
  if (chosen === undefined) throw new ConnectionFailure('resolve', `${host}: the name has no address`);
  return chosen;
}
