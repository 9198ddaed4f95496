/** Stable codes of every error that leaves a component; scripts may test for them. */
type ErrorCode =
  | 'config_invalid'
  | 'usage'
  | 'address_in_use'
  | 'listen_failed'
  | 'state_locked'
  | 'state_unreadable'
  | 'snapshot_corrupt'
  | 'log_unwritable'
  | 'open_files'
  | 'timer_invalid'
  | 'number_invalid'
  | 'internal';

/** The parts of an error message, in their order. */
export interface Fault {
  /** A configuration path, a file or a listener. */
  where: string;
  /** What is wrong, without the value. */
  what: string;
  /** The wrong value; missing if the fault has no value, or if the value is secret. */
  got?: unknown;
  allowed?: string;
}

/** A fault as one line: `log.level: unknown level, got "INFO"; use debug, info, warn, error or fatal`. */
export function faultLine({ where, what, got, allowed }: Fault): string {
  const value = got === undefined ? '' : `, got ${JSON.stringify(got)}`;
  return `${where}: ${what}${value}${allowed ? `; ${allowed}` : ''}`;
}

/** An error with place, problem, value and what is allowed, together with a stable code and its cause. */
export class AgentError extends Error {
  readonly code: ErrorCode;
  readonly fault: Fault;

  constructor(code: ErrorCode, fault: Fault, cause?: unknown) {
    super(faultLine(fault), cause === undefined ? undefined : { cause });
    this.name = 'AgentError';
    this.code = code;
    this.fault = fault;
  }
}

/** The error for a command line, or a file that it names, that is not what is allowed. */
export const usageError = (where: string, what: string, got?: string, allowed?: string, cause?: unknown) =>
  new AgentError('usage', { where, what, got, allowed }, cause);

/** The message of anything that was thrown. */
export function errorText(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** The system code of a thrown error (`ENOSPC`), or undefined. */
export function systemCode(thrown: unknown): string | undefined {
  const code = (thrown as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}

/**
 * The error for an address on which the agent cannot listen: `address_in_use` or `listen_failed`. `where` is the configuration
 * key of the address.
 */
export function listenError(where: string, address: string, thrown: unknown): AgentError {
  const code = systemCode(thrown);
  const known = Object.hasOwn(listenFaults, code ?? '') ? listenFaults[code!]! : {};
  const fault = { where, got: address, what: `cannot listen (${errorText(thrown)})`, ...known };
  return new AgentError(code === 'EADDRINUSE' ? 'address_in_use' : 'listen_failed', fault, thrown);
}

const listenFaults: Readonly<Record<string, Pick<Fault, 'what' | 'allowed'>>> = {
  EADDRINUSE: {
    what: 'address already in use',
    allowed: 'use another port, or stop the program that uses this one',
  },
  EADDRNOTAVAIL: {
    what: 'not an address of this host',
    allowed: 'use 127.0.0.1, 0.0.0.0 or an address that this host has',
  },
  EACCES: {
    what: 'the agent’s user is not permitted to listen there',
    allowed: 'use a port from 1024 on, or a directory that the user can write to',
  },
};

/** The cause of a failed connection by its error code. */
export type NetworkFault = 'resolve' | 'refused' | 'unreachable' | 'reset' | 'tls' | 'too_slow';

const faults: Readonly<Record<string, NetworkFault>> = {
  ENOTFOUND: 'resolve',
  EAI_AGAIN: 'resolve',
  ECONNREFUSED: 'refused',
  EHOSTUNREACH: 'unreachable',
  ENETUNREACH: 'unreachable',
  EADDRNOTAVAIL: 'unreachable',
  ETIMEDOUT: 'too_slow',
  UND_ERR_CONNECT_TIMEOUT: 'too_slow',
  UND_ERR_HEADERS_TIMEOUT: 'too_slow',
  UND_ERR_BODY_TIMEOUT: 'too_slow',
  ECONNRESET: 'reset',
  EPIPE: 'reset',
  UND_ERR_SOCKET: 'reset',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'reset',
  EPROTO: 'tls',
};
const tlsCode =
  /^(?:ERR_TLS|ERR_SSL|ERR_OSSL|CERT_|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_(?:GET|VERIFY)|HOSTNAME_MISMATCH)/;

/** The cause behind an error code of the system, the HTTP client or the TLS library; undefined for any other code. */
export function networkFault(thrown: unknown): NetworkFault | undefined {
  const code = systemCode(thrown) ?? '';
  if (Object.hasOwn(faults, code)) return faults[code];
  return tlsCode.test(code) ? 'tls' : undefined;
}

/** The number of edits (insert, delete, replace, swap of neighbours) between two words. */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const cost = a[row - 1] === b[column - 1] ? 0 : 1;
      let least = Math.min(previous[column]! + 1, current[column - 1]! + 1, previous[column - 1]! + cost);
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        least = Math.min(least, before[column - 2]! + 1);
      }
      current.push(least);
    }
    before = previous;
    previous = current;
  }
  return previous[b.length]!;
}

/** Longer words are not typing errors; the limit bounds the work for any input. */
const longest = 64;

/**
 * The known word that a mistyped word most likely means: at most a third of its letters differ, ignoring case, where a different
 * first letter counts twice (`probes` is not `roles`), or it is the start of exactly one known word. Undefined if no known word is
 * near.
 */
export function nearest(word: string, known: readonly string[]): string | undefined {
  if (word.length === 0 || word.length > longest) return undefined;
  const folded = word.toLowerCase();
  let best: string | undefined;
  let bestDistance = Math.floor(Math.max(folded.length, 3) / 3) + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - folded.length) >= bestDistance) continue;
    const other = candidate.toLowerCase();
    const edits = distance(folded, other) + (folded[0] === other[0] ? 0 : 1);
    if (edits < bestDistance) [best, bestDistance] = [candidate, edits];
  }
  if (best !== undefined || folded.length < 3) return best;
  const begun = known.filter((candidate) => candidate.toLowerCase().startsWith(folded));
  return begun.length === 1 ? begun[0] : undefined;
}

/** One word of a closed list. Throws `usage` with the nearest word, or else with the list. */
export function oneOf<T extends string>(where: string, word: string, known: readonly T[], what: string): T {
  const found = known.find((candidate) => candidate === word);
  if (found !== undefined) return found;
  const near = nearest(word, known);
  const allowed = near ? `did you mean ${near}?` : `use ${known.join(', ')}`;
  throw usageError(where, `unknown ${what}`, word, allowed);
}
