import { AgentError } from './errors.ts';

/** A parsed `host:port`. An IPv6 host has no brackets. */
export interface Address {
  host: string;
  port: number;
}

const shape = /^(?:\[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|([A-Za-z0-9._-]+)):(\d{1,5})$/;
const fourNumbers = /^\d+(?:\.\d+)*$/;

/** Parses `host:port` and `[IPv6]:port`; undefined for anything else, including an empty host. */
export function parseAddress(text: string): Address | undefined {
  const [, six, name, digits] = shape.exec(text) ?? [];
  const host = six ?? name;
  const port = Number(digits);
  if (host === undefined || port > 65_535) return undefined;
  if (six !== undefined && !six.includes(':')) return undefined;
  if (six === undefined && fourNumbers.test(host)) {
    const numbers = host.split('.').map(Number);
    if (numbers.length !== 4 || numbers.some((number) => number > 255)) return undefined;
  }
  return { host, port };
}

/** Parses the `host:port` of a setting; `example` shows the allowed form. Throws `config_invalid` for anything else. */
export function addressOf(where: string, text: string, example: string): Address {
  const address = parseAddress(text);
  if (address) return address;
  throw new AgentError('config_invalid', {
    where,
    what: 'not an address',
    got: text,
    allowed: `use host:port, such as ${example}`,
  });
}

/** The reverse of `parseAddress`. */
export function formatAddress({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Whether a listener on this host accepts connections on every address of the machine. */
export function isWildcard(host: string): boolean {
  return host === '' || host === '0.0.0.0' || /^[0:]+$/.test(host);
}

/** Whether this host is `localhost` or a loopback address. */
export function isLoopback(host: string): boolean {
  return host.toLowerCase() === 'localhost' || /^127\./.test(host) || /^(?:[0:]*:)?0*1$/.test(host);
}

/** The host to dial for a listener on this host: loopback for a wildcard. */
export function dialHost(host: string): string {
  if (!isWildcard(host)) return host;
  return host.includes(':') ? '::1' : '127.0.0.1';
}

/**
 * Whether two sockets cannot be bound at the same time: they have the same port, and the same host or one that covers the other.
 * Port 0 (any free port) conflicts with nothing. `localHosts` are the machine's own addresses, which a wildcard covers.
 */
export function addressesConflict(one: Address, other: Address, localHosts: ReadonlySet<string>): boolean {
  if (one.port !== other.port || one.port === 0) return false;
  const local = (host: string) => isWildcard(host) || isLoopback(host) || localHosts.has(host);
  if (isWildcard(one.host)) return local(other.host);
  if (isWildcard(other.host)) return local(one.host);
  const named = (host: string) => (host.toLowerCase() === 'localhost' ? '127.0.0.1' : host.toLowerCase());
  return named(one.host) === named(other.host);
}
