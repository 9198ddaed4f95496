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

function isOwn(address: string): boolean {
  if (isLoopback(address)) return true;
  return Object.values(networkInterfaces()).some((list) => list?.some((own) => own.address === address));
}

/**
 * The senders of a configuration, each an address or a range. If there are none, this machine is allowed: loopback and the
 * addresses of its interfaces. Throws what `BlockList` throws for a text that is neither (a range too wide).
 */
export function createSenders(senders: readonly string[], monotonicMs: () => number): Senders {
  const list = senders.length === 0 ? undefined : listOf(senders);
  const remembered = new Map<string, boolean>();
  let sinceMs = monotonicMs();
  const isAllowed = (address: string): boolean =>
    list === undefined ? isOwn(address) : list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
  return {
    allows(address) {
      const known = remembered.get(address);
      if (known === true) return true;
      const isStale = monotonicMs() - sinceMs > rememberedMs;
      if (known === false && !isStale) return false;
      if (isStale || remembered.size >= maxRemembered) {
        remembered.clear();
        sinceMs = monotonicMs();
      }
      const allowed = isAllowed(plainAddress(address));
      remembered.set(address, allowed);
      return allowed;
    },
  };
}
