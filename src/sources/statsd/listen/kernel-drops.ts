import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { endianness } from 'node:os';

/** A row of `/proc/net/udp` or `udp6` (proc(5)): local address in hex, inode, drops. */
interface Row {
  local: string;
  inode: string;
  drops: number;
}

/** The kernel's own figure of the datagrams it dropped for one socket since it was bound. */
export interface KernelDrops {
  /** What was dropped since the last poll; 0 where the kernel does not say (not Linux). */
  poll(): number;
}

/** The rows of such a table. Columns are split by blanks; the last is `drops`, the tenth the inode. */
export function rowsOf(table: string): Row[] {
  return table
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields.length >= 13)
    .map((fields) => ({ local: fields[1]!, inode: fields[9]!, drops: Number(fields.at(-1)) }));
}

/** The eight groups of an IPv6 address as 16 bytes. */
function bytesOf6(address: string): number[] {
  const [front = '', back] = address.replace(/%.*$/, '').split('::');
  const groups = (text: string) =>
    text === ''
      ? []
      : text.split(':').flatMap((group) => {
          if (!group.includes('.')) return [Number.parseInt(group, 16)];
          const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number);
          return [a * 256 + b, c * 256 + d];
        });
  const head = groups(front);
  const tail = back === undefined ? [] : groups(back);
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => 0);
  return [...head, ...zeros, ...tail].flatMap((group) => [group >> 8, group & 255]);
}

/** A socket's local address as the table spells it: words of four bytes as the machine holds them, then the port. */
export function localText(address: string, port: number, isLittle = endianness() === 'LE'): string {
  const bytes = isIPv6(address) ? bytesOf6(address) : address.split('.').map(Number);
  let text = '';
  for (let at = 0; at < bytes.length; at += 4) {
    const word = bytes.slice(at, at + 4);
    for (const byte of isLittle ? word.reverse() : word) text += byte.toString(16).padStart(2, '0');
  }
  return `${text}:${port.toString(16).padStart(4, '0')}`.toUpperCase();
}

/** Inodes of this process' own sockets. */
function ownInodes(): Set<string> {
  const inodes = new Set<string>();
  for (const descriptor of readdirSync('/proc/self/fd')) {
    try {
      const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${descriptor}`))?.[1];
      if (inode !== undefined) inodes.add(inode);
    } catch {
      // The descriptor was closed between the two calls.
    }
  }
  return inodes;
}

/** Follows the socket that this process has bound to an address. The kernel's counter has 32 bits and wraps. */
export function createKernelDrops(address: string, port: number): KernelDrops {
  const path = isIPv6(address) ? '/proc/net/udp6' : '/proc/net/udp';
  const rows = (): Row[] => {
    try {
      return rowsOf(readFileSync(path, 'utf8'));
    } catch {
      // No such table: the kernel has no figure to give.
      return [];
    }
  };
  const local = localText(address, port);
  const found = rows().filter((row) => row.local === local);
  const own = found.length > 0 ? ownInodes() : new Set<string>();
  const inode = found.find((row) => own.has(row.inode))?.inode;
  let before = 0;
  return {
    poll() {
      if (inode === undefined) return 0;
      const now = rows().find((row) => row.inode === inode)?.drops ?? before;
      const more = (now - before) >>> 0;
      before = now;
      return more;
    },
  };
}
