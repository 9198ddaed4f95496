import { BlockList, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { isLoopback } from '../../../core/address.ts';

/** The senders whose datagrams and connections are accepted. */
export interface Senders {
  allows(address: string): boolean;
}

const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;
const maxRemembered = 1024;
/** How long a negative answer is cached: an interface may come up at any time. */
const rememberedMs = 60_000;

/** The address without its zone, and as IPv4 if an IPv6 socket shows it mapped. */
function plainAddress(address: string): string {
  return mapped.exec(address)?.[1] ?? address.replace(/%.*$/, '');
}

function listOf(senders: readonly string[]): BlockList {
  const list = new BlockList();
  for (const sender of senders) {
    const [address = '', bits] = sender.split('/');
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return list;
}

/**
 * Whether the address belongs to this machine; undefined if the system cannot be asked, because the process has no free
 * descriptor.
 */
function isOwn(address: string, interfaces: typeof networkInterfaces): boolean | undefined {
  if (isLoopback(address)) return true;
  try {
    return Object.values(interfaces()).some((list) => list?.some((own) => own.address === address));
  } catch {
    return undefined;
  }
}

/**
 * The senders of a configuration, each an address or a range. If there are none, this machine is allowed: loopback and the
 * addresses of its interfaces. Throws the error of `BlockList` for a text that is neither an address nor a range.
 */
export function createSenders(
  senders: readonly string[],
  monotonicMs: () => number,
  interfaces = networkInterfaces,
): Senders {
  const list = senders.length === 0 ? undefined : listOf(senders);
  const remembered = new Map<string, boolean>();
  let sinceMs = monotonicMs();
  const isAllowed = (address: string): boolean | undefined =>
    list === undefined ? isOwn(address, interfaces) : list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
  return {
    allows(address) {
      const known = remembered.get(address);
      if (known === true) return true;
      const isStale = monotonicMs() - sinceMs > rememberedMs;
      if (known === false && !isStale) return false;
      const allowed = isAllowed(plainAddress(address));
      if (allowed === undefined) return false;
      if (isStale || remembered.size >= maxRemembered) {
        remembered.clear();
        sinceMs = monotonicMs();
      }
      remembered.set(address, allowed);
      return allowed;
    },
  };
}
